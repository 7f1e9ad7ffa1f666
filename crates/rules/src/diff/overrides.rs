//! How the limits of single keys change.

use std::cmp::Ordering;

use tollgate_core::Quota;

use super::Direction;
use super::limits::quota_direction;
use crate::rule::Rule;

/// What becomes of keys that have limits of their own.
///
/// ```
/// use tollgate_rules::{RuleChange, RuleSet};
/// let rules = |overrides| {
///     RuleSet::parse(&format!(
///         "rules: [{{ name: a, key: [user], limit: 5/s, overrides: {{ {overrides} }} }}]"
///     ))
/// };
/// let changes = rules("ann: 9/s, bob: 7/s")?.changes(&rules("ann: 8/s, cid: 7/s")?);
/// let [RuleChange::Changed { overrides: Some(overrides), .. }] = &changes.rules[..] else {
///     panic!("one")
/// };
/// assert_eq!((overrides.added, overrides.removed, overrides.changed), (1, 1, 1));
/// assert_eq!(overrides.first[0].to_string(), "ann: 9/s -> 8/s");
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideChanges {
    /// How many keys have one now and had none.
    pub added: usize,
    /// How many had one and have none now.
    pub removed: usize,
    /// How many have another one.
    pub changed: usize,
    /// The first of all these, at most [`MAX`](Self::MAX), in the order of the keys.
    pub first: Vec<OverrideChange>,
    /// Whether those that have another one are allowed less or more.
    pub direction: Option<Direction>,
}

impl OverrideChanges {
    /// The most that are listed.
    pub const MAX: usize = 10;
}

/// What becomes of one key that has or had a limit of its own.
///
/// ```
/// use tollgate_rules::OverrideChange;
/// let to = "9/s".parse().ok();
/// let change = OverrideChange { key: "ann".to_owned(), from: None, to };
/// assert_eq!(change.to_string(), "ann: added with 9/s");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideChange {
    /// The key, in the form in which it is counted.
    pub key: String,
    /// Its limit; `None` if it had none of its own.
    pub from: Option<Quota>,
    /// Its limit now; `None` if it has none of its own.
    pub to: Option<Quota>,
}

/// The changes between the overrides of two rules; `None` if there are none. Both lists are
/// sorted, so one walk along both finds them, however long they are.
pub(super) fn compare(old: &Rule, new: &Rule) -> Option<OverrideChanges> {
    let quota = |rule: &Rule, number: usize| {
        rule.overrides.as_ref().and_then(|overrides| overrides.quotas.get(number).copied())
    };
    let (mut before, mut after) = (old.overrides().peekable(), new.overrides().peekable());
    let mut changes = OverrideChanges::default();
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((before, _)), Some((after, _))) => before.cmp(after),
        };
        let gone = if order == Ordering::Greater { None } else { before.next() };
        let came = if order == Ordering::Less { None } else { after.next() };
        let Some(key) = gone.or(came).map(|(key, _)| key) else { break };
        let from = gone.and_then(|(_, number)| quota(old, number));
        let to = came.and_then(|(_, number)| quota(new, number));
        changes.add(key, (from, old), (to, new));
    }
    (changes != OverrideChanges::default()).then_some(changes)
}

impl OverrideChanges {
    fn add(
        &mut self,
        key: &str,
        (from, old): (Option<Quota>, &Rule),
        (to, new): (Option<Quota>, &Rule),
    ) {
        match (from, to) {
            (Some(from), Some(to)) if from == to => return,
            (Some(from), Some(to)) => {
                self.changed += 1;
                let direction = quota_direction((from, old), (to, new));
                self.direction = Direction::with(self.direction, direction);
            }
            (Some(_), None) => self.removed += 1,
            (None, _) => self.added += 1,
        }
        if self.first.len() < Self::MAX {
            self.first.push(OverrideChange { key: key.to_owned(), from, to });
        }
    }
}

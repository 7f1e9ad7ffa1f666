//! What changes between two rule sets: what they mean, not how they are written.

mod aspect;
mod display;
mod limits;
mod overrides;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use self::overrides::{OverrideChange, OverrideChanges};
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::settings::Mode;
use crate::tiers::Tiers;
use aspect::aspects;

/// All that another version of the rules changes.
///
/// ```
/// use tollgate_rules::RuleSet;
/// let old = RuleSet::parse("rules: [{ name: a, key: [user], limit: 100/min }]")?;
/// let new = RuleSet::parse("rules: [{ name: a, key: [user], limit: 50/min, cost: 1 }]")?;
/// let changes = old.changes(&new);
/// assert_eq!(changes.to_string(), "a: stricter\n  limit: 100/min -> 50/min (half)\n");
/// assert!(old.changes(&old).is_empty());
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What is changed beside the rules: the namespace (all counters begin anew), whose addresses
    /// count, tiers.
    pub file: Vec<Change>,
    /// Rules that are changed, in the order of the new file, then those that are gone.
    pub rules: Vec<RuleChange>,
}

/// What becomes of one rule.
///
/// ```
/// use tollgate_rules::{RuleChange, RuleSet};
/// let old = RuleSet::parse("rules: [{ name: a, key: [user], limit: 9/s }]")?;
/// let new = RuleSet::parse("rules: [{ name: b, key: [user], limit: 9/s }]")?;
/// let renamed = RuleChange::Renamed { from: "a".to_owned(), to: "b".to_owned() };
/// assert_eq!(old.changes(&new).rules, [renamed]);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleChange {
    /// It is new.
    Added {
        /// Its name.
        name: String,
        /// What it says, in words.
        words: String,
        /// Stricter, unless it denies nothing.
        direction: Option<Direction>,
    },
    /// It is gone.
    Removed {
        /// Its name.
        name: String,
        /// What it said, in words.
        words: String,
        /// Looser, unless it denied nothing.
        direction: Option<Direction>,
    },
    /// It has another name, and is the same otherwise. Its counters begin anew.
    Renamed {
        /// What it was called.
        from: String,
        /// What it is called now.
        to: String,
    },
    /// It says something else.
    Changed {
        /// Its name.
        name: String,
        /// What it says else.
        changes: Vec<Change>,
        /// Keys with limits of their own.
        overrides: Option<OverrideChanges>,
        /// Whether it allows less or more, where that can be told.
        direction: Option<Direction>,
        /// Whether its counters begin anew, as they count by something else.
        begins_anew: bool,
    },
}

/// One thing that is changed.
///
/// ```
/// use tollgate_rules::{Direction, RuleChange, RuleSet};
/// let old = RuleSet::parse("rules: [{ name: a, key: [user], limit: 9/s }]")?;
/// let new = RuleSet::parse("rules: [{ name: a, key: [user], limit: 9/s, mode: shadow }]")?;
/// let changes = old.changes(&new);
/// let [RuleChange::Changed { changes, .. }] = &changes.rules[..] else { panic!("one") };
/// assert_eq!(changes[0].to_string(), "mode: enforce -> shadow");
/// assert_eq!(changes[0].direction, Some(Direction::Looser));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The field: `limit`, `match.path`.
    pub field: String,
    /// The tier that it is about, if it is about one alone.
    pub tier: Option<String>,
    /// What it was; empty if it was not there.
    pub from: String,
    /// What it is; empty if it is gone.
    pub to: String,
    /// How much that is of what it was: `half`.
    pub ratio: Option<String>,
    /// Whether it allows less or more, where that can be told.
    pub direction: Option<Direction>,
}

/// Whether less or more is allowed than before.
///
/// ```
/// use tollgate_rules::{Direction, RuleSet};
/// let old = RuleSet::parse("rules: [{ name: a, key: [user], limit: 9/s }]")?;
/// let new = RuleSet::parse("rules: [{ name: a, key: [user], limit: 9/s, burst: 20 }]")?;
/// assert_eq!(old.changes(&new).direction(), Some(Direction::Looser));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Less.
    Stricter,
    /// More.
    Looser,
    /// Less in one way, and more in another.
    Both,
}

impl Direction {
    /// Both ways together; what cannot be told changes nothing.
    fn with(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (None, known) | (known, None) => known,
            (Some(one), Some(other)) if one == other => Some(one),
            (Some(_), Some(_)) => Some(Self::Both),
        }
    }

    /// The way from one number to another, where a larger one allows more.
    fn of<T: Ord>(from: &T, to: &T) -> Option<Self> {
        match from.cmp(to) {
            std::cmp::Ordering::Less => Some(Self::Looser),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(Self::Stricter),
        }
    }
}

impl Changes {
    /// Whether both sets mean the same.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// let old = RuleSet::parse("rules: [{ name: a, key: [], limit: 60/min }]")?;
    /// let new = RuleSet::parse("rules: # all of them\n  - { limit: 60/min, name: a, key: [] }")?;
    /// assert!(old.changes(&new).is_empty());
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn is_empty(&self) -> bool {
        self.file.is_empty() && self.rules.is_empty()
    }

    /// Whether less or more is allowed by those rules of which that can be told.
    ///
    /// ```
    /// # use tollgate_rules::{Direction, RuleSet};
    /// let (old, new) = (RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]")?, RuleSet::default());
    /// assert_eq!(old.changes(&new).direction(), Some(Direction::Looser));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn direction(&self) -> Option<Direction> {
        let file = self.file.iter().map(|change| change.direction);
        let rules = self.rules.iter().map(RuleChange::direction);
        file.chain(rules).fold(None, Direction::with)
    }
}

impl RuleChange {
    /// Whether less or more is allowed, where that can be told.
    ///
    /// ```
    /// # use tollgate_rules::{Direction, RuleSet};
    /// let (old, new) = (RuleSet::default(), RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]")?);
    /// assert_eq!(old.changes(&new).rules[0].direction(), Some(Direction::Stricter));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn direction(&self) -> Option<Direction> {
        match self {
            Self::Added { direction, .. }
            | Self::Removed { direction, .. }
            | Self::Changed { direction, .. } => *direction,
            Self::Renamed { .. } => None,
        }
    }
}

impl RuleSet {
    /// What `new` changes if it takes the place of these rules. What is only written in another
    /// way, or in another order, is no change.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// let old = RuleSet::parse("rules: [{ name: a, key: [user], limit: 9/s }]")?;
    /// let new = RuleSet::parse("rules: [{ name: a, key: [ip], limit: 9/s }]")?;
    /// let text = old.changes(&new).to_string();
    /// assert_eq!(text, "a: changed; its counters begin anew\n  key: user -> ip\n");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn changes(&self, new: &Self) -> Changes {
        let known: BTreeMap<&str, &Rule> = named(self);
        let still: BTreeMap<&str, &Rule> = named(new);
        let gone: Vec<&Rule> =
            self.rules.iter().filter(|rule| !still.contains_key(rule.name())).collect();
        let sides = Sides { old: Side::new(self), new: Side::new(new) };
        let mut renamed = sides.by_meaning(&gone);
        let mut rules = Vec::new();
        let mut taken = BTreeSet::new();
        for rule in &new.rules {
            if let Some(old) = known.get(rule.name()) {
                rules.extend(sides.changed(old, rule));
                continue;
            }
            let same = renamed.get_mut(&sides.new.meaning(rule)).and_then(Vec::pop);
            let same = same.filter(|old| overrides::compare(old, rule).is_none());
            match same {
                Some(old) => {
                    taken.insert(old.name());
                    let (from, to) = (old.name().to_owned(), rule.name().to_owned());
                    rules.push(RuleChange::Renamed { from, to });
                }
                None => rules.push(RuleChange::Added {
                    name: rule.name().to_owned(),
                    words: rule.in_words(new.tiers()),
                    direction: (rule.mode() == Mode::Enforce).then_some(Direction::Stricter),
                }),
            }
        }
        rules.extend(gone.iter().filter(|rule| !taken.contains(rule.name())).map(|rule| {
            RuleChange::Removed {
                name: rule.name().to_owned(),
                words: rule.in_words(self.tiers()),
                direction: (rule.mode() == Mode::Enforce).then_some(Direction::Looser),
            }
        }));
        Changes { file: sides.file(), rules }
    }
}

fn named(set: &RuleSet) -> BTreeMap<&str, &Rule> {
    set.rules.iter().map(|rule| (rule.name(), rule)).collect()
}

/// The two sets.
struct Sides<'s> {
    old: Side<'s>,
    new: Side<'s>,
}

/// One of them.
struct Side<'s> {
    set: &'s RuleSet,
    /// The names of alternatives, by group and rank.
    alternatives: BTreeMap<(u32, u32), &'s str>,
}

impl<'s> Side<'s> {
    fn new(set: &'s RuleSet) -> Self {
        let place =
            |rule: &'s Rule| rule.alternative.map(|place| ((place.group, place.rank), rule.name()));
        Self { set, alternatives: set.rules.iter().filter_map(place).collect() }
    }

    /// All that a rule says, but for its name and overrides.
    fn meaning(&self, rule: &Rule) -> String {
        let mut text = String::new();
        for aspect in aspects(self, rule) {
            text += &format!("{}={:?};", aspect.field, aspect.text);
        }
        text + &limits::meaning(self.set, rule)
    }
}

impl<'s> Sides<'s> {
    /// Rules by all that they say, but for their names and overrides. The first is the last.
    fn by_meaning(&self, rules: &[&'s Rule]) -> BTreeMap<String, Vec<&'s Rule>> {
        let mut by_meaning: BTreeMap<_, Vec<&Rule>> = BTreeMap::new();
        for rule in rules.iter().rev() {
            by_meaning.entry(self.old.meaning(rule)).or_default().push(rule);
        }
        by_meaning
    }

    fn changed(&self, old: &Rule, new: &Rule) -> Option<RuleChange> {
        let mut changes = limits::compare(self, old, new);
        let (before, after) = (aspects(&self.old, old), aspects(&self.new, new));
        changes.extend(aspect::compare(&before, &after));
        let overrides = overrides::compare(old, new);
        if changes.is_empty() && overrides.is_none() {
            return None;
        }
        let over = overrides.as_ref().and_then(|overrides| overrides.direction);
        let each = changes.iter().map(|change| change.direction);
        // A rule that is about other requests, say, is neither stricter nor looser.
        let told = changes.iter().all(|change| change.direction.is_some() || change.is_neutral());
        Some(RuleChange::Changed {
            name: new.name().to_owned(),
            direction: each.chain([over]).fold(None, Direction::with).filter(|_| told),
            begins_anew: old.key.parts != new.key.parts,
            changes,
            overrides,
        })
    }

    /// What is changed beside the rules.
    fn file(&self) -> Vec<Change> {
        let (old, new) = (self.old.set, self.new.set);
        let mut changes = Vec::new();
        let mut compare = |field: &str, from: String, to: String| {
            if from != to {
                changes.push(Change::plain(field, from, to));
            }
        };
        compare("namespace", old.namespace().to_owned(), new.namespace().to_owned());
        let descriptors = |set: &RuleSet| set.descriptors().as_str().to_owned();
        compare("descriptors", descriptors(old), descriptors(new));
        compare("client_ip", old.client_ip.in_words(), new.client_ip.in_words());
        let from =
            |tiers: Option<&Tiers>| tiers.map_or_else(String::new, |it| it.from().to_string());
        compare("tiers.from", from(old.tiers()), from(new.tiers()));
        let other = |tiers: Option<&Tiers>| {
            tiers.map_or_else(String::new, |it| it.name(it.find("")).to_owned())
        };
        compare("tiers.else", other(old.tiers()), other(new.tiers()));
        let names = |set: &RuleSet| -> BTreeSet<String> {
            set.tiers().into_iter().flat_map(Tiers::names).map(str::to_owned).collect()
        };
        let (before, after) = (names(old), names(new));
        for gone in before.difference(&after) {
            compare("tier", gone.clone(), String::new());
        }
        for added in after.difference(&before) {
            compare("tier", String::new(), added.clone());
        }
        changes
    }
}

impl Change {
    fn plain(field: impl Into<String>, from: String, to: String) -> Self {
        let field = field.into();
        Self { field, tier: None, from, to, ratio: None, direction: None }
    }

    /// Whether it has nothing to do with how much is allowed.
    fn is_neutral(&self) -> bool {
        let neutral = ["consistency", "headers", "priority", "warn_at"];
        self.field.starts_with("deny.") || neutral.contains(&self.field.as_str())
    }
}

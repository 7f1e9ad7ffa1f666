//! The way to a limit in the tree of descriptors.

use std::cmp::Reverse;

use super::super::rule_file::{Rule, cel_entry, cel_text};

/// What an entry of a descriptor must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Exact(String),
    /// A beginning and a star, and whether all values that fit share one counter.
    Pattern(String, bool),
    Any,
}

impl Want {
    /// Smaller is preferred.
    pub(super) fn rank(&self) -> (u8, Reverse<usize>) {
        match self {
            Self::Exact(_) => (0, Reverse(0)),
            Self::Pattern(value, _) => (1, Reverse(value.len())),
            Self::Any => (2, Reverse(0)),
        }
    }
}

/// One step down the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) key: String,
    pub(super) want: Want,
}

impl Step {
    /// Whether whoever fits this is also one of those that fit the other, which is asked later.
    pub(super) fn is_preferred_to(&self, other: &Self) -> bool {
        let within = match (&self.want, &other.want) {
            (_, Want::Any) => self.want != Want::Any,
            (Want::Exact(value), Want::Pattern(pattern, _)) => value.starts_with(start(pattern)),
            (Want::Pattern(one, _), Want::Pattern(pattern, _)) => {
                one != pattern && one.starts_with(start(pattern))
            }
            (_, Want::Exact(_)) | (Want::Any, Want::Pattern(..)) => false,
        };
        self.key == other.key && within
    }

    /// That an entry does not fit this.
    pub(super) fn refused(&self) -> Option<String> {
        let (entry, there) = cel_entry(&self.key);
        match &self.want {
            Want::Exact(value) => Some(format!("!({there} && {entry} == {})", cel_text(value))),
            Want::Pattern(pattern, _) => {
                let start = cel_text(start(pattern));
                Some(format!("!({there} && {entry}.startsWith({start}))"))
            }
            Want::Any => None,
        }
    }
}

/// What a pattern begins with.
fn start(pattern: &str) -> &str {
    pattern.strip_suffix('*').unwrap_or(pattern)
}

/// The keys of a chain, as descriptors have them.
pub(super) fn keys(steps: &[Step]) -> String {
    let key = |step: &Step| step.key.replace('%', "%25").replace('/', "%2F");
    steps.iter().map(key).collect::<Vec<_>>().join("/")
}

/// What to call a limit that has no name.
pub(super) fn chain_name(steps: &[Step]) -> String {
    let part = |step: &Step| match &step.want {
        Want::Exact(value) | Want::Pattern(value, _) => format!("{}-{value}", step.key),
        Want::Any => step.key.clone(),
    };
    steps.iter().map(part).collect::<Vec<_>>().join("-")
}

/// What a request must have to meet a limit, and what it is counted by.
pub(super) fn conditions(domain: &str, steps: &[Step], rule: &mut Rule) {
    for (name, value) in [("domain", domain), ("descriptor_keys", &*keys(steps))] {
        // Stars are no patterns there.
        match value.contains('*') {
            true => rule.when.push(format!("{name} == {}", cel_text(value))),
            false => rule.matches.push((name.to_owned(), vec![value.to_owned()])),
        }
    }
    for step in steps {
        let attribute = format!("descriptor.{}", step.key);
        if rule.key.contains(&attribute) || rule.matches.iter().any(|(name, _)| *name == attribute)
        {
            continue;
        }
        let counted = match &step.want {
            Want::Exact(_) => false,
            Want::Pattern(_, shared) => !shared,
            Want::Any => true,
        };
        match &step.want {
            // Stars within a value are no patterns there.
            Want::Exact(value) if value.contains('*') => {
                let (entry, there) = cel_entry(&step.key);
                rule.when.push(format!("{there} && {entry} == {}", cel_text(value)));
            }
            Want::Pattern(value, _) if value.find('*') < Some(value.len() - 1) => {
                let (entry, there) = cel_entry(&step.key);
                let start = cel_text(&value[..value.len() - 1]);
                rule.when.push(format!("{there} && {entry}.startsWith({start})"));
            }
            Want::Exact(value) | Want::Pattern(value, _) => {
                rule.matches.push((attribute.clone(), vec![value.clone()]));
            }
            Want::Any => {}
        }
        if counted {
            rule.key.push(attribute);
        }
    }
}

//! The kill switch: rules that are taken out of force without another file, at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tollgate::Mode;
use tollgate_rules::{Rule, RuleSet, UnknownRule};

use crate::service::SwapError;

/// What is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    All,
    Rule(&'a str),
}

/// What a rule is switched to; the last is the strongest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Killed {
    /// It counts and reports, and denies nothing.
    Shadow,
    /// It is as if it were not there.
    #[default]
    Off,
}

/// Which rules are switched. It holds names of rules that there are, and no others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    all: Option<Killed>,
    rules: BTreeMap<Box<str>, Killed>,
}

/// Why nothing was switched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SwitchError {
    /// There is no such rule.
    #[error(transparent)]
    Unknown(#[from] UnknownRule),
    /// It is in force anyway, as far as this switch goes.
    #[error("`{0}` is not killed: see which are")]
    NotKilled(String),
    /// All rules are, and this one not by itself.
    #[error("`{0}` is killed with all others: unkill all of them")]
    KilledWithAll(String),
    /// The engine does not take it.
    #[error(transparent)]
    Swap(#[from] SwapError),
}

impl Killed {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }

    const fn mode(self) -> Mode {
        match self {
            Self::Shadow => Mode::Shadow,
            Self::Off => Mode::Off,
        }
    }
}

impl Switches {
    pub(crate) const fn all(&self) -> Option<Killed> {
        self.all
    }

    /// The rules that are killed by name.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, Killed)> {
        self.rules.iter().map(|(name, killed)| (&**name, *killed))
    }

    /// How a rule is switched, by its name or with all others: whichever is stronger.
    pub(crate) fn of(&self, rule: &str) -> Option<Killed> {
        self.rules.get(rule).copied().max(self.all)
    }

    pub(crate) fn kill(
        &mut self,
        rules: &RuleSet,
        which: Which<'_>,
        killed: Killed,
    ) -> Result<(), SwitchError> {
        match which {
            Which::All => self.all = Some(killed),
            Which::Rule(name) => {
                rules.find(name)?;
                self.rules.insert(name.into(), killed);
            }
        }
        Ok(())
    }

    /// Takes a switch back: all of them with [`Which::All`].
    pub(crate) fn unkill(&mut self, rules: &RuleSet, which: Which<'_>) -> Result<(), SwitchError> {
        match which {
            Which::All => *self = Self::default(),
            Which::Rule(name) => {
                rules.find(name)?;
                if self.rules.remove(name).is_none() {
                    return Err(match self.all {
                        Some(_) => SwitchError::KilledWithAll(name.to_owned()),
                        None => SwitchError::NotKilled(name.to_owned()),
                    });
                }
            }
        }
        Ok(())
    }

    /// The same for other rules: without the names that they do not have, which are returned.
    pub(crate) fn keep(&mut self, rules: &RuleSet) -> Vec<Box<str>> {
        let gone = |name: &str| rules.rules().iter().all(|rule| rule.name() != name);
        self.rules.extract_if(.., |name, _| gone(name)).map(|(name, _)| name).collect()
    }

    /// The rules as they are then.
    pub(crate) fn apply(&self, rules: &Arc<RuleSet>) -> Arc<RuleSet> {
        if *self == Self::default() {
            return Arc::clone(rules);
        }
        let mode = |rule: &Rule| match (rule.mode(), self.of(rule.name())) {
            // A switch takes rules out of force, and brings none into it.
            (Mode::Off, _) | (_, None) => None,
            (_, Some(killed)) => Some(killed.mode()),
        };
        Arc::new(rules.with_modes(mode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Arc<RuleSet> {
        let text = "rules:
  - { name: a, key: [], limit: 1/h }
  - { name: b, key: [], limit: 1/h, mode: shadow }
  - { name: c, key: [], limit: 1/h, mode: off }";
        Arc::new(RuleSet::parse(text).unwrap())
    }

    fn modes(switches: &Switches) -> Vec<Mode> {
        switches.apply(&rules()).rules().iter().map(Rule::mode).collect()
    }

    #[test]
    fn the_stronger_switch_counts_and_none_brings_a_rule_into_force() {
        let mut switches = Switches::default();
        assert_eq!(modes(&switches), [Mode::Enforce, Mode::Shadow, Mode::Off]);
        switches.kill(&rules(), Which::All, Killed::Shadow).unwrap();
        assert_eq!(modes(&switches), [Mode::Shadow, Mode::Shadow, Mode::Off]);
        switches.kill(&rules(), Which::Rule("a"), Killed::Off).unwrap();
        assert_eq!(modes(&switches), [Mode::Off, Mode::Shadow, Mode::Off]);
        switches.unkill(&rules(), Which::Rule("a")).unwrap();
        assert_eq!(modes(&switches), [Mode::Shadow, Mode::Shadow, Mode::Off]);
        switches.unkill(&rules(), Which::All).unwrap();
        assert_eq!(modes(&switches), [Mode::Enforce, Mode::Shadow, Mode::Off]);
    }

    #[test]
    fn what_is_not_there_or_not_killed_is_an_error() {
        let mut switches = Switches::default();
        let error = switches.kill(&rules(), Which::Rule("aa"), Killed::Off).unwrap_err();
        assert!(error.to_string().contains("did you mean `a`"), "{error}");
        let error = switches.unkill(&rules(), Which::Rule("a")).unwrap_err();
        assert!(matches!(error, SwitchError::NotKilled(_)));
        switches.kill(&rules(), Which::All, Killed::Off).unwrap();
        let error = switches.unkill(&rules(), Which::Rule("a")).unwrap_err();
        assert!(matches!(error, SwitchError::KilledWithAll(_)));
    }

    #[test]
    fn names_that_other_rules_do_not_have_are_forgotten() {
        let mut switches = Switches::default();
        switches.kill(&rules(), Which::Rule("a"), Killed::Off).unwrap();
        switches.kill(&rules(), Which::Rule("b"), Killed::Off).unwrap();
        let other = RuleSet::parse("rules: [{ name: b, key: [], limit: 1/h }]").unwrap();
        assert_eq!(switches.keep(&other), [Box::from("a")]);
        assert_eq!(switches.each().collect::<Vec<_>>(), [("b", Killed::Off)]);
    }
}

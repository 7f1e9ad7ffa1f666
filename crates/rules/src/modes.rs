//! The same rules in other modes: a switch for whoever must be quicker than a new file.

use crate::index::Index;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::settings::Mode;

impl RuleSet {
    /// The same rules, some of them in other modes: `mode` says which, `None` leaves a rule as it
    /// is. A rule that is off is as if it were not in the file; of alternatives
    /// (`first_match: true`) the next one applies then.
    ///
    /// It has the same [version](Self::version), which names the content of the file. What was
    /// spent stays spent when such rules are exchanged for each other, also from rules that were
    /// off meanwhile.
    ///
    /// ```
    /// use tollgate_rules::{Facts, Mode, Request, RuleSet};
    /// let set = RuleSet::parse(
    ///     "rules: [{ name: a, key: [], limit: 5/s }, { name: b, key: [], limit: 9/s }]",
    /// )?;
    /// let killed = set.with_modes(|rule| (rule.name() == "a").then_some(Mode::Off));
    /// let request = Request::new("GET", "/");
    /// let applying = killed.applying(&Facts::new(&killed, &request, None));
    /// assert_eq!(applying.as_slice(), [1]);
    /// assert_eq!(killed.version(), set.version());
    ///
    /// let all_in_shadow = set.with_modes(|_| Some(Mode::Shadow));
    /// assert!(all_in_shadow.rules().iter().all(|rule| rule.mode() == Mode::Shadow));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[must_use = "these rules stay as they are"]
    pub fn with_modes(&self, mode: impl Fn(&Rule) -> Option<Mode>) -> Self {
        let mut set = self.clone();
        for rule in &mut set.rules {
            rule.settings.mode = mode(rule).unwrap_or(rule.settings.mode);
        }
        set.index = index_active(&set.rules);
        set
    }
}

/// The index of all rules but those that are off.
pub(crate) fn index_active(rules: &[Rule]) -> Index {
    let active = rules.iter().zip(0u32..).filter(|(rule, _)| rule.mode() != Mode::Off);
    Index::new(active.map(|(rule, number)| (number, &rule.matching)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Facts, Request};

    const ALTERNATIVES: &str = "rules:
  - first_match: true
    rules:
      - { name: exports, match: { path: /v1/export }, key: [], limit: 1/min }
      - { name: others, match: { path: /v1/** }, key: [], limit: 9/min }
  - { name: all, key: [], limit: 99/min, mode: shadow }";

    fn applying(set: &RuleSet) -> Vec<&str> {
        let request = Request::new("GET", "/v1/export");
        let numbers = set.applying(&Facts::new(set, &request, None));
        numbers.iter().map(|number| set.rules()[*number].name()).collect()
    }

    #[test]
    fn of_alternatives_the_next_one_applies_when_one_is_off() {
        let set = RuleSet::parse(ALTERNATIVES).unwrap();
        assert_eq!(applying(&set), ["exports", "all"]);
        let killed = set.with_modes(|rule| (rule.name() == "exports").then_some(Mode::Off));
        assert_eq!(applying(&killed), ["others", "all"]);
        assert_eq!(applying(&set), ["exports", "all"], "the set itself is as it was");
    }

    #[test]
    fn one_that_is_only_in_shadow_is_still_the_alternative() {
        let set = RuleSet::parse(ALTERNATIVES).unwrap();
        let shadow = set.with_modes(|rule| (rule.name() == "exports").then_some(Mode::Shadow));
        assert_eq!(applying(&shadow), ["exports", "all"]);
    }

    #[test]
    fn what_is_off_in_the_file_can_be_switched_on() {
        let text = ALTERNATIVES.replace("mode: shadow", "mode: off");
        let set = RuleSet::parse(&text).unwrap();
        assert_eq!(applying(&set), ["exports"]);
        let on = set.with_modes(|rule| (rule.name() == "all").then_some(Mode::Enforce));
        assert_eq!(applying(&on), ["exports", "all"]);
        assert!(applying(&set.with_modes(|_| Some(Mode::Off))).is_empty());
    }
}

//! Rules that want to know how requests end, where there is a door at which somebody asks who does
//! not say so.

use tollgate::{Mode, RuleSet};
use tollgate_rules::Rule;

use crate::door::Name;

impl Name {
    /// Who asks at this door and does not say what became of the requests that were let in.
    const fn silent(self) -> Option<&'static str> {
        match self {
            Self::ForwardAuth => Some("nobody says"),
            // With the rate limit service, or with ext_authz. Others report, and get tickets for it.
            Self::Grpc => Some("Envoy does not say"),
            Self::Http | Self::Resp | Self::Admin | Self::Status => None,
        }
    }
}

/// Says in the log which of these rules do not do at this door what they do at others.
pub(crate) fn tell(rules: &RuleSet, door: Name) {
    let Some(silent) = door.silent() else { return };
    let door = door.as_str();
    if let Some(rules) = names(rules, |rule| rule.concurrent().is_some()) {
        tracing::warn!(
            door,
            rules,
            "{silent} at this door when a request ends: `concurrent` gives its slots back with the \
             answer, and so limits hardly anything there"
        );
    }
    if let Some(rules) = names(rules, Rule::counts_outcomes) {
        tracing::info!(
            door,
            rules,
            "{silent} at this door how a request ended: `count_if` counts every request there"
        );
    }
}

/// The names of the rules in force that are of this kind; `None` if there are none.
fn names(rules: &RuleSet, is_one: impl Fn(&Rule) -> bool) -> Option<String> {
    let rules = rules.rules().iter().filter(|rule| rule.mode() != Mode::Off && is_one(rule));
    let names: Vec<_> = rules.map(Rule::name).collect();
    let (shown, more) = names.split_at(names.len().min(MOST));
    match (shown, more.len()) {
        ([], _) => None,
        (shown, 0) => Some(shown.join(", ")),
        (shown, more) => Some(format!("{} and {more} more", shown.join(", "))),
    }
}

/// So many are named.
const MOST: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_unless_they_are_off_or_many() {
        let rules = |count: usize| {
            let each = (0..count)
                .map(|number| format!("  - {{ name: r{number}, key: [], concurrent: 1 }}\n"));
            let off = "  - { name: off, key: [], concurrent: 1, mode: off }\n";
            RuleSet::parse(&format!("rules:\n{}{off}", each.collect::<String>())).unwrap()
        };
        let named = |count| names(&rules(count), |rule| rule.concurrent().is_some());
        assert_eq!(named(0), None);
        assert_eq!(named(2).as_deref(), Some("r0, r1"));
        assert!(named(12).is_some_and(|names| names.ends_with("r9 and 2 more")));
    }
}

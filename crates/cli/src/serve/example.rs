//! A request that the rules in force are about, for whoever wants to see them at work.

use serde_json::{Map, Value};
use tollgate::{Mode, Request, RuleSet};
use tollgate_rules::{Attribute, Facts, Rule};

/// A request that some rule is about, with no more than that rule counts by.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Example {
    /// The first rule that it meets.
    pub(super) rule: String,
    /// What it says about itself, under the names that rules use.
    attributes: Vec<(String, &'static str)>,
}

impl Example {
    /// The first there is. Where a rule asks for a path or a method nobody can guess which, and for
    /// such rules alone there is none.
    pub(super) fn of(rules: &RuleSet) -> Option<Self> {
        let in_force = rules.rules().iter().filter(|rule| rule.mode() == Mode::Enforce);
        in_force.filter_map(attributes).find_map(|attributes| {
            let rule = first_met(rules, &attributes)?;
            Some(Self { rule, attributes })
        })
    }

    /// As the body of a question.
    pub(super) fn json(&self) -> String {
        let pair = |(name, value): &(String, &str)| (name.clone(), Value::from(*value));
        Value::Object(self.attributes.iter().map(pair).collect::<Map<_, _>>()).to_string()
    }

    /// As flags of a command: `user=alice`.
    pub(super) fn words(&self) -> String {
        let words: Vec<_> =
            self.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        words.join(" ")
    }
}

/// What a request says that a rule is to count; `None` if that cannot be made up.
fn attributes(rule: &Rule) -> Option<Vec<(String, &'static str)>> {
    let made_up = |part: &Attribute| {
        let value = match part {
            Attribute::Ip | Attribute::IpPrefix(_) => return Some(("ip".to_owned(), ADDRESS)),
            Attribute::Host => "example.com",
            Attribute::Given(name) if &**name == "user" => "alice",
            Attribute::Given(_) => "a1",
            _ => return None,
        };
        Some((part.to_string(), value))
    };
    rule.key().iter().map(made_up).collect()
}

/// The first enforced rule that counts such a request.
fn first_met(rules: &RuleSet, attributes: &[(String, &'static str)]) -> Option<String> {
    let value = |name: &str| attributes.iter().find(|(known, _)| known == name).map(|it| it.1);
    let given: Vec<_> = attributes
        .iter()
        .filter(|(name, _)| name != "ip" && name != "host")
        .map(|(name, value)| (&**name, *value))
        .collect();
    let mut request =
        Request::new("GET", "/").host(value("host").unwrap_or_default()).attributes(&given);
    if let Some(ip) = value("ip").and_then(|ip| ip.parse().ok()) {
        request = request.peer(ip);
    }
    let facts = Facts::new(rules, &request, rules.geo());
    let mut met = None;
    rules.each_matching(&facts, |_, rule| {
        let counts = rule.key().iter().all(|part| rule.key_value(part, &facts).is_some());
        if counts && rule.mode() == Mode::Enforce && met.is_none() {
            met = Some(rule.name().to_owned());
        }
    });
    met
}

/// One that is nobody's.
const ADDRESS: &str = "192.0.2.7";

#[cfg(test)]
mod tests {
    use super::*;

    fn example(rules: &str) -> Option<Example> {
        Example::of(&RuleSet::parse(&format!("rules:\n{rules}")).unwrap())
    }

    #[test]
    fn a_request_is_about_a_rule_that_it_meets() {
        for (rules, rule, json) in [
            ("  - { name: a, key: [user], limit: 1/s }", "a", r#"{"user":"alice"}"#),
            ("  - { name: a, key: [], limit: 1/s }", "a", "{}"),
            (
                "  - { name: a, key: [ip, host], limit: 1/s }",
                "a",
                r#"{"host":"example.com","ip":"192.0.2.7"}"#,
            ),
            ("  - { name: a, key: [claims.org], limit: 1/s }", "a", r#"{"claims.org":"a1"}"#),
            (
                "  - { name: a, match: { path: /x }, key: [user], limit: 1/s }\n  - { name: b, key: [ip/24], limit: 1/s }",
                "b",
                r#"{"ip":"192.0.2.7"}"#,
            ),
            (
                "  - { name: a, key: [user], limit: 1/s, mode: shadow }\n  - { name: b, key: [account], limit: 1/s }",
                "b",
                r#"{"account":"a1"}"#,
            ),
        ] {
            let found = example(rules).unwrap_or_else(|| panic!("none: {rules}"));
            assert_eq!((&*found.rule, &*found.json()), (rule, json), "{rules}");
        }
    }

    #[test]
    fn there_is_none_where_nobody_can_guess_it() {
        for rules in [
            "  - { name: a, match: { path: /login, method: POST }, key: [user], limit: 1/s }",
            "  - { name: a, match: { path: '/u/{id}' }, key: [path.id], limit: 1/s }",
            "  - { name: a, key: [user], limit: 1/s, mode: off }",
        ] {
            assert_eq!(example(rules), None, "{rules}");
        }
    }
}

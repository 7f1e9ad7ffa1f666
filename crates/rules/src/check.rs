//! What is allowed in a rule file, and hardly meant.

use std::collections::BTreeMap;

use tollgate_core::Rate;

use crate::attribute::Attribute;
use crate::budget::{Algorithm, Budget};
use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value};
use crate::key::Missing;
use crate::read::{Fields, Reader};
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::settings::Mode;
use crate::source::Span;
use crate::window::Window;

/// How many values of rules are compared in all: what these warnings are worth.
struct Patience(usize);

impl Patience {
    const ALL: usize = 20_000_000;

    /// What a comparison takes beside its values.
    const EACH: usize = 10;

    /// Whether two rules are still compared.
    fn allows(&mut self, one: &Rule, other: &Rule) -> bool {
        let effort = one.matching.effort(&other.matching) + Self::EACH;
        self.0 = self.0.saturating_sub(effort);
        self.0 > 0
    }
}

/// Rules that need a database of networks, and a file that names none, are an error: they would
/// never apply.
pub(crate) fn check_geo(
    reader: &mut Reader<'_>,
    set: &RuleSet,
    fields: &Fields<'_>,
    nodes: &[&Node],
) {
    let (asn, country) = set.geo.as_ref().map_or((false, false), |geo| geo.knows());
    for (attribute, known) in [(Attribute::Asn, asn), (Attribute::Country, country)] {
        if known {
            continue;
        }
        let message = format!("nothing says what the `{attribute}` of an address is");
        let remedy = format!("name a database: `geo: {{ {attribute}: FILE.mmdb }}`");
        let mut needs = |span: Span, label: &str| {
            let (message, remedy) = (message.clone(), remedy.clone());
            reader.add(Diagnostic::error("no-geo", span, message, label, remedy));
        };
        if set.tiers().is_some_and(|tiers| *tiers.from() == attribute) {
            needs(fields.name_span("tiers"), "needs it");
        }
        for (rule, node) in set.rules.iter().zip(nodes) {
            if rule.asks_for(&|asked| *asked == attribute) {
                needs(place(node, "name"), "this rule needs it");
            }
        }
    }
}

/// Warns of rules that do nothing, or not what one might think.
pub(crate) fn check(reader: &mut Reader<'_>, set: &RuleSet, nodes: &[&Node]) {
    for (rule, node) in set.rules.iter().zip(nodes) {
        if rule.mode() == Mode::Off {
            let message = format!("`{}` is off, as if it were not there", rule.name);
            let remedy = "write `mode: shadow` to see what it would do, or take it out";
            warn(reader, "rule-off", place(node, "mode"), message, "off", remedy);
        }
    }
    let mut patience = Patience(Patience::ALL);
    check_alternatives(reader, set, nodes, &mut patience);
    check_shadowed(reader, set, nodes, &mut patience);
    check_chosen_keys(reader, set, nodes, &mut patience);
}

/// Alternatives before which another one always takes the request.
fn check_alternatives(
    reader: &mut Reader<'_>,
    set: &RuleSet,
    nodes: &[&Node],
    patience: &mut Patience,
) {
    let mut groups: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
    for (number, rule) in set.rules.iter().enumerate() {
        if let Some(place) = rule.alternative.filter(|_| rule.mode() != Mode::Off) {
            groups.entry(place.group).or_default().push((place.rank, number));
        }
    }
    let mut left = MAX_COMPARED;
    for group in groups.values_mut().filter(|group| affordable(&mut left, group.len())) {
        group.sort_unstable();
        for (at, (_, number)) in group.iter().enumerate() {
            let rule = &set.rules[*number];
            let takes = |(_, first): &&(u32, usize)| {
                let first = &set.rules[*first];
                patience.allows(first, rule) && first.takes_all_of(rule)
            };
            let Some((_, first)) = group[..at].iter().find(takes) else { continue };
            let first = &set.rules[*first].name;
            let message = format!("`{}` never applies: `{first}` of its group does", rule.name);
            let remedy = "say what sets it apart in `match`, or take it out";
            let span = place(nodes[*number], "name");
            warn(reader, "unreachable-rule", span, message, "never asked", remedy);
        }
    }
}

/// Rules that another one, stricter and about more, always denies before.
fn check_shadowed(
    reader: &mut Reader<'_>,
    set: &RuleSet,
    nodes: &[&Node],
    patience: &mut Patience,
) {
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, rule) in set.rules.iter().enumerate() {
        if rule.mode() == Mode::Enforce && rule.alternative.is_none() {
            let key = format!("{:?}{:?}", rule.key.parts, rule.key.missing);
            alike.entry(key).or_default().push(number);
        }
    }
    let mut left = MAX_COMPARED;
    for numbers in alike.values().filter(|numbers| affordable(&mut left, numbers.len())) {
        for number in numbers {
            let rule = &set.rules[*number];
            let other = numbers.iter().filter(|other| *other != number).find(|other| {
                let first = &set.rules[**other];
                // Of two that say the same, the second is too much.
                patience.allows(first, rule)
                    && first.denies_before(rule)
                    && (*other < number || !rule.denies_before(first))
            });
            let Some(other) = other.map(|other| &set.rules[*other]) else { continue };
            let span = place(nodes[*number], "name");
            let (name, other_name) = (&rule.name, &other.name);
            match rule.denies_before(other) {
                true => {
                    let message = format!("`{name}` limits the same as `{other_name}`");
                    let remedy = "keep one of them";
                    warn(reader, "duplicate-limit", span, message, "once is enough", remedy);
                }
                false => {
                    let message = format!(
                        "the limit of `{name}` is never reached: `{other_name}` is about the \
                         same requests and more, and stricter"
                    );
                    let remedy = "make this one stricter, or take it out";
                    warn(reader, "shadowed-rule", span, message, "never denies", remedy);
                }
            }
        }
    }
}

/// Keys of which clients can have as many as they like.
fn check_chosen_keys(
    reader: &mut Reader<'_>,
    set: &RuleSet,
    nodes: &[&Node],
    patience: &mut Patience,
) {
    let chosen = |rule: &&Rule| {
        !rule.key.parts.is_empty() && rule.key.parts.iter().all(Attribute::is_chosen_by_clients)
    };
    let bounds: Vec<&Rule> = set.rules.iter().filter(|rule| rule.bounds_clients()).collect();
    for (rule, node) in set.rules.iter().zip(nodes).filter(|(rule, _)| chosen(rule)) {
        // Of what is not compared any more nothing is said.
        let covers = |it: &&Rule| !patience.allows(it, rule) || it.matching.covers(&rule.matching);
        if rule.mode() == Mode::Off || bounds.iter().any(covers) {
            continue;
        }
        let part = &rule.key.parts[0];
        let message = format!("clients choose `{part}`, and a new one each time has a new counter");
        let remedy =
            "count by what somebody has verified, such as `user`, or add a rule with `key: [ip]`";
        let span = place(node, "key");
        warn(reader, "client-chosen-key", span, message, "nobody checks it", remedy);
    }
}

/// Whether so many rules can still be compared one with another; those that cannot are passed over.
const fn affordable(left: &mut usize, rules: usize) -> bool {
    let pairs = rules.saturating_mul(rules);
    let affordable = pairs <= *left;
    if affordable {
        *left -= pairs;
    }
    affordable
}

fn warn(
    reader: &mut Reader<'_>,
    code: &'static str,
    span: Span,
    message: String,
    label: &str,
    remedy: &str,
) {
    reader.add(Diagnostic::error(code, span, message, label, remedy).warning());
}

/// Where a field of a rule stands; where the rule begins if it has none.
fn place(node: &Node, name: &str) -> Span {
    let field = match &node.value {
        Value::Map(fields) => fields.iter().find(|field| field.name == name),
        _ => None,
    };
    field.map_or(node.span.start..node.span.start, |field| field.value.span.clone())
}

impl Rule {
    /// Whether this surely applies to every request that `other` applies to.
    fn takes_all_of(&self, other: &Self) -> bool {
        let key = self.key.parts.is_empty()
            || self.key == other.key
            || matches!(self.key.missing, Missing::Together(_));
        key && self.matching.covers(&other.matching)
    }

    /// Whether this surely denies whatever `other` would deny: it counts the same keys, all that
    /// the other counts, in the same way, and has no more for them.
    fn denies_before(&self, other: &Self) -> bool {
        self.key == other.key
            && self.cost == other.cost
            && self.count_if == other.count_if
            && self.overrides.is_none()
            && other.overrides.is_none()
            && self.consistency() == other.consistency()
            && self.on_store_failure() == other.on_store_failure()
            && other.block.is_none()
            && self.budget.is_within(&other.budget)
            && self.matching.covers(&other.matching)
    }

    /// Whether it keeps a client within bounds, whatever it sends.
    fn bounds_clients(&self) -> bool {
        self.mode() == Mode::Enforce
            && self.count_if.is_none()
            && self.key.parts.iter().all(Attribute::is_where)
    }
}

impl Budget {
    /// Whether this surely never has more than `other`.
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rate(ours), Self::Rate(theirs)) => {
                let (a, b) = (&ours.quotas.0, &theirs.quotas.0);
                let tiers = a.len().max(b.len());
                let within = |tier: usize| {
                    let (our, their) = (ours.quotas.of(tier).rate(), theirs.quotas.of(tier).rate());
                    match (our, their) {
                        (_, None) => true,
                        (None, Some(_)) => false,
                        (Some(our), Some(their)) => {
                            let usual = |rate: &Rate| match ours.shape.algorithm {
                                Algorithm::LeakyBucket { .. } => 1,
                                _ => rate.count(),
                            };
                            let burst = |rate: &Rate| rate.burst().unwrap_or_else(|| usual(rate));
                            our.period() == their.period()
                                && our.count() <= their.count()
                                && burst(&our) <= burst(&their)
                        }
                    }
                };
                // Windows that begin anywhere begin elsewhere for each rule.
                let alike = ours.shape == theirs.shape && ours.shape.window != Window::Jittered;
                alike && (0..tiers).all(within)
            }
            (
                Self::Concurrent { most: ours, expires: a },
                Self::Concurrent { most: theirs, expires: b },
            ) => {
                let tiers = ours.0.len().max(theirs.0.len());
                a == b && (0..tiers).all(|tier| ours.of(tier) <= theirs.of(tier))
            }
            _ => false,
        }
    }
}

/// How many pairs of rules of a file are compared: a second's work at most.
const MAX_COMPARED: usize = 2_000_000;

#[cfg(test)]
mod tests {
    use crate::RuleSet;

    fn warnings(rules: &str) -> Vec<String> {
        let set = RuleSet::parse(&format!("rules:\n{rules}")).unwrap();
        let found = set.warnings().diagnostics().iter();
        found.map(|it| format!("{}: {}", it.code(), it.message())).collect()
    }

    #[test]
    fn an_alternative_that_is_never_asked_is_found() {
        let group = |key: &str| {
            format!(
                "  - first_match: true
    rules:
      - {{ name: a, match: {{ path: /x }}, key: [{key}], limit: 5/s }}
      - {{ name: b, match: {{ path: /x }}, key: [user], limit: 9/s }}"
            )
        };
        let expected = "unreachable-rule: `b` never applies: `a` of its group does";
        assert_eq!(warnings(&group("user")), [expected]);
        assert_eq!(warnings(&group("")), [expected]);
        assert_eq!(warnings(&group("account")), [""; 0], "requests without one meet `b`");
    }

    #[test]
    fn a_limit_that_is_never_reached_is_found() {
        assert_eq!(
            warnings(
                "  - { name: a, match: { path: /x }, key: [user], limit: 10/s }
  - { name: b, key: [user], limit: 5/s }
  - { name: c, match: { path: /y }, key: [user], limit: 4/s }
  - { name: d, match: { path: /x }, key: [ip], limit: 10/s }
  - { name: e, match: { path: /x }, key: [user], limit: 10/min }
  - { name: f, match: { path: /z }, key: [tier], limit: 9/s, algorithm: leaky_bucket }
  - { name: g, key: [tier], limit: 9/s, burst: 5, algorithm: leaky_bucket }"
            ),
            ["shadowed-rule: the limit of `a` is never reached: `b` is about the same requests \
              and more, and stricter"]
        );
    }

    #[test]
    fn what_is_said_twice_is_found_once() {
        assert_eq!(
            warnings(
                "  - { name: a, key: [user], limit: 5/s }
  - { name: b, key: [user], limit: 5/s }"
            ),
            ["duplicate-limit: `b` limits the same as `a`"]
        );
    }

    #[test]
    fn keys_that_clients_choose_are_found() {
        let rule = "  - { name: a, key: [header.x-id], limit: 5/s }";
        let found = warnings(rule);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("client-chosen-key"), "{found:?}");
        let bounded = format!("{rule}\n  - {{ name: b, key: [ip], limit: 9/s }}");
        assert_eq!(warnings(&bounded), [""; 0]);
        let elsewhere =
            format!("{rule}\n  - {{ name: b, match: {{ path: /x }}, key: [ip], limit: 9/s }}");
        assert_eq!(warnings(&elsewhere).len(), 1);
        assert_eq!(warnings("  - { name: a, key: [header.x-id, user], limit: 5/s }"), [""; 0]);
    }

    #[test]
    fn what_is_off_or_unusual_is_found() {
        assert_eq!(
            warnings(
                "  - { name: a, key: [], limit: 5/s, mode: off, deny: { status: 418 } }
  - { name: b, key: [], limit: 5/s, deny: { status: 503 } }"
            ),
            [
                "rule-off: `a` is off, as if it were not there",
                "unusual-status: 418 is an unusual status for a denial",
            ]
        );
    }

    #[test]
    fn places_need_databases() {
        let codes = |text: &str| {
            let error = RuleSet::parse(text).unwrap_err();
            let found = error.report().diagnostics().iter();
            found.map(|it| it.code()).collect::<Vec<_>>()
        };
        assert_eq!(codes("rules: [{ name: a, key: [asn], limit: 5/s }]"), ["no-geo"]);
        assert_eq!(
            codes("rules: [{ name: a, match: { country: DE }, key: [asn], limit: 5/s }]"),
            ["no-geo", "no-geo"]
        );
        assert_eq!(
            codes("geo: { asn: a.mmdb }\nrules: [{ name: a, key: [asn], limit: 5/s }]"),
            ["unreadable-file"]
        );
        assert_eq!(codes("geo: {}\nrules: []"), ["missing-field"]);
    }

    #[test]
    fn a_calendar_and_its_limit_go_together() {
        let text = "rules: [{ name: a, key: [], limit: 5/month, window: { calendar: day } }]";
        let error = RuleSet::parse(text).unwrap_err();
        assert_eq!(error.report().diagnostics()[0].code(), "bad-limit", "{error}");
    }
}

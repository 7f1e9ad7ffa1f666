use proptest::prelude::*;

use crate::explain::tests::{file, head};
use crate::{Direction, RuleChange, RuleSet, Source};

fn set(text: &str) -> RuleSet {
    RuleSet::parse(text).unwrap()
}

fn rules(rule: &str) -> RuleSet {
    let tiers = "tiers: { from: claims.plan, known: [free, pro], else: free }";
    set(&format!("{tiers}\nrules: [{{ name: a, {rule} }}]"))
}

fn text(old: &str, new: &str) -> String {
    rules(old).changes(&rules(new)).to_string()
}

#[test]
fn limits_are_compared_tier_by_tier() {
    assert_eq!(
        text(
            "key: [user], limit: { free: 100/min, pro: 10/s }",
            "key: [user], limit: { free: 50/min, pro: 1200/min }"
        ),
        "a: stricter and looser\n  limit: free: 100/min -> 50/min (half)\n  \
         limit: pro: 10/s -> 1200/min (double)\n"
    );
    assert_eq!(
        text("key: [], limit: 100/min", "key: [], limit: { free: 100/min, pro: unlimited }"),
        "a: looser\n  limit: pro: 100/min -> unlimited\n"
    );
    assert_eq!(
        text("key: [], concurrent: 10", "key: [], concurrent: 7"),
        "a: stricter\n  concurrent: 10 at once -> 7 at once (30% less)\n"
    );
}

#[test]
fn a_smaller_burst_is_stricter() {
    assert_eq!(
        text("key: [], limit: 100/min", "key: [], limit: 100/min, burst: 5"),
        "a: stricter\n  limit: 100/min -> 100/min burst 5\n"
    );
}

#[test]
fn what_passes_without_the_store_is_compared_where_the_file_says_how_much() {
    let of = |old: &str, new: &str| {
        let rule = |policy: &str| format!("key: [], limit: 5/s, on_store_failure: {policy}");
        text(&rule(old), &rule(new))
    };
    for (old, new, expected) in [
        ("local 20%", "local 30%", "looser"),
        ("local 100%", "local 99%", "stricter"),
        ("deny", "local 1%", "looser"),
        ("allow", "local 100%", "stricter"),
        ("local", "allow", "looser"),
        ("local", "deny", "stricter"),
        // The share of a rule that names none is a setting of the server.
        ("local", "local 50%", "changed"),
        ("local 1%", "local", "changed"),
    ] {
        let said = format!("a: {expected}\n  on_store_failure: {old} -> {new}\n");
        assert_eq!(of(old, new), said);
    }
}

#[test]
fn the_rest_is_compared_field_by_field() {
    assert_eq!(
        text(
            "key: [], limit: 5/s, match: { method: [GET, PUT], path: /a }, block_for: 1min",
            "key: [], limit: 5/s, match: { method: [PUT, GET], path: /b, host: x }, cost: 2, \
             algorithm: fixed_window"
        ),
        "a: changed\n  algorithm: token_bucket -> fixed_window\n  \
         block_for: removed: 60 s\n  match.path: /a -> /b\n  cost: added: 2\n  \
         match.host: added: x\n"
    );
}

#[test]
fn alternatives_have_an_order() {
    let group = |rules: &str| set(&format!("rules: [{{ first_match: true, rules: [{rules}] }}]"));
    let a = "{ name: a, match: { path: /x }, key: [], limit: 5/s }";
    let b = "{ name: b, match: { path: /x/** }, key: [], limit: 5/s }";
    let exact = "{ name: b, match: { path: /x/y }, key: [], limit: 5/s }";
    let changes = group(&format!("{a}, {b}")).changes(&group(&format!("{b}, {a}")));
    assert!(changes.is_empty(), "the more specific is asked first: {changes}");
    let changes = group(&format!("{a}, {b}")).changes(&group(&format!("{a}, {exact}"))).to_string();
    assert!(changes.contains("first_match: after a -> first"), "{changes}");
}

#[test]
fn a_changed_key_begins_anew() {
    let changes = rules("key: [user], limit: 5/s").changes(&rules("key: [ip], limit: 5/s"));
    let [RuleChange::Changed { begins_anew, direction, .. }] = &changes.rules[..] else {
        panic!("{changes}")
    };
    assert_eq!((*begins_anew, *direction), (true, None));
}

#[test]
fn what_is_only_written_otherwise_is_no_change() {
    let old = "namespace: default\nrules:
  - { name: a, key: [user], limit: 5k/min }
  - { name: b, key: [], limit: 5/s, mode: enforce }";
    let new = "defaults: { mode: enforce } # all\nrules:
  - { name: b, limit: 5/s, key: [] }
  - { limit: 5000/min, key: user, name: a }";
    let changes = set(old).changes(&set(new));
    assert!(changes.is_empty(), "{changes}");
}

#[test]
fn renamed_rules_are_found() {
    let old = "rules: [{ name: a, key: [], limit: 5/s }, { name: b, key: [], limit: 5/s }]";
    let new = "rules: [{ name: c, key: [], limit: 5/s }, { name: d, key: [], limit: 6/s }]";
    assert_eq!(
        set(old).changes(&set(new)).to_string(),
        "c: renamed from a; its counters begin anew\n\
         d: added: 6 per 1 s, at most 6 at one instant, one counter for everybody\n\
         b: removed: 5 per 1 s, at most 5 at one instant, one counter for everybody\n"
    );
}

#[test]
fn tiers_come_and_go() {
    let old = "tiers: { from: claims.plan, known: [a, b], else: a }
rules: [{ name: x, key: [], limit: { a: 1/s, b: 2/s } }]";
    let new = "tiers: { from: claims.plan, known: [b, c], else: b }
rules: [{ name: x, key: [], limit: { b: 2/s, c: 3/s } }]";
    assert_eq!(
        set(old).changes(&set(new)).to_string(),
        "tiers.else: a -> b\ntier: removed: a\ntier: added: c\nx: changed\n  \
         limit: a: removed: 1/s\n  limit: c: added: 3/s\n"
    );
}

#[test]
fn the_first_ten_overrides_are_listed() {
    let keys: Vec<_> = (10..35).map(|user| format!("u{user}: 7/s")).collect();
    let old = rules("key: [user], limit: 5/s");
    let new = rules(&format!("key: [user], limit: 5/s, overrides: {{ {} }}", keys.join(", ")));
    let text = old.changes(&new).to_string();
    assert!(text.contains("overrides: 25 added, 0 removed, 0 changed"), "{text}");
    assert!(text.contains("    u10: added with 7/s\n"), "{text}");
    assert!(text.ends_with("... and 15 more\n"), "{text}");
}

#[test]
fn the_whole_has_a_direction() {
    let old = set("rules: [{ name: a, key: [], limit: 5/s }]");
    let new = set("rules: [{ name: b, key: [], limit: 6/s }]");
    assert_eq!(old.changes(&new).direction(), Some(Direction::Both));
}

proptest! {
    #[test]
    fn a_formatted_file_has_no_changes(file in file()) {
        let text = format!("{}{file}", head());
        let formatted = crate::format(&Source::new("rules.yaml", text.as_str())).unwrap();
        let changes = set(&text).changes(&set(&formatted));
        prop_assert!(changes.is_empty(), "{}", changes);
    }

    #[test]
    fn changes_go_both_ways(old in file(), new in file()) {
        let (old, new) = (set(&format!("{}{old}", head())), set(&format!("{}{new}", head())));
        let (there, back) = (old.changes(&new), new.changes(&old));
        prop_assert_eq!(there.is_empty(), back.is_empty());
        prop_assert_eq!(there.rules.len(), back.rules.len(), "{}\n{}", there, back);
        let turned = match back.direction() {
            Some(Direction::Stricter) => Some(Direction::Looser),
            Some(Direction::Looser) => Some(Direction::Stricter),
            other => other,
        };
        prop_assert_eq!(there.direction(), turned, "{}\n{}", there, back);
    }
}

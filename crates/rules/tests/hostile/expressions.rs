//! Conditions that would take long, or much room.

use tollgate_rules::{Condition, CostExpression, Facts, Request, RuleSet};

use crate::{refused, with};

#[test]
fn expressions_are_bounded_in_length_and_depth() {
    for text in [
        format!("{}true{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{}true", "!".repeat(100_000)),
        format!("{}1 == 1", "-".repeat(100_000)),
        format!("true{}", " || true".repeat(100_000)),
        format!("{}true : true", "true ? ".repeat(100)),
        format!("request.path{} == 'a'", " + request.path".repeat(100)),
        format!("user{}", ".a".repeat(1_000)),
        format!("user{}", "[0]".repeat(1_000)),
        format!("size({}", "[".repeat(1_000)),
        "'".repeat(4_000),
        "a".repeat(4_000),
        "1".repeat(4_000),
        "\0".repeat(100),
        "\u{1f600}".repeat(100),
        "((((((((((((((((((((((((true))))))))))))))))))))))))".to_owned(),
    ] {
        let escaped = text.replace('\'', "''").replace('\0', "\u{fffd}");
        let (codes, shown) = refused("a.yaml", with(&format!("match: {{ when: '{escaped}' }}")));
        assert_eq!(codes, ["bad-expression"], "{shown}");
        assert!(Condition::parse(&text).is_err());
        assert!(CostExpression::parse(&text).is_err());
    }
}

#[test]
fn the_longest_expressions_are_decided_at_once() {
    let sums = "request.path + request.path + ".repeat(10);
    let condition = format!("({sums} 'a').contains(({sums} 'b'))");
    let any = "request.path.contains('aaaaaaaaab') || ".repeat(100);
    let long = format!("/{}", "a".repeat(100_000));
    for when in [condition, format!("{any} false")] {
        let when = when.replace('\'', "''");
        let set = RuleSet::parse(&with(&format!("match: {{ when: '{when}' }}"))).unwrap();
        let request = Request::new("GET", &long).attributes(&[("user", "a")]);
        assert!(set.applying(&Facts::new(&set, &request, None)).is_empty());
    }
}

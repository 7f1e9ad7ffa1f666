//! Files that are twice as long take about twice as long: what would take hours if it were the
//! square of that is simply run.

use std::fmt::Write;

use tollgate_rules::{Facts, Request, RuleSet, Source, format};

use crate::{refused, with};

fn rules(count: usize, rule: impl Fn(usize) -> String) -> RuleSet {
    let mut text = "rules:\n".to_owned();
    for at in 0..count {
        writeln!(text, "- {{name: r{at}, {}}}", rule(at)).unwrap();
    }
    RuleSet::parse(&text).unwrap()
}

fn applying(set: &RuleSet, path: &str) -> usize {
    let request = Request::new("GET", path).attributes(&[("user", "a")]);
    set.applying(&Facts::new(set, &request, None)).len()
}

#[test]
fn rules_with_the_same_path() {
    let set = rules(10_000, |_| "match: {path: /a}, key: [user], limit: 5/s".to_owned());
    assert_eq!((applying(&set, "/a"), applying(&set, "/b")), (10_000, 0));
}

#[test]
fn rules_that_each_ask_for_another_attribute() {
    let set = rules(20_000, |at| format!("match: {{header.x{at}: a}}, key: [user], limit: 5/s"));
    assert_eq!(applying(&set, "/a"), 0);
}

#[test]
fn rules_that_have_many_values() {
    // Each has what the others have, in another order.
    let path = |at: usize| format!("/{at}");
    let set = rules(200, |rule| {
        let paths: Vec<_> = (0..1_000).map(|at| path((at * 7 + rule) % 1_000)).collect();
        format!("match: {{path: [{}]}}, key: [user], limit: {}/s", paths.join(","), rule + 1)
    });
    assert_eq!(applying(&set, "/999"), 200);
}

#[test]
fn rules_with_many_networks() {
    let network = |at: usize| format!("10.{}.{}.0/24", at / 256, at % 256);
    let networks: Vec<_> = (0..10_000).map(network).collect();
    let networks = networks.join(",");
    let set =
        rules(10, |at| format!("match: {{ip: [{networks}]}}, key: [ip], limit: {}/s", at + 1));
    assert_eq!(set.rules().len(), 10);
}

#[test]
fn groups_of_alternatives() {
    let mut text = "rules:\n".to_owned();
    for at in 0..10_000 {
        let rule = |name| format!("{{name: {name}{at}, key: [user], limit: 5/s}}");
        writeln!(text, "- {{first_match: true, rules: [{}, {}]}}", rule("a"), rule("b")).unwrap();
    }
    let set = RuleSet::parse(&text).unwrap();
    assert_eq!(applying(&set, "/"), 10_000);
    let one = (0..20_000).map(|at| format!("{{name: r{at}, key: [user], limit: 5/s}}"));
    let one = one.collect::<Vec<_>>().join(", ");
    let set = RuleSet::parse(&format!("rules: [{{first_match: true, rules: [{one}]}}]")).unwrap();
    assert_eq!(applying(&set, "/"), 1);
}

#[test]
fn many_keys_with_many_rules_each() {
    let set = rules(10_000, |at| {
        format!("match: {{path: /{at}}}, key: [header.x{}], limit: 5/s", at % 40)
    });
    assert_eq!(set.rules().len(), 10_000);
}

#[test]
fn versions_are_compared() {
    let old = rules(4_000, |at| format!("match: {{path: /{at}}}, key: [user], limit: 5/s"));
    let new = rules(4_000, |at| format!("match: {{path: /x{at}}}, key: [user], limit: 5/s"));
    assert_eq!(old.changes(&new).rules.len(), 4_000);
    assert!(old.changes(&old).is_empty());
}

#[test]
fn long_files_are_formatted() {
    let flow: String = (0..20_000).map(|at| format!("{{name: r{at}}}, ")).collect();
    let block: String =
        (0..10_000).map(|at| format!("- name: r{at} # {at}\n\n\n  # b\n")).collect();
    let list: String = (0..50_000).map(|at| format!("{at}, ")).collect();
    for text in [
        format!("rules: [{flow}]"),
        format!("rules:\n{block}"),
        format!("rules: [{list}] # end"),
        format!("rules: []\n{}", "# a\n\n".repeat(20_000)),
        format!("rules: []\n{}# a\n", "\n".repeat(200_000)),
    ] {
        let source = Source::new("a.yaml", text);
        assert!(format(&source).is_ok());
    }
    assert!(format(&Source::new("a.json", format!("{{\"rules\": [{list}1]}}"))).is_ok());
}

#[test]
fn overrides_in_the_file() {
    let many: String = (0..50_000).map(|at| format!("user{at}: 5/s, ")).collect();
    let set = RuleSet::parse(&with(&format!("overrides: {{ {many} }}"))).unwrap();
    assert_eq!(set.rules()[0].overrides().count(), 50_000);
    let twice = "user: 5/s, ".repeat(50_000);
    assert_eq!(refused("a.yaml", with(&format!("overrides: {{ {twice} }}"))).0.len(), 100);
}

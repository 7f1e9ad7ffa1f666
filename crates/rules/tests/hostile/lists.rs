//! Lists that are longer than anybody needs.

use tollgate_rules::{RuleSet, Source};

use crate::{Given, codes, refused, shown, with};

const MANY: usize = 100_000;

fn times(text: &str, times: usize) -> String {
    vec![text; times].join(", ")
}

#[test]
fn lists_in_a_rule_are_bounded() {
    for (fields, code) in [
        (format!("match: {{ path: [{}] }}", times("/a", MANY)), "bad-value"),
        (format!("match: {{ user: [{}] }}", times("a", MANY)), "bad-value"),
        (format!("match: {{ method: [{}] }}", times("GET", MANY)), "bad-value"),
        (format!("match: {{ ip: [{}] }}", times("10.0.0.1", MANY)), "bad-value"),
        (format!("warn_at: [{}]", times("80%", MANY)), "bad-value"),
        (format!("deny: [{}]", times("80%", MANY)), "wrong-type"),
        (format!("mode: [{}]", times("off", MANY)), "wrong-type"),
    ] {
        let (codes, shown) = refused("a.yaml", with(&fields));
        assert_eq!(codes, [code], "{shown}");
    }
    let key = times("user", MANY);
    let (codes, shown) =
        refused("a.yaml", format!("rules: [{{ name: a, key: [{key}], limit: 5/s }}]"));
    assert_eq!(codes, ["key-too-long"], "{shown}");
}

#[test]
fn a_rule_asks_for_few_attributes() {
    let many: String = (0..50_000).map(|at| format!("header.x{at}: a, ")).collect();
    let (codes, shown) = refused("a.yaml", with(&format!("match: {{ {many} }}")));
    assert_eq!(codes, ["bad-value"], "{shown}");
}

#[test]
fn tiers_are_bounded() {
    let many: String = (0..MANY).map(|at| format!("t{at}, ")).collect();
    let (codes, shown) =
        refused("a.yaml", format!("tiers: {{ from: user, known: [{many}], else: t1 }}\nrules: []"));
    assert_eq!(codes[0], "bad-value", "{shown}");
    let known: String = (0..256).map(|at| format!("{at:0>30}, ")).collect();
    let limits: String = (0..50_000).map(|at| format!("{at:x>30}: 5/s, ")).collect();
    let text = format!(
        "tiers: {{ from: user, known: [{known}], else: '{:0>30}' }}
rules: [{{ name: a, key: [], limit: {{ {limits} }} }}]",
        0
    );
    let (codes, _) = refused("a.yaml", text);
    assert!(codes.iter().all(|code| *code == "unknown-tier"), "{codes:?}");
}

#[test]
fn unknown_fields_are_counted_and_not_guessed_at() {
    let many: String = (0..50_000).map(|at| format!("limmit{at}: 5/s, ")).collect();
    let (codes, shown) = refused("a.yaml", with(&many));
    assert_eq!(codes, ["unknown-field"; 100]);
    assert!(shown.contains("... and 49900 more"), "{shown}");
}

#[test]
fn tests_are_bounded() {
    let test = "{ name: a, given: { request: GET / user=a }, expect: { allowed: 1 } }";
    let (codes, shown) =
        refused("a.yaml", format!("{}\ntests: [{}]", with(""), times(test, 11_000)));
    assert_eq!(codes, ["too-many-tests"], "{shown}");
    let many = "{ name: a, given: { request: GET /, times: 1M }, expect: { allowed: 1 } }";
    let (codes, shown) =
        refused("a.yaml", format!("{}\ntests: [{}]", with(""), times(many, 1_000)));
    assert_eq!(codes, ["too-many-tests"], "{shown}");
    let steps = times("{ given: { request: GET / } }", 10_000);
    let text = format!("{}\ntests: [{{ name: a, steps: [{steps}] }}]", with(""));
    let (codes, shown) = refused("a.yaml", text);
    assert_eq!(codes[0], "bad-steps", "{shown}");
}

#[test]
fn rules_that_tests_name_are_looked_up() {
    let rules: String = (0..10_000)
        .map(|at| {
            format!("  - {{ name: {at:0>60}, key: [user], limit: {at}k/s, cost: {at} }}\n")
                .replace(": 0k", ": 1k")
        })
        .collect();
    let test = |denied_by: String| {
        format!(
            "rules:\n{rules}tests: [{{ name: a, given: {{ request: GET / }}, expect: {{ denied_by: [{denied_by}] }} }}]"
        )
    };
    let known = format!("{:0>60}", 9_999);
    RuleSet::parse(&test(times(&format!("'{known}'"), 100))).unwrap();
    let (codes, shown) = refused("a.yaml", test(times("nobody-is-called-this", 50_000)));
    assert!(codes.contains(&"bad-value") || codes.contains(&"unknown-rule"), "{shown}");
}

#[test]
fn lines_of_overrides_are_read_to_the_end() {
    let mut lines: String = (0..MANY).map(|at| format!("user{at},5/s\n")).collect();
    let files = Given::one("o.csv", lines.clone());
    let source = Source::new("a.yaml", with("overrides: o.csv"));
    assert_eq!(RuleSet::read(&source, &files).unwrap().rules()[0].overrides().count(), MANY);
    lines += &"nonsense\n".repeat(10_000);
    let report = RuleSet::read(&source, &Given::one("o.csv", lines)).unwrap_err();
    let text = shown(&report, &source);
    assert_eq!(codes(&report), ["bad-override"; 11]);
    assert!(text.contains("o.csv:100001") && text.contains("9990 more overrides"), "{text}");
}

#[test]
fn overrides_have_few_different_limits_however_they_are_written() {
    let many: String = (0..100_000).map(|at| format!("user{at}: {}/s, ", at + 1)).collect();
    let (codes, shown) = refused("a.yaml", with(&format!("overrides: {{ {many} }}")));
    assert_eq!(codes, ["bad-override"; 11], "{shown}");
    assert!(shown.contains("more than 4096 different limits"), "{shown}");
    let same: String = (0..100_000)
        .map(|at| format!("user{at},{:0>w$}/s\n", at % 4_000 + 1, w = 5 + at / 4_000))
        .collect();
    let source = Source::new("a.yaml", with("overrides: o.csv"));
    let set = RuleSet::read(&source, &Given::one("o.csv", same)).unwrap();
    assert_eq!(set.rules()[0].override_limits().len(), 4_000);
}

#[test]
fn a_mark_before_the_first_override_is_not_part_of_it() {
    let files = Given::one("o.csv", "\u{feff}acme,9/s\r\nbolt,8/s\r\n".to_owned());
    let set = RuleSet::read(&Source::new("a.yaml", with("overrides: o.csv")), &files).unwrap();
    let keys: Vec<_> = set.rules()[0].overrides().map(|(key, _)| key).collect();
    assert_eq!(keys, ["acme", "bolt"]);
}

#[test]
fn paths_have_few_segments() {
    for segments in [10_000, 100_000] {
        for segment in ["/a", "/*", "/**", "/{a}"] {
            let path = segment.repeat(segments);
            let (codes, shown) = refused("a.yaml", with(&format!("match: {{ path: '{path}' }}")));
            assert_eq!(codes, ["bad-value"], "{shown}");
        }
    }
}

#[test]
fn what_rules_have_in_common_is_there_once() {
    let text = "x".repeat(16 << 10);
    let rules = "{ name: a, key: [], limit: 5/s }, { name: b, key: [], limit: 6/s }";
    let set =
        RuleSet::parse(&format!("defaults: {{ deny: {{ body: {text} }} }}\nrules: [{rules}]"));
    let set = set.unwrap();
    let body = |at: usize| set.rules()[at].deny().body.clone().unwrap();
    assert!(std::sync::Arc::ptr_eq(&body(0), &body(1)));
}

#[test]
fn limits_of_all_rules_are_bounded() {
    let tiers: String = (0..256).map(|at| format!("t{at}, ")).collect();
    let limits: String = (0..256).map(|at| format!("t{at}: 5/month, ")).collect();
    let rule = |at: usize| {
        let window = "window: {calendar: month, timezone: UTC, anchor: user}";
        format!("- {{name: r{at}, key: [], limit: {{{limits}}}, {window}}}\n")
    };
    let rules: String = (0..130).map(rule).collect();
    let text = format!("tiers: {{from: user, known: [{tiers}], else: t0}}\nrules:\n{rules}");
    let (codes, shown) = refused("a.yaml", text);
    assert_eq!(codes, ["too-many-rules"]);
    assert!(shown.contains("more than 1000000 limits"), "{shown}");
}

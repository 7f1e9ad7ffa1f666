//! What is said of files with much that is wrong.

use tollgate_rules::{NoFiles, Report, RuleSet, Source};

use crate::{codes, refused, shown};

#[test]
fn many_errors_are_counted_and_some_are_shown() {
    let rules = "- {name: a, key: [usr], limit: 5/x}\n".repeat(10_000);
    let (codes, shown) = refused("a.yaml", format!("rules:\n{rules}"));
    assert_eq!(codes.len(), Report::MAX);
    assert!(shown.contains("... and 19900 more"), "{shown}");
}

#[test]
fn warnings_do_not_hide_an_error() {
    let odd =
        |at: usize| format!("- {{name: r{at}, key: [], limit: 5/s, deny: {{status: 418}}}}\n");
    let rules: String = (0..200).map(odd).collect();
    let text = format!("rules:\n{rules}- {{name: b, key: [usr], limit: 5/s}}\n");
    let source = Source::new("a.yaml", text);
    let report = RuleSet::read(&source, &NoFiles).expect_err("one rule is no good");
    assert!(report.has_errors());
    assert!(codes(&report).contains(&"unknown-attribute"), "{:?}", codes(&report));
    assert!(report.left_out() > 0);
}

#[test]
fn one_bad_rule_refuses_the_file() {
    let good = "- {name: a, key: [], limit: 5/s}\n";
    for bad in ["- {name: b, key: [], limit: 5}", "- b", "- {name: a, key: [], limit: 6/s}", "- []"]
    {
        let source = Source::new("a.yaml", format!("rules:\n{good}{bad}\n"));
        assert!(RuleSet::read(&source, &NoFiles).is_err(), "{bad}");
    }
}

#[test]
fn errors_on_one_long_line_are_shown_in_part() {
    let rule = "{name: '\u{e9}', key: [usr], limit: 5/s}, ";
    let text = format!("rules: [{}]", rule.repeat(20_000));
    let source = Source::new("a.yaml", text);
    let report = RuleSet::read(&source, &NoFiles).unwrap_err();
    let text = shown(&report, &source);
    assert!(text.contains("a.yaml:1:10"), "{text}");
    assert!(text.contains("usr"), "{text}");
}

#[test]
fn errors_at_the_end_of_a_long_file_have_their_line() {
    let lines = "# nothing\n".repeat(200_000);
    let rules = "- {name: a, key: [usr], limit: 5/s}\n".repeat(100);
    let source = Source::new("a.yaml", format!("{lines}rules:\n{rules}"));
    let report = RuleSet::read(&source, &NoFiles).unwrap_err();
    let text = shown(&report, &source);
    assert!(text.contains("--> a.yaml:200002:19"), "{text}");
    assert!(text.contains("200101 | - {name: a, key: [usr], limit: 5/s}"), "{text}");
}

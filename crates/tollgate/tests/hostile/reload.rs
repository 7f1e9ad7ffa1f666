//! Files that are read while rules are in force.

use tollgate::rules::{NoFiles, Source, text};
use tollgate::{Engine, ManualClock, Request, RuleSet};

/// What whoever watches a file does when it changes.
fn reload(engine: &Engine<ManualClock>, bytes: &[u8]) -> Result<(), String> {
    let text = text(bytes.to_vec()).map_err(|error| format!("rules.yaml: {error}"))?;
    let source = Source::new("rules.yaml", text);
    let rules = RuleSet::read(&source, &NoFiles).map_err(|report| report.to_text(&source))?;
    engine.exchange(rules).map_err(|error| error.to_string())
}

#[test]
fn a_file_that_is_no_good_leaves_the_rules_as_they_are() {
    let good = "rules: [{ name: a, key: [], limit: 3/h }]";
    let rules = RuleSet::parse(good).unwrap();
    let engine = Engine::builder(rules).clock(ManualClock::new()).build().unwrap();
    let request = Request::new("GET", "/");
    assert!(engine.decide(&request).is_allowed());
    let version = engine.rules().version();
    let mut odd: String = (0..200)
        .map(|at| format!("- {{name: r{at}, key: [], limit: 5/s, deny: {{status: 418}}}}\n"))
        .collect();
    odd.insert_str(0, "rules:\n");
    odd.push_str("- {name: bad, key: [usr], limit: 1/h}\n");
    for bad in [
        &b""[..],
        b"\xff\xfe",
        b"rules: [",
        b"rules: [{ name: a, key: [], limit: 9/h }, { name: b, key: [] }]",
        b"rules: [{ name: a, key: [], limit: 9/h }, { name: a, key: [], limit: 9/h }]",
        b"rules: [{ name: a, key: [], limit: 9/h, unknown: 1 }]",
        odd.as_bytes(),
    ] {
        let said = reload(&engine, bad).unwrap_err();
        assert!(said.contains("rules.yaml"), "{said}");
        assert_eq!(engine.rules().version(), version);
        assert_eq!(engine.peek(&request).decision().remaining(), 2);
    }
    reload(&engine, b"rules: [{ name: a, key: [], limit: 9/h }]").unwrap();
    assert_eq!(engine.peek(&request).decision().remaining(), 8);
}

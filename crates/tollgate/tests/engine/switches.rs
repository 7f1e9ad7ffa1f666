//! Rules that are switched off, or to shadow, and on again: what was counted stays counted.

use tollgate::{Engine, ManualClock, Mode, Outcome, RuleSet};

use crate::{MINUTE, engine, get, left, names, passing};

/// Puts the rules in force in other modes.
fn switch(engine: &Engine<ManualClock>, rules: &RuleSet, name: &str, mode: Mode) {
    let mode = |rule: &tollgate::rules::Rule| (rule.name() == name).then_some(mode);
    engine.exchange(rules.with_modes(mode)).unwrap();
}

#[test]
fn a_rule_that_is_killed_and_comes_back_has_counted_what_it_had() {
    for killed in [Mode::Off, Mode::Shadow] {
        let (engine, _) = engine(
            "rules:
  - { name: few, key: [user], limit: 3/h }
  - { name: many, key: [user], limit: 9/h }",
        );
        let (rules, request) = (engine.rules(), get("/").attributes(&[("user", "alice")]));
        assert_eq!(passing(&engine, &request, 5), 3);
        switch(&engine, &rules, "few", killed);
        assert_eq!(engine.rules().version(), rules.version());
        assert_eq!(passing(&engine, &request, 4), 4, "{killed:?}");
        engine.exchange(rules).unwrap();
        assert_eq!(left(&engine, "few", &request), Some(0), "{killed:?}");
        assert_eq!(left(&engine, "many", &request), Some(2), "{killed:?}");
        assert_eq!(engine.decide(&request).rule(), Some("few"), "{killed:?}");
    }
}

#[test]
fn all_rules_can_be_switched_off_at_once() {
    let (engine, _) = engine("rules: [{ name: a, key: [], limit: 1/h }]");
    let rules = engine.rules();
    assert_eq!(passing(&engine, &get("/"), 3), 1);
    engine.exchange(rules.with_modes(|_| Some(Mode::Off))).unwrap();
    let ruling = engine.decide(&get("/"));
    assert_eq!((ruling.is_allowed(), names(&ruling).len()), (true, 0));
    engine.exchange(rules).unwrap();
    assert!(!engine.decide(&get("/")).is_allowed());
}

#[test]
fn slots_that_are_held_while_a_rule_is_off_are_not_free_when_it_is_back() {
    let (engine, _) = engine("rules: [{ name: slots, key: [], concurrent: 2 }]");
    let rules = engine.rules();
    let held = engine.decide(&get("/"));
    switch(&engine, &rules, "slots", Mode::Off);
    let unlimited = [(); 5].map(|()| engine.decide(&get("/")));
    assert!(unlimited.iter().all(|ruling| ruling.is_allowed()));
    engine.exchange(rules).unwrap();
    assert_eq!(left(&engine, "slots", &get("/")), Some(1));
    drop(held);
    assert_eq!(left(&engine, "slots", &get("/")), Some(2));
}

#[test]
fn blocks_last_while_their_rule_is_off_and_not_for_longer() {
    let (engine, clock) = engine("rules: [{ name: a, key: [], limit: 1/s, block_for: 10min }]");
    let rules = engine.rules();
    assert_eq!(passing(&engine, &get("/"), 2), 1);
    switch(&engine, &rules, "a", Mode::Off);
    assert_eq!(passing(&engine, &get("/"), 2), 2);
    clock.advance(MINUTE * 9);
    engine.exchange(rules).unwrap();
    assert_eq!(engine.decide(&get("/")).decision().retry_after(), Some(MINUTE));
    clock.advance(MINUTE);
    assert!(engine.decide(&get("/")).is_allowed());
}

#[test]
fn what_was_reserved_before_a_rule_was_killed_comes_back_to_it() {
    let (engine, _) = engine(
        "rules: [{ name: failures, key: [], limit: 5/h, count_if: response.status == 401 }]",
    );
    let rules = engine.rules();
    let under_way = engine.decide(&get("/login"));
    switch(&engine, &rules, "failures", Mode::Off);
    engine.report(under_way, &get("/login"), &Outcome { status: Some(200), headers: &[] });
    engine.exchange(rules).unwrap();
    assert_eq!(left(&engine, "failures", &get("/login")), Some(5));
}

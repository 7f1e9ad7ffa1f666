//! Several requests pass together, or none of them spends anything.

use tollgate::{Engine, ManualClock, Request};

use crate::{engine, get, left, rules};

/// Which of them are allowed.
fn together(engine: &Engine<ManualClock>, requests: &[Request<'_>]) -> Vec<bool> {
    let mut allowed = Vec::new();
    engine.decide_together(requests, |at, ruling| {
        assert_eq!(at, allowed.len());
        allowed.push(ruling.is_allowed());
    });
    allowed
}

/// Once in the shortest way, and once in the one that all kinds of rules take.
const WAYS: [&str; 2] =
    ["", "\n  - { name: trial, match: { path: /never }, key: [], limit: 1/h, mode: shadow }"];

#[test]
fn a_denial_of_one_spends_nothing_from_the_others() {
    for more in WAYS {
        let text = "rules:
  - { name: few, match: { path: /few }, key: [], limit: 1/h }
  - { name: many, match: { path: /many }, key: [], limit: 9/h }";
        let (engine, _) = engine(&format!("{text}{more}"));
        let (few, many) = (get("/few"), get("/many"));
        assert_eq!(together(&engine, &[many, few]), [true, true]);
        assert_eq!(together(&engine, &[many, few]), [true, false]);
        assert_eq!(together(&engine, &[few, many]), [false, true]);
        assert_eq!(left(&engine, "many", &many), Some(8), "{more}");
        assert_eq!(together(&engine, &[many]), [true]);
        assert_eq!(together(&engine, &[]), [true; 0]);
    }
}

#[test]
fn the_same_key_twice_must_have_enough_for_both() {
    for more in WAYS {
        let (engine, _) = engine(&format!("rules:\n  - {{ name: a, key: [], limit: 3/h }}{more}"));
        let one = get("/");
        assert_eq!(together(&engine, &[one, one]), [true, true]);
        assert_eq!(together(&engine, &[one, one]), [true, false]);
        assert_eq!(left(&engine, "a", &one), Some(1), "{more}");
    }
}

#[test]
fn slots_of_all_come_back_when_one_is_denied() {
    let (engine, _) = engine(
        "rules:
  - { name: slots, match: { path: /export }, key: [], concurrent: 1 }
  - { name: few, match: { path: /few }, key: [], limit: 1/h }",
    );
    let (export, few) = (get("/export"), get("/few"));
    assert_eq!(together(&engine, &[export, few]), [true, true]);
    assert_eq!(together(&engine, &[export, few]), [true, false]);
    let held = engine.decide(&export);
    assert!(held.is_allowed(), "nobody holds the slot");
    assert_eq!(together(&engine, &[few, export]), [false, false]);
}

#[test]
fn rulings_are_by_the_rules_in_force() {
    let (engine, _) = engine("rules: [{ name: old, key: [], limit: 9/h }]");
    engine.exchange(rules("rules: [{ name: new, key: [], limit: 9/h }]")).unwrap();
    engine.decide_together(&[get("/"), get("/")], |_, ruling| {
        assert_eq!(ruling.rule(), Some("new"));
    });
}

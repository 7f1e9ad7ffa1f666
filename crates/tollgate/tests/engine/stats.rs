//! Numbers for operators.

use tollgate::{Engine, ManualClock};

use crate::{MINUTE, engine, exchange, get, rules};

fn ask(engine: &Engine<ManualClock>, users: usize) {
    for user in 0..users {
        let user = format!("user-{user}");
        drop(engine.decide(&get("/").attributes(&[("user", &user)])));
    }
}

#[test]
fn the_table_is_as_full_as_there_are_live_keys() {
    let clock = ManualClock::new();
    let rules = rules("rules: [{ name: a, key: [user], limit: 5/min, block_for: 1min }]");
    let engine = Engine::builder(rules).keys(10_000).clock(clock.clone()).build().unwrap();
    let empty = engine.stats().counters;
    assert_eq!((empty.occupancy, empty.overflowed), (0.0, 0));
    ask(&engine, 10_000);
    let full = engine.stats().counters;
    assert!((0.4..0.7).contains(&full.occupancy), "{full:?}");
    assert_eq!(full.memory, empty.memory, "it never grows");
    clock.advance(MINUTE);
    assert_eq!(engine.stats().counters.occupancy, 0.0);
    ask(&engine, 40_000);
    let over = engine.stats().counters;
    assert!(over.occupancy > 0.9 && over.overflowed > 0, "{over:?}");
}

#[test]
fn failures_rules_and_versions_are_told() {
    let (engine, _) = engine(
        "rules:
  - { name: a, key: [], limit: 9/h, cost: { attribute: header.x-cost } }
  - { name: b, key: [], limit: 9/h, mode: off }",
    );
    drop(engine.decide(&get("/").headers(&[("x-cost", "a lot")])));
    let before = engine.stats();
    assert_eq!((before.failures, before.rules, before.retired), (1, 2, 0));
    let held = engine.decide(&get("/"));
    exchange(&engine, "rules: [{ name: a, key: [user], limit: 9/h, overrides: { bob: 5/h } }]");
    let after = engine.stats();
    assert_eq!((after.rules, after.retired), (1, 1));
    assert_eq!(after.version, engine.rules().version());
    assert_ne!(after.version, before.version);
    assert_eq!(held.version(), before.version);
}

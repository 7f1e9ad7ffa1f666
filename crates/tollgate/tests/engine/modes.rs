//! Rules that deny, rules that only say so, and rules that are off.

use tollgate::{Mode, Request};

use crate::{MINUTE, engine, get, left, names, passing};

#[test]
fn a_rule_in_shadow_denies_nobody_and_counts_what_passes() {
    let (engine, clock) = engine("rules: [{ name: trial, key: [], limit: 2/min, mode: shadow }]");
    for (round, fits) in [true, true, false, false].into_iter().enumerate() {
        let ruling = engine.decide(&get("/"));
        assert!(ruling.is_allowed(), "in round {round}");
        let each = ruling.each().next().unwrap();
        assert_eq!((each.is_allowed(), each.mode()), (fits, Mode::Shadow), "in round {round}");
        assert_eq!(ruling.rule(), None, "nobody is denied by it");
        assert!(ruling.decision().is_allowed());
    }
    clock.advance(MINUTE);
    assert_eq!(left(&engine, "trial", &get("/")), Some(2), "it has spent no more than it had");
}

#[test]
fn a_rule_in_shadow_does_not_count_what_another_denies() {
    let (engine, _) = engine(
        "rules:
  - { name: few, key: [], limit: 2/min }
  - { name: trial, key: [], limit: 9/min, mode: shadow }",
    );
    assert_eq!(passing(&engine, &get("/"), 7), 2);
    assert_eq!(left(&engine, "trial", &get("/")), Some(7));
}

#[test]
fn a_rule_in_shadow_that_is_full_does_not_keep_others_from_counting() {
    let (engine, _) = engine(
        "rules:
  - { name: trial, key: [], limit: 1/min, mode: shadow }
  - { name: slots, key: [], concurrent: 1, mode: shadow }
  - { name: many, key: [], limit: 9/min }",
    );
    let rulings: Vec<_> = (0..4).map(|_| engine.decide(&get("/"))).collect();
    assert!(rulings.iter().all(|ruling| ruling.is_allowed()));
    let said: Vec<Vec<bool>> = rulings
        .iter()
        .map(|ruling| ruling.each().map(|each| each.is_allowed()).collect())
        .collect();
    assert_eq!(said, [[true; 3], [false, false, true], [false, false, true], [false, false, true]]);
    assert_eq!(left(&engine, "many", &get("/")), Some(5));
}

#[test]
fn a_rule_that_is_off_is_not_there() {
    let (engine, _) = engine(
        "rules:
  - { name: off, key: [], limit: 1/h, mode: off }
  - { name: slots, key: [], concurrent: 1, mode: off }
  - { name: blocks, key: [], limit: 1/h, block_for: 1h, mode: off }
  - { name: many, key: [], limit: 5/h }",
    );
    let ruling = engine.decide(&get("/"));
    assert_eq!(names(&ruling), ["many"]);
    assert_eq!(passing(&engine, &get("/"), 9), 4);
    let (engine, _) = crate::engine("rules: [{ name: a, key: [], limit: 1/h, mode: off }]");
    assert_eq!(passing(&engine, &get("/"), 9), 9);
}

#[test]
fn the_usual_mode_holds_for_rules_that_name_none() {
    let (engine, _) = engine(
        "defaults: { mode: shadow }
rules:
  - { name: trial, key: [], limit: 1/h }
  - { name: real, match: { method: POST }, key: [], limit: 1/h, mode: enforce }",
    );
    assert_eq!(passing(&engine, &get("/"), 3), 3);
    assert_eq!(passing(&engine, &Request::new("POST", "/"), 3), 1);
}

#[test]
fn the_strictest_rule_that_denies_is_reported_and_never_one_in_shadow() {
    let (engine, _) = engine(
        "rules:
  - { name: trial, key: [], limit: 1/h, mode: shadow }
  - { name: wide, key: [], limit: 9/h }
  - { name: narrow, key: [], limit: 3/min }",
    );
    for remaining in [2, 1, 0] {
        let ruling = engine.decide(&get("/"));
        assert_eq!((ruling.rule(), ruling.decision().remaining()), (Some("narrow"), remaining));
    }
    let denied = engine.decide(&get("/"));
    assert_eq!((denied.is_allowed(), denied.rule()), (false, Some("narrow")));
    assert_eq!(denied.decision().retry_after(), Some(MINUTE / 3));
}

/// What would be blocked was known only while another rule denied.
#[test]
fn a_rule_in_shadow_says_what_it_would_block() {
    let (engine, clock) =
        engine("rules: [{ name: trial, key: [], limit: 1/s, block_for: 1min, mode: shadow }]");
    let fits = || engine.decide(&get("/")).each().all(|each| each.is_allowed());
    assert_eq!([fits(), fits()], [true, false]);
    clock.advance(MINUTE - crate::TICK);
    let ruling = engine.decide(&get("/"));
    assert!(ruling.is_allowed());
    let each = ruling.each().next().unwrap().decision();
    assert_eq!((each.is_allowed(), each.retry_after()), (false, Some(crate::TICK)));
    clock.advance(crate::TICK);
    assert!(fits());
}

//! Requests that take long, and end after much else has happened.

use std::collections::HashMap;
use std::thread;

use tollgate::{Outcome, UnderWay};

use crate::{MINUTE, engine, exchange, get, left, passing};

const OK: Outcome<'static> = Outcome { status: Some(200), headers: &[] };
const FAILED: Outcome<'static> = Outcome { status: Some(401), headers: &[] };

const BOTH: &str = "rules:
  - { name: slots, key: [], concurrent: 3 }
  - { name: failures, key: [], limit: 5/day, count_if: response.status == 401 }";

#[test]
fn only_rulings_that_hold_something_need_a_report() {
    for (rule, needs) in [
        ("limit: 5/h", false),
        ("concurrent: 1", true),
        ("limit: 5/h, count_if: response.status == 401", true),
        ("limit: 5/h, count_if: response.status == 401, mode: shadow", true),
        ("limit: 5/h, count_if: response.status == 401, mode: off", false),
        ("limit: 5/h, block_for: 1min", false),
    ] {
        let (engine, _) = engine(&format!("rules: [{{ name: a, key: [], {rule} }}]"));
        let ruling = engine.decide(&get("/"));
        assert_eq!(ruling.needs_report(), needs, "{rule}");
        assert_eq!(ruling.keep().needs_report(), needs, "{rule}");
        assert!(!engine.peek(&get("/")).needs_report(), "who looks holds nothing: {rule}");
    }
    let (engine, _) = engine("rules: [{ name: a, key: [], concurrent: 1 }]");
    let held = engine.decide(&get("/"));
    let denied = engine.decide(&get("/"));
    assert_eq!((held.needs_report(), denied.needs_report()), (true, false));
}

#[test]
fn what_is_kept_holds_its_slot_and_its_charge_until_it_is_reported() {
    let (engine, clock) = engine(BOTH);
    let mut under_way: HashMap<u64, UnderWay> =
        (0..3).map(|id| (id, engine.decide(&get("/")).keep())).collect();
    clock.advance(MINUTE * 20);
    assert!(!engine.decide(&get("/")).is_allowed());
    thread::scope(|scope| {
        for (id, outcome) in [(0, OK), (1, FAILED)] {
            let (engine, ended) = (&engine, under_way.remove(&id).unwrap());
            scope.spawn(move || engine.report(ended, &get("/"), &outcome));
        }
    });
    assert_eq!(left(&engine, "slots", &get("/")), Some(2));
    assert_eq!(left(&engine, "failures", &get("/")), Some(3), "one under way, and one failure");
    drop(under_way);
    assert_eq!(left(&engine, "slots", &get("/")), Some(3));
    assert_eq!(left(&engine, "failures", &get("/")), Some(3), "nobody said that it went well");
}

#[test]
fn what_is_kept_ends_by_the_rules_it_began_with() {
    let (engine, _) = engine(BOTH);
    let under_way = [(); 2].map(|()| engine.decide(&get("/")).keep());
    exchange(&engine, &BOTH.replace("401", "200"));
    let [one, other] = under_way;
    engine.report(one, &get("/"), &OK);
    engine.report(other, &get("/"), &FAILED);
    assert_eq!(left(&engine, "failures", &get("/")), Some(4));
    assert_eq!(left(&engine, "slots", &get("/")), Some(3));
}

/// A key can be counted too high by what it had under way when its limit changed, never too low.
#[test]
fn a_refund_reaches_a_changed_limit_unless_the_key_was_seen_since() {
    for (seen, after) in [(false, 9), (true, 7)] {
        let (engine, _) = engine(BOTH);
        let under_way = engine.decide(&get("/")).keep();
        drop(engine.decide(&get("/")));
        exchange(&engine, &BOTH.replace("5/day", "10/day"));
        assert_eq!(left(&engine, "failures", &get("/")), Some(8));
        if seen {
            assert_eq!(passing(&engine, &get("/"), 1), 1);
        }
        engine.report(under_way, &get("/"), &OK);
        assert_eq!(left(&engine, "failures", &get("/")), Some(after), "seen: {seen}");
    }
}

#[test]
fn rules_that_were_exchanged_go_with_the_last_request_that_holds_them() {
    let (engine, _) = engine(BOTH);
    let mut under_way = Vec::new();
    for round in 0..5 {
        under_way.push(engine.decide(&get("/")).keep());
        exchange(&engine, &BOTH.replace("5/day", &format!("{}/day", 6 + round)));
        drop(engine.decide(&get("/")).keep());
    }
    assert_eq!(engine.release_retired(), 3, "two were denied for want of slots, and hold nothing");
    under_way.pop();
    assert_eq!(engine.release_retired(), 3);
    drop(under_way.remove(0));
    assert_eq!(engine.release_retired(), 2);
    drop(under_way);
    assert_eq!(engine.release_retired(), 0);
}

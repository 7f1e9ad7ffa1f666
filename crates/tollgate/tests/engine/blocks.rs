//! Keys that were denied once and are denied everything for a while.

use std::time::Duration;

use tollgate::{Engine, ManualClock, Ruling};

use crate::{MINUTE, TICK, engine, exchange, get, left, passing};

const SECOND: Duration = Duration::from_secs(1);

fn retry_after(ruling: &Ruling) -> Option<Duration> {
    ruling.decision().retry_after()
}

fn logins() -> (Engine<ManualClock>, ManualClock) {
    engine("rules: [{ name: logins, key: [user], limit: 5/s, block_for: 1min }]")
}

#[test]
fn a_block_begins_with_the_first_denial_and_ends_exactly_when_it_says() {
    let (engine, clock) = logins();
    let alice = [("user", "alice")];
    let request = get("/").attributes(&alice);
    assert_eq!(passing(&engine, &request, 5), 5);
    clock.advance(SECOND / 10);
    assert_eq!(retry_after(&engine.peek(&request)), Some(MINUTE), "it would begin now");
    let denied = engine.decide(&request);
    assert_eq!((denied.rule(), retry_after(&denied)), (Some("logins"), Some(MINUTE)));
    clock.advance(MINUTE - TICK);
    let denied = engine.decide(&request);
    assert_eq!((denied.is_allowed(), retry_after(&denied)), (false, Some(TICK)));
    assert!(denied.decision().reset_after() >= TICK);
    clock.advance(TICK);
    assert_eq!(passing(&engine, &request, 9), 5, "everything is back");
}

#[test]
fn requests_during_a_block_do_not_prolong_it() {
    let (engine, clock) = logins();
    let alice = [("user", "alice")];
    let request = get("/").attributes(&alice);
    assert_eq!(passing(&engine, &request, 6), 5);
    for second in 1..60 {
        clock.advance(SECOND);
        let denied = engine.decide(&request);
        assert_eq!(retry_after(&denied), Some(MINUTE - SECOND * second));
    }
    clock.advance(SECOND);
    assert!(engine.decide(&request).is_allowed());
}

#[test]
fn nobody_else_is_blocked_and_nobody_who_only_looks() {
    let (engine, clock) = logins();
    let (alice, bob) = ([("user", "alice")], [("user", "bob")]);
    let (alice, bob) = (get("/").attributes(&alice), get("/").attributes(&bob));
    assert_eq!(passing(&engine, &alice, 5), 5);
    assert_eq!(retry_after(&engine.peek(&alice)), Some(MINUTE), "it would begin now");
    clock.advance(SECOND / 5);
    assert_eq!(passing(&engine, &alice, 1), 1, "but it has not");
    assert_eq!(passing(&engine, &alice, 1), 0);
    clock.advance(SECOND / 5);
    assert_eq!(retry_after(&engine.peek(&alice)), Some(MINUTE - SECOND / 5), "now it has");
    assert_eq!(passing(&engine, &bob, 9), 5);
}

#[test]
fn a_block_that_ends_before_the_limit_has_something_again_says_when_that_is() {
    let (engine, clock) = engine(
        "rules: [{ name: a, key: [], limit: 2/h, algorithm: sliding_log, block_for: 1min }]",
    );
    assert_eq!(passing(&engine, &get("/"), 2), 2);
    let denied = engine.decide(&get("/"));
    let wait = retry_after(&denied).unwrap();
    assert_eq!(wait, MINUTE * 60);
    clock.advance(wait - TICK);
    assert!(!engine.peek(&get("/")).is_allowed());
    clock.advance(TICK);
    assert!(engine.decide(&get("/")).is_allowed());
}

#[test]
fn whoever_is_blocked_by_one_rule_spends_nothing_from_the_others() {
    let (engine, _) = engine(
        "rules:
  - { name: all, key: [], limit: 100/h }
  - { name: slots, key: [], concurrent: 7 }
  - { name: logins, key: [user], limit: 5/s, block_for: 1min }",
    );
    let alice = [("user", "alice")];
    let request = get("/").attributes(&alice);
    assert_eq!(passing(&engine, &request, 20), 5);
    let denied = engine.decide(&request);
    assert_eq!(denied.rule(), Some("logins"));
    let slots = denied.each().find(|each| each.name() == "slots").unwrap();
    assert_eq!(slots.decision().remaining(), 7, "it holds none");
    assert_eq!(left(&engine, "all", &request), Some(95));
    assert_eq!(left(&engine, "slots", &request), Some(7));
}

#[test]
fn a_denial_by_another_rule_begins_no_block() {
    let (engine, _) = engine(
        "rules:
  - { name: few, key: [], limit: 1/s }
  - { name: logins, key: [user], limit: 5/s, block_for: 1min }",
    );
    let alice = [("user", "alice")];
    let request = get("/").attributes(&alice);
    assert_eq!(passing(&engine, &request, 3), 1);
    let denied = engine.decide(&request);
    assert_eq!((denied.rule(), retry_after(&denied)), (Some("few"), Some(SECOND)));
    assert_eq!(left(&engine, "logins", &request), Some(4));
}

#[test]
fn a_block_goes_on_when_other_things_change() {
    let (engine, clock) = logins();
    let alice = [("user", "alice")];
    let request = get("/").attributes(&alice);
    assert_eq!(passing(&engine, &request, 6), 5);
    clock.advance(MINUTE / 2);
    exchange(
        &engine,
        "rules:
  - { name: all, key: [], limit: 100/h }
  - { name: logins, match: { path: / }, key: [user], limit: 9/s, block_for: 1min }",
    );
    let denied = engine.decide(&request);
    assert_eq!((denied.rule(), retry_after(&denied)), (Some("logins"), Some(MINUTE / 2)));
}

/// They were free as soon as somebody changed the time.
#[test]
fn whoever_is_blocked_stays_so_when_the_time_changes_and_never_for_longer_than_the_new_time() {
    for (time, wait) in [("10s", SECOND * 10), ("1h", MINUTE * 60)] {
        let (engine, clock) = logins();
        let (alice, bob) = ([("user", "alice")], [("user", "bob")]);
        let (alice, bob) = (get("/").attributes(&alice), get("/").attributes(&bob));
        assert_eq!(passing(&engine, &alice, 6), 5);
        clock.advance(MINUTE / 2);
        let text =
            format!("rules: [{{ name: logins, key: [user], limit: 5/s, block_for: {time} }}]");
        exchange(&engine, &text);
        assert_eq!(passing(&engine, &bob, 5), 5);
        let denied = engine.decide(&alice);
        let left = retry_after(&denied).unwrap();
        assert!(!denied.is_allowed() && left <= wait, "{left:?} of {wait:?}");
        clock.advance(left - TICK);
        assert!(!engine.decide(&alice).is_allowed());
        clock.advance(TICK);
        assert!(engine.decide(&alice).is_allowed());
    }
}

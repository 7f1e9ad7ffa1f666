//! Rules that count only some outcomes.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tollgate::{Engine, ManualClock, Outcome, Request};

use crate::{MINUTE, engine, exchange, get, left, passing};

const FAILURES: &str = "rules:
  - { name: failures, key: [user], limit: 10/h, algorithm: sliding_log,
      count_if: 'response.status in [401, 403]' }";

const ALICE: [(&str, &str); 1] = [("user", "alice")];

fn ended(status: u16) -> Outcome<'static> {
    Outcome { status: Some(status), headers: &[] }
}

fn login() -> Request<'static> {
    Request::new("POST", "/login").attributes(&ALICE)
}

/// Whether a sign-in with this outcome passes.
fn signs_in(engine: &Engine<ManualClock>, status: u16) -> bool {
    let ruling = engine.decide(&login());
    let passes = ruling.is_allowed();
    if passes {
        engine.report(ruling, &login(), &ended(status));
    }
    passes
}

#[test]
fn exactly_so_many_failures_pass_among_any_number_of_successes() {
    for algorithm in ["token_bucket", "fixed_window", "sliding_window", "sliding_log"] {
        let (engine, _) = engine(&FAILURES.replace("sliding_log", algorithm));
        for failures in 0..10 {
            assert_eq!(left(&engine, "failures", &login()), Some(10 - failures), "{algorithm}");
            assert!((0..30).all(|_| signs_in(&engine, 200)), "{algorithm}");
            assert!(signs_in(&engine, if failures % 2 == 0 { 401 } else { 403 }));
        }
        assert!(!signs_in(&engine, 200), "ten have failed, {algorithm}");
    }
}

#[test]
fn what_is_under_way_counts_until_it_is_known_how_it_ended() {
    let (engine, _) = engine(FAILURES);
    let mut rulings: Vec<_> = (0..10).map(|_| engine.decide(&login())).collect();
    assert!(rulings.iter().all(|ruling| ruling.is_allowed()));
    assert!(!engine.decide(&login()).is_allowed());
    engine.report(rulings.pop().unwrap(), &login(), &ended(200));
    assert_eq!(passing(&engine, &login(), 5), 1, "dropped, which counts");
}

#[test]
fn rulings_that_are_dropped_and_outcomes_nobody_knows_count() {
    let (engine, _) = engine(FAILURES);
    drop(engine.decide(&login()));
    assert_eq!(left(&engine, "failures", &login()), Some(9));
    let unknown = Outcome { status: None, headers: &[] };
    engine.report(engine.decide(&login()), &login(), &unknown);
    assert_eq!(left(&engine, "failures", &login()), Some(8));
    assert_eq!(engine.failures(), 1, "somebody should know of it");
}

#[test]
fn only_rules_that_count_outcomes_get_something_back() {
    let (engine, _) = engine(
        "rules:
  - { name: requests, key: [user], limit: 10/h }
  - { name: failures, key: [user], limit: 10/h, cost: 2, count_if: response.status == 401 }
  - { name: trial, key: [user], limit: 10/h, mode: shadow, count_if: response.status == 200 }",
    );
    assert!(signs_in(&engine, 200) && signs_in(&engine, 401) && signs_in(&engine, 200));
    let left = ["requests", "failures", "trial"].map(|rule| left(&engine, rule, &login()));
    assert_eq!(left, [Some(7), Some(8), Some(8)]);
}

#[test]
fn a_denied_request_has_nothing_to_get_back() {
    let (engine, _) = engine(
        "rules:
  - { name: few, key: [], limit: 1/h }
  - { name: failures, key: [user], limit: 3/h, count_if: response.status == 401 }",
    );
    assert!(signs_in(&engine, 401));
    for _ in 0..5 {
        let denied = engine.decide(&login());
        assert!(!denied.is_allowed());
        engine.report(denied, &login(), &ended(200));
    }
    assert_eq!(left(&engine, "failures", &login()), Some(2));
}

#[test]
fn a_success_that_is_reported_in_another_window_takes_nothing_from_that_one() {
    let (engine, clock) = engine(
        "rules: [{ name: a, key: [user], limit: 3/min, algorithm: fixed_window,
          count_if: response.status == 401 }]",
    );
    let slow = engine.decide(&login());
    clock.advance(MINUTE);
    assert!(signs_in(&engine, 401) && signs_in(&engine, 401));
    engine.report(slow, &login(), &ended(200));
    assert_eq!(left(&engine, "a", &login()), Some(1));
}

#[test]
fn an_outcome_counts_by_the_rules_that_the_request_began_with() {
    let (engine, _) = engine(FAILURES);
    let ruling = engine.decide(&login());
    exchange(&engine, &FAILURES.replace("[401, 403]", "[200]"));
    engine.report(ruling, &login(), &ended(200));
    assert_eq!(left(&engine, "failures", &login()), Some(10), "a success, when it began");
    assert!(signs_in(&engine, 200));
    assert_eq!(left(&engine, "failures", &login()), Some(9));
}

/// Ten failures in all, and never more than ten that have failed or may still fail.
#[test]
fn threads_that_try_at_once_never_have_more_failures_and_tries_than_allowed() {
    for round in 0..40 {
        let (engine, _) = engine(FAILURES);
        // Two threads that bring a key at once may count it too high.
        assert!(signs_in(&engine, 200));
        let (failed, under_way) = (AtomicU64::new(0), AtomicU64::new(0));
        let start = Barrier::new(4);
        let work = |thread: u64| {
            start.wait();
            for turn in 0..50 {
                let ruling = engine.decide(&login());
                if !ruling.is_allowed() {
                    continue;
                }
                let others = under_way.fetch_add(1, Ordering::SeqCst);
                assert!(others < 10, "{others} may fail or have failed");
                let fails = (turn + thread).is_multiple_of(3);
                // What failed stays under way for ever; what did not is over before it is reported.
                match fails {
                    true => drop(failed.fetch_add(1, Ordering::SeqCst)),
                    false => drop(under_way.fetch_sub(1, Ordering::SeqCst)),
                }
                engine.report(ruling, &login(), &ended(if fails { 401 } else { 200 }));
            }
        };
        thread::scope(|scope| {
            let work = &work;
            for thread in 0..4 {
                scope.spawn(move || work(thread));
            }
        });
        let failed = failed.into_inner();
        assert!(failed <= 10, "{failed} failures in round {round}");
        assert_eq!(left(&engine, "failures", &login()), Some(10 - failed), "in round {round}");
        let more = (0..20).filter(|_| signs_in(&engine, 401)).count() as u64;
        assert_eq!(failed + more, 10, "in round {round}");
    }
}

#[test]
fn a_rule_of_failures_blocks_whoever_failed_too_often() {
    let (engine, clock) = engine(
        "rules: [{ name: a, key: [user], limit: 3/15min, algorithm: sliding_log,
          count_if: response.status == 401, block_for: 15min }]",
    );
    assert!((0..50).all(|_| signs_in(&engine, 200)));
    assert!((0..3).all(|_| signs_in(&engine, 401)));
    clock.advance(MINUTE);
    let denied = engine.decide(&login());
    assert_eq!(denied.decision().retry_after(), Some(MINUTE * 15));
    clock.advance(MINUTE * 15 - crate::TICK);
    assert!(!signs_in(&engine, 200));
    clock.advance(crate::TICK);
    assert!(signs_in(&engine, 200));
    assert_eq!(left(&engine, "a", &get("/").attributes(&ALICE)), Some(3));
}

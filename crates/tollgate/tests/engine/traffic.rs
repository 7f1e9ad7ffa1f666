//! Rules that are exchanged while threads are deciding.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tollgate::{Engine, ManualClock};

use crate::{engine, exchange, get, left, passing};

const ALICE: [(&str, &str); 1] = [("user", "alice")];

/// Lets threads decide for as long as `work` takes, and says how many passed.
fn during(engine: &Engine<ManualClock>, work: impl FnOnce(&AtomicU64)) -> u64 {
    let (ended, asked, passed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    let ruling = engine.decide(&get("/").attributes(&ALICE));
                    passed.fetch_add(u64::from(ruling.is_allowed()), Ordering::Relaxed);
                    // Everybody gets an answer from one version of the rules, and from all of it.
                    let names: Vec<_> = ruling.each().map(|each| each.name()).collect();
                    assert!(names == ["a"] || names == ["a", "b"], "{names:?}");
                    asked.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                }
            });
        }
        work(&asked);
        ended.store(true, Ordering::Release);
    });
    passed.into_inner()
}

/// Waits until so many more were decided.
fn wait_for(asked: &AtomicU64, more: u64) {
    let until = asked.load(Ordering::Relaxed) + more;
    while asked.load(Ordering::Relaxed) < until {
        thread::yield_now();
    }
}

#[test]
fn a_limit_that_stays_is_exact_however_often_other_rules_are_exchanged() {
    for algorithm in ["token_bucket", "fixed_window", "sliding_window", "sliding_log"] {
        let rule = format!("{{ name: a, key: [user], limit: 100/h, algorithm: {algorithm} }}");
        let (engine, _) = engine(&format!("rules: [{rule}]"));
        let request = get("/").attributes(&ALICE);
        // Two threads that bring a key at once may count it too high.
        assert!(engine.decide(&request).is_allowed());
        let passed = during(&engine, |asked| {
            for round in 0..60 {
                wait_for(asked, 3);
                match round % 2 {
                    0 => exchange(
                        &engine,
                        &format!("rules: [{rule}, {{ name: b, key: [], limit: 1M/h }}]"),
                    ),
                    _ => exchange(&engine, &format!("rules: [{rule}]")),
                }
            }
        });
        let rest = passing(&engine, &request, 200) as u64;
        assert_eq!(1 + passed + rest, 100, "{algorithm}");
    }
}

/// Requests that began with the old rules may be counted there when the new ones no longer look: at
/// most one for each thread.
#[test]
fn a_limit_that_changes_under_traffic_is_never_passed() {
    for (old, new) in [(40, 90), (90, 40), (60, 61)].repeat(8) {
        let rule = |limit: u64| format!("rules: [{{ name: a, key: [user], limit: {limit}/h }}]");
        let (engine, _) = engine(&rule(old));
        let request = get("/").attributes(&ALICE);
        let passed = during(&engine, |asked| {
            wait_for(asked, 20);
            exchange(&engine, &rule(new));
            wait_for(asked, 200);
        });
        let rest = passing(&engine, &request, 200) as u64;
        let most = old.max(new) + 3;
        assert!(passed + rest <= most, "{passed} and {rest} passed, {old} to {new}");
        assert!(passed + rest >= new.min(old), "{passed} and {rest} passed, {old} to {new}");
        assert_eq!(left(&engine, "a", &request), Some(0));
    }
}

#[test]
fn slots_are_never_too_many_while_their_number_changes() {
    let rule = |most: u64| format!("rules: [{{ name: a, key: [user], concurrent: {most} }}]");
    let (engine, _) = engine(&rule(2));
    let (ended, out) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    let ruling = engine.decide(&get("/").attributes(&ALICE));
                    if ruling.is_allowed() {
                        let others = out.fetch_add(1, Ordering::SeqCst);
                        assert!(others < 3, "{others} were out already");
                        thread::yield_now();
                        out.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
        for round in 0..300 {
            exchange(&engine, &rule(1 + round % 3));
            thread::yield_now();
        }
        ended.store(true, Ordering::Release);
    });
    exchange(&engine, &rule(3));
    assert_eq!(left(&engine, "a", &get("/").attributes(&ALICE)), Some(3), "all came back");
}

/// Whoever asks after `exchange` has returned meets the new rules, in whatever thread.
#[test]
fn new_rules_are_in_force_everywhere_once_the_exchange_has_returned() {
    let rule = |version: u64| format!("rules: [{{ name: v{version}, key: [], limit: 1M/s }}]");
    let (engine, _) = engine(&rule(0));
    let (published, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    let known = published.load(Ordering::Acquire);
                    let ruling = engine.decide(&get("/"));
                    let name = ruling.rule().unwrap();
                    let version: u64 = name[1..].parse().unwrap();
                    assert!(version >= known, "{version} after {known}");
                }
            });
        }
        for version in 1..200 {
            exchange(&engine, &rule(version));
            published.store(version, Ordering::Release);
            thread::yield_now();
        }
        ended.store(true, Ordering::Release);
    });
    assert_eq!(engine.rules().rules()[0].name(), "v199");
}

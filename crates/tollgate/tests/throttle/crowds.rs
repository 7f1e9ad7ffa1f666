//! More keys than there is room for, and many threads: nothing is under-counted.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::{SECOND, quota, throttle};

/// Whatever passes must pass by the exact state of its own key, of which only that is known which
/// did pass. Keys come under one limit and then under another, also those without a slot.
#[test]
fn keys_without_a_slot_are_never_counted_too_low() {
    let (throttle, clock) = throttle(64);
    let limits =
        [(quota(9, 1, 60), 10, 60), (quota(2, 1, 3_600), 3, 3_600), (quota(0, 6, 60), 1, 10)];
    let keys = 3_000u64;
    let mut back = vec![0u64; keys as usize];
    let mut passed = 0;
    for turn in 0..60_000u64 {
        let (key, (limit, tokens, interval)) =
            (turn * 7_919 % keys, limits[(turn * 31 % 97 % 3) as usize]);
        let now = turn / 200;
        if turn % 200 == 0 && turn > 0 {
            clock.advance(SECOND);
        }
        if throttle.check(&key, limit, 1).unwrap().is_allowed() {
            let after = back[key as usize].max(now) + interval;
            assert!(after <= now + tokens * interval, "key {key} at {now} s");
            back[key as usize] = after;
            passed += 1;
        }
    }
    assert!(throttle.stats().overflowed > 1_000, "{:?}", throttle.stats());
    assert!(passed > 100, "{passed}");
}

/// A second of time is spent for each token, and an hour is all there is.
#[test]
fn threads_with_different_limits_spend_from_one_bucket() {
    for round in 0..20 {
        let (throttle, _) = throttle(100);
        let limits = [(quota(3_599, 1, 1), 1), (quota(359, 1, 10), 10), (quota(59, 1, 60), 60)];
        let (spent, start) = (AtomicU64::new(0), Barrier::new(4));
        thread::scope(|scope| {
            for thread in 0..4 {
                let (throttle, spent, start) = (&throttle, &spent, &start);
                scope.spawn(move || {
                    start.wait();
                    for turn in 0..2_000 {
                        let (limit, seconds) = limits[(turn + thread) % 3];
                        if throttle.check("one", limit, 1).unwrap().is_allowed() {
                            spent.fetch_add(seconds, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(spent.into_inner(), 3_600, "in round {round}");
    }
}

#[test]
fn heavy_keys_are_told_and_a_reset_gives_everything_back() {
    let (throttle, _) = throttle(100);
    let limit = quota(1, 1, 60);
    for key in ["alice", "bob", "alice", "alice"] {
        let _ = throttle.check(key, limit, 1).unwrap();
    }
    assert_eq!(throttle.top(1)[0].key, "alice");
    assert_eq!(
        (throttle.top_denied(9)[0].key.as_str(), throttle.top_denied(9).len()),
        ("alice", 1)
    );
    assert!(throttle.reset("alice"));
    assert_eq!(throttle.check("alice", limit, 0).unwrap().remaining(), 2);
}

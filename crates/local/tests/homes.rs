//! States that do not fit a word: logs, permits, and the list of heavy keys.
#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Limit, Tick};
use tollgate_local::{Clock, Concurrency, Counters, HeavyKeys, Key, ManualClock, Seed, Table};

fn logs(quota: &str, keys: usize) -> (Counters, ManualClock, Seed) {
    let (clock, seed) = (ManualClock::new(), Seed::new(5));
    let table = Arc::new(Table::with_keys(keys).unwrap());
    let limit = Limit::sliding_log(quota).unwrap();
    let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
    (counters, clock, seed)
}

proptest! {
    #[test]
    fn a_log_admits_exactly_what_a_list_of_all_requests_would(
        requests in prop::collection::vec((0u64..5, 0u64..400, 1u64..4), 1..150),
    ) {
        let (counters, clock, seed) = logs("5/s", 10_000);
        let mut all: HashMap<u64, Vec<(Tick, u64)>> = HashMap::new();
        for (key, millis, cost) in requests {
            clock.advance(Duration::from_millis(millis));
            let now = clock.now();
            let list = all.entry(key).or_default();
            let recent = list.iter().filter(|(at, _)| now.since(*at) < Duration::from_secs(1));
            let spent: u64 = recent.map(|(_, cost)| cost).sum();
            let decision = counters.check(key.hash(&seed), cost, &clock);
            prop_assert_eq!(decision.is_allowed(), spent + cost <= 5);
            if decision.is_allowed() {
                list.push((now, cost));
                prop_assert_eq!(decision.remaining(), 5 - spent - cost);
            }
        }
    }
}

#[test]
fn far_more_keys_than_room_are_counted_too_high_and_in_bounded_memory() {
    let (counters, clock, seed) = logs("3/min", 1_000);
    let mut admitted: HashMap<u64, u32> = HashMap::new();
    for round in 0..5u64 {
        for key in 0..20_000u64 {
            if counters.check(key.hash(&seed), 1, &clock).is_allowed() {
                *admitted.entry(key).or_default() += 1;
            }
        }
        clock.advance(Duration::from_millis(round));
    }
    assert!(admitted.values().all(|count| *count <= 3));
    let pressure = counters.pressure();
    assert!(pressure.overflowed > 0);
    assert!(pressure.memory < 100_000, "{} bytes", pressure.memory);
    // After a window all is at rest, and there is room again.
    clock.advance(Duration::from_secs(61));
    assert!(counters.check(7u64.hash(&seed), 3, &clock).is_allowed());
    assert!(!counters.check(7u64.hash(&seed), 1, &clock).is_allowed());
}

#[test]
fn never_more_permits_are_out_than_allowed() {
    let slots = Concurrency::new(3, 1_000).unwrap();
    let key = "export".hash(&Seed::new(1));
    let (out, most) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let Ok(held) = slots.acquire(key, Tick::ZERO) else { continue };
                    let now = out.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    out.fetch_sub(1, Ordering::SeqCst);
                    drop(held);
                }
            });
        }
    });
    assert!(most.load(Ordering::SeqCst) <= 3);
    assert_eq!(slots.out(key, Tick::ZERO), 0);
}

#[test]
fn a_permit_comes_back_when_its_holder_panics() {
    let slots = Concurrency::new(1, 100).unwrap();
    let key = "export".hash(&Seed::new(1));
    let holder = catch_unwind(AssertUnwindSafe(|| {
        let _held = slots.acquire(key, Tick::ZERO).unwrap();
        std::panic::resume_unwind(Box::new("the holder dies"));
    }));
    assert!(holder.is_err());
    assert!(slots.acquire(key, Tick::ZERO).is_ok());
}

#[test]
fn a_holder_that_is_late_does_not_free_the_permit_of_another() {
    let slots = Concurrency::new(1, 100).unwrap().expiring(Duration::from_secs(10)).unwrap();
    let key = "export".hash(&Seed::new(1));
    let late = slots.acquire(key, Tick::ZERO).unwrap();
    let after = Tick::ZERO.after(Duration::from_secs(10));
    let current = slots.acquire(key, after).unwrap();
    drop(late);
    assert!(slots.acquire(key, after).is_err(), "the second permit is still out");
    drop(current);
    assert!(slots.acquire(key, after).is_ok());
}

#[test]
fn permits_have_a_bound_over_all_keys() {
    let (slots, seed) = (Concurrency::new(1, 64).unwrap(), Seed::new(1));
    let held: Vec<_> =
        (0..10_000u64).filter_map(|key| slots.acquire(key.hash(&seed), Tick::ZERO).ok()).collect();
    assert_eq!(held.len(), 64);
    assert_eq!(slots.turned_away(), 10_000 - held.len() as u64);
    drop(held);
    assert!(slots.acquire(1u64.hash(&seed), Tick::ZERO).is_ok());
}

#[test]
fn one_key_may_have_the_whole_room() {
    let slots = Concurrency::new(20_000, 20_000).unwrap();
    let key = 1u64.hash(&Seed::new(1));
    let held: Vec<_> = (0..20_000).map(|_| slots.acquire(key, Tick::ZERO).unwrap()).collect();
    assert!(slots.acquire(key, Tick::ZERO).is_err());
    drop(held);
    assert_eq!(slots.out(key, Tick::ZERO), 0);
}

#[test]
fn permits_that_expire_at_once_are_refused() {
    assert!(Concurrency::new(1, 10).unwrap().expiring(Duration::ZERO).is_err());
}

#[test]
fn expired_permits_of_other_keys_make_room() {
    let slots = Concurrency::new(1, 64).unwrap().expiring(Duration::from_secs(1)).unwrap();
    let seed = Seed::new(1);
    for key in 0..64u64 {
        std::mem::forget(slots.acquire(key.hash(&seed), Tick::ZERO).unwrap());
    }
    assert!(slots.acquire(99u64.hash(&seed), Tick::ZERO).is_err());
    let later = Tick::ZERO.after(Duration::from_secs(2));
    let again = (0..64u64).filter(|key| slots.acquire(key.hash(&seed), later).is_ok()).count();
    assert!(again > 60, "{again} of 64 found room");
}

#[test]
fn the_heaviest_keys_are_found_in_order() {
    let (heavy, seed) = (HeavyKeys::default(), Seed::new(1));
    // Key n comes once in 2^n; the rest is noise.
    for request in 1..400_000u64 {
        let key = match request.trailing_zeros() {
            zeros @ 0..5 => u64::from(zeros),
            _ => 1_000 + request % 50_000,
        };
        heavy.count(key == 3, || (key.hash(&seed), key.label()));
    }
    let top = heavy.top(5);
    let keys: Vec<&str> = top.iter().map(|heavy| heavy.key.as_str()).collect();
    assert_eq!(keys, ["0", "1", "2", "3", "4"]);
    assert!((0.4..0.6).contains(&top[0].share), "{}", top[0].share);
    assert_eq!(heavy.top_denied(3).len(), 1);
    assert_eq!(heavy.top_denied(1)[0].key, "3");
}

#[test]
fn batches_are_sampled_like_single_requests() {
    let (heavy, seed) = (HeavyKeys::default(), Seed::new(1));
    let batch: Vec<u64> = (0..32).map(|n| if n % 4 == 0 { 7 } else { 100 + n }).collect();
    for _ in 0..10_000 {
        heavy.count_batch(batch.len(), |at| (batch[at].hash(&seed), false, batch[at].label()));
    }
    let top = heavy.top(1);
    assert_eq!(top[0].key, "7");
    assert!((0.15..0.35).contains(&top[0].share), "{}", top[0].share);
}

#[test]
fn labels_are_kept_short() {
    let heavy = HeavyKeys::default();
    let long = "ä".repeat(10_000);
    heavy.count(false, || (long.hash(&Seed::new(1)), long.label()));
    assert!(heavy.top(1)[0].key.len() < 300);
}

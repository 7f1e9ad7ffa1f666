//! Thousands of limits on one table: their memory, and that none of them passes more for it.

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::sync::Arc;

use tollgate_core::{Limit, Tick};
use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table};

const MANY: usize = 10_000;

/// Counters of the same limit, each knowing that there are `count` of them.
fn many(table: &Arc<Table>, limit: &Limit, count: usize) -> Vec<Counters> {
    let seed = Seed::new(9);
    let anchor = ManualClock::new().anchor();
    let one = |index| Counters::builder(table, limit, anchor, seed.salt(index)).among(count);
    (0..count as u64).map(|index| one(index).build()).collect()
}

fn memory(all: &[Counters]) -> usize {
    all.iter().map(|counters| counters.pressure().memory).sum()
}

#[test]
fn many_sketches_take_as_much_as_one_or_a_little_each() {
    let limit = Limit::token_bucket("5/h").unwrap();
    for keys in [1_000, 100_000, 5_000_000] {
        let table = Arc::new(Table::with_keys(keys).unwrap());
        let alone = memory(&many(&table, &limit, 1));
        for count in [1, 2, 10, 100, MANY] {
            let together = memory(&many(&table, &limit, count));
            assert!(together <= alone.max(count * 16 * 8), "{count}: {together}, {alone} alone");
            assert!(together * 2 > alone, "{count}: {together}, {alone} alone");
        }
    }
}

#[test]
fn many_logs_share_the_memory_of_one_or_have_a_little_each() {
    let (limit, seed) = (Limit::sliding_log("5/h").unwrap(), Seed::new(9));
    let table = Arc::new(Table::with_memory(1 << 20).unwrap());
    for count in [1, 3, 50, 500] {
        let all = many(&table, &limit, count);
        for key in 0..60_000u64 {
            let counters = &all[key as usize % count];
            assert_eq!(counters.check_at(key.hash(&seed), 6, Tick::ZERO).retry_after(), None);
            counters.check_at(key.hash(&seed), 1, Tick::ZERO);
        }
        let together = memory(&all);
        let most = (4 << 20).max(count * (4 << 10));
        assert!(together <= most, "{count}: {together} of {most}");
        assert!(together * 2 > most.min(60_000 * 120), "{count}: {together} of {most}");
    }
}

#[test]
fn a_limit_of_thousands_passes_what_it_says() {
    let (clock, seed) = (ManualClock::new(), Seed::new(9));
    for limit in [Limit::token_bucket("3/h").unwrap(), Limit::sliding_log("3/h").unwrap()] {
        let table = Arc::new(Table::with_keys(100_000).unwrap());
        let all = many(&table, &limit, MANY);
        for counters in &all {
            for key in ["alice", "bob"] {
                let check = |_: &i32| counters.check(key.hash(&seed), 1, &clock).is_allowed();
                assert_eq!((0..5).filter(check).count(), 3, "{limit}");
            }
        }
    }
}

/// There are 63 owners of slots. Further counters cannot tell their slots from those of others: they
/// displace nobody, and are displaced by nobody.
#[test]
fn without_room_none_of_hundreds_of_limits_passes_more_than_it_says() {
    let (clock, seed) = (ManualClock::new(), Seed::new(9));
    let table = Arc::new(Table::with_memory(640).unwrap());
    let all = many(&table, &Limit::token_bucket("3/h").unwrap(), 300);
    let mut passed = vec![[0; 4]; all.len()];
    for _ in 0..10 {
        for (counters, passed) in all.iter().zip(&mut passed) {
            for (key, passed) in passed.iter_mut().enumerate() {
                let decision = counters.check((key as u64).hash(&seed), 1, &clock);
                *passed += u32::from(decision.is_allowed());
            }
        }
    }
    assert!(passed.iter().flatten().all(|passed| *passed <= 3), "{passed:?}");
    let overflowed = |counters: &&Counters| counters.pressure().overflowed > 0;
    assert!(all.iter().filter(overflowed).count() > 250);
    assert!(all[100..].iter().all(|counters| counters.pressure().promoted == 0));
}

#[test]
fn owners_come_back_when_counters_end() {
    let (clock, seed) = (ManualClock::new(), Seed::new(9));
    let limit = Limit::token_bucket("100/h").unwrap();
    let table = Arc::new(Table::with_memory(128).unwrap());
    drop(many(&table, &limit, 500));
    // Only counters that are told from others give heavy keys the slots of light ones.
    let last = Counters::new(&table, &limit, clock.anchor(), seed.salt(1));
    for key in 0..40u64 {
        last.check(key.hash(&seed), 1, &clock);
    }
    for _ in 0..50 {
        last.check(99u64.hash(&seed), 1, &clock);
    }
    assert!(last.pressure().promoted > 0);
}

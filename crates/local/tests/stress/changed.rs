//! Threads that meet right after a limit has changed: what was spent before is counted once.

use std::sync::Arc;

use tollgate_core::Limit;
use tollgate_local::{Clock, Counters, Key, ManualClock, Past, Seed, Table};

use crate::crowd::{CROWDS, crowd, hourly, sums};

const KEYS: usize = 24;
const BEFORE: u64 = 30;
const ALL: u64 = 50;
const ROUNDS: u64 = 20;

struct Change {
    old: Arc<Counters>,
    new: Counters,
    clock: ManualClock,
    seed: Seed,
}

impl Change {
    fn new(old: &Limit, new: &Limit, table: Table, round: u64) -> Self {
        let (table, clock, seed) = (Arc::new(table), ManualClock::new(), Seed::new(round));
        let old = Arc::new(Counters::new(&table, old, clock.anchor(), seed.salt(0)));
        // Every other key has spent something.
        for key in (0..KEYS).step_by(2) {
            old.check((key as u64).hash(&seed), BEFORE, &clock);
        }
        let past = Arc::<Counters>::clone(&old);
        let new = Counters::builder(&table, new, clock.anchor(), seed.salt(1))
            .following(past, clock.now())
            .build();
        Self { old, new, clock, seed }
    }

    /// What all threads together pass of each key, each asking for all keys in another order.
    fn passed(&self, threads: usize) -> Vec<u64> {
        sums(crowd(threads, |thread| {
            let mut passed = vec![0; KEYS];
            for request in 0..KEYS * 60 {
                let key = (request * (2 * thread + 1) + thread) % KEYS;
                let hash = (key as u64).hash(&self.seed);
                passed[key] += u64::from(self.new.check(hash, 1, &self.clock).is_allowed());
            }
            passed
        }))
    }

    fn most(&self, key: usize) -> u64 {
        ALL - self.old.spent((key as u64).hash(&self.seed), self.clock.now()).min(ALL)
    }
}

#[test]
fn every_key_passes_what_it_had_not_spent_before() {
    for threads in CROWDS {
        for (old, new) in hourly(100).iter().zip(hourly(ALL)) {
            for round in 0..ROUNDS {
                let change = Change::new(old, &new, Table::with_keys(1_000).unwrap(), round);
                for (key, passed) in change.passed(threads).into_iter().enumerate() {
                    assert_eq!(passed, change.most(key), "key {key}, {threads} threads, {new}");
                }
            }
        }
    }
}

#[test]
fn without_room_no_key_passes_more_than_it_had_not_spent_before() {
    for threads in CROWDS {
        for (old, new) in hourly(100).iter().zip(hourly(ALL)) {
            for round in 0..ROUNDS {
                let change = Change::new(old, &new, Table::with_memory(256).unwrap(), round);
                for (key, passed) in change.passed(threads).into_iter().enumerate() {
                    let most = change.most(key);
                    assert!(passed <= most, "{passed} of {most}, {threads} threads, {new}");
                }
            }
        }
    }
}

#[test]
fn logs_pass_what_was_not_spent_before() {
    for threads in CROWDS {
        for old in hourly(100) {
            let new = Limit::sliding_log("50/h").unwrap();
            let change = Change::new(&old, &new, Table::with_keys(1_000).unwrap(), 0);
            for (key, passed) in change.passed(threads).into_iter().enumerate() {
                assert_eq!(passed, change.most(key), "key {key}, {threads} threads, {old}");
            }
        }
    }
}

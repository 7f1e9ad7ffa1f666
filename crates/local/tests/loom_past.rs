//! Models of threads that bring a key whose limit has changed:
//! `RUSTFLAGS="--cfg loom" cargo test -p tollgate-local --release --test loom_past`.
#![cfg(loom)]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loom::thread;
use tollgate_core::{Anchor, Limit, Tick};
use tollgate_local::{Counters, Key, KeyHash, Past, Seed, Table};

const NOW: Tick = Tick::ZERO;

/// Everybody has spent so much. Not a model's number, which would only add interleavings.
struct Spent(AtomicU64);

impl Past for Spent {
    fn spent(&self, _: KeyHash, _: Tick) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn forget(&self, _: KeyHash, _: Tick) -> bool {
        self.0.store(0, Ordering::Relaxed);
        true
    }
}

fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// Counters in a table of so many lines, which have one slot each. All keys have spent two.
fn counters(lines: usize, quota: &str) -> Arc<Counters> {
    let line = Table::with_keys(1).unwrap().memory() / 2;
    let table = Arc::new(Table::with_memory(lines * line).unwrap());
    let limit = Limit::token_bucket(quota).unwrap();
    let builder = Counters::builder(&table, &limit, Anchor::default(), Seed::new(7).salt(1));
    Arc::new(builder.following(Arc::new(Spent(AtomicU64::new(2))), NOW).build())
}

fn key(number: u64) -> KeyHash {
    number.hash(&Seed::new(7))
}

fn spend(counters: &Arc<Counters>, number: u64) -> impl FnOnce() -> u64 + 'static {
    let counters = Arc::clone(counters);
    move || u64::from(counters.check_at(key(number), 1, NOW).is_allowed())
}

#[test]
fn threads_that_bring_the_same_key_find_what_it_had_spent_once() {
    for number in 0..3 {
        explore(move || {
            let counters = counters(3, "3/h");
            let one = thread::spawn(spend(&counters, number));
            let two = thread::spawn(spend(&counters, number));
            let passed = one.join().unwrap() + two.join().unwrap();
            assert_eq!(passed, 1, "of three, two were spent before");
            assert_eq!(spend(&counters, number)(), 0);
        });
    }
}

#[test]
fn keys_without_room_are_not_given_what_they_had_spent() {
    for number in 0..3 {
        explore(move || {
            let counters = counters(2, "3/h");
            spend(&counters, 10)();
            spend(&counters, 11)();
            let one = thread::spawn(spend(&counters, number));
            let two = thread::spawn(spend(&counters, number));
            let passed = one.join().unwrap() + two.join().unwrap();
            assert!(passed + spend(&counters, number)() <= 1, "{passed} passed");
        });
    }
}

#[test]
fn a_key_that_is_reset_while_it_spends_has_all_but_that() {
    for number in 0..3 {
        explore(move || {
            let counters = counters(3, "3/h");
            let spending = thread::spawn(spend(&counters, number));
            let resetting = Arc::clone(&counters);
            let reset = thread::spawn(move || resetting.reset(key(number), NOW));
            spending.join().unwrap();
            assert!(reset.join().unwrap());
            let left = counters.peek(key(number), 0, NOW).remaining();
            assert!(left >= 2, "only {left} are left");
        });
    }
}

//! Models of the table, run under every interleaving of their threads that loom can find:
//! `RUSTFLAGS="--cfg loom" cargo test -p tollgate-local --release --test loom`.
//!
//! Under loom a line has one slot and the sketch one cell, and the tables here have two lines, so
//! that every key meets every other.
#![cfg(loom)]

use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use tollgate_core::{Anchor, Limit, Tick};
use tollgate_local::{Counters, Key, KeyHash, Seed, Table};

const START: Tick = Tick::ZERO;

/// Counters of several limits in a table of two slots.
fn counters<const N: usize>(quotas: [&str; N]) -> [Arc<Counters>; N] {
    let table = Arc::new(Table::with_keys(1).unwrap());
    let seed = Seed::new(7);
    let mut salt = 0;
    quotas.map(|quota| {
        salt += 1;
        let limit = Limit::token_bucket(quota).unwrap();
        Arc::new(Counters::new(&table, &limit, Anchor::default(), seed.salt(salt)))
    })
}

fn key(name: &str) -> KeyHash {
    name.hash(&Seed::new(7))
}

fn later(seconds: u64) -> Tick {
    START.after(Duration::from_secs(seconds))
}

/// Runs both at once and adds up what they return.
fn race(one: impl FnOnce() -> u64 + 'static, two: impl FnOnce() -> u64 + 'static) -> u64 {
    let other = thread::spawn(one);
    let own = two();
    other.join().unwrap() + own
}

fn spend(
    counters: &Arc<Counters>,
    name: &'static str,
    now: Tick,
) -> impl FnOnce() -> u64 + 'static {
    let counters = Arc::clone(counters);
    move || u64::from(counters.check_at(key(name), 1, now).is_allowed())
}

#[test]
fn two_threads_bring_the_same_new_key_and_one_token_is_spent_once() {
    loom::model(|| {
        let [hourly] = counters(["1/h"]);
        let allowed = race(spend(&hourly, "a", START), spend(&hourly, "a", START));
        assert_eq!(allowed, 1);
        assert!(!hourly.check_at(key("a"), 1, START).is_allowed());
    });
}

#[test]
fn no_spending_is_lost_between_two_threads() {
    loom::model(|| {
        let [hourly] = counters(["10/h"]);
        hourly.check_at(key("a"), 1, START);
        let allowed = race(spend(&hourly, "a", START), spend(&hourly, "a", START));
        assert_eq!(allowed, 2);
        assert_eq!(hourly.peek(key("a"), 1, START).remaining(), 7);
    });
}

#[test]
fn two_keys_that_want_the_same_slot_do_not_share_it() {
    loom::model(|| {
        let [hourly, fast] = counters(["2/h", "1/s"]);
        // One slot is live, the other one is at rest after a second.
        hourly.check_at(key("resident"), 1, START);
        fast.check_at(key("guest"), 1, START);
        let allowed = race(spend(&hourly, "a", later(5)), spend(&hourly, "b", later(5)));
        assert_eq!(allowed, 2);
        // Whichever got the slot, both are counted: in it, or in the sketch.
        assert_eq!(hourly.peek(key("resident"), 1, later(5)).remaining(), 1);
        for name in ["a", "b"] {
            assert!(hourly.peek(key(name), 2, later(5)).retry_after().is_some(), "{name}");
        }
    });
}

#[test]
fn a_key_in_the_sketch_is_not_forgotten_when_it_gets_a_slot() {
    loom::model(|| {
        let [hourly, fast] = counters(["1/h", "1/s"]);
        hourly.check_at(key("resident"), 1, START);
        fast.check_at(key("guest"), 1, START);
        // One thread still sees all slots live and goes to the sketch. The other one has a later
        // time, sees one at rest, and claims it. Between them there is one token.
        let allowed = race(spend(&hourly, "a", START), spend(&hourly, "a", later(1)));
        // None if the slot took over what was spent in the sketch, and then was asked as well.
        assert!(allowed <= 1, "{allowed} were allowed");
        assert!(!hourly.check_at(key("a"), 1, later(1)).is_allowed());
    });
}

#[test]
fn the_sketch_counts_what_two_threads_spend() {
    loom::model(|| {
        let [hourly] = counters(["1/h"]);
        hourly.check_at(key("one"), 1, START);
        hourly.check_at(key("two"), 1, START);
        let allowed = race(spend(&hourly, "a", START), spend(&hourly, "a", START));
        assert_eq!(allowed, 1);
        assert!(hourly.pressure().overflowed >= 2);
    });
}

#[test]
fn a_slot_taken_from_a_key_at_rest_is_not_charged_for_it() {
    loom::model(|| {
        let [hourly, fast] = counters(["5/h", "1/s"]);
        hourly.check_at(key("resident"), 1, START);
        fast.check_at(key("guest"), 1, START);
        // The guest comes back with an old time while its slot passes to another key.
        let allowed = race(spend(&hourly, "a", later(5)), {
            let fast = Arc::clone(&fast);
            move || u64::from(fast.check_at(key("guest"), 1, later(5)).is_allowed())
        });
        assert_eq!(allowed, 2);
        assert_eq!(fast.peek(key("guest"), 1, later(5)).remaining(), 0);
        assert!(hourly.peek(key("a"), 5, later(5)).retry_after().is_some());
    });
}

#[test]
fn what_is_undone_is_back_and_no_more() {
    loom::model(|| {
        let [hourly] = counters(["2/h"]);
        hourly.check_at(key("a"), 1, START);
        let undo = {
            let hourly = Arc::clone(&hourly);
            move || {
                hourly.undo(key("a"), 1, START, &tollgate_local::ManualClock::new());
                0
            }
        };
        let allowed = race(undo, spend(&hourly, "a", START));
        assert_eq!(allowed, 1);
        assert_eq!(hourly.peek(key("a"), 1, START).remaining(), 1);
    });
}

#[test]
fn a_reset_gives_one_budget_back() {
    loom::model(|| {
        let [hourly] = counters(["1/h"]);
        hourly.check_at(key("a"), 1, START);
        let reset = {
            let hourly = Arc::clone(&hourly);
            move || u64::from(!hourly.reset(key("a"), START))
        };
        let allowed = race(reset, spend(&hourly, "a", START));
        let afterwards = hourly.check_at(key("a"), 1, START).is_allowed();
        assert_eq!(allowed + u64::from(afterwards), 1);
    });
}

#[test]
fn a_batch_and_a_single_decision_share_one_token() {
    loom::model(|| {
        let [hourly] = counters(["1/h"]);
        let batch = {
            let hourly = Arc::clone(&hourly);
            move || {
                let mut decisions = Vec::new();
                let clock = tollgate_local::ManualClock::new();
                hourly.check_batch([key("a"), key("b")], 1, &clock, &mut decisions);
                u64::from(decisions[0].is_allowed())
            }
        };
        let allowed = race(batch, spend(&hourly, "a", START));
        assert_eq!(allowed, 1);
    });
}

//! Models of three threads that put keys into slots at the same time:
//! `RUSTFLAGS="--cfg loom" cargo test -p tollgate-local --release --test loom_claims`.
//!
//! Three threads have too many interleavings to run them all. What goes wrong here needs two
//! switches between threads at bad moments, so those with up to two are run.
#![cfg(loom)]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use tollgate_core::{Anchor, Limit, Tick};
use tollgate_local::{Counters, Key, ManualClock, Seed, Table};

const START: Tick = Tick::ZERO;

fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// A table of so many lines, which have one slot each.
fn table(lines: usize) -> Arc<Table> {
    let line = Table::with_keys(1).unwrap().memory() / 2;
    Arc::new(Table::with_memory(lines * line).unwrap())
}

fn counters(table: &Arc<Table>, quota: &str, index: u64) -> Arc<Counters> {
    let limit = Limit::token_bucket(quota).unwrap();
    Arc::new(Counters::new(table, &limit, Anchor::default(), Seed::new(7).salt(index)))
}

fn later() -> Tick {
    START.after(Duration::from_secs(5))
}

fn spend(counters: &Arc<Counters>, key: u64, now: Tick) -> impl FnOnce() -> u64 + 'static {
    let (counters, key) = (Arc::clone(counters), key.hash(&Seed::new(7)));
    move || u64::from(counters.check_at(key, 1, now).is_allowed())
}

/// Two threads bring the same new key. One of them gives up a slot that it has taken from another
/// key, and that key has come back in the meantime and got another slot.
#[test]
fn a_slot_that_was_given_up_does_not_return_to_the_key_it_was_taken_from() {
    // Which slots keys may have is up to their hashes: some of these want the same.
    for (new, old) in [(100, 0), (100, 1), (100, 2), (101, 0), (101, 1), (101, 2)] {
        explore(move || {
            let counters = counters(&table(3), "1/s", 1);
            spend(&counters, old, START)();
            let one = thread::spawn(spend(&counters, new, later()));
            let two = thread::spawn(spend(&counters, new, later()));
            let passed = spend(&counters, old, later())();
            let of_new = one.join().unwrap() + two.join().unwrap();
            assert!(of_new <= 1, "the new key passed twice");
            assert!(passed + spend(&counters, old, later())() <= 1, "the old key passed twice");
        });
    }
}

/// Two threads claim a slot each for the same key, because one of them sees a slot at rest that the
/// other one does not yet. A third has spent in the sketch, and must tell both of it.
#[test]
fn whoever_spends_in_the_sketch_tells_all_who_claim_a_slot_for_the_key() {
    for guest in 0..3 {
        explore(move || {
            let table = table(2);
            let (hourly, fast) = (counters(&table, "1/h", 1), counters(&table, "1/s", 2));
            spend(&fast, guest, START)();
            let one = thread::spawn(spend(&hourly, 9, later()));
            let two = thread::spawn(spend(&hourly, 9, later()));
            let early = spend(&hourly, 9, START)();
            let all = early + one.join().unwrap() + two.join().unwrap();
            assert!(all + spend(&hourly, 9, later())() <= 1, "{all} passed");
        });
    }
}

/// A key that comes often takes the slot of one that has spent less, which spends at the same time.
#[test]
fn a_key_that_is_displaced_while_it_spends_is_not_forgotten() {
    // Some of these are not counted together with the heavy one where they have no slot.
    for light in 0..4 {
        explore(move || {
            let table = table(2);
            let hourly = counters(&table, "2/h", 1);
            // Both slots are taken, one by a key as heavy as any, and the other heavy one has come
            // once.
            for key in [light, light + 10, light + 10, 9] {
                spend(&hourly, key, START)();
            }
            let heavy = thread::spawn(spend(&hourly, 9, START));
            let both = Arc::clone(&hourly);
            let other = thread::spawn(move || {
                u64::from(both.check_at(light.hash(&Seed::new(7)), 2, START).is_allowed())
            });
            let mut passed = [1 + heavy.join().unwrap(), 1 + 2 * other.join().unwrap()];
            for (passed, key) in passed.iter_mut().zip([9, light]) {
                *passed += spend(&hourly, key, START)() + spend(&hourly, key, START)();
            }
            assert!(passed.iter().all(|passed| *passed <= 2), "{passed:?} passed");
        });
    }
}

/// While a key loses its slot, and its cell learns what it has spent, another one takes back what it
/// has spent in the same cell.
#[test]
fn a_key_that_is_displaced_is_not_forgotten_when_another_takes_something_back() {
    // Some of these are counted together where they have no slot.
    for (light, other) in [(0, 20), (0, 21), (1, 22), (1, 23), (2, 24), (3, 25)] {
        explore(move || {
            let table = table(2);
            let hourly = counters(&table, "2/h", 1);
            for key in [light, light + 10, light + 10, other, other, 9] {
                spend(&hourly, key, START)();
            }
            let taking = Arc::clone(&hourly);
            let back = thread::spawn(move || {
                let clock = ManualClock::new();
                taking.undo(other.hash(&Seed::new(7)), 2, START, &clock);
            });
            spend(&hourly, 9, START)();
            let more = spend(&hourly, light, START)();
            back.join().unwrap();
            let more = more + spend(&hourly, light, START)() + spend(&hourly, light, START)();
            assert!(more <= 1, "{more} passed beside the first");
        });
    }
}

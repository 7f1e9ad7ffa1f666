//! Heavy keys that find no room take the slots of light ones, and nobody is forgotten over it.

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use tollgate_core::{Anchor, Limit, Tick, Wall};
use tollgate_local::{Clock, Counters, Key, KeyHash, ManualClock, Seed, Table};

const NOW: Tick = Tick::ZERO;
const SEED: Seed = Seed::new(11);
/// The smallest table has ten slots.
const SLOTS: u64 = 10;
const LIMIT: u64 = 100;

fn table() -> Arc<Table> {
    Arc::new(Table::with_keys(1).unwrap())
}

fn counters(table: &Arc<Table>, limit: &Limit, salt: u64) -> Counters {
    Counters::new(table, limit, Anchor::default(), SEED.salt(salt))
}

fn key(number: u64) -> KeyHash {
    number.hash(&SEED)
}

/// One limit of each algorithm, of [`LIMIT`] an hour.
fn limits() -> [Limit; 4] {
    let hourly = format!("{LIMIT}/h");
    [
        Limit::token_bucket(hourly.as_str()).unwrap(),
        Limit::fixed_window(hourly.as_str()).unwrap(),
        Limit::fixed_window(hourly.as_str()).unwrap().jittered().unwrap(),
        Limit::sliding_window(hourly.as_str()).unwrap(),
    ]
}

/// How many requests of one key pass until one is denied.
fn drain(counters: &Counters, key: KeyHash) -> u64 {
    (0..).take_while(|_| counters.check_at(key, 1, NOW).is_allowed()).count() as u64
}

#[test]
fn a_heavy_key_takes_the_slot_of_a_light_one_and_is_counted_exactly_from_then_on() {
    for limit in limits() {
        let counters = counters(&table(), &limit, 0);
        for light in 0..SLOTS {
            assert!(counters.check_at(key(light), 1, NOW).is_allowed(), "{limit}");
        }
        let heavy = key(SLOTS);
        for _ in 0..2 {
            assert!(counters.check_at(heavy, 10, NOW).is_allowed(), "{limit}");
        }
        assert_eq!(counters.pressure().promoted, 1, "{limit}");
        let overflowed = counters.pressure().overflowed;
        let left = counters.check_at(heavy, 1, NOW).remaining();
        assert_eq!(left, LIMIT - 21, "{limit}: it has taken along all that it spent");
        assert_eq!(counters.pressure().overflowed, overflowed, "{limit}: it has a slot");
        // One after the other, many who find no slot, and are not heavy.
        for other in 1_000..2_000 {
            counters.check_at(key(other), 1, NOW);
        }
        assert_eq!(counters.peek(heavy, 1, NOW).remaining(), left, "{limit}");
        // Of the light ones, one is in the sketch now.
        for light in 0..SLOTS {
            assert!(drain(&counters, key(light)) < LIMIT, "{limit}: {light} was forgotten");
        }
    }
}

#[test]
fn a_key_lighter_than_all_who_have_slots_displaces_nobody() {
    let [limit, ..] = limits();
    let counters = counters(&table(), &limit, 0);
    for heavy in 0..SLOTS {
        counters.check_at(key(heavy), 50, NOW);
    }
    for _ in 0..10 {
        counters.check_at(key(SLOTS), 1, NOW);
    }
    assert_eq!(counters.pressure().promoted, 0);
    for heavy in 0..SLOTS {
        assert_eq!(counters.peek(key(heavy), 1, NOW).remaining(), 50);
    }
}

#[test]
fn the_slots_of_other_limits_are_not_touched() {
    let table = table();
    let [limit, ..] = limits();
    let (mine, others) = (counters(&table, &limit, 0), counters(&table, &limit, 1));
    for light in 0..SLOTS {
        others.check_at(key(light), 1, NOW);
    }
    for _ in 0..50 {
        mine.check_at(key(99), 1, NOW);
    }
    assert_eq!(mine.pressure().promoted, 0);
    for light in 0..SLOTS {
        assert_eq!(others.peek(key(light), 1, NOW).remaining(), LIMIT - 1);
    }
}

#[test]
fn more_limits_than_slots_can_tell_apart_do_without() {
    let table = table();
    let [limit, ..] = limits();
    let many: Vec<_> = (0..100).map(|salt| counters(&table, &limit, salt)).collect();
    for counters in [&many[0], &many[99]] {
        for light in 0..SLOTS {
            counters.check_at(key(light), 1, NOW);
        }
        for _ in 0..50 {
            counters.check_at(key(77), 1, NOW);
        }
    }
    assert_eq!(many[0].pressure().promoted, 1);
    assert_eq!(many[99].pressure().promoted, 0, "it cannot know whose slots are its own");
    // Whoever ends makes room for the next.
    drop(many);
    let next = counters(&Arc::new(Table::with_keys(1).unwrap()), &limit, 0);
    for light in 0..SLOTS {
        next.check_at(key(light), 1, NOW);
    }
    for _ in 0..3 {
        next.check_at(key(77), 1, NOW);
    }
    assert_eq!(next.pressure().promoted, 1);
}

#[test]
fn what_a_displaced_key_has_spent_is_not_taken_back_with_what_others_undo() {
    let [limit, ..] = limits();
    let (clock, table) = (ManualClock::new(), table());
    let counters = counters(&table, &limit, 0);
    for light in 0..SLOTS {
        counters.check(key(light), 60, &clock);
    }
    // All cells are tried: some of these share one with the key that is displaced.
    let guests: Vec<_> = (100..3_000).map(key).collect();
    for guest in &guests {
        counters.check(*guest, 40, &clock);
    }
    for _ in 0..3 {
        counters.check(key(50), 30, &clock);
    }
    assert_eq!(counters.pressure().promoted, 1);
    for guest in &guests {
        counters.undo(*guest, 40, clock.now(), &clock);
    }
    for light in 0..SLOTS {
        assert!(drain(&counters, key(light)) <= LIMIT - 60);
    }
}

/// The clock of a thread that is interrupted right after one of its readings.
struct Interrupted {
    clock: ManualClock,
    readings: AtomicU64,
    at: u64,
    meanwhile: Box<dyn Fn() + Send + Sync>,
}

impl Clock for Interrupted {
    fn now(&self) -> Tick {
        let now = self.clock.now();
        if self.readings.fetch_add(1, Ordering::Relaxed) == self.at {
            (self.meanwhile)();
        }
        now
    }

    fn wall(&self) -> Wall {
        self.clock.wall()
    }
}

/// What each of the light keys is admitted when it asks so many times.
fn spend(counters: &Counters, clock: &ManualClock, times: u64, admitted: &[AtomicU64]) {
    for (number, admitted) in (0..).zip(admitted) {
        let passed = (0..times).filter(|_| counters.check(key(number), 1, clock).is_allowed());
        admitted.fetch_add(passed.count() as u64, Ordering::Relaxed);
    }
}

/// Lets a heavy key come while all have slots, and the light ones spend when it has read the clock
/// so many times, after so many seconds. Returns how many were displaced.
fn interrupt(limit: &Limit, at: u64, seconds: u64) -> u64 {
    let clock = ManualClock::new();
    let counters = Arc::new(Counters::new(&table(), limit, clock.anchor(), SEED.salt(at)));
    let admitted: Arc<Vec<_>> = Arc::new((0..SLOTS).map(|_| AtomicU64::new(0)).collect());
    spend(&counters, &clock, 1, &admitted);
    let heavy = key(SLOTS + at);
    assert!(counters.check(heavy, 2, &clock).is_allowed());
    let meanwhile = {
        let (counters, clock) = (Arc::clone(&counters), clock.clone());
        let admitted = Arc::clone(&admitted);
        Box::new(move || {
            clock.advance(Duration::from_secs(seconds));
            if seconds > 0 {
                // All have their budgets back.
                admitted.iter().for_each(|admitted| admitted.store(0, Ordering::Relaxed));
            }
            spend(&counters, &clock, 3, &admitted);
        })
    };
    let readings = AtomicU64::new(0);
    let interrupted = Interrupted { clock: clock.clone(), readings, at, meanwhile };
    let _ = counters.check(heavy, 2, &interrupted);
    spend(&counters, &clock, 10, &admitted);
    for (number, admitted) in admitted.iter().enumerate() {
        let admitted = admitted.load(Ordering::Relaxed);
        assert!(admitted <= 5, "{limit}, {at}, {seconds} s: {admitted} of key {number}");
    }
    counters.pressure().promoted
}

#[test]
fn a_key_that_spends_while_another_is_about_to_displace_it_is_not_forgotten() {
    let limits = [
        Limit::token_bucket("1/s burst 5").unwrap(),
        Limit::fixed_window("5/s").unwrap(),
        Limit::fixed_window("5/s").unwrap().jittered().unwrap(),
        Limit::sliding_window("5/s").unwrap(),
    ];
    for limit in &limits {
        let moments = (0..6).flat_map(|at| [(at, 0), (at, 5), (at, 7)]);
        let displaced: u64 = moments.map(|(at, seconds)| interrupt(limit, at, seconds)).sum();
        assert!(displaced > 0, "{limit}: nobody was displaced");
    }
}

/// A stream of numbers in which small ones are much more frequent.
fn skewed(state: &mut u64, keys: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let (one, two) = (*state >> 33, (*state >> 13) & 0xFFFF);
    one % (1 + two % keys)
}

#[test]
fn nobody_passes_more_often_than_the_limit_while_threads_displace_keys() {
    const KEYS: u64 = 60;
    const THREADS: u64 = 4;
    for (salt, limit) in limits().iter().enumerate() {
        let counters = Arc::new(counters(&table(), limit, salt as u64));
        let admitted: Arc<Vec<_>> = Arc::new((0..KEYS).map(|_| AtomicU64::new(0)).collect());
        let start = Arc::new(Barrier::new(THREADS as usize));
        let spend = |thread: u64| {
            let (counters, admitted, start) =
                (Arc::clone(&counters), Arc::clone(&admitted), Arc::clone(&start));
            thread::spawn(move || {
                let mut state = thread + 1;
                start.wait();
                for _ in 0..20_000 {
                    let number = skewed(&mut state, KEYS);
                    if counters.check_at(key(number), 1, NOW).is_allowed() {
                        admitted[number as usize].fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        };
        let threads: Vec<_> = (0..THREADS).map(spend).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        for (number, admitted) in admitted.iter().enumerate() {
            let admitted = admitted.load(Ordering::Relaxed);
            assert!(admitted <= LIMIT, "{limit}: {admitted} of key {number}");
        }
        assert!(counters.pressure().promoted > 0, "{limit}: nobody was displaced");
    }
}

#[test]
fn a_displaced_key_has_its_whole_budget_back_in_time() {
    for limit in limits() {
        let counters = counters(&table(), &limit, 0);
        for light in 0..SLOTS {
            counters.check_at(key(light), 1, NOW);
        }
        for _ in 0..3 {
            counters.check_at(key(77), 20, NOW);
        }
        assert_eq!(counters.pressure().promoted, 1, "{limit}");
        let later = NOW.after(Duration::from_secs(2 * 3600));
        for light in 0..SLOTS {
            assert_eq!(counters.peek(key(light), 1, later).remaining(), LIMIT, "{limit}");
        }
    }
}

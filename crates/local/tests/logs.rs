//! Sliding logs through their counters: exact while there is room, too strict and never too
//! generous where there is none, and bounded.

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Limit, Tick};
use tollgate_local::{Clock, Counters, Key, KeyHash, ManualClock, Seed, Table};

const LIMIT: u64 = 5;
const WINDOW: Duration = Duration::from_secs(1);

struct Logs {
    counters: Counters,
    clock: ManualClock,
    seed: Seed,
    /// The most memory they may take, in bytes.
    budget: usize,
}

impl Logs {
    /// Five per second, beside a table for so many keys.
    fn new(keys: usize) -> Self {
        Self::of("5/s", keys)
    }

    fn of(quota: &str, keys: usize) -> Self {
        let (clock, seed) = (ManualClock::new(), Seed::new(5));
        let table = Arc::new(Table::with_keys(keys).unwrap());
        let limit = Limit::sliding_log(quota).unwrap();
        let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
        let budget = (4 * table.memory()).max(64 << 10);
        Self { counters, clock, seed, budget }
    }

    fn key(&self, number: usize) -> KeyHash {
        number.to_string().hash(&self.seed)
    }

    fn check(&self, number: usize, cost: u64) -> bool {
        self.counters.check(self.key(number), cost, &self.clock).is_allowed()
    }

    fn left(&self, number: usize) -> u64 {
        self.counters.peek(self.key(number), 1, self.clock.now()).remaining()
    }

    fn memory(&self) -> usize {
        self.counters.pressure().memory
    }
}

/// Every request that passed, forever.
#[derive(Clone, Default)]
struct Naive(Vec<(Tick, u64)>);

impl Naive {
    /// What the last window holds: a request counts until exactly one window after it.
    fn spent(&self, now: Tick) -> u64 {
        let counts = |at: &Tick| now.since(*at) < WINDOW;
        self.0.iter().filter(|(at, _)| counts(at)).map(|(_, cost)| cost).sum()
    }

    fn allows(&self, now: Tick, cost: u64) -> bool {
        cost <= LIMIT.saturating_sub(self.spent(now))
    }

    /// How long until `cost` is allowed, if ever, by trying every moment that could be the one.
    fn wait(&self, now: Tick, cost: u64) -> Option<Duration> {
        let ends = self.0.iter().map(|(at, _)| at.after(WINDOW)).filter(|end| *end > now);
        let mut ends: Vec<_> = ends.collect();
        ends.sort_unstable();
        ends.into_iter().find(|end| self.allows(*end, cost)).map(|end| end.since(now))
    }
}

#[derive(Clone, Debug)]
enum Event {
    Check { key: usize, cost: u64 },
    Batch(Vec<usize>),
    Peek { key: usize, cost: u64 },
    Reset { key: usize },
    Advance(Duration),
}

fn events(keys: usize) -> impl Strategy<Value = Event> {
    let cost = || prop_oneof![6 => 1..=2u64, 2 => 0..=7u64, 1 => Just(u64::MAX)];
    let nanos = prop_oneof![0..3u64, 0..400_000_000u64, 999_999_998..1_000_000_002u64];
    prop_oneof![
        6 => (0..keys, cost()).prop_map(|(key, cost)| Event::Check { key, cost }),
        1 => prop::collection::vec(0..keys, 0..9).prop_map(Event::Batch),
        2 => (0..keys, cost()).prop_map(|(key, cost)| Event::Peek { key, cost }),
        1 => (0..keys).prop_map(|key| Event::Reset { key }),
        4 => nanos.prop_map(|nanos| Event::Advance(Duration::from_nanos(nanos))),
    ]
}

fn compare(logs: &Logs, naive: &mut [Naive], event: &Event) -> Result<(), TestCaseError> {
    let now = logs.clock.now();
    match event {
        Event::Check { key, cost } => {
            let decision = logs.counters.check(logs.key(*key), *cost, &logs.clock);
            let naive = &mut naive[*key];
            prop_assert_eq!(decision.is_allowed(), naive.allows(now, *cost), "{:?}", event);
            if decision.is_allowed() {
                naive.0.push((now, *cost));
            } else {
                prop_assert_eq!(decision.retry_after(), naive.wait(now, *cost), "{:?}", event);
            }
            prop_assert_eq!(decision.remaining(), LIMIT - naive.spent(now), "{:?}", event);
        }
        Event::Batch(keys) => {
            let mut decisions = Vec::new();
            let hashes = keys.iter().map(|key| logs.key(*key));
            logs.counters.check_batch(hashes, 1, &logs.clock, &mut decisions);
            for (key, decision) in keys.iter().zip(decisions) {
                let naive = &mut naive[*key];
                prop_assert_eq!(decision.is_allowed(), naive.allows(now, 1), "{:?}", event);
                naive.0.extend(decision.is_allowed().then_some((now, 1)));
            }
        }
        Event::Peek { key, cost } => {
            let decision = logs.counters.peek(logs.key(*key), *cost, now);
            prop_assert_eq!(decision.is_allowed(), naive[*key].allows(now, *cost), "{:?}", event);
            prop_assert_eq!(decision.remaining(), LIMIT - naive[*key].spent(now), "{:?}", event);
        }
        Event::Reset { key } => {
            prop_assert!(logs.counters.reset(logs.key(*key), now));
            naive[*key].0.clear();
        }
        Event::Advance(span) => logs.clock.advance(*span),
    }
    Ok(())
}

proptest! {
    #[test]
    fn with_room_for_all_every_decision_is_exact(
        events in prop::collection::vec(events(4), 0..120),
    ) {
        let logs = Logs::new(10_000);
        let mut naive = vec![Naive::default(); 4];
        for event in &events {
            compare(&logs, &mut naive, event)?;
        }
        prop_assert_eq!(logs.counters.pressure().overflowed, 0);
    }

    #[test]
    fn without_room_for_all_no_window_holds_more_than_the_limit(
        events in prop::collection::vec((0..3_000usize, 1..=3u64, 0..1_000_000u64), 0..3_000),
    ) {
        let logs = Logs::new(1);
        let mut naive = vec![Naive::default(); 3_000];
        // Most are strangers, some come again and again.
        for (key, cost, nanos) in events {
            let key = if key < 2_000 { key % 100 } else { key };
            logs.clock.advance(Duration::from_nanos(nanos));
            if logs.check(key, cost) {
                let now = logs.clock.now();
                prop_assert!(naive[key].allows(now, cost), "{} of key {} at {}", cost, key, now);
                naive[key].0.push((now, cost));
            }
            prop_assert!(logs.memory() <= logs.budget, "{} bytes", logs.memory());
        }
    }
}

/// Far more keys than there is room for, in turns, so that all of them stay live.
#[test]
fn many_keys_with_few_requests_keep_their_limits_in_bounded_memory() {
    let logs = Logs::of("3/min", 1_000);
    let mut passed = vec![0; 20_000];
    for _ in 0..5 {
        for (key, passed) in passed.iter_mut().enumerate() {
            *passed += u64::from(logs.check(key, 1));
            assert!(logs.memory() <= logs.budget, "{} bytes at key {key}", logs.memory());
        }
        logs.clock.advance(Duration::from_millis(1));
    }
    assert!(passed.iter().all(|passed| *passed <= 3));
    let own = passed.iter().filter(|passed| **passed == 3).count();
    assert!(own > 400, "only {own} of 1,000 keys planned for had a log of their own");
    assert!(logs.counters.pressure().overflowed > 10_000, "{:?}", logs.counters.pressure());
    assert!(logs.memory() >= logs.budget / 2, "{} bytes", logs.memory());
    // After a window all is at rest, and there is room again.
    logs.clock.advance(Duration::from_secs(61));
    assert!(logs.check(7, 3) && !logs.check(7, 1));
}

#[test]
fn few_keys_with_many_requests_keep_their_limits_in_bounded_memory() {
    const KEYS: usize = 3;
    let logs = Logs::of("20k/s", 1_000);
    let mut passed: [VecDeque<Tick>; KEYS] = Default::default();
    for request in 0..200_000 {
        let key = request % KEYS;
        logs.clock.advance(Duration::from_micros(10));
        let now = logs.clock.now();
        while passed[key].front().is_some_and(|at| now.since(*at) >= WINDOW) {
            passed[key].pop_front();
        }
        if logs.check(key, 1) {
            passed[key].push_back(now);
        }
        assert!(passed[key].len() <= 20_000, "key {key} at {now}");
        assert!(logs.memory() <= logs.budget, "{} bytes at {now}", logs.memory());
    }
    assert!(logs.memory() >= logs.budget / 2, "{} bytes", logs.memory());
    assert_eq!(logs.counters.pressure().overflowed, 0, "each key has a log of its own");
}

/// No shard has a part of the memory for itself.
#[test]
fn one_key_may_have_most_of_the_memory() {
    let logs = Logs::of("2k/s", 1_000);
    for request in 0..2_000 {
        logs.clock.advance(Duration::from_micros(100));
        assert!(logs.check(1, 1), "request {request}");
    }
    assert!(!logs.check(1, 1));
    // Each request is remembered by itself: they leave the window one by one, as they came.
    logs.clock.advance(WINDOW - Duration::from_micros(100) * 1_999);
    for request in 0..2_000 {
        assert!(logs.check(1, 1) && !logs.check(1, 1), "request {request}");
        logs.clock.advance(Duration::from_micros(100));
    }
}

#[test]
fn memory_comes_down_when_windows_have_passed() {
    let empty = Logs::of("20k/s", 1_000).memory();
    for (keys, each) in [(5_000, 1), (3, 5_000)] {
        let logs = Logs::of("20k/s", 1_000);
        for request in 0..keys * each {
            logs.check(request % keys, 1);
            logs.clock.advance(Duration::from_micros(1));
        }
        assert!(logs.memory() > logs.budget / 2, "{} bytes of {keys} keys", logs.memory());
        logs.clock.advance(WINDOW);
        // Others come, and are gone one after the other.
        for key in 10_000..13_000 {
            logs.check(key, 1);
            logs.clock.advance(WINDOW);
        }
        let rest = logs.memory() - empty;
        assert!(rest < 64 * 512, "{rest} bytes left of {keys} keys");
    }
}

/// A log that was full once, and is asked rarely ever after.
#[test]
fn a_log_gives_back_memory_while_its_key_stays() {
    let logs = Logs::of("2k/s", 1_000);
    let memory = |requests: u32| {
        for _ in 0..requests {
            assert!(logs.check(1, 1));
            logs.clock.advance(Duration::from_micros(1));
        }
        logs.memory()
    };
    let (one, many) = (memory(1), memory(1_000));
    assert!(many >= one + 999 * 16, "{one} bytes, then {many}");
    logs.clock.advance(WINDOW / 2);
    memory(1);
    logs.clock.advance(WINDOW / 2);
    let few = memory(1);
    assert!(few <= one + 64, "{one} bytes, then {many}, then {few}");
}

#[test]
fn what_comes_to_rest_makes_room_for_others() {
    let logs = Logs::new(4_096);
    for round in 0..20 {
        let overflowed = logs.counters.pressure().overflowed;
        for key in 0..1_000 {
            assert!(logs.check(round * 1_000 + key, 1), "key {key} of round {round}");
        }
        assert_eq!(logs.counters.pressure().overflowed, overflowed, "in round {round}");
        logs.clock.advance(WINDOW);
    }
}

/// Memory may lie idle in shards that nobody asks for: one key must find it all the same.
#[test]
fn what_comes_to_rest_makes_room_for_a_key_that_is_alone() {
    let logs = Logs::of("2k/s", 1_000);
    for key in 0..5_000 {
        logs.check(key, 1);
    }
    logs.clock.advance(WINDOW);
    for _ in 0..2_000 {
        logs.check(1, 1);
        logs.clock.advance(WINDOW / 2_000);
    }
    let decision = logs.counters.peek(logs.key(1), 1, logs.clock.now());
    let wait = decision.reset_after();
    assert!(wait >= WINDOW - WINDOW / 1_000, "{wait:?}");
    logs.clock.advance(WINDOW / 2);
    let left = logs.left(1);
    assert!((950..=1_001).contains(&left), "{left} are back after half a window");
}

/// What a peek finds to be over must be given back to the memory as if a check had found it.
#[test]
fn a_peek_gives_back_the_memory_of_what_is_over() {
    let logs = Logs::new(1);
    let empty = logs.memory();
    for round in 0..1_000 {
        assert!(logs.check(7, 1), "in round {round}");
        assert!(logs.memory() > empty);
        logs.clock.advance(WINDOW);
        assert_eq!(logs.left(7), LIMIT);
        assert_eq!(logs.memory(), empty, "in round {round}");
    }
    assert_eq!(logs.counters.pressure().overflowed, 0);
}

#[test]
fn what_is_undone_never_was_and_what_is_refunded_is_back() {
    let logs = Logs::new(1_000);
    let (key, then) = (logs.key(1), logs.clock.now());
    assert!(logs.check(1, 4));
    logs.clock.advance(Duration::from_millis(300));
    assert!(logs.check(1, 1));
    logs.counters.undo(key, 4, then, &logs.clock);
    assert_eq!(logs.left(1), 4);
    logs.counters.refund(key, 9, logs.clock.now());
    assert_eq!(logs.left(1), LIMIT, "not more");
}

/// Keys come at one moment until there are some in all shards that share a log.
fn crowd(logs: &Logs) {
    let mut key = 1_000;
    while logs.counters.pressure().overflowed < 10_000 {
        key += 1;
        logs.check(key, 1);
    }
}

/// A log that is reset says that its key has spent nothing, whatever the others have.
#[test]
fn a_key_that_is_reset_is_not_held_to_what_others_share() {
    let logs = Logs::new(1);
    assert!(logs.check(0, LIMIT));
    crowd(&logs);
    assert!(logs.counters.reset(logs.key(0), logs.clock.now()));
    assert_eq!(logs.left(0), LIMIT);
}

#[test]
fn what_is_undone_in_a_shared_log_is_back() {
    let logs = Logs::new(1);
    let all: Vec<_> = (0..2_000).filter(|key| logs.check(*key, 1)).collect();
    let shared = |key: &&usize| {
        let before = logs.left(**key);
        logs.counters.undo(logs.key(**key), 1, logs.clock.now(), &logs.clock);
        assert_eq!(logs.left(**key), before + 1, "key {key}");
        before + 1 < LIMIT
    };
    assert!(all.iter().rev().filter(shared).count() > 64, "most of them were alone");
}

/// What was in a log that is gone must not be taken out of the one that others share.
#[test]
fn an_undo_that_comes_too_late_takes_nothing_from_others() {
    let logs = Logs::new(1);
    let then = logs.clock.now();
    assert!(logs.check(0, 1));
    logs.clock.advance(WINDOW);
    crowd(&logs);
    let left = logs.left(0);
    assert!(left < LIMIT, "its log is gone, and it is held to what others have spent");
    logs.counters.undo(logs.key(0), 1, then, &logs.clock);
    assert_eq!(logs.left(0), left);
}

#[test]
fn a_key_that_shared_a_log_takes_along_what_it_spent() {
    let logs = Logs::new(1);
    // The first key that finds no room is alone in the log that such keys share.
    let overflows = |key: &usize| {
        logs.check(*key, 1);
        logs.counters.pressure().overflowed > 0
    };
    let key = (0..2_000).find(overflows).expect("there is not that much room");
    logs.clock.advance(WINDOW * 9 / 10);
    assert!(logs.check(key, 2));
    // Now the other logs are at rest, and there is room again.
    logs.clock.advance(WINDOW / 10);
    assert_eq!(logs.counters.pressure().promoted, 0);
    let decision = logs.counters.check(logs.key(key), 1, &logs.clock);
    assert_eq!(logs.counters.pressure().promoted, 1);
    assert_eq!(decision.remaining(), LIMIT - 4, "1 and 2 of the shared log, and 1");
    logs.clock.advance(WINDOW * 9 / 10);
    assert_eq!(logs.left(key), LIMIT - 1);
}

#[test]
fn threads_that_share_a_key_get_its_limit_and_no_more() {
    for round in 0..50 {
        let logs = Logs::new(1_000);
        let spend = || (0..LIMIT).filter(|_| logs.check(round, 1)).count() as u64;
        let passed: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(spend)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, LIMIT);
    }
}

//! Sliding logs through their counters: exact while there is room, too strict and never too
//! generous where there is none, and bounded.

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

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
}

impl Logs {
    /// Five per second, with memory for so many entries.
    fn new(entries: usize) -> Self {
        let (clock, seed) = (ManualClock::new(), Seed::new(5));
        let table = Arc::new(Table::with_keys(entries).unwrap());
        let limit = Limit::sliding_log("5/s").unwrap();
        let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
        Self { counters, clock, seed }
    }

    fn key(&self, number: usize) -> KeyHash {
        number.to_string().hash(&self.seed)
    }

    fn check(&self, number: usize, cost: u64) -> bool {
        self.counters.check(self.key(number), cost, &self.clock).is_allowed()
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
        events in prop::collection::vec((0..3_000usize, 1..=3u64, 0..3_000_000u64), 0..3_000),
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
        }
    }
}

#[test]
fn memory_is_bounded_however_many_keys_come() {
    let logs = Logs::new(4_096);
    let most = 4_096 * 16;
    for key in 0..20_000 {
        logs.check(key, 1);
        logs.clock.advance(Duration::from_micros(10));
        let memory = logs.counters.pressure().memory;
        // Each of the logs that are there may hold one more entry than there is room for.
        assert!(memory <= 2 * most, "{memory} bytes after {key} keys");
    }
    let pressure = logs.counters.pressure();
    assert!(pressure.overflowed > 10_000, "{pressure:?}");
    assert!(pressure.memory >= most / 2, "{pressure:?}");
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

/// What a peek finds to be over must be given back to the memory as if a check had found it.
#[test]
fn a_peek_gives_back_the_memory_of_what_is_over() {
    let logs = Logs::new(1);
    for round in 0..1_000 {
        assert!(logs.check(7, 1), "in round {round}");
        logs.clock.advance(WINDOW);
        assert_eq!(logs.counters.peek(logs.key(7), 1, logs.clock.now()).remaining(), LIMIT);
        assert!(logs.counters.pressure().memory <= 32, "in round {round}");
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
    assert_eq!(logs.counters.peek(key, 1, logs.clock.now()).remaining(), 4);
    logs.counters.refund(key, 9, logs.clock.now());
    assert_eq!(logs.counters.peek(key, 1, logs.clock.now()).remaining(), LIMIT, "not more");
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
    assert_eq!(logs.counters.peek(logs.key(key), 1, logs.clock.now()).remaining(), LIMIT - 1);
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

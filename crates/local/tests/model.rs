//! Counters against the machine they run on: a map from keys to words, one after another.
//!
//! Where there is room for all keys, both decide alike. Where there is not, counters may be too
//! strict, and never too generous.

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Anchor, Decision, Limit, Machine, Phase, Tick, Wall, Word};
use tollgate_local::{Clock, Counters, Due, Key, KeyHash, ManualClock, Seed, Table};

/// What happens to a key.
#[derive(Clone, Debug)]
enum Event {
    Check { key: usize, cost: u64 },
    Batch { keys: Vec<usize>, cost: u64 },
    Peek { key: usize, cost: u64 },
    Refund { key: usize, cost: u64 },
    Undo { key: usize, cost: u64, ago: Duration },
    Reset { key: usize },
    Advance(Duration),
}

/// Counters and the slow and obvious model of them.
struct Pair {
    clock: ManualClock,
    counters: Counters,
    machine: Machine,
    words: Vec<Word>,
    keys: Vec<(KeyHash, Phase)>,
}

impl Pair {
    fn new(limit: &Limit, table: Table, keys: &[u64]) -> Self {
        let (clock, seed) = (ManualClock::starting_at(BEGIN), Seed::new(SEED));
        let (table, anchor, salt) = (Arc::new(table), clock.anchor(), seed.salt(0));
        let machine = limit.machine(anchor).expect("its state fits a word");
        let hashes: Vec<_> = keys.iter().map(|number| number.hash(&seed)).collect();
        let phases = phases(limit, anchor, salt, &hashes);
        let words = vec![Word::REST; keys.len()];
        let keys = hashes.into_iter().zip(phases).collect();
        let counters = Counters::new(&table, limit, anchor, salt);
        Self { clock, counters, machine, words, keys }
    }

    fn check(&mut self, key: usize, cost: u64) -> (Decision, Decision) {
        let decision = self.counters.check(self.keys[key].0, cost, &self.clock);
        (decision, self.step(key, cost))
    }

    fn step(&mut self, key: usize, cost: u64) -> Decision {
        let step = self.would(key, cost);
        self.words[key] = step.word;
        step.decision
    }

    fn would(&self, key: usize, cost: u64) -> tollgate_core::Step {
        self.machine.step(self.words[key], self.clock.now(), cost, self.keys[key].1)
    }

    fn peek(&self, key: usize, cost: u64) -> (Decision, Decision) {
        let decision = self.counters.peek(self.keys[key].0, cost, self.clock.now());
        let (would, now) = (self.would(key, cost).decision, self.would(key, 0).decision);
        (decision, would.with_remaining_of(now))
    }

    fn change(&mut self, key: usize, change: impl FnOnce(&Machine, Word, Tick, Phase) -> Word) {
        let (word, now, phase) = (self.words[key], self.clock.now(), self.keys[key].1);
        self.words[key] = change(&self.machine, word, now, phase);
    }

    /// Does the same to both and compares what they say.
    fn apply(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let now = self.clock.now();
        match event {
            Event::Check { key, cost } => {
                let (decision, expected) = self.check(*key, *cost);
                prop_assert_eq!(decision, expected, "{:?} at {}", event, now);
            }
            Event::Batch { keys, cost } => {
                let mut decisions = Vec::new();
                let hashes = keys.iter().map(|key| self.keys[*key].0);
                self.counters.check_batch(hashes, *cost, &self.clock, &mut decisions);
                let expected: Vec<_> = keys.iter().map(|key| self.step(*key, *cost)).collect();
                prop_assert_eq!(decisions, expected, "{:?} at {}", event, now);
            }
            Event::Peek { key, cost } => {
                let (decision, expected) = self.peek(*key, *cost);
                prop_assert_eq!(decision, expected, "{:?} at {}", event, now);
                let due = self.counters.due(self.keys[*key].0, *cost, now);
                let would = self.would(*key, *cost).decision;
                prop_assert_eq!(due == Due::Now, would.is_allowed() && would.delay().is_zero());
            }
            Event::Refund { key, cost } => {
                self.counters.refund(self.keys[*key].0, *cost, now);
                self.change(*key, |machine, word, now, phase| {
                    machine.refund(word, now, *cost, phase)
                });
            }
            Event::Undo { key, cost, ago } => {
                let then = Tick::from_nanos(now.since(Tick::ZERO.after(*ago)).as_nanos() as u64);
                self.counters.undo(self.keys[*key].0, *cost, then, &self.clock);
                self.change(*key, |machine, word, now, phase| {
                    machine.undo(word, then, now, *cost, phase)
                });
            }
            Event::Reset { key } => {
                prop_assert!(self.counters.reset(self.keys[*key].0, now), "{:?}", event);
                self.words[*key] = Word::REST;
            }
            Event::Advance(span) => self.clock.advance(*span),
        }
        Ok(())
    }

    /// Lets the counters decide and the model follow: what passed must have been allowed.
    fn follow(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let spent = match event {
            Event::Check { key, cost } => {
                let decision = self.counters.check(self.keys[*key].0, *cost, &self.clock);
                vec![(*key, *cost, decision)]
            }
            Event::Batch { keys, cost } => {
                let mut decisions = Vec::new();
                let hashes = keys.iter().map(|key| self.keys[*key].0);
                self.counters.check_batch(hashes, *cost, &self.clock, &mut decisions);
                keys.iter().zip(decisions).map(|(key, it)| (*key, *cost, it)).collect()
            }
            Event::Peek { key, .. } => {
                let (decision, exact) = self.peek(*key, 0);
                prop_assert!(decision.remaining() <= exact.remaining(), "{:?}", event);
                Vec::new()
            }
            Event::Advance(span) => {
                self.clock.advance(*span);
                Vec::new()
            }
            _ => Vec::new(),
        };
        for (key, cost, decision) in spent {
            if decision.is_allowed() {
                let exact = self.step(key, cost);
                let now = self.clock.now();
                prop_assert!(exact.is_allowed(), "{} of key {} at {}: {:?}", cost, key, now, exact);
                prop_assert!(decision.remaining() <= exact.remaining(), "key {} at {}", key, now);
            }
        }
        Ok(())
    }
}

/// Where the windows of keys begin, as counters show that have never seen them before.
fn phases(limit: &Limit, anchor: Anchor, salt: KeyHash, keys: &[KeyHash]) -> Vec<Phase> {
    let table = Arc::new(Table::with_keys(1_000).unwrap());
    let counters = Counters::new(&table, limit, anchor, salt);
    let end = |key: &KeyHash| counters.check_at(*key, 1, anchor.tick).reset_after().as_nanos();
    keys.iter().map(|key| Phase(BEGIN.as_unix_nanos() + end(key) as u64)).collect()
}

const SEED: u64 = 3;

/// Forty keys that are counted as one where they find no slot in the smallest table.
static NEIGHBOURS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let (table, seed) = (Arc::new(Table::with_memory(128).unwrap()), Seed::new(SEED));
    let limit = Limit::token_bucket("100/h").unwrap();
    let [counters, others] =
        [0, 1].map(|index| Counters::new(&table, &limit, Anchor::default(), seed.salt(index)));
    for number in 0..100u64 {
        others.check_at(number.hash(&seed), 1, Tick::ZERO);
    }
    counters.check_at(0u64.hash(&seed), 50, Tick::ZERO);
    let shares = |number: &u64| counters.peek(number.hash(&seed), 1, Tick::ZERO).remaining() < 100;
    (0..1_000_000).filter(shares).take(40).collect()
});

/// In the middle of a day, an hour and a second.
const BEGIN: Wall = Wall::from_unix_nanos(1_718_366_401_234_567_890);

fn limits() -> impl Strategy<Value = Limit> {
    let jittered = |quota| Limit::fixed_window(quota).unwrap().jittered().unwrap();
    prop::sample::select(vec![
        Limit::token_bucket("10/s").unwrap(),
        Limit::token_bucket("7/min burst 3").unwrap(),
        Limit::token_bucket("1G/s").unwrap(),
        Limit::token_bucket("unlimited").unwrap(),
        Limit::leaky_police("10/s").unwrap(),
        Limit::leaky_police("3/s burst 5").unwrap(),
        Limit::leaky_shape("10/s", 4).unwrap(),
        Limit::fixed_window("5/s").unwrap(),
        jittered("5/s"),
        jittered("3/h"),
        Limit::calendar("6/day", "Europe/Berlin").unwrap(),
        Limit::sliding_window("5/s").unwrap(),
        Limit::sliding_window("1M/min").unwrap(),
    ])
}

fn costs() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..=6u64, 1 => 0..2_000_000u64, 1 => Just(u64::MAX)]
}

fn spans() -> impl Strategy<Value = Duration> {
    let nanos = prop_oneof![
        Just(0),
        0..1_000u64,
        0..400_000_000u64,
        0..3_000_000_000u64,
        0..2 * 86_400_000_000_000u64,
    ];
    nanos.prop_map(Duration::from_nanos)
}

/// Anything that can happen to one of `keys` keys.
fn events(keys: usize) -> impl Strategy<Value = Event> {
    let key = || 0..keys;
    prop_oneof![
        6 => (key(), costs()).prop_map(|(key, cost)| Event::Check { key, cost }),
        2 => (prop::collection::vec(key(), 0..80), 0..=3u64)
            .prop_map(|(keys, cost)| Event::Batch { keys, cost }),
        2 => (key(), costs()).prop_map(|(key, cost)| Event::Peek { key, cost }),
        1 => (key(), costs()).prop_map(|(key, cost)| Event::Refund { key, cost }),
        2 => (key(), costs(), spans())
            .prop_map(|(key, cost, ago)| Event::Undo { key, cost, ago }),
        1 => key().prop_map(|key| Event::Reset { key }),
        4 => spans().prop_map(Event::Advance),
    ]
}

/// Many keys of which most spend a little, as they do where a table is too small.
fn crowded_events(keys: usize) -> impl Strategy<Value = Event> {
    let cost = || prop_oneof![9 => 1..=2u64, 1 => costs()];
    prop_oneof![
        8 => (0..keys, cost()).prop_map(|(key, cost)| Event::Check { key, cost }),
        2 => (prop::collection::vec(0..keys, 0..40), cost())
            .prop_map(|(keys, cost)| Event::Batch { keys, cost }),
        2 => (0..keys).prop_map(|key| Event::Peek { key, cost: 1 }),
        3 => spans().prop_map(Event::Advance),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn with_room_for_all_keys_every_decision_is_exact(
        limit in limits(),
        events in prop::collection::vec(events(6), 0..80),
    ) {
        let mut pair = Pair::new(&limit, Table::with_keys(1_000).unwrap(), &[0, 1, 2, 3, 4, 5]);
        for event in &events {
            pair.apply(event)?;
        }
        prop_assert_eq!(pair.counters.pressure().overflowed, 0);
    }

    #[test]
    fn without_room_for_all_keys_nobody_gets_more_than_alone(
        limit in limits(),
        events in prop::collection::vec(crowded_events(40), 0..200),
    ) {
        let mut pair = Pair::new(&limit, Table::with_memory(128).unwrap(), &NEIGHBOURS);
        for event in &events {
            pair.follow(event)?;
        }
    }

    #[test]
    fn where_heavy_keys_take_the_slots_of_light_ones_nobody_gets_more_than_alone(
        limit in limits(),
        events in prop::collection::vec(crowded_events(40), 0..200),
    ) {
        let keys: Vec<_> = (0..40).collect();
        let mut pair = Pair::new(&limit, Table::with_memory(128).unwrap(), &keys);
        for event in &events {
            pair.follow(event)?;
        }
    }
}

#[test]
fn a_key_that_spends_alone_in_a_full_table_is_exact() {
    for limit in [Limit::token_bucket("10/h").unwrap(), Limit::sliding_window("10/h").unwrap()] {
        let mut pair = Pair::new(&limit, Table::with_memory(128).unwrap(), &NEIGHBOURS);
        for key in 0..10 {
            pair.check(key, 1);
        }
        for _ in 0..15 {
            let (decision, expected) = pair.check(10, 1);
            assert_eq!(decision, expected);
        }
        assert!(pair.counters.pressure().overflowed > 0, "it found a slot");
    }
}

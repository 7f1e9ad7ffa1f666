//! Counters in a table decide as the machine does on one word per key.
#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Decision, Limit, Machine, Phase, Tick, Word};
use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table};

#[derive(Clone, Debug)]
enum Action {
    Check { key: u8, cost: u64 },
    Batch(Vec<u8>),
    Peek { key: u8, cost: u64 },
    Refund { key: u8, cost: u64 },
    Undo { key: u8, cost: u64 },
    Reset { key: u8 },
    Advance(u64),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let (key, cost) = (0u8..12, 0u64..8);
    let action = prop_oneof![
        6 => (key.clone(), cost.clone()).prop_map(|(key, cost)| Action::Check { key, cost }),
        2 => prop::collection::vec(key.clone(), 0..40).prop_map(Action::Batch),
        1 => (key.clone(), cost.clone()).prop_map(|(key, cost)| Action::Peek { key, cost }),
        1 => (key.clone(), cost.clone()).prop_map(|(key, cost)| Action::Refund { key, cost }),
        1 => (key.clone(), cost).prop_map(|(key, cost)| Action::Undo { key, cost }),
        1 => key.prop_map(|key| Action::Reset { key }),
        4 => (0u64..700_000_000).prop_map(Action::Advance),
    ];
    prop::collection::vec(action, 1..80)
}

fn limits() -> impl Strategy<Value = Limit> {
    prop::sample::select(vec![
        Limit::token_bucket("5/s").unwrap(),
        Limit::token_bucket("7/s burst 3").unwrap(),
        Limit::leaky_police("3/s burst 2").unwrap(),
        Limit::leaky_shape("4/s", 3).unwrap(),
        Limit::fixed_window("5/s").unwrap(),
        Limit::sliding_window("6/s").unwrap(),
        Limit::calendar("5/day", "Europe/Berlin").unwrap(),
    ])
}

/// One word per key, in a map.
struct Model {
    machine: Machine,
    words: HashMap<u8, Word>,
}

impl Model {
    fn word(&mut self, key: u8) -> &mut Word {
        self.words.entry(key).or_default()
    }

    fn check(&mut self, key: u8, cost: u64, now: Tick) -> Decision {
        let word = *self.word(key);
        let step = self.machine.step(word, now, cost, Phase(0));
        *self.word(key) = step.word;
        step.decision
    }

    fn peek(&mut self, key: u8, cost: u64, now: Tick) -> Decision {
        let word = *self.word(key);
        let would = self.machine.step(word, now, cost, Phase(0)).decision;
        would.with_remaining_of(self.machine.step(word, now, 0, Phase(0)).decision)
    }
}

proptest! {
    #[test]
    fn counters_in_a_roomy_table_decide_as_the_machine_does(
        limit in limits(),
        actions in actions(),
    ) {
        let (clock, seed) = (ManualClock::new(), Seed::new(3));
        let table = Arc::new(Table::with_keys(1_000).unwrap());
        let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(1));
        let machine = limit.machine(clock.anchor()).unwrap();
        let mut model = Model { machine, words: HashMap::new() };
        let hash = |key: u8| u64::from(key).hash(&seed);
        for action in actions {
            let now = clock.now();
            match action {
                Action::Check { key, cost } => {
                    let expected = model.check(key, cost, now);
                    prop_assert_eq!(counters.check(hash(key), cost, &clock), expected);
                }
                Action::Batch(keys) => {
                    let mut decisions = Vec::new();
                    let hashes = keys.iter().map(|key| hash(*key));
                    counters.check_batch(hashes, 1, &clock, &mut decisions);
                    prop_assert_eq!(decisions.len(), keys.len());
                    expect_batch(&mut model, &keys, now, &decisions)?;
                }
                Action::Peek { key, cost } => {
                    let expected = model.peek(key, cost, now);
                    prop_assert_eq!(counters.peek(hash(key), cost, now), expected);
                }
                Action::Refund { key, cost } => {
                    let word = *model.word(key);
                    *model.word(key) = model.machine.refund(word, now, cost, Phase(0));
                    counters.refund(hash(key), cost, now);
                }
                Action::Undo { key, cost } => {
                    let word = *model.word(key);
                    *model.word(key) = model.machine.undo(word, now, now, cost, Phase(0));
                    counters.undo(hash(key), cost, now, &clock);
                }
                Action::Reset { key } => {
                    *model.word(key) = Word::REST;
                    prop_assert!(counters.reset(hash(key), now));
                }
                Action::Advance(nanos) => clock.advance(Duration::from_nanos(nanos)),
            }
        }
    }

    #[test]
    fn counters_in_a_crowded_table_never_allow_more(limit in limits(), actions in actions()) {
        let (clock, seed) = (ManualClock::new(), Seed::new(3));
        let table = Arc::new(Table::with_keys(1).unwrap());
        let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(1));
        let filler = Limit::token_bucket("10/month").unwrap();
        let filler = Counters::new(&table, &filler, clock.anchor(), seed.salt(2));
        for key in 0..7u64 {
            filler.check(key.hash(&seed), 10, &clock);
        }
        let machine = limit.machine(clock.anchor()).unwrap();
        let mut model = Model { machine, words: HashMap::new() };
        for action in actions {
            match action {
                Action::Check { key, cost } => {
                    let hash = u64::from(key).hash(&seed);
                    let word = *model.word(key);
                    let expected = model.machine.step(word, clock.now(), cost, Phase(0));
                    let decision = counters.check(hash, cost, &clock);
                    prop_assert!(expected.decision.is_allowed() || !decision.is_allowed());
                    if decision.is_allowed() {
                        *model.word(key) = expected.word;
                    }
                }
                Action::Advance(nanos) => clock.advance(Duration::from_nanos(nanos)),
                _ => {}
            }
        }
    }
}

/// A batch decides those it does not find at the first look after the others, so a new key that
/// comes twice keeps its order, and different keys do not depend on each other.
fn expect_batch(
    model: &mut Model,
    keys: &[u8],
    now: Tick,
    decisions: &[Decision],
) -> Result<(), TestCaseError> {
    for (key, decision) in keys.iter().zip(decisions) {
        prop_assert_eq!(*decision, model.check(*key, 1, now));
    }
    Ok(())
}

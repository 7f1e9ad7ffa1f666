//! Where there is room for all keys, every decision after a change is what slow and obvious models
//! say.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Limit, LogRule, Machine, Phase, Step, Tick, Word};
use tollgate_local::{Clock, Counters, Table};

use crate::swap::{Scene, bucket, log, spans, words};

const KEYS: usize = 4;

/// What happens to a key.
#[derive(Clone, Debug)]
enum Event {
    Check { key: usize, cost: u64 },
    Batch { keys: Vec<usize>, cost: u64 },
    Peek { key: usize, cost: u64 },
    Refund { key: usize, cost: u64 },
    Reset { key: usize },
    Advance(Duration),
}

/// Counters and the words that they should have.
struct Pair {
    counters: Arc<Counters>,
    machine: Machine,
    words: [Word; KEYS],
}

impl Pair {
    fn first(scene: &mut Scene, limit: &Limit) -> Self {
        let machine = limit.machine(scene.clock.anchor()).unwrap();
        Self { counters: scene.first(limit), machine, words: [Word::REST; KEYS] }
    }

    /// The next limit: keys have spent now what they had spent before.
    fn then(&self, scene: &mut Scene, limit: &Limit) -> Self {
        let (now, machine) = (scene.clock.now(), limit.machine(scene.clock.anchor()).unwrap());
        let words = self.words.map(|word| {
            let old = self.machine.step(word, now, 0, Phase::default()).decision;
            let all = machine.step(Word::REST, now, 0, Phase::default()).decision.limit();
            let spent = (old.limit() - old.remaining()).min(all);
            machine.step(Word::REST, now, spent, Phase::default()).word
        });
        Self { counters: scene.then(limit, &self.counters), machine, words }
    }

    fn would(&self, key: usize, cost: u64, now: Tick) -> Step {
        self.machine.step(self.words[key], now, cost, Phase::default())
    }

    fn apply(&mut self, scene: &Scene, event: &Event) -> Result<(), TestCaseError> {
        let now = scene.clock.now();
        match event {
            Event::Check { key, cost } => {
                let decision = self.counters.check(scene.key(*key), *cost, &scene.clock);
                let step = self.would(*key, *cost, now);
                self.words[*key] = step.word;
                prop_assert_eq!(decision, step.decision, "{:?} at {}", event, now);
            }
            Event::Batch { keys, cost } => {
                let mut decisions = Vec::new();
                let hashes = keys.iter().map(|key| scene.key(*key));
                self.counters.check_batch(hashes, *cost, &scene.clock, &mut decisions);
                for (key, decision) in keys.iter().zip(decisions) {
                    let step = self.would(*key, *cost, now);
                    self.words[*key] = step.word;
                    prop_assert_eq!(decision, step.decision, "{:?} at {}", event, now);
                }
            }
            Event::Peek { key, cost } => {
                let decision = self.counters.peek(scene.key(*key), *cost, now);
                let expected = self.would(*key, *cost, now).decision;
                let expected = expected.with_remaining_of(self.would(*key, 0, now).decision);
                prop_assert_eq!(decision, expected, "{:?} at {}", event, now);
            }
            Event::Refund { key, cost } => {
                self.counters.refund(scene.key(*key), *cost, now);
                let word = self.words[*key];
                self.words[*key] = self.machine.refund(word, now, *cost, Phase::default());
            }
            Event::Reset { key } => {
                prop_assert!(self.counters.reset(scene.key(*key), now), "{:?}", event);
                self.words[*key] = Word::REST;
            }
            Event::Advance(span) => scene.clock.advance(*span),
        }
        Ok(())
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let key = || 0..KEYS;
    let cost = || prop_oneof![8 => 0..=6u64, 1 => 0..100u64, 1 => Just(u64::MAX)];
    let event = prop_oneof![
        6 => (key(), cost()).prop_map(|(key, cost)| Event::Check { key, cost }),
        1 => (prop::collection::vec(key(), 0..40), 0..=3u64)
            .prop_map(|(keys, cost)| Event::Batch { keys, cost }),
        2 => (key(), cost()).prop_map(|(key, cost)| Event::Peek { key, cost }),
        1 => (key(), cost()).prop_map(|(key, cost)| Event::Refund { key, cost }),
        1 => key().prop_map(|key| Event::Reset { key }),
        3 => spans().prop_map(Event::Advance),
    ];
    prop::collection::vec(event, 0..30)
}

/// A sliding log as a list of what passed and when.
struct Passed(LogRule, Vec<(Tick, u64)>);

impl Passed {
    fn spent(&self, now: Tick) -> u64 {
        let counts = |(at, _): &&(Tick, u64)| now.since(*at) < self.0.window();
        self.1.iter().filter(counts).map(|(_, cost)| cost).sum()
    }

    fn check(&mut self, now: Tick, cost: u64) -> bool {
        let fits = self.spent(now) + cost <= self.0.limit();
        if fits {
            self.1.push((now, cost));
        }
        fits
    }

    /// The same requests under another rule: the latest, as many as it allows.
    fn rebased(&self, rule: LogRule, now: Tick) -> Self {
        let mut room = rule.limit();
        let keep = |(at, cost): &(Tick, u64)| {
            let kept = (*cost).min(room);
            room -= kept;
            (*at, kept)
        };
        let known = self.1.iter().filter(|(at, _)| now.since(*at) < self.0.window());
        let mut kept: Vec<_> = known.rev().map(keep).collect();
        kept.reverse();
        Self(rule, kept)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_key_begins_as_if_it_had_spent_at_the_change_what_it_had_spent_before(
        limits in prop::collection::vec(prop::sample::select(words()), 2..5),
        events in prop::collection::vec(events(), 4),
    ) {
        // No key takes the slot of another one, with which what was given back would be lost.
        let mut scene = Scene::new(Table::with_keys(100_000).unwrap());
        let mut pair = Pair::first(&mut scene, &limits[0]);
        for (number, events) in events.iter().enumerate().take(limits.len()) {
            if number > 0 {
                pair = pair.then(&mut scene, &limits[number]);
            }
            for event in events {
                pair.apply(&scene, event)?;
            }
        }
        prop_assert_eq!(pair.counters.pressure().overflowed, 0);
        prop_assert_eq!(pair.counters.pressure().promoted, 0);
    }

    #[test]
    fn a_log_that_follows_a_log_keeps_its_requests(
        quotas in prop::collection::vec(
            prop::sample::select(vec!["5/s", "20/s", "9/3s", "2/100ms", "30/min"]), 2..4,
        ),
        requests in prop::collection::vec(
            prop::collection::vec((spans(), 0..6u64), 0..20), 3,
        ),
    ) {
        let mut scene = Scene::roomy();
        let mut counters = scene.first(&log(quotas[0]));
        let mut model = Passed(log(quotas[0]).log_rule().unwrap(), Vec::new());
        for (number, requests) in requests.iter().enumerate().take(quotas.len()) {
            if number > 0 {
                let limit = log(quotas[number]);
                counters = scene.then(&limit, &counters);
                model = model.rebased(limit.log_rule().unwrap(), scene.clock.now());
            }
            for (pause, cost) in requests {
                scene.clock.advance(*pause);
                let decision = counters.check(scene.key(0), *cost, &scene.clock);
                let now = scene.clock.now();
                prop_assert_eq!(decision.is_allowed(), model.check(now, *cost), "at {}", now);
                prop_assert_eq!(decision.remaining(), model.0.limit() - model.spent(now));
            }
        }
    }
}

#[test]
fn tokens_of_one_bucket_are_tokens_of_the_next() {
    // 40 of 100 are spent; so are 40 of a bucket that is faster, slower, larger or smaller.
    for (quota, left) in [("100/s", 60), ("100/h", 60), ("100/min burst 500", 460), ("10/min", 0)] {
        let mut scene = Scene::roomy();
        let old = scene.first(&bucket("100/min"));
        assert_eq!(scene.passes(&old, 0, 40), 40);
        let new = scene.then(&bucket(quota), &old);
        assert_eq!(scene.passes(&new, 0, 1_000), left, "{quota}");
        assert_eq!(scene.passes(&new, 1, 1_000), scene.left(&new, 2), "{quota}: another key");
    }
}

#[test]
fn a_full_bucket_takes_as_long_to_refill_as_the_new_rate_says() {
    let mut scene = Scene::roomy();
    let old = scene.first(&bucket("1000/h"));
    assert_eq!(scene.passes(&old, 0, 1_000), 1_000);
    let new = scene.then(&bucket("10/min"), &old);
    assert_eq!(scene.passes(&new, 0, 1), 0);
    scene.clock.advance(Duration::from_secs(6));
    assert_eq!(scene.passes(&new, 0, 2), 1);
    scene.clock.advance(Duration::from_secs(60));
    assert_eq!(scene.passes(&new, 0, 11), 10);
}

#[test]
fn places_in_a_queue_are_spent() {
    let mut scene = Scene::roomy();
    let old = scene.first(&Limit::leaky_shape("1/s", 20).unwrap());
    assert_eq!(scene.passes(&old, 0, 6), 6);
    let new = scene.then(&Limit::leaky_shape("2/s", 9).unwrap(), &old);
    let decision = new.check(scene.key(0), 1, &scene.clock);
    assert_eq!(decision.delay(), Duration::from_secs(3), "six are before it");
    let bucket = scene.then(&bucket("10/s"), &new);
    assert_eq!(scene.left(&bucket, 0), 3);
}

#[test]
fn requests_of_a_log_are_spent_at_once_in_a_bucket_and_the_other_way() {
    let mut scene = Scene::roomy();
    let old = scene.first(&log("10/min"));
    assert_eq!(scene.passes(&old, 0, 4), 4);
    scene.clock.advance(Duration::from_secs(30));
    let middle = scene.then(&bucket("10/h"), &old);
    assert_eq!(scene.left(&middle, 0), 6);
    let new = scene.then(&log("5/min"), &middle);
    assert_eq!(scene.passes(&new, 0, 10), 1, "asked through counters that never saw the key");
    scene.clock.advance(Duration::from_secs(59));
    assert_eq!(scene.passes(&new, 0, 1), 0);
    scene.clock.advance(Duration::from_secs(1));
    assert_eq!(scene.passes(&new, 0, 10), 5);
}

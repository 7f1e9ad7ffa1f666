//! What holds for any limit that takes the place of any other, also where keys find no room.

use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::Tick;
use tollgate_local::{Clock, KeyHash, Past};

use crate::swap::{Scene, bucket, limits, log, spans};

fn requests(keys: usize) -> impl Strategy<Value = Vec<(usize, u64)>> {
    prop::collection::vec((0..keys, 1..6u64), 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_more_pass_at_a_change_than_what_was_not_spent(
        old in limits(),
        new in limits(),
        pause in spans(),
        before in requests(40),
        after in requests(40),
        has_room: bool,
    ) {
        let mut scene = if has_room { Scene::roomy() } else { Scene::tiny() };
        let counters = scene.first(&old);
        for (key, cost) in before {
            counters.check(scene.key(key), cost, &scene.clock);
        }
        scene.clock.advance(pause);
        let now = scene.clock.now();
        let spent: Vec<_> = (0..40).map(|key| counters.spent(scene.key(key), now)).collect();
        let counters = scene.then(&new, &counters);
        let mut passed = [0; 40];
        for (key, cost) in after {
            if counters.check(scene.key(key), cost, &scene.clock).is_allowed() {
                passed[key] += cost;
            }
        }
        let all = counters.peek(scene.key(99), 0, now).limit();
        for key in 0..40 {
            // Requests of a log that are too old for the next one do not count there.
            if old.log_rule().is_none() || new.log_rule().is_none() {
                let most = all - spent[key].min(all);
                prop_assert!(passed[key] <= most, "{} of {most} passed", passed[key]);
            }
            prop_assert!(passed[key] <= all);
        }
    }

    #[test]
    fn nobody_is_kept_out_for_longer_than_the_new_limit_keeps_out_anybody(
        old in limits(), new in limits(), times in 0..200u64, pause in spans(), later in spans(),
    ) {
        let mut scene = Scene::roomy();
        let counters = scene.first(&old);
        scene.passes(&counters, 0, times);
        scene.clock.advance(pause);
        let counters = scene.then(&new, &counters);
        let until = counters.rested_by(scene.clock.now());
        scene.clock.advance(later);
        let now = scene.clock.now();
        let peek = counters.peek(scene.key(0), 1, now);
        let wait = peek.retry_after().unwrap_or_default().max(peek.delay());
        prop_assert!(wait <= until.since(now), "{:?} at {}", peek, now);
        let full = counters.peek(scene.key(0), 0, until.max(now));
        prop_assert_eq!(full.remaining(), full.limit());
    }

    #[test]
    fn a_key_that_had_spent_nothing_is_not_concerned(
        old in limits(), new in limits(), times in 0..200u64, later in spans(),
    ) {
        let mut scene = Scene::roomy();
        let counters = scene.first(&old);
        scene.passes(&counters, 0, times);
        let (changed, alone) = (scene.then(&new, &counters), scene.first(&new));
        let all = scene.left(&alone, 1).min(50);
        prop_assert_eq!(scene.left(&changed, 1), scene.left(&alone, 1));
        prop_assert_eq!(scene.passes(&changed, 1, 50), all);
        scene.clock.advance(later);
        prop_assert_eq!(scene.left(&changed, 2), scene.left(&alone, 2));
    }
}

#[test]
fn keys_without_room_are_not_given_a_second_budget() {
    for (old, new) in [("50/h", "10/h"), ("10/h", "20/h")] {
        let mut scene = Scene::tiny();
        let counters = scene.first(&bucket(old));
        for key in 0..60 {
            scene.passes(&counters, key, 7);
        }
        assert!(counters.pressure().overflowed > 0);
        let now = scene.clock.now();
        let spent: Vec<_> = (0..60).map(|key| counters.spent(scene.key(key), now)).collect();
        let counters = scene.then(&bucket(new), &counters);
        let all = counters.peek(scene.key(99), 0, now).limit();
        for round in 0..2 {
            for (key, spent) in spent.iter().enumerate() {
                let passed = scene.passes(&counters, key, 30);
                assert!(passed + spent.min(&all) <= all, "key {key}: {passed} and {spent}");
                assert!(round == 0 || passed == 0, "key {key} had passed before");
            }
        }
        assert!(counters.pressure().overflowed > 0);
    }
}

/// A past in which one key has spent five.
struct Five(KeyHash);

impl Past for Five {
    fn spent(&self, key: KeyHash, _: Tick) -> u64 {
        if key == self.0 { 5 } else { 0 }
    }

    fn forget(&self, key: KeyHash, _: Tick) -> bool {
        key != self.0
    }
}

#[test]
fn a_key_without_room_keeps_its_past_when_another_takes_something_back() {
    for other in 100..160 {
        let mut scene = Scene::tiny();
        let guests = scene.first(&bucket("1/h"));
        for key in 0..100 {
            scene.passes(&guests, key, 1);
        }
        let (limit, now) = (bucket("10/h"), scene.clock.now());
        let past = Arc::new(Five(scene.key(99)));
        // In few cells, so that many keys share one.
        let counters = scene.builder(&limit).among(1_000).following(past, now).build();
        let taken = scene.passes(&counters, other, 3);
        let passed = scene.passes(&counters, 99, 1);
        counters.undo(scene.key(other), taken, now, &scene.clock);
        let passed = passed + scene.passes(&counters, 99, 10);
        assert!(passed <= 5, "{passed} passed, beside {other}");
        assert!(counters.pressure().overflowed > 0);
    }
}

#[test]
fn logs_without_room_are_not_given_a_second_budget() {
    let mut scene = Scene::tiny();
    let counters = scene.first(&bucket("1G/h burst 1000"));
    for key in 0..2_000 {
        counters.check(scene.key(key), 7, &scene.clock);
    }
    let counters = scene.then(&log("10/h"), &counters);
    for key in 0..2_000 {
        assert!(scene.passes(&counters, key, 2) <= 2);
    }
    for key in 0..2_000 {
        assert!(scene.passes(&counters, key, 5) <= 1, "key {key} had seven before, and two");
    }
    assert!(counters.pressure().overflowed > 0);
}

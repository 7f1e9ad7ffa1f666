//! How long the past is asked, by whom, and when it is forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{Limit, Tick};
use tollgate_local::{Clock, KeyHash, Past};

use crate::swap::{Scene, bucket, log};

/// A past in which everybody has spent so much, and that counts how often it was asked.
struct Asked {
    spent: u64,
    times: AtomicU64,
}

impl Asked {
    fn new(spent: u64) -> Arc<Self> {
        Arc::new(Self { spent, times: AtomicU64::new(0) })
    }

    fn times(&self) -> u64 {
        self.times.swap(0, Ordering::Relaxed)
    }
}

impl Past for Asked {
    fn spent(&self, _: KeyHash, _: Tick) -> u64 {
        self.times.fetch_add(1, Ordering::Relaxed);
        self.spent
    }

    fn forget(&self, _: KeyHash, _: Tick) -> bool {
        false
    }
}

fn limits() -> [Limit; 4] {
    let sliding = Limit::sliding_window("10/min").unwrap();
    [bucket("10/min"), Limit::fixed_window("10/min").unwrap(), sliding, log("10/min")]
}

#[test]
fn the_past_is_asked_for_new_keys_alone() {
    for limit in limits() {
        let (mut scene, past) = (Scene::roomy(), Asked::new(3));
        let counters = scene.then(&limit, &past);
        assert_eq!(scene.passes(&counters, 0, 1), 1);
        assert!(past.times() > 0, "{limit}");
        assert_eq!(scene.passes(&counters, 0, 20), 6);
        assert_eq!(past.times(), 0, "{limit}: the key is there");
        assert_eq!(scene.passes(&counters, 1, 20), 7);
        assert!(past.times() > 0, "{limit}: another key");
    }
}

#[test]
fn the_past_is_not_asked_when_it_does_not_matter_any_more() {
    for limit in limits() {
        let (mut scene, past) = (Scene::roomy(), Asked::new(3));
        let counters = scene.then(&limit, &past);
        let until = counters.rested_by(scene.clock.now());
        scene.clock.advance(until.since(scene.clock.now()) - Duration::from_nanos(1));
        scene.left(&counters, 0);
        assert!(past.times() > 0, "{limit}");
        scene.clock.advance(Duration::from_nanos(1));
        assert_eq!(scene.left(&counters, 0), 10, "{limit}");
        assert_eq!(scene.passes(&counters, 1, 20), 10, "{limit}");
        counters.refund(scene.key(2), 1, scene.clock.now());
        assert!(counters.reset(scene.key(3), scene.clock.now()));
        assert_eq!(past.times(), 0, "{limit}");
        assert_eq!(Arc::strong_count(&past), 1, "{limit}: it was dropped");
    }
}

#[test]
fn a_caller_can_end_the_past_sooner() {
    for limit in limits() {
        let (mut scene, past) = (Scene::roomy(), Asked::new(3));
        let now = scene.clock.now();
        let (until, past_of) = (now.after(Duration::from_secs(1)), Arc::<Asked>::clone(&past));
        let counters = scene.builder(&limit).following(past_of, now).until(until).build();
        assert_eq!(scene.left(&counters, 0), 7, "{limit}");
        scene.clock.advance(Duration::from_secs(1));
        past.times();
        assert_eq!(scene.left(&counters, 0), 10, "{limit}");
        assert_eq!(past.times(), 0, "{limit}");
    }
}

#[test]
fn a_key_that_is_reset_has_everything_whatever_it_spent_before() {
    for old in limits() {
        for new in limits() {
            let mut scene = Scene::roomy();
            let counters = scene.first(&old);
            scene.passes(&counters, 0, 9);
            scene.passes(&counters, 1, 9);
            let counters = scene.then(&new, &counters);
            assert_eq!(scene.passes(&counters, 0, 5), 1);
            for key in 0..2 {
                assert!(counters.reset(scene.key(key), scene.clock.now()));
                assert_eq!(scene.left(&counters, key), 10, "{old}, then {new}");
            }
        }
    }
}

#[test]
fn a_reset_reaches_what_was_spent_before_a_limit_that_came_to_rest_since() {
    let mut scene = Scene::roomy();
    let counters = scene.first(&bucket("10/h"));
    scene.passes(&counters, 0, 10);
    let counters = scene.then(&bucket("10/s"), &counters);
    scene.clock.advance(Duration::from_millis(500));
    let counters = scene.then(&bucket("10/h"), &counters);
    scene.clock.advance(Duration::from_secs(2));
    assert_eq!(scene.left(&counters, 0), 5);
    assert!(counters.reset(scene.key(0), scene.clock.now()));
    assert_eq!(scene.left(&counters, 0), 10);
}

#[test]
fn a_key_whose_past_cannot_be_forgotten_is_not_reset() {
    for limit in limits() {
        let (mut scene, past) = (Scene::roomy(), Asked::new(3));
        let counters = scene.then(&limit, &past);
        scene.passes(&counters, 0, 1);
        for key in 0..2 {
            assert!(!counters.reset(scene.key(key), scene.clock.now()), "{limit}");
        }
    }
}

#[test]
fn what_was_spent_before_can_be_given_back() {
    for limit in limits() {
        let (mut scene, past) = (Scene::roomy(), Asked::new(8));
        let counters = scene.then(&limit, &past);
        counters.refund(scene.key(0), 5, scene.clock.now());
        assert_eq!(scene.left(&counters, 0), 7, "{limit}");
    }
}

#[test]
fn a_limit_that_was_none_knows_of_nothing() {
    let mut scene = Scene::roomy();
    let counters = scene.first(&bucket("unlimited"));
    scene.passes(&counters, 0, 100);
    let counters = scene.then(&bucket("10/h"), &counters);
    assert_eq!(scene.left(&counters, 0), 10);
}

#[test]
fn spending_outlasts_sixteen_changes_and_no_more() {
    for limit in [bucket("10/h"), log("10/h")] {
        let mut scene = Scene::roomy();
        let first = scene.first(&limit);
        scene.passes(&first, 0, 4);
        let mut counters = scene.then(&limit, &first);
        for _ in 1..16 {
            counters = scene.then(&limit, &counters);
        }
        assert_eq!(scene.left(&counters, 0), 6, "{limit}");
        assert_eq!(Arc::strong_count(&first), 2, "{limit}");
        counters = scene.then(&limit, &counters);
        assert_eq!(Arc::strong_count(&first), 1, "{limit}: nobody remembers it");
        assert_eq!(scene.left(&counters, 0), 10, "{limit}");
    }
}

#[test]
fn a_change_drops_pasts_that_are_over() {
    let mut scene = Scene::roomy();
    let first = scene.first(&bucket("10/s"));
    let second = scene.then(&bucket("10/s"), &first);
    scene.clock.advance(Duration::from_secs(1));
    let _third = scene.then(&bucket("10/s"), &second);
    assert_eq!(Arc::strong_count(&first), 1);
}

#[test]
fn a_past_that_others_ask_for_an_earlier_time_is_kept() {
    let mut scene = Scene::roomy();
    let first = scene.first(&bucket("10/s"));
    scene.passes(&first, 0, 4);
    let second = scene.then(&bucket("10/s"), &first);
    let third = scene.then(&bucket("10/h"), &second);
    scene.clock.advance(Duration::from_secs(2));
    // Somebody still has the second counters in hand, and a fourth come.
    scene.passes(&second, 1, 1);
    let fourth = scene.then(&bucket("10/h"), &third);
    assert_eq!(scene.left(&fourth, 0), 6);
}

#[test]
fn a_change_while_a_key_spends_under_the_old_limit_forgets_nothing() {
    let mut scene = Scene::roomy();
    let old = scene.first(&bucket("10/h"));
    let new = scene.then(&bucket("10/h"), &old);
    // Somebody still has the old counters in hand.
    assert_eq!(scene.passes(&old, 0, 4), 4);
    assert_eq!(scene.passes(&new, 0, 10), 6);
}

//! More keys than can be lent to.

use std::time::Duration;

use tollgate::store::StoreError;
use tollgate::{Request, SharingConfig};

use crate::{Fleet, run};

/// There are eight.
fn with_few_places() -> Fleet {
    let few = SharingConfig { keys: 8, ..SharingConfig::default() };
    Fleet::with(2, "rules: [{ name: a, key: [path], limit: 100/min }]", &few)
}

/// So many keys come to a node twice, one after the other, and then no more.
async fn come_twice(fleet: &Fleet, paths: &[String]) {
    for path in paths {
        for _ in 0..2 {
            assert!(fleet.passes(0, &Request::new("GET", path)).await);
            fleet.pass(Duration::from_millis(20)).await;
        }
    }
}

fn paths(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("/slow/{number}")).collect()
}

#[test]
fn a_key_that_is_hot_has_the_place_of_one_that_is_not() {
    run(async {
        let (fleet, paths) = (with_few_places(), paths(8));
        come_twice(&fleet, &paths).await;
        for _ in 0..40 {
            fleet.pass(Duration::from_millis(50)).await;
        }
        let stats = || fleet.nodes[0].sharing().unwrap();
        let before = stats();
        assert_eq!(before.keys, 8, "all places are taken");

        let hot = Request::new("GET", "/hot");
        for at in 0..80 {
            assert!(fleet.passes(0, &hot).await, "{at}");
            fleet.pass(Duration::from_millis(10)).await;
        }
        let asked = stats().asked - before.asked;
        assert!(asked <= 10, "{asked} of eighty were asked of the store");
        assert_eq!(stats().keys, 8);
    });
}

#[test]
fn whoever_loses_its_place_gives_back_what_it_held() {
    run(async {
        let (fleet, paths) = (with_few_places(), paths(8));
        // Each of them holds something when it falls silent.
        for _ in 0..12 {
            come_twice(&fleet, &paths).await;
        }
        let left = async |path: &String| fleet.left(1, "a", &Request::new("GET", path)).await;
        let held = async || {
            let mut held = Vec::new();
            for path in &paths {
                held.push(left(path).await < 100 - 24);
            }
            held
        };
        assert_eq!(held().await, [true; 8], "something is lent of each");
        let hot: Vec<_> = (0..3).map(|number| format!("/hot/{number}")).collect();
        for _ in 0..30 {
            for path in &hot {
                assert!(fleet.passes(0, &Request::new("GET", path)).await);
            }
            fleet.pass(Duration::from_millis(10)).await;
        }
        let silent = held().await.into_iter().filter(|holds| !holds).count();
        assert_eq!(silent, 3, "three have left, and what they held is in the store");
    });
}

#[test]
fn keys_that_come_as_often_as_each_other_keep_their_places() {
    run(async {
        let (fleet, paths) = (with_few_places(), paths(9));
        let round = async || {
            for path in &paths {
                assert!(fleet.passes(0, &Request::new("GET", path)).await);
                fleet.pass(Duration::from_millis(110)).await;
            }
        };
        for _ in 0..10 {
            round().await;
        }
        let before = fleet.nodes[0].sharing().unwrap();
        for _ in 0..40 {
            round().await;
        }
        let after = fleet.nodes[0].sharing().unwrap();
        let asked = after.asked - before.asked;
        // One key of nine asks each time.
        assert!(asked <= 60, "{asked} of {} were asked of the store", 9 * 40);
    });
}

#[test]
fn what_whoever_loses_its_place_held_is_given_back_also_when_the_store_fails_once() {
    run(async {
        let few = SharingConfig { keys: 8, ..SharingConfig::default() };
        let rules = "rules: [{ name: a, key: [path], limit: 1000/day, algorithm: fixed_window, \
                     on_store_failure: deny }]";
        let (fleet, paths) = (Fleet::with(2, rules, &few), paths(8));
        for _ in 0..12 {
            come_twice(&fleet, &paths).await;
        }
        fleet.shop.refuse(|ask| {
            let is_last = ask.key().starts_with(b"path=/slow") && ask.exchange().returned > 0;
            is_last.then_some(StoreError::Loading)
        });
        let hot = Request::new("GET", "/hot");
        for _ in 0..10 {
            let _ = fleet.passes(0, &hot).await;
            fleet.pass(Duration::from_millis(10)).await;
        }
        let used_up = async || {
            let mut least = u64::MAX;
            for path in &paths {
                least = least.min(fleet.left(1, "a", &Request::new("GET", path)).await);
            }
            least
        };
        let held = used_up().await;
        fleet.shop.refuse(|_| None);
        // Longer than any lease.
        for _ in 0..120 {
            fleet.pass(Duration::from_millis(500)).await;
        }
        assert!(held < 1_000 - 24, "something was lent: {held}");
        assert_eq!(used_up().await, 1_000 - 24, "all of it has come back");
    });
}

//! Limits that are not lent: what the store has denied is denied here for a moment.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate::Request;

use crate::{Fleet, root, run, settle};

const MILLI: Duration = Duration::from_millis(1);

/// Too little to be shared out, a queue, and what comes back too fast.
const NOT_LENT: [&str; 5] = [
    "limit: 5/min",
    "limit: 5/min, algorithm: fixed_window",
    "limit: 5/min, algorithm: sliding_window",
    "limit: 100/s, algorithm: leaky_bucket, queue: 10",
    "limit: 1k/s, burst: 100",
];

fn rules(limit: &str) -> String {
    format!("rules: [{{ name: a, key: [], {limit} }}]")
}

fn exchanges(fleet: &Fleet) -> u64 {
    fleet.nodes.iter().map(|node| node.sharing().unwrap().exchanges).sum()
}

/// Has all of a limit spent, until somebody is denied.
async fn use_up(fleet: &Fleet) {
    while fleet.passes(0, &root()).await {}
}

#[test]
fn who_is_denied_and_goes_on_has_the_store_asked_seldom() {
    run(async {
        for limit in NOT_LENT {
            let fleet = Fleet::new(1, &rules(limit));
            use_up(&fleet).await;
            let (before, mut passed) = (exchanges(&fleet), 0);
            for _ in 0..1_000 {
                passed += fleet.passing(&root(), 20).await as u64;
                fleet.pass(MILLI).await;
            }
            let asked = exchanges(&fleet) - before;
            // Whoever passes has asked, and the next one is denied.
            assert!(asked <= 12 + 2 * passed, "{limit}: {asked} questions, {passed} passed");
            let stats = fleet.nodes[0].sharing().unwrap();
            assert!(stats.short >= 20_000 - asked, "{limit}: {stats:?}");
        }
    });
}

#[test]
fn a_limit_that_is_not_lent_is_as_exact_as_a_strict_one() {
    run(async {
        for limit in NOT_LENT {
            let strict = format!("{limit}, consistency: strict");
            let [ours, strict] = [limit, &strict].map(|limit| Fleet::new(3, &rules(limit)));
            for step in 0..4_000_u64 {
                let node = (step * step % 7 % 3) as usize;
                let [said, expected] = [&ours, &strict]
                    .map(|fleet| async move { fleet.nodes[node].decide_waiting(&root()).await });
                let (said, expected) = (said.await, expected.await);
                let [numbers, expected] = [said, expected].map(|ruling| {
                    let decision = ruling.each().next().expect("it applies").decision();
                    (
                        decision.verdict(),
                        decision.remaining(),
                        decision.limit(),
                        decision.reset_after(),
                    )
                });
                assert_eq!(numbers, expected, "{limit}, step {step}");
                // Several come at a time.
                if step % 4 == 3 {
                    let time = MILLI * (step % 13) as u32 / 4;
                    tokio::join!(ours.pass(time), strict.pass(time));
                }
            }
            assert!(exchanges(&ours) < exchanges(&strict), "{limit}: it asked as often");
        }
    });
}

/// Of several costs, where more is left from time to time, and is still too little.
#[test]
fn what_is_left_is_said_exactly_to_those_who_need_much() {
    run(async {
        let more = ["limit: 1k/s, burst: 200", "limit: 3/s, burst: 4", "limit: 7/min"];
        for limit in NOT_LENT.iter().copied().chain(more) {
            let strict = format!("{limit}, consistency: strict");
            let [ours, strict] = [limit, &strict].map(|limit| Fleet::new(2, &rules(limit)));
            for step in 0..4_000_u64 {
                // Twice in a row the same, and one that is never allowed.
                let cost = [1, 2, 3, 3, 150, 150, 4, 4, 5, 500, 500, 5][step as usize % 12];
                let request = root().cost(cost);
                let node = (step / 12 % 2) as usize;
                let [said, expected] = [&ours, &strict]
                    .map(|fleet| async move { fleet.nodes[node].decide_waiting(&request).await });
                let (said, expected) = (said.await, expected.await);
                let of = |ruling: &tollgate::Ruling| {
                    ruling.each().next().expect("it applies").decision()
                };
                assert_eq!(of(&said), of(&expected), "{limit}, step {step}");
                let time = [0, 1, 700, 20_000, 150][step as usize % 5] * MILLI / 100;
                tokio::join!(ours.pass(time), strict.pass(time));
            }
            assert!(exchanges(&ours) < exchanges(&strict), "{limit}: it asked as often");
        }
    });
}

#[test]
fn who_needs_less_than_what_was_denied_asks() {
    run(async {
        let fleet = Fleet::new(1, &rules("limit: 5/min"));
        let costing = |cost| root().cost(cost);
        assert!(fleet.passes(0, &costing(3)).await);
        assert!(!fleet.passes(0, &costing(3)).await);
        assert!(fleet.passes(0, &costing(2)).await);
    });
}

#[test]
fn what_has_to_be_decided_by_the_store_is() {
    run(async {
        for limit in [
            "limit: 5/min, consistency: strict",
            "limit: 5/min, algorithm: sliding_log",
            "limit: 5/min, count_if: \"response.status in [401]\"",
        ] {
            let fleet = Fleet::new(1, &rules(limit));
            for _ in 0..50 {
                let _ = fleet.passes(0, &root()).await;
            }
            assert!(exchanges(&fleet) >= 50, "{limit}");
        }
    });
}

#[test]
fn a_key_that_is_reset_asks_at_once() {
    run(async {
        for limit in NOT_LENT {
            let fleet = Fleet::new(1, &rules(limit));
            use_up(&fleet).await;
            fleet.nodes[0].reset_waiting(&root(), None).unwrap().await;
            assert!(fleet.passes(0, &root()).await, "{limit}");
        }
    });
}

#[test]
fn a_key_that_is_reset_asks_at_once_also_if_a_denial_is_on_its_way() {
    run(async {
        for limit in NOT_LENT {
            let fleet = Fleet::new(1, &rules(limit));
            let node = &fleet.nodes[0];
            let all = root().cost(fleet.left(0, "a", &root()).await);
            assert!(fleet.passes(0, &all).await, "{limit}");
            fleet.shop.is_slow.store(true, Ordering::Relaxed);
            let wait = node.try_decide(&root()).expect_err("the store has to be asked");
            let since = wait.since();
            let denied = tokio::spawn(wait.fetch());
            settle().await;
            let is_heard = async {
                settle().await;
                fleet.shop.is_slow.store(false, Ordering::Relaxed);
                fleet.shop.handed_over.notify_waiters();
            };
            // The key is forgotten by then, and what is left of it is not seen yet.
            tokio::join!(node.reset_waiting(&root(), None).unwrap(), is_heard);
            denied.await.unwrap();
            let ruling = node.try_decide_again(&root(), since).expect("it was asked about");
            assert!(!ruling.is_allowed(), "{limit}: that was before");
            assert!(fleet.passes(0, &root()).await, "{limit}");
        }
    });
}

/// A request is allowed by one limit and denied by another, and until it hears of that somebody else is denied
/// by the first one.
#[test]
fn what_somebody_gives_back_can_be_had_at_once() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 2/h }, \
                     { name: b, key: [], match: { path: /b }, limit: 1/h, consistency: strict }]";
        let fleet = Fleet::new(1, rules);
        let (node, both) = (&fleet.nodes[0], Request::new("GET", "/b"));
        assert!(fleet.passes(0, &both).await);
        node.reset_waiting(&root(), Some("a")).unwrap().await;

        let wait = node.try_decide(&both).expect_err("the store has to be asked");
        let since = wait.since();
        wait.fetch().await;
        let two = root().cost(2);
        assert!(!fleet.passes(0, &two).await, "the other one has taken one of two");
        let ruling = node.try_decide_again(&both, since).expect("it was asked");
        assert!(!ruling.is_allowed());
        settle().await;
        // What comes back waits until it is known when the key began anew.
        fleet.pass(Duration::from_millis(1)).await;
        assert!(fleet.passes(0, &two).await, "it was given back");
    });
}

#[test]
fn a_batch_that_was_denied_does_not_ask_again() {
    run(async {
        for limit in NOT_LENT {
            let fleet = Fleet::new(1, &rules(limit));
            let requests = [root(); 200];
            let passed = fleet.passing_at_once(0, &requests).await;
            assert!((1..200).contains(&passed), "{limit}: {passed} passed");
            let before = exchanges(&fleet);
            assert_eq!(fleet.passing_at_once(0, &requests).await, 0, "{limit}");
            assert_eq!(exchanges(&fleet), before, "{limit}");
        }
    });
}

/// What was denied a moment ago is denied, whether there is a store or not, and then its rule decides.
#[test]
fn a_denial_is_over_in_a_moment_when_the_store_is_gone() {
    run(async {
        let fleet =
            Fleet::new(1, "rules: [{ name: a, key: [], limit: 5/h, on_store_failure: allow }]");
        use_up(&fleet).await;
        fleet.shop.go();
        assert!(!fleet.passes(0, &root()).await);
        fleet.pass(100 * MILLI).await;
        assert!(fleet.passes(0, &root()).await);
    });
}

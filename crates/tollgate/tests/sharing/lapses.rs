//! What is said about requests that the store did not decide, though it is asked.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;
use tollgate::rules::OnStoreFailure;
use tollgate::store::StoreError;
use tollgate::{Lapse, Request};

use crate::{Fleet, Refuses, root, run, settle};

/// What a node has to say now.
async fn said(fleet: &Fleet) -> Option<Lapse> {
    // It is said at once, or there is nothing.
    timeout(Duration::ZERO, fleet.nodes[0].lapse()).await.ok()
}

async fn all_said(fleet: &Fleet) -> Vec<Lapse> {
    let mut all = Vec::new();
    while let Some(lapse) = said(fleet).await {
        all.push(lapse);
    }
    all
}

fn rule(policy: &str) -> String {
    format!(
        "rules: [{{ name: a, key: [], limit: 40/day, consistency: strict, on_store_failure: {policy} }}]"
    )
}

/// Every other question fails, so the store is not left alone.
async fn fail(fleet: &Fleet, times: usize) {
    for _ in 0..times {
        fleet.shop.go();
        fleet.passes(0, &root()).await;
        fleet.shop.come_back();
        for _ in 0..2 {
            fleet.passes(0, &root()).await;
        }
    }
    assert_eq!(fleet.nodes[0].sharing().unwrap().times_degraded, 0);
}

#[test]
fn a_single_answer_that_is_missing_is_named_once_a_minute_with_how_many_there_were() {
    run(async {
        for (policy, shown) in
            [("deny", "deny"), ("allow", "allow"), ("local", "local 50%"), ("local 7%", "local 7%")]
        {
            let fleet = Fleet::new(1, &rule(policy));
            assert_eq!(said(&fleet).await, None, "the store is well");
            fail(&fleet, 1).await;
            let lapse = said(&fleet).await.expect("one answer was missing");
            assert_eq!((lapse.rule.as_str(), lapse.decisions), ("a", 1));
            assert_eq!(lapse.policy.to_string(), shown);
            assert!(lapse.reason.contains("loading"), "{lapse:?}");
            fail(&fleet, 7).await;
            fleet.pass(Duration::from_secs(59)).await;
            assert_eq!(said(&fleet).await, None, "it was said a moment ago");
            fleet.pass(Duration::from_secs(1)).await;
            assert_eq!(said(&fleet).await.expect("there were more").decisions, 7);
            assert_eq!(said(&fleet).await, None);
            // When it was well for a minute, it is news again.
            fleet.pass(Duration::from_secs(60)).await;
            fail(&fleet, 1).await;
            assert_eq!(said(&fleet).await.map(|lapse| lapse.decisions), Some(1));
            let stats = fleet.nodes[0].sharing().unwrap();
            assert_eq!(stats.degraded, 9, "as many as were named");
        }
    });
}

#[test]
fn whoever_waits_for_it_hears_of_it_also_when_nothing_more_comes() {
    run(async {
        let fleet = Fleet::new(1, &rule("deny"));
        fail(&fleet, 1).await;
        assert!(said(&fleet).await.is_some());
        fail(&fleet, 2).await;
        let hears = async { fleet.nodes[0].lapse().await.decisions };
        let passes = async {
            settle().await;
            fleet.pass(Duration::from_secs(61)).await;
        };
        let heard = timeout(Duration::from_secs(20), async { tokio::join!(hears, passes).0 });
        assert_eq!(heard.await, Ok(2));
    });
}

const NAME: &str = "tg:{user=alice}:default/per-user:5f3a9c01";

#[test]
fn different_reasons_are_named_and_no_key_of_anybody_is() {
    run(async {
        let rules =
            "rules: [{ name: per-user, key: [user], limit: 40/day, on_store_failure: allow }]";
        let fleet = Fleet::new(1, rules);
        let alice = root().attributes(&[("user", "alice")]);
        let wrong: Refuses = |_| Some(StoreError::WrongType { name: NAME.into() });
        let garbled: Refuses =
            |_| Some(StoreError::Garbled { name: NAME.into(), reason: "no number".into() });
        for refuses in [wrong, garbled].into_iter().cycle().take(6) {
            fleet.shop.refuse(refuses);
            assert!(fleet.passes(0, &alice).await);
        }
        let all = all_said(&fleet).await;
        assert_eq!(all.len(), 2, "{all:?}");
        for lapse in all {
            assert_eq!((lapse.rule.as_str(), lapse.decisions), ("per-user", 3));
            assert_eq!(lapse.policy, OnStoreFailure::Allow);
            assert!(lapse.reason.contains("tg:{***}:default/per-user:5f3a9c01"), "{lapse:?}");
            assert!(!format!("{lapse:?}").contains("alice"), "{lapse:?}");
        }
    });
}

#[test]
fn permits_and_requests_that_had_no_time_left_are_named() {
    run(async {
        let rules = "rules: [{ name: slots, key: [], concurrent: 10, on_store_failure: deny }]";
        let fleet = Fleet::new(1, rules);
        fleet.shop.go();
        assert!(!fleet.passes(0, &root()).await);
        let lapse = said(&fleet).await.expect("its rule has decided");
        assert!(lapse.rule == "slots" && lapse.reason.contains("loading"), "{lapse:?}");

        let fleet = Fleet::new(1, &rule("deny"));
        let wait = fleet.nodes[0].try_decide(&root()).expect_err("nothing is here");
        let since = wait.since();
        fleet.clock.advance(Duration::from_millis(49));
        fleet.shop.is_slow.store(true, Ordering::Relaxed);
        wait.fetch().await;
        assert!(fleet.nodes[0].try_decide_again(&root(), since).is_ok());
        let lapse = said(&fleet).await.expect("its rule has decided");
        assert!(lapse.reason.contains("did not answer within 50ms"), "{lapse:?}");
    });
}

#[test]
fn while_the_store_is_left_alone_nothing_more_is_said() {
    run(async {
        let fleet = Fleet::new(1, &rule("allow"));
        fleet.shop.go();
        assert_eq!(fleet.passing(&root(), 4).await, 4);
        let all = all_said(&fleet).await;
        assert!(all.len() == 1 && all[0].decisions == 4, "{all:?}");
        assert_eq!(fleet.passing(&root(), 100).await, 100);
        assert!(fleet.nodes[0].sharing().unwrap().is_degraded);
        for _ in 0..120 {
            fleet.pass(Duration::from_secs(1)).await;
            fleet.passes(0, &root()).await;
        }
        assert_eq!(all_said(&fleet).await, []);
    });
}

#[test]
fn no_more_than_64_are_named_in_a_minute_and_all_are_counted() {
    run(async {
        let rule = |at| {
            format!(
                "{{ name: r{at}, match: {{ path: /{at} }}, key: [], limit: 9/day, on_store_failure: deny }}"
            )
        };
        let rules: Vec<_> = (0..100).map(rule).collect();
        let fleet = Fleet::new(1, &format!("rules: [{}]", rules.join(", ")));
        fleet.shop.refuse(|_| Some(StoreError::WrongType { name: "tg:epoch".into() }));
        let paths: Vec<_> = (0..100).map(|at| format!("/{at}")).collect();
        for path in &paths {
            assert!(!fleet.passes(0, &Request::new("GET", path)).await);
        }
        assert_eq!(all_said(&fleet).await.len(), 64);
        assert_eq!(fleet.nodes[0].sharing().unwrap().degraded, 100);
        fleet.pass(Duration::from_secs(60)).await;
        assert!(!fleet.passes(0, &Request::new("GET", "/99")).await);
        assert_eq!(all_said(&fleet).await.len(), 1, "there is room again");
    });
}

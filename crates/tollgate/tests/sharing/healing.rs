//! When a store that fails is taken for well again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate::store::{Ask, StoreError};
use tollgate::{Health, Request, RuleSet};

use crate::{Fleet, root, run};

/// Reads, and says what time it is, but takes no writes.
fn full(ask: &Ask) -> Option<StoreError> {
    let error = || StoreError::OutOfMemory { reason: "OOM".into() };
    (!ask.exchange().is_look()).then(error)
}

/// One server of several is gone: the one with this key.
fn partly_gone(ask: &Ask) -> Option<StoreError> {
    let error = || StoreError::ClusterDown { reason: "its server is gone".into() };
    (ask.key() == b"path=/gone").then(error)
}

/// Asks about the request again and again while the store is tried, and says how often the fleet has
/// found out that it fails.
async fn goes_on(fleet: &Fleet, requests: &[Request<'_>]) -> u64 {
    for _ in 0..60 {
        for request in requests {
            fleet.passes(0, request).await;
        }
        fleet.pass(Duration::from_millis(100)).await;
    }
    fleet.nodes[0].sharing().unwrap().times_degraded
}

#[test]
fn a_store_that_takes_no_writes_is_left_alone_once_until_it_does() {
    run(async {
        let limits = [
            "limit: 4000/h",
            "limit: 4000/h, consistency: strict",
            "limit: 4000/h, algorithm: fixed_window",
            "limit: 4000/h, algorithm: sliding_window",
            "limit: 4000/h, algorithm: sliding_log",
            "limit: 4000/h, algorithm: leaky_bucket",
            "concurrent: 10",
        ];
        for limit in limits {
            for policy in ["deny", "allow", "local"] {
                let what = format!("{limit}, on_store_failure: {policy}");
                let fleet = Fleet::new(1, &format!("rules: [{{ name: a, key: [], {what} }}]"));
                let mut health = fleet.nodes[0].health().unwrap();
                fleet.shop.refuse(full);
                assert_eq!(goes_on(&fleet, &[root()]).await, 1, "{what}");
                assert!(matches!(&*health.borrow_and_update(), Health::Degraded { .. }), "{what}");

                fleet.shop.refuse(|_| None);
                assert_eq!(goes_on(&fleet, &[root()]).await, 1, "{what}");
                assert_eq!(*health.borrow_and_update(), Health::Well, "{what}");
                fleet.pass(Duration::from_secs(1)).await;
                assert!(fleet.passes(0, &root()).await, "{what}");
            }
        }
    });
}

#[test]
fn a_store_of_which_a_part_is_gone_is_left_alone_once_until_that_is_back() {
    run(async {
        let rules = "rules: [{ name: a, key: [path], limit: 4000/h, on_store_failure: deny }]";
        let fleet = Fleet::new(1, rules);
        let both = [Request::new("GET", "/gone"), Request::new("GET", "/here")];
        fleet.shop.refuse(partly_gone);
        for _ in 0..5 {
            assert!(!fleet.passes(0, &both[0]).await);
        }
        assert_eq!(goes_on(&fleet, &both).await, 1);
        assert!(fleet.nodes[0].sharing().unwrap().is_degraded);
        fleet.shop.refuse(|_| None);
        assert_eq!(goes_on(&fleet, &both).await, 1);
        assert!(!fleet.nodes[0].sharing().unwrap().is_degraded);
    });
}

/// Another key than the one that failed first.
#[test]
fn a_debt_that_cannot_be_paid_keeps_the_store_from_being_asked() {
    run(async {
        let rules = "rules: [{ name: a, key: [path], limit: 40/h, on_store_failure: allow }]";
        let fleet = Fleet::new(1, rules);
        let gone = Request::new("GET", "/gone");
        fleet.shop.go();
        assert_eq!(fleet.passing(&root(), 5).await, 5);
        assert_eq!(fleet.passing(&gone, 30).await, 30);
        fleet.shop.refuse(|ask| partly_gone(ask).filter(|_| !ask.exchange().is_look()));
        fleet.shop.come_back();
        assert_eq!(goes_on(&fleet, &[]).await, 1);
        assert!(fleet.nodes[0].sharing().unwrap().is_degraded);
        fleet.shop.refuse(|_| None);
        assert_eq!(goes_on(&fleet, &[]).await, 1);
        let stats = fleet.nodes[0].sharing().unwrap();
        assert_eq!((stats.is_degraded, stats.unpaid), (false, 0));
        assert_eq!(fleet.left(0, "a", &gone).await, 10, "it was told of all that passed");
    });
}

#[test]
fn to_try_a_store_spends_nothing() {
    run(async {
        let rules = "rules:
  - { name: lent, key: [], limit: 40/day, on_store_failure: deny }
  - { name: log, key: [], limit: 40/day, algorithm: sliding_log, on_store_failure: deny }";
        let fleet = Fleet::new(1, rules);
        fleet.shop.go();
        for _ in 0..5 {
            assert!(!fleet.passes(0, &root()).await);
        }
        fleet.shop.come_back();
        goes_on(&fleet, &[]).await;
        assert!(!fleet.nodes[0].sharing().unwrap().is_degraded);
        for rule in ["lent", "log"] {
            assert_eq!(fleet.left(0, rule, &root()).await, 40, "{rule}");
        }
    });
}

/// Nobody has waited in vain yet when it is left alone.
#[test]
fn a_store_that_answers_slowly_is_left_alone_before_callers_wait_in_vain() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 4000/h, consistency: strict }]";
        let fleet = Fleet::new(1, rules);
        let health = fleet.nodes[0].health().unwrap();
        let takes = |millis| fleet.shop.takes.store(millis, Ordering::Relaxed);
        takes(20);
        assert_eq!(fleet.passing(&root(), 50).await, 50);
        assert_eq!(*health.borrow(), Health::Well, "that is in time");

        takes(30);
        assert_eq!(fleet.passing(&root(), 5).await, 5);
        let is_late = |health: &Health| matches!(health, Health::Degraded { reason } if reason.contains("took 30ms"));
        assert!(is_late(&health.borrow()), "{:?}", health.borrow());
        let stats = fleet.nodes[0].sharing().unwrap();
        assert_eq!((stats.asked, stats.failures, stats.degraded), (55, 0, 0));
        assert_eq!((stats.late, stats.times_degraded), (5, 1), "it is seen why");
        assert_eq!(goes_on(&fleet, &[root()]).await, 1);
        assert!(is_late(&health.borrow()), "it still is: {:?}", health.borrow());

        takes(20);
        assert_eq!(goes_on(&fleet, &[root()]).await, 1);
        assert_eq!(*health.borrow(), Health::Well);
    });
}

/// Puts other rules in force at the only node.
fn exchange(fleet: &Fleet, rules: &str) {
    fleet.nodes[0].exchange(RuleSet::parse(rules).unwrap()).unwrap();
}

/// A node that leaves its store alone because the server of one key is gone.
async fn left_alone(rules: &str) -> Fleet {
    let fleet = Fleet::new(1, rules);
    fleet.shop.refuse(partly_gone);
    for _ in 0..5 {
        fleet.passes(0, &Request::new("GET", "/gone")).await;
    }
    assert!(fleet.nodes[0].sharing().unwrap().is_degraded);
    fleet
}

#[test]
fn a_question_that_no_rule_asks_any_more_keeps_nobody_from_the_store() {
    run(async {
        let here = Request::new("GET", "/here");
        let of = |rule: &str| format!("rules: [{{ {rule}, on_store_failure: deny }}]");
        let a = "name: a, key: [path], limit: 4000/h";
        let changes = [
            ("its limit changes", of("name: a, key: [path], limit: 5000/h")),
            ("it goes", of("name: b, key: [method], limit: 4000/h")),
            ("it goes, and another counts slots", of("name: b, key: [method], concurrent: 5")),
            ("it counts by something else", of("name: a, key: [method], limit: 4000/h")),
            ("it is switched off", format!("rules: [{{ {a}, mode: off }}]")),
            ("it is not shared any more", of(&format!("{a}, consistency: local"))),
        ];
        for (what, rules) in &changes {
            for requests in [&[here][..], &[]] {
                let fleet = left_alone(&of(a)).await;
                exchange(&fleet, rules);
                assert_eq!(goes_on(&fleet, requests).await, 1, "{what}");
                assert!(!fleet.nodes[0].sharing().unwrap().is_degraded, "{what}");
                assert!(fleet.passes(0, &here).await, "{what}");
            }
        }
    });
}

/// Whoever asks meanwhile has another question.
#[test]
fn other_rules_do_not_make_a_store_well() {
    run(async {
        let rules = [
            "rules: [{ name: a, key: [], limit: 4000/h, on_store_failure: deny }]",
            "rules: [{ name: b, key: [], limit: 4000/h, on_store_failure: deny }]",
            "rules: [{ name: c, key: [], concurrent: 5, on_store_failure: deny }]",
            "rules: [{ name: a, key: [path], limit: 4000/h, on_store_failure: deny }]",
        ];
        let fleet = Fleet::new(1, rules[0]);
        fleet.shop.refuse(full);
        for rules in rules {
            exchange(&fleet, rules);
            assert_eq!(goes_on(&fleet, &[root()]).await, 1, "{rules}");
            assert!(fleet.nodes[0].sharing().unwrap().is_degraded, "{rules}");
        }
        // The one that is asked now is gone, and the others were not.
        fleet.shop.refuse(partly_gone);
        exchange(&fleet, rules[0]);
        exchange(&fleet, rules[3]);
        assert_eq!(goes_on(&fleet, &[Request::new("GET", "/gone")]).await, 1);
        assert!(fleet.nodes[0].sharing().unwrap().is_degraded);
        fleet.shop.refuse(|_| None);
        assert_eq!(goes_on(&fleet, &[root()]).await, 1);
        assert!(!fleet.nodes[0].sharing().unwrap().is_degraded);
    });
}

/// What was lent of a limit is returned for a while after nobody asks about it any more.
#[test]
fn failures_that_no_rule_asks_for_do_not_count() {
    run(async {
        let rule = |name: &str| {
            let limit = "limit: 4000/h, on_store_failure: deny";
            format!("rules: [{{ name: {name}, key: [path], {limit} }}]")
        };
        let fleet = Fleet::new(1, &rule("a"));
        assert_eq!(fleet.passing(&Request::new("GET", "/gone"), 40).await, 40);
        assert!(fleet.nodes[0].sharing().unwrap().keys > 0, "it is lent");
        exchange(&fleet, &rule("b"));
        fleet.shop.refuse(partly_gone);
        assert_eq!(goes_on(&fleet, &[]).await, 0);
        let stats = fleet.nodes[0].sharing().unwrap();
        assert!(stats.failures >= 5, "{stats:?}");
    });
}

#[test]
fn a_debt_of_a_limit_that_has_changed_is_paid_when_it_can_be_and_waited_for_by_nobody() {
    run(async {
        let rule = |limit: &str| {
            format!("rules: [{{ name: a, key: [path], limit: {limit}, on_store_failure: allow }}]")
        };
        let fleet = left_alone(&rule("40/day")).await;
        let gone = Request::new("GET", "/gone");
        assert_eq!(fleet.passing(&gone, 25).await, 25);
        exchange(&fleet, &rule("50/day"));
        assert_eq!(goes_on(&fleet, &[root()]).await, 1);
        assert!(!fleet.nodes[0].sharing().unwrap().is_degraded);
        fleet.shop.refuse(|_| None);
        fleet.pass(Duration::from_secs(1)).await;
        assert_eq!(fleet.left(0, "a", &gone).await, 20, "it was told of thirty");
        assert_eq!(fleet.nodes[0].sharing().unwrap().unpaid, 0);
    });
}

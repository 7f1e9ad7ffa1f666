//! Requests under way, and how they end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tollgate::{Outcome, Request, SharingConfig};

use crate::{Fleet, root, run, settle};

#[test]
fn an_outcome_that_does_not_count_is_given_back_to_the_store() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 3/h, count_if: response.status == 401 }]";
        let fleet = Fleet::new(2, rules);
        let outcome = |status| Outcome { status: Some(status), headers: &[] };
        for at in 0..20 {
            let node = &fleet.nodes[at % 2];
            let ruling = node.decide_waiting(&root()).await;
            assert!(ruling.is_allowed(), "{at}");
            node.report(ruling, &root(), &outcome(200));
            settle().await;
        }
        for at in 0..3 {
            let node = &fleet.nodes[at % 2];
            node.report(node.decide_waiting(&root()).await, &root(), &outcome(401));
        }
        assert!(!fleet.passes(0, &root()).await);
    });
}

#[test]
fn no_more_are_under_way_at_once_than_there_are_slots_over_all_nodes() {
    run(async {
        let fleet = Fleet::new(3, "rules: [{ name: a, key: [], concurrent: 5 }]");
        let mut held = Vec::new();
        for at in 0..30 {
            let ruling = fleet.nodes[at % 3].decide_waiting(&root()).await;
            if ruling.is_allowed() {
                held.push(ruling);
            }
            fleet.pass(Duration::from_millis(30)).await;
        }
        assert_eq!(held.len(), 5);
        held.truncate(3);
        for _ in 0..20 {
            fleet.pass(Duration::from_millis(50)).await;
        }
        let mut more = 0;
        for at in 0..30 {
            let ruling = fleet.nodes[at % 3].decide_waiting(&root()).await;
            if ruling.is_allowed() {
                more += 1;
                held.push(ruling);
            }
            fleet.pass(Duration::from_millis(30)).await;
        }
        assert_eq!(more, 2);
    });
}

#[test]
fn a_refund_reaches_the_store() {
    run(async {
        let fleet =
            Fleet::new(1, "rules: [{ name: a, key: [], limit: 10/h, algorithm: fixed_window }]");
        let request = Request::new("POST", "/v1/completions");
        assert!(fleet.passes(0, &request.cost(8)).await);
        fleet.nodes[0].refund(&request.cost(5));
        settle().await;
        assert_eq!(fleet.left(0, "a", &request).await, 7);
    });
}

/// What passed meanwhile is paid with what comes back.
#[test]
fn a_refund_waits_for_a_store_that_is_gone() {
    run(async {
        for (policy, left) in [("deny", 7), ("allow", 0)] {
            let fleet = Fleet::new(
                1,
                &format!(
                    "rules: [{{ name: a, key: [], limit: 10/h, algorithm: fixed_window, \
                     on_store_failure: {policy} }}]"
                ),
            );
            let request = Request::new("POST", "/v1/completions");
            assert!(fleet.passes(0, &request.cost(8)).await);
            fleet.shop.go();
            let passing = fleet.passing(&request, 10).await;
            assert_eq!(passing, if policy == "allow" { 10 } else { 0 });
            assert!(fleet.nodes[0].sharing().unwrap().is_degraded);
            fleet.nodes[0].refund(&request.cost(5));
            fleet.pass(Duration::from_secs(1)).await;
            fleet.shop.come_back();
            for _ in 0..10 {
                fleet.pass(Duration::from_millis(100)).await;
            }
            assert_eq!(fleet.left(0, "a", &request).await, left, "{policy}");
        }
    });
}

#[test]
fn what_has_passed_already_is_charged_in_the_store() {
    run(async {
        let rules = "rules:
  - { name: lent, key: [], limit: 100/day }
  - { name: strict, key: [], limit: 50/day, consistency: strict }
  - { name: here, key: [], limit: 40/day, consistency: local }
  - { name: slots, key: [], concurrent: 1 }";
        let fleet = Fleet::new(2, rules);
        let charge = async || {
            fleet.nodes[0].charge(&root().cost(30));
            for _ in 0..3 {
                fleet.pass(Duration::from_millis(100)).await;
            }
        };
        let left =
            async || (fleet.left(1, "lent", &root()).await, fleet.left(1, "strict", &root()).await);
        charge().await;
        assert_eq!(left().await, (70, 20));
        assert_eq!(fleet.left(0, "here", &root()).await, 10);
        charge().await;
        assert_eq!(left().await, (40, 0), "as far as there is something left");
        assert_eq!(fleet.left(0, "here", &root()).await, 0);
        let stats = fleet.nodes[0].sharing().unwrap();
        assert_eq!((stats.degraded, stats.unpaid), (0, 0));
    });
}

#[test]
fn a_refund_that_pays_for_what_could_not_be_paid_asks_nothing() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 10/day, consistency: strict }]";
        let fleet = Fleet::new(1, rules);
        assert!(fleet.passes(0, &root().cost(10)).await);
        fleet.nodes[0].charge(&root().cost(3));
        for _ in 0..3 {
            fleet.pass(Duration::from_millis(100)).await;
        }
        let asked = || fleet.shop.asked.load(Ordering::Relaxed);
        let before = asked();
        fleet.nodes[0].refund(&root().cost(2));
        settle().await;
        assert_eq!(asked(), before);
        fleet.nodes[0].refund(&root().cost(2));
        settle().await;
        assert_eq!(asked(), before + 1);
        assert_eq!(fleet.left(0, "a", &root()).await, 1);
    });
}

#[test]
fn what_is_being_paid_when_the_store_panics_is_still_owed() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 10/day, consistency: strict }]";
        let fleet = Fleet::new(1, rules);
        for panics_at_look in [true, false] {
            fleet.nodes[0].charge(&root().cost(3));
            match panics_at_look {
                true => fleet.shop.refuse(|_| panic!("as it should")),
                false => fleet.shop.refuse(|ask| match ask.exchange().is_look() {
                    true => None,
                    false => panic!("as it should"),
                }),
            }
            fleet.pass(Duration::from_millis(100)).await;
            fleet.shop.refuse(|_| None);
            for _ in 0..3 {
                fleet.pass(Duration::from_millis(100)).await;
            }
        }
        assert_eq!(fleet.left(0, "a", &root()).await, 4);
    });
}

#[test]
fn permits_that_find_no_place_are_denied_and_rates_are_decided_by_the_store() {
    run(async {
        let rules = "rules:
  - { name: slots, match: { path: /slots/** }, key: [path], concurrent: 2 }
  - { name: rate, match: { path: /rate/** }, key: [path], limit: 20/day }";
        let few = SharingConfig { keys: 1, ..Default::default() };
        let fleet = Fleet::with(1, rules, &few);
        let paths: Vec<_> = (0..20).map(|at| format!("/slots/{at}")).collect();
        let mut held = Vec::new();
        for path in &paths {
            let ruling = fleet.nodes[0].decide_waiting(&Request::new("GET", path)).await;
            held.extend(Some(ruling).filter(|ruling| ruling.is_allowed()));
        }
        let places = fleet.nodes[0].sharing().unwrap().keys;
        assert_eq!((held.len(), places), (8, 8), "there are eight places");
        let last = Request::new("GET", &paths[19]);
        assert_eq!(fleet.passing_at_once(0, &[last; 3]).await, 0);
        assert_eq!(fleet.passing(&Request::new("GET", "/rate/a"), 15).await, 15);
        assert_eq!(fleet.passing_at_once(0, &[Request::new("GET", "/rate/a"); 15]).await, 5);

        held.clear();
        for _ in 0..60 {
            fleet.pass(Duration::from_millis(100)).await;
        }
        assert!(fleet.passes(0, &last).await, "the others went cold");
    });
}

/// Whoever embeds an engine may have a runtime for each of its threads.
#[test]
fn who_waits_for_somebody_whose_runtime_ends_asks_for_himself() {
    run(async {
        let fleet = Fleet::new(1, "rules: [{ name: a, key: [], concurrent: 10 }]");
        let Fleet { nodes, shop, .. } = fleet;
        let engine = Arc::new(nodes);
        shop.is_slow.store(true, Ordering::Relaxed);
        let asked = || shop.asked.load(Ordering::Relaxed);

        let (has_asked, told) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let theirs = Arc::clone(&engine);
        let other = thread::spawn(move || {
            run(async {
                let wait = theirs[0].try_decide(&root()).expect_err("the store has to be asked");
                tokio::spawn(wait.fetch());
                settle().await;
                has_asked.send(()).unwrap();
                ends.recv().expect_err("nothing is sent");
            });
        });
        told.recv().unwrap();
        let patient = tokio::spawn(async move { engine[0].decide_waiting(&root()).await });
        settle().await;
        assert_eq!(asked(), 1, "it waits for the other one");
        drop(end);
        other.join().unwrap();
        settle().await;
        assert_eq!(asked(), 2, "of the first answer nobody hears");
        shop.handed_over.notify_waiters();
        assert!(patient.await.unwrap().is_allowed());
    });
}

//! What happens while the store is gone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate::{Health, RuleSet};

use crate::{Fleet, root, run};

fn rule(policy: &str) -> String {
    format!("rules: [{{ name: a, key: [], limit: 40/day, on_store_failure: {policy} }}]")
}

/// Lets a fleet find out that its store is gone.
async fn find_out(fleet: &Fleet) {
    fleet.shop.go();
    for node in 0..fleet.nodes.len() {
        for _ in 0..5 {
            fleet.passes(node, &root()).await;
        }
        assert!(fleet.nodes[node].sharing().unwrap().is_degraded);
    }
}

#[test]
fn allow_lets_everything_pass_and_deny_nothing() {
    run(async {
        for (policy, passing) in [("allow", 100), ("deny", 0)] {
            let fleet = Fleet::new(2, &rule(policy));
            find_out(&fleet).await;
            assert_eq!(fleet.passing(&root(), 100).await, passing, "{policy}");
            let stats = fleet.nodes[0].sharing().unwrap();
            assert_eq!(stats.times_degraded, 1);
            assert_eq!(stats.exchanges, 5, "once it is known, nobody asks");
        }
    });
}

#[test]
fn local_goes_on_with_this_nodes_share_less_what_it_let_pass_before() {
    run(async {
        let fleet = Fleet::new(2, &rule("local"));
        for _ in 0..8 {
            assert!(fleet.passes(0, &root()).await);
        }
        fleet.shop.go();
        let of = async |node| {
            let mut passed = 0;
            for _ in 0..60 {
                passed += usize::from(fleet.passes(node, &root()).await);
            }
            passed
        };
        assert_eq!((of(0).await, of(1).await), (12, 20), "half of forty each");
    });
}

#[test]
fn a_rule_can_have_a_share_of_its_own() {
    run(async {
        for (share, passing) in [("20%", 8), ("100%", 40), ("1%", 1)] {
            let fleet = Fleet::new(2, &rule(&format!("local {share}")));
            find_out(&fleet).await;
            let found_out = passing.min(5);
            let of = async |node| {
                let mut passed = found_out;
                for _ in 0..60 {
                    passed += usize::from(fleet.passes(node, &root()).await);
                }
                passed
            };
            assert_eq!((of(0).await, of(1).await), (passing, passing), "{share} of forty");
        }
    });
}

#[test]
fn a_share_that_changes_holds_at_once() {
    run(async {
        let fleet = Fleet::new(1, &rule("local 10%"));
        assert!(fleet.passes(0, &root()).await);
        let rules = RuleSet::parse(&rule("local 50%")).unwrap();
        fleet.nodes[0].exchange(rules).unwrap();
        fleet.shop.go();
        // One has passed that was a quarter of what there was.
        assert_eq!(fleet.passing(&root(), 60).await, 15, "of twenty");
    });
}

#[test]
fn permits_have_the_share_of_their_rule() {
    run(async {
        for (policy, most) in [("local 20%", 2), ("local", 5)] {
            let fleet = Fleet::new(
                1,
                &format!(
                    "rules: [{{ name: a, key: [], concurrent: 10, on_store_failure: {policy} }}]"
                ),
            );
            fleet.shop.go();
            let mut held = Vec::new();
            for _ in 0..20 {
                held.push(fleet.nodes[0].decide_waiting(&root()).await);
            }
            let out = held.iter().filter(|ruling| ruling.is_allowed()).count();
            assert_eq!(out, most, "{policy}");
        }
    });
}

#[test]
fn what_passed_meanwhile_is_paid_before_the_store_is_asked_again() {
    run(async {
        let fleet = Fleet::new(1, &rule("allow"));
        let health = fleet.nodes[0].health().unwrap();
        find_out(&fleet).await;
        assert!(
            matches!(&*health.borrow(), Health::Degraded { reason } if reason.contains("loading"))
        );
        assert_eq!(fleet.passing(&root(), 25).await, 25);
        fleet.shop.come_back();
        for _ in 0..10 {
            fleet.pass(Duration::from_millis(100)).await;
        }
        assert_eq!(*health.borrow(), Health::Well);
        let mut passed = 0;
        for _ in 0..60 {
            passed += fleet.passing(&root(), 1).await;
            fleet.pass(Duration::from_millis(500)).await;
        }
        assert_eq!(passed, 10, "five and 25 of forty had passed");
    });
}

#[test]
fn one_answer_that_is_missing_changes_nothing_for_others() {
    run(async {
        let fleet = Fleet::new(1, &rule("deny"));
        fleet.shop.go();
        assert!(!fleet.passes(0, &root()).await);
        fleet.shop.come_back();
        assert!(fleet.passes(0, &root()).await);
        let stats = fleet.nodes[0].sharing().unwrap();
        assert_eq!((stats.failures, stats.degraded, stats.times_degraded), (1, 1, 0));
    });
}

#[test]
fn a_question_that_had_no_time_says_nothing_of_the_store() {
    run(async {
        let fleet = Fleet::new(1, &rule("deny"));
        let engine = &fleet.nodes[0];
        fleet.shop.is_slow.store(true, Ordering::Relaxed);
        for (waited, failures, is_degraded) in [(49, 0, false), (20, 5, true)] {
            for _ in 0..5 {
                let wait = engine.try_decide(&root()).expect_err("nothing is here");
                let since = wait.since();
                fleet.clock.advance(Duration::from_millis(waited));
                wait.fetch().await;
                fleet.clock.advance(Duration::from_millis(50 - waited));
                let ruling = engine.try_decide_again(&root(), since);
                assert!(!ruling.expect("its time is over").is_allowed());
            }
            let stats = engine.sharing().unwrap();
            assert_eq!((stats.failures, stats.is_degraded), (failures, is_degraded), "{waited} ms");
        }
    });
}

#[test]
fn what_is_lent_is_spent_while_the_store_is_gone_until_it_ends() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 6000/min, on_store_failure: deny }]";
        let fleet = Fleet::new(1, rules);
        for _ in 0..200 {
            assert!(fleet.passes(0, &root()).await);
            fleet.pass(Duration::from_millis(2)).await;
        }
        fleet.shop.go();
        let before = fleet.nodes[0].sharing().unwrap();
        assert!(fleet.passes(0, &root()).await, "it holds some");
        let after = fleet.nodes[0].sharing().unwrap();
        assert_eq!((after.asked, after.degraded), (before.asked, 0));
        fleet.pass(Duration::from_secs(60)).await;
        for _ in 0..10 {
            assert!(!fleet.passes(0, &root()).await, "the lease has ended");
        }
    });
}

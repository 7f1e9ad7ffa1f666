//! Limits hold over all nodes, whoever decides.

use std::time::Duration;

use tollgate::{Request, RuleSet, SharingConfig};

use crate::{Fleet, root, run};

#[test]
fn a_strict_limit_lets_exactly_so_many_pass_over_all_nodes() {
    run(async {
        let fleet = Fleet::new(
            3,
            "rules: [{ name: a, key: [], limit: 100/h, algorithm: fixed_window, consistency: strict }]",
        );
        assert_eq!(fleet.passing(&root(), 250).await, 100);
        let asked: u64 = fleet.nodes.iter().map(|node| node.sharing().unwrap().asked).sum();
        assert_eq!(asked, 250, "the store decided all of them");
        fleet.pass(Duration::from_secs(3_600)).await;
        assert_eq!(fleet.passing(&root(), 250).await, 100);
    });
}

#[test]
fn a_limit_too_small_to_be_lent_is_exact_as_well() {
    run(async {
        let fleet = Fleet::new(3, "rules: [{ name: a, key: [], limit: 5/min }]");
        assert_eq!(fleet.passing(&root(), 30).await, 5);
        fleet.pass(Duration::from_secs(12)).await;
        assert_eq!(fleet.passing(&root(), 30).await, 1);
    });
}

#[test]
fn a_hot_key_is_decided_without_the_store_and_never_passes_its_limit() {
    run(async {
        let fleet = Fleet::new(5, "rules: [{ name: a, key: [], limit: 12k/min }]");
        let (seconds, mut passed) = (10, 0);
        for _ in 0..seconds * 1_000 {
            passed += fleet.passing(&root(), 10).await;
            fleet.pass(Duration::from_millis(1)).await;
        }
        let ideal = 12_000 + 200 * seconds;
        assert!(passed <= ideal, "{passed} of {ideal}");
        assert!(passed * 1_000 >= ideal * 999, "{passed} of {ideal}");
        // What is spent is counted when it is booked.
        fleet.pass(Duration::from_secs(1)).await;
        let stats: Vec<_> = fleet.nodes.iter().map(|node| node.sharing().unwrap()).collect();
        let asked: u64 = stats.iter().map(|stats| stats.asked).sum();
        let here: u64 = stats.iter().map(|stats| stats.lent + stats.short).sum();
        assert_eq!(asked + here, 100_000, "{stats:?}");
        assert!(asked * 100 <= here, "{asked} asked, {here} decided here");
    });
}

#[test]
fn a_request_that_is_denied_by_one_of_several_rules_is_counted_once() {
    run(async {
        // Of one that is not lent the denial is known, and of the other one there is nothing in the purse.
        for limit in ["5/h", "600/h"] {
            let rules = format!(
                "rules: [{{ name: a, key: [], limit: 60k/min }}, \
                 {{ name: b, key: [], match: {{ path: /b }}, limit: {limit} }}]"
            );
            let fleet = Fleet::new(1, &rules);
            for _ in 0..50 {
                assert!(fleet.passes(0, &root()).await);
                fleet.pass(Duration::from_millis(1)).await;
            }
            let both = Request::new("GET", "/b");
            while fleet.passes(0, &both).await {}
            let stats = async || {
                // What lies here is booked when it is looked at.
                let _ = fleet.nodes[0].inspect_waiting(&both).await;
                fleet.nodes[0].sharing().unwrap()
            };
            let before = stats().await;
            let denied = || fleet.nodes[0].try_decide(&both).is_ok_and(|it| !it.is_allowed());
            assert_eq!((0..20).filter(|_| denied()).count(), 20, "{limit}: nobody has to be asked");
            let after = stats().await;
            assert_eq!(after.short - before.short, 20, "{limit}: {before:?}, {after:?}");
        }
    });
}

#[test]
fn a_key_seen_once_is_not_lent_to_and_a_cold_one_gives_its_place_back() {
    run(async {
        let fleet = Fleet::new(1, "rules: [{ name: a, key: [user], limit: 6000/min }]");
        let of = |user| [("user", user)];
        let (alice, bob) = (of("alice"), of("bob"));
        assert!(fleet.passes(0, &root().attributes(&bob)).await);
        assert_eq!(fleet.nodes[0].sharing().unwrap().keys, 0);
        for _ in 0..100 {
            assert!(fleet.passes(0, &root().attributes(&alice)).await);
            fleet.pass(Duration::from_millis(1)).await;
        }
        assert_eq!(fleet.nodes[0].sharing().unwrap().keys, 1);
        for _ in 0..600 {
            fleet.pass(Duration::from_millis(100)).await;
        }
        assert_eq!(fleet.nodes[0].sharing().unwrap().keys, 0, "nothing is held any more");
        assert_eq!(fleet.left(0, "a", &root().attributes(&alice)).await, 6_000, "all came back");
    });
}

#[test]
fn a_local_rule_is_each_nodes_own() {
    run(async {
        let fleet = Fleet::new(3, "rules: [{ name: a, key: [], limit: 5/h, consistency: local }]");
        assert_eq!(fleet.passing(&root(), 60).await, 15);
        assert_eq!(fleet.nodes[0].sharing().unwrap().exchanges, 0);
    });
}

#[test]
fn keys_of_any_text_are_counted_apart() {
    run(async {
        let rules = "rules: [{ name: a, key: [user, descriptor.plan], limit: 1/h }]";
        let fleet = Fleet::new(2, rules);
        let pairs = [("a,plan=b", "c"), ("a", "b,plan=c"), ("a%2C", "b"), ("a,", "b"), ("a%", "b")];
        for (user, plan) in pairs {
            let attributes = [("user", user), ("descriptor.plan", plan)];
            let request = root().attributes(&attributes);
            assert_eq!(fleet.passing(&request, 4).await, 1, "{user:?} {plan:?}");
        }
    });
}

#[test]
fn nobody_is_called_what_those_without_a_name_are_called() {
    run(async {
        for key in ["[user]", "[user, method]"] {
            let rules = format!(
                "rules: [{{ name: a, key: {key}, key_missing: {{ together: anonymous }}, limit: 1/h }}]"
            );
            let fleet = Fleet::new(2, &rules);
            assert_eq!(fleet.passing(&root(), 4).await, 1, "{key}");
            for user in ["(anonymous)", "%28anonymous)", "%2528anonymous)", "anonymous"] {
                let attributes = [("user", user)];
                let request = root().attributes(&attributes);
                assert_eq!(fleet.passing(&request, 4).await, 1, "{key} {user}");
            }
        }
    });
}

#[test]
fn namespaces_are_counted_apart_whatever_they_and_their_rules_are_called() {
    run(async {
        let names = [("a/b", "c"), ("a", "b/c"), ("a/b/c", "c"), ("a", "c")];
        let mut fleet = Fleet::new(0, "rules: []");
        for (namespace, rule) in names {
            let rules =
                format!("namespace: {namespace}\nrules: [{{ name: {rule}, key: [], limit: 5/h }}]");
            fleet.add(&rules, &SharingConfig::default());
        }
        for (node, names) in names.iter().enumerate() {
            let mut passed = 0;
            for _ in 0..10 {
                passed += usize::from(fleet.passes(node, &root()).await);
            }
            assert_eq!(passed, 5, "{names:?}");
        }
    });
}

#[test]
fn rules_are_exchanged_and_what_is_shared_goes_on() {
    run(async {
        let fleet = Fleet::new(2, "rules: [{ name: a, key: [], limit: 50/day }]");
        assert_eq!(fleet.passing(&root(), 40).await, 40);
        for node in &fleet.nodes {
            let rules = "rules: [{ name: b, match: { path: /b }, key: [], limit: 5/h }, { name: a, key: [], limit: 50/day }]";
            node.exchange(RuleSet::parse(rules).unwrap()).unwrap();
        }
        let mut passed = 0;
        for _ in 0..600 {
            passed += fleet.passing(&root(), 2).await;
            fleet.pass(Duration::from_millis(100)).await;
        }
        assert_eq!(passed, 10);
        assert_eq!(fleet.passing(&Request::new("GET", "/b"), 40).await, 0);
    });
}

#[test]
fn a_key_that_pauses_and_comes_back_is_lent_to_again() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 6000/min, on_store_failure: deny }]";
        let fleet = Fleet::new(1, rules);
        for _ in 0..3 {
            // Longer than a lease, then long enough for everything to be given back.
            for _ in 0..4_000 {
                assert!(fleet.passes(0, &root()).await);
                fleet.pass(Duration::from_millis(10)).await;
            }
            for _ in 0..20 {
                fleet.pass(Duration::from_millis(100)).await;
            }
        }
        let stats = fleet.nodes[0].sharing().unwrap();
        assert_eq!((stats.failures, stats.degraded), (0, 0), "{stats:?}");
    });
}

#[test]
fn what_has_no_limit_asks_nobody() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: unlimited, on_store_failure: deny }]";
        let fleet = Fleet::new(1, rules);
        fleet.shop.go();
        assert_eq!(fleet.passing(&root(), 50).await, 50);
        assert_eq!(fleet.nodes[0].sharing().unwrap().exchanges, 0);
    });
}

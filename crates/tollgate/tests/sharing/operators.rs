//! What operators see of single keys, and do about them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate::{KeyState, NewStart, Request, SharingConfig, ToldBy};

use crate::{Fleet, root, run, settle};

const PER_HOUR: &str = "rules: [{ name: a, key: [user], limit: 40/h }]";

fn alice() -> Request<'static> {
    Request::new("GET", "/").attributes(&[("user", "alice")])
}

async fn inspect(fleet: &Fleet, node: usize, request: &Request<'_>) -> Vec<KeyState> {
    fleet.nodes[node].inspect_waiting(request).await
}

async fn reset(fleet: &Fleet, node: usize, request: &Request<'_>) -> NewStart {
    fleet.nodes[node].reset_waiting(request, None).unwrap().await
}

#[test]
fn every_node_says_what_all_of_them_let_pass() {
    run(async {
        let fleet = Fleet::new(3, PER_HOUR);
        assert_eq!(fleet.passing(&alice(), 9).await, 9);
        for node in 0..3 {
            let states = inspect(&fleet, node, &alice()).await;
            let [state] = &states[..] else { panic!("{states:?}") };
            assert!(matches!(state.told_by, ToldBy::Store { .. }), "{state:?}");
            // What is lent counts as used.
            assert!((9..40).contains(&state.used()), "{state:?}");
            let here = &fleet.nodes[node].inspect(&alice())[0];
            assert!((1..=3).contains(&here.used()), "its own: {here:?}");
            assert_eq!(here.told_by, ToldBy::Node);
        }
        let bob = Request::new("GET", "/").attributes(&[("user", "bob")]);
        assert_eq!(inspect(&fleet, 0, &bob).await[0].used(), 0);
    });
}

#[test]
fn what_lies_with_a_node_is_told_and_can_be_spent() {
    run(async {
        let fleet = Fleet::new(1, "rules: [{ name: a, key: [], limit: 6000/min }]");
        for _ in 0..200 {
            assert!(fleet.passes(0, &root()).await);
            fleet.pass(Duration::from_millis(2)).await;
        }
        let state = &inspect(&fleet, 0, &root()).await[0];
        let ToldBy::Store { lent_here } = state.told_by else { panic!("{state:?}") };
        assert!(lent_here > 0 && lent_here <= state.used(), "{state:?}");
        assert!(state.decision.is_allowed());
        let asked = fleet.nodes[0].sharing().unwrap().asked;
        for _ in 0..lent_here {
            assert!(fleet.passes(0, &root()).await, "to look at it took nothing away");
        }
        assert_eq!(fleet.nodes[0].sharing().unwrap().asked, asked);
    });
}

#[test]
fn a_store_that_is_gone_is_named_and_the_node_says_what_it_knows() {
    run(async {
        let fleet = Fleet::new(2, PER_HOUR);
        assert_eq!(fleet.passing(&alice(), 8).await, 8);
        fleet.shop.go();
        for _ in 0..8 {
            let state = &inspect(&fleet, 0, &alice()).await[0];
            assert!(
                matches!(&state.told_by, ToldBy::NodeAlone { reason, .. } if reason.contains("loading"))
            );
            // What it has told the store, and not yet what it passed since from what was lent.
            assert!((1..=4).contains(&state.used()), "its own: {state:?}");
        }
        let stats = fleet.nodes[0].sharing().unwrap();
        assert!(stats.is_degraded && stats.failures == 5, "it is left alone then: {stats:?}");
    });
}

/// While the store is gone limits are not in force, and what is said of a key is what happens to it.
#[test]
fn what_is_said_without_a_store_is_what_requests_get() {
    run(async {
        let limits = [
            "limit: 40/h",
            "limit: 40/h, consistency: strict",
            "limit: 40/h, algorithm: fixed_window",
            "limit: 40/h, algorithm: sliding_log",
            "concurrent: 40",
        ];
        for (limit, policy) in
            limits.iter().flat_map(|limit| ["allow", "deny", "local 20%"].map(|it| (limit, it)))
        {
            let what = format!("{limit}, {policy}");
            let rule = format!("name: a, key: [user], {limit}, on_store_failure: {policy}");
            let fleet = Fleet::new(1, &format!("rules: [{{ {rule} }}]"));
            let mut held = Vec::new();
            for _ in 0..3 {
                held.push(fleet.nodes[0].decide_waiting(&alice()).await);
            }
            fleet.shop.go();
            let bob = Request::new("GET", "/").attributes(&[("user", "bob")]);
            for _ in 0..5 {
                fleet.passes(0, &bob).await;
            }
            assert!(fleet.nodes[0].sharing().unwrap().is_degraded, "{what}");
            for _ in 0..45 {
                let state = &inspect(&fleet, 0, &alice()).await[0];
                let ToldBy::NodeAlone { policy: said, lent_here, .. } = &state.told_by else {
                    panic!("{what}: {state:?}")
                };
                assert_eq!(said.to_string(), policy, "{what}");
                let (most, left) = (state.decision.limit(), state.decision.remaining());
                match policy {
                    "deny" => assert_eq!((most, left), (0, 0), "{what}"),
                    "allow" => assert!(most == u64::MAX || *limit == "concurrent: 40", "{what}"),
                    _ => assert_eq!(most, 8, "{what}: a fifth of forty"),
                }
                let is_left = left > 0 || *lent_here > 0;
                assert_eq!(state.decision.is_allowed(), is_left, "{what}: {state:?}");
                let ruling = fleet.nodes[0].decide_waiting(&alice()).await;
                assert_eq!(ruling.is_allowed(), is_left, "{what}: {state:?}");
                held.push(ruling);
            }
        }
    });
}

#[test]
fn tiers_that_only_the_store_knows_of_are_found() {
    run(async {
        let rules = "tiers: { from: claims.plan, known: [free, pro], else: free }\n\
                     rules: [{ name: a, key: [user], limit: { free: 5/h, pro: 50/h } }]";
        let fleet = Fleet::new(2, rules);
        let pro = [("user", "alice"), ("claims.plan", "pro")];
        let pro = Request::new("GET", "/").attributes(&pro);
        assert!(fleet.passes(0, &pro).await);
        let states = inspect(&fleet, 1, &alice()).await;
        let limits: Vec<_> =
            states.iter().map(|state| (state.decision.limit(), state.used())).collect();
        assert_eq!(limits, [(5, 0), (50, 1)]);
        assert_eq!(inspect(&fleet, 1, &pro).await.len(), 1);
        assert_eq!(reset(&fleet, 1, &alice()).await.counters, 1);
        assert_eq!(inspect(&fleet, 0, &pro).await[0].used(), 0);
    });
}

#[test]
fn a_key_that_is_reset_begins_anew_everywhere() {
    run(async {
        for more in ["", ", consistency: strict", ", algorithm: sliding_log"] {
            let rules = format!("rules: [{{ name: a, key: [user], limit: 40/h{more} }}]");
            let fleet = Fleet::new(2, &rules);
            assert_eq!(fleet.passing(&alice(), 100).await, 40);
            let start = reset(&fleet, 0, &alice()).await;
            assert_eq!((start.counters, &start.failure), (1, &None), "{more}");
            assert_eq!(start.leases_end_in.is_some(), more.is_empty(), "{more}: {start:?}");
            assert_eq!(inspect(&fleet, 1, &alice()).await[0].used(), 0);
            // Nobody holds anything of a limit that was used up.
            fleet.pass(start.leases_end_in.unwrap_or_default()).await;
            let passed = fleet.passing(&alice(), 100).await;
            assert!((40..=41).contains(&passed), "{more}: {passed}");
        }
    });
}

#[test]
fn what_was_lent_to_the_node_is_dropped_and_what_others_hold_ends() {
    run(async {
        let fleet = Fleet::new(2, "rules: [{ name: a, key: [], limit: 6000/min }]");
        for _ in 0..200 {
            for node in 0..2 {
                assert!(fleet.passes(node, &root()).await);
            }
            fleet.pass(Duration::from_millis(2)).await;
        }
        let lent = async |node| match inspect(&fleet, node, &root()).await[0].told_by {
            ToldBy::Store { lent_here } => lent_here,
            ref other => panic!("{other:?}"),
        };
        assert!(lent(0).await > 0 && lent(1).await > 0);
        let start = reset(&fleet, 0, &root()).await;
        assert_eq!(lent(0).await, 0);
        assert!(lent(1).await > 0, "it has not heard of it");
        let hold = start.leases_end_in.unwrap();
        assert!(!hold.is_zero() && hold <= Duration::from_secs(60), "{hold:?}");
        fleet.pass(hold).await;
        assert_eq!(lent(1).await, 0);
    });
}

#[test]
fn nothing_is_reset_while_the_store_is_gone() {
    run(async {
        let fleet = Fleet::new(1, PER_HOUR);
        assert_eq!(fleet.passing(&alice(), 8).await, 8);
        fleet.shop.go();
        let start = reset(&fleet, 0, &alice()).await;
        assert_eq!(start.counters, 0);
        assert!(start.failure.is_some_and(|failure| failure.contains("loading")));
        assert!(fleet.nodes[0].inspect(&alice())[0].used() > 0);
        fleet.shop.come_back();
        assert!(inspect(&fleet, 0, &alice()).await[0].used() >= 8);
    });
}

#[test]
fn debts_of_a_key_that_is_reset_are_not_paid() {
    run(async {
        let rules = "rules: [{ name: a, key: [user], limit: 40/h, on_store_failure: allow }]";
        let fleet = Fleet::new(1, rules);
        fleet.shop.go();
        assert_eq!(fleet.passing(&alice(), 30).await, 30);
        fleet.shop.come_back();
        // Before the node has found out that the store is well.
        reset(&fleet, 0, &alice()).await;
        for _ in 0..10 {
            fleet.pass(Duration::from_millis(100)).await;
        }
        assert!(!fleet.nodes[0].sharing().unwrap().is_degraded);
        assert_eq!(inspect(&fleet, 0, &alice()).await[0].used(), 0);
    });
}

#[test]
fn slots_are_counted_for_all_nodes_and_not_reset() {
    run(async {
        let fleet = Fleet::new(2, "rules: [{ name: a, key: [], concurrent: 10 }]");
        let held = fleet.nodes[0].decide_waiting(&root()).await;
        assert!(held.is_allowed());
        for node in 0..2 {
            let state = &inspect(&fleet, node, &root()).await[0];
            assert!(state.used() >= 1 && state.decision.limit() == 10, "{state:?}");
        }
        assert_eq!(reset(&fleet, 0, &root()).await, NewStart::default());
        assert!(inspect(&fleet, 1, &root()).await[0].used() >= 1);
    });
}

#[test]
fn an_answer_from_before_a_reset_lends_nothing_after_it() {
    run(async {
        let rules = "rules: [{ name: a, key: [user], limit: 6000/min, on_store_failure: deny }]";
        let patient = SharingConfig { timeout: Duration::from_secs(60), ..Default::default() };
        let fleet = Fleet::with(1, rules, &patient);
        let (engine, shop) = (&fleet.nodes[0], &fleet.shop);
        shop.is_slow.store(true, Ordering::Relaxed);
        let fetch = |count| {
            let wait = engine.reserve(&vec![alice(); count], &[]).expect_err("nothing is lent");
            tokio::spawn(wait.fetch())
        };
        let before = fetch(3_000);
        settle().await;
        reset(&fleet, 0, &alice()).await;
        let after = fetch(10);
        settle().await;
        // The first is answered first, and then who wants to know when the reset was.
        shop.handed_over.notify_one();
        before.await.unwrap();
        for _ in 0..2 {
            shop.handed_over.notify_one();
            settle().await;
        }
        after.await.unwrap();
        let passes = || engine.try_decide(&alice()).is_ok_and(|ruling| ruling.is_allowed());
        assert_eq!((0..5_000).filter(|_| passes()).count(), 10);
    });
}

//! Those who wait for what somebody else has asked.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate::{Health, Request, SharingConfig, Tick, Wait};

use crate::{Fleet, root, run, settle};

/// A node that waits for a minute, and a key that comes often; what was lent to it is spent. From now on
/// the store fails, when it is told to.
async fn used_up(policy: &str) -> Fleet {
    let rules =
        format!("rules: [{{ name: a, key: [], limit: 60k/min, on_store_failure: {policy} }}]");
    let patient = SharingConfig { timeout: Duration::from_secs(60), ..Default::default() };
    let fleet = Fleet::with(1, &rules, &patient);
    for _ in 0..100 {
        assert!(fleet.passes(0, &root()).await);
        fleet.pass(Duration::from_millis(1)).await;
    }
    fleet.shop.go();
    fleet.shop.is_slow.store(true, Ordering::Relaxed);
    while fleet.nodes[0].try_decide(&root()).is_ok() {}
    fleet
}

/// Those who wait for the store, each in a task of its own.
async fn wait_for(fleet: &Fleet, requests: usize) -> (Tick, Vec<JoinHandle<()>>) {
    let wait = || -> Wait { fleet.nodes[0].try_decide(&root()).expect_err("nothing is here") };
    let waits: Vec<_> = (0..requests).map(|_| wait()).collect();
    let since = waits[0].since();
    let fetches = waits.into_iter().map(|wait| tokio::spawn(wait.fetch())).collect();
    settle().await;
    (since, fetches)
}

/// The store fails at what it was asked. All who wait know that at once, and nobody asks again.
async fn all_know(fleet: &Fleet, fetches: Vec<JoinHandle<()>>) {
    let asked = fleet.shop.asked.load(Ordering::Relaxed);
    fleet.shop.handed_over.notify_waiters();
    for fetch in fetches {
        let done = timeout(Duration::from_secs(20), fetch).await;
        done.expect("nobody waits for the timeout of a minute").unwrap();
    }
    assert_eq!(fleet.shop.asked.load(Ordering::Relaxed), asked);
}

fn asked(fleet: &Fleet) -> usize {
    fleet.shop.asked.load(Ordering::Relaxed)
}

#[test]
fn who_waits_for_a_question_that_fails_knows_at_once_and_does_not_ask() {
    run(async {
        for (policy, passes) in [("deny", false), ("allow", true)] {
            let fleet = used_up(policy).await;
            let before = asked(&fleet);
            let (since, fetches) = wait_for(&fleet, 50).await;
            assert_eq!(asked(&fleet), before + 1, "one asks for all");
            all_know(&fleet, fetches).await;
            for _ in 0..50 {
                let ruling = fleet.nodes[0].try_decide_again(&root(), since);
                assert_eq!(ruling.expect("its rule says it").is_allowed(), passes);
            }
            let stats = fleet.nodes[0].sharing().unwrap();
            assert_eq!((stats.failures, stats.degraded, stats.times_degraded), (1, 50, 0));
            // All of them for the reason for which the one question failed.
            let said = timeout(Duration::ZERO, fleet.nodes[0].lapse()).await.unwrap();
            assert!(said.decisions == 50 && said.reason.contains("loading"), "{said:?}");
        }
    });
}

/// After a long pause a question is about one request alone, and of no use to others.
#[test]
fn who_comes_with_the_first_after_a_pause_asks_at_once() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 60k/min }]";
        let fleet = Fleet::new(1, rules);
        for _ in 0..3 {
            assert!(fleet.passes(0, &root()).await);
            fleet.pass(Duration::from_secs(20)).await;
        }
        fleet.shop.is_slow.store(true, Ordering::Relaxed);
        let before = asked(&fleet);
        let (since, fetches) = wait_for(&fleet, 3).await;
        assert_eq!(asked(&fleet), before + 3, "each for itself");
        fleet.shop.handed_over.notify_waiters();
        for fetch in fetches {
            fetch.await.unwrap();
            let ruling = fleet.nodes[0].try_decide_again(&root(), since);
            assert!(ruling.expect("it was asked about").is_allowed());
        }
    });
}

/// What the first has asked was about him alone, and nobody else gets anything of the answer.
#[test]
fn those_who_have_waited_for_somebody_else_ask_together() {
    run(async {
        let fleet = Fleet::new(1, "rules: [{ name: a, key: [], limit: 60k/min }]");
        for _ in 0..3 {
            assert!(fleet.passes(0, &root()).await);
            fleet.pass(Duration::from_secs(20)).await;
        }
        fleet.shop.is_slow.store(true, Ordering::Relaxed);
        let before = asked(&fleet);
        let (since, fetches) = wait_for(&fleet, 50).await;
        let at_first = asked(&fleet);
        assert!(
            (before + 1..before + 10).contains(&at_first),
            "few ask for themselves: {at_first}"
        );
        fleet.shop.handed_over.notify_waiters();
        settle().await;
        assert_eq!(asked(&fleet), at_first + 1, "one asks for all others");
        fleet.shop.handed_over.notify_waiters();
        for fetch in fetches {
            let done = timeout(Duration::from_secs(20), fetch).await;
            done.expect("everybody has an answer").unwrap();
            let ruling = fleet.nodes[0].try_decide_again(&root(), since);
            assert!(ruling.expect("it was asked about").is_allowed());
        }
    });
}

#[test]
fn who_waits_for_a_renewal_that_fails_knows_at_once() {
    run(async {
        let fleet = used_up("deny").await;
        let before = asked(&fleet);
        settle().await;
        assert_eq!(asked(&fleet), before + 1, "it is renewed");
        let (_, fetches) = wait_for(&fleet, 50).await;
        assert_eq!(asked(&fleet), before + 1, "all wait for it");
        all_know(&fleet, fetches).await;
    });
}

/// The one who asked for all has hung up before there was an answer.
#[test]
fn who_waits_for_the_question_of_somebody_who_has_gone_has_its_answer() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 6000/min, on_store_failure: deny }]";
        let patient = SharingConfig { timeout: Duration::from_secs(60), ..Default::default() };
        let fleet = Fleet::with(1, rules, &patient);
        fleet.shop.is_slow.store(true, Ordering::Relaxed);
        let requests: [Request<'_>; 3] = [root(); 3];
        let wait = || fleet.nodes[0].reserve(&requests, &[]).expect_err("nothing is lent");
        let mut fetches: Vec<_> = (0..9).map(|_| tokio::spawn(wait().fetch())).collect();
        settle().await;
        fetches.remove(0).abort();
        settle().await;
        assert_eq!(asked(&fleet), 1, "he has asked for all");
        all_know(&fleet, fetches).await;
        assert_eq!(fleet.nodes[0].sharing().unwrap().failures, 0);
        let kept = fleet.nodes[0].reserve(&requests, &[]);
        assert!(kept.is_ok(), "it is lent: {kept:?}");
    });
}

#[test]
fn what_the_store_spends_for_somebody_who_has_gone_is_undone() {
    run(async {
        for consistency in ["strict", "shared"] {
            let rules = format!(
                "rules: [{{ name: a, key: [], limit: 10/day, consistency: {consistency} }}]"
            );
            let fleet = Fleet::new(1, &rules);
            fleet.shop.is_slow.store(true, Ordering::Relaxed);
            let (_, fetches) = wait_for(&fleet, 3).await;
            fetches.iter().for_each(JoinHandle::abort);
            settle().await;
            fleet.shop.is_slow.store(false, Ordering::Relaxed);
            fleet.shop.handed_over.notify_waiters();
            settle().await;
            assert_eq!(fleet.left(0, "a", &root()).await, 10, "{consistency}");
        }
    });
}

#[test]
fn who_waits_for_what_a_batch_has_asked_knows_at_once_that_it_failed() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 6000/min, on_store_failure: deny }]";
        let patient = SharingConfig { timeout: Duration::from_secs(60), ..Default::default() };
        let fleet = Fleet::with(1, rules, &patient);
        fleet.shop.go();
        fleet.shop.is_slow.store(true, Ordering::Relaxed);
        let requests: [Request<'_>; 3] = [root(); 3];
        let wait = || fleet.nodes[0].reserve(&requests, &[]).expect_err("nothing is lent");
        let fetches: Vec<_> = (0..9).map(|_| tokio::spawn(wait().fetch())).collect();
        settle().await;
        assert_eq!(asked(&fleet), 1, "one asks for all");
        all_know(&fleet, fetches).await;
        assert_eq!(*fleet.nodes[0].health().unwrap().borrow(), Health::Well);
    });
}

/// Whoever asked had a fifth of a second left, and the others nearly a minute.
#[test]
fn who_waits_for_a_question_that_had_no_time_asks_again() {
    run(async {
        let rules = "rules: [{ name: a, key: [], concurrent: 4, on_store_failure: deny }]";
        let patient = SharingConfig { timeout: Duration::from_secs(60), ..Default::default() };
        let fleet = Fleet::with(1, rules, &patient);
        let engine = &fleet.nodes[0];
        fleet.shop.is_slow.store(true, Ordering::Relaxed);
        let hasty = engine.try_decide(&root()).expect_err("no permit is here");
        fleet.clock.advance(Duration::from_millis(59_800));
        let hasty = async {
            let since = hasty.since();
            hasty.fetch().await;
            engine.try_decide_again(&root(), since).expect("its time is over").is_allowed()
        };
        let patient = async {
            settle().await;
            fleet.shop.is_slow.store(false, Ordering::Relaxed);
            let ruling = timeout(Duration::from_secs(20), engine.decide_waiting(&root())).await;
            ruling.expect("it does not wait for a minute").is_allowed()
        };
        assert_eq!(tokio::join!(hasty, patient), (false, true));
        assert_eq!(asked(&fleet), 2);
    });
}

/// In overload each token is taken by the next request after it has come in, and the others are denied. Neither
/// has to wait: the store has promised it already.
#[test]
fn what_has_come_in_is_taken_at_once() {
    run(async {
        let rules = "rules: [{ name: a, key: [], limit: 12k/min, burst: 400 }]";
        let fleet = Fleet::new(1, rules);
        let (mut waited, mut passed) = (0, 0);
        for at in 0..6_000 {
            let mut ruling = fleet.nodes[0].try_decide(&root());
            let is_counted = at >= 4_000;
            while let Err(wait) = ruling {
                waited += u64::from(is_counted);
                let since = wait.since();
                wait.fetch().await;
                ruling = fleet.nodes[0].try_decide_again(&root(), since);
            }
            passed += u64::from(is_counted && ruling.is_ok_and(|ruling| ruling.is_allowed()));
            fleet.pass(Duration::from_millis(1)).await;
        }
        assert!(passed > 390, "{passed} in two seconds");
        assert!(waited <= 24, "{waited} of 2000 waited, and the node asks eleven times a second");
    });
}

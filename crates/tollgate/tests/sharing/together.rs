//! Several limits, all or nothing.

use std::time::Duration;

use tollgate::Request;

use crate::{Fleet, root, run, settle};

#[test]
fn what_a_local_rule_denies_spends_nothing_of_a_shared_one() {
    run(async {
        let fleet = Fleet::new(
            1,
            "rules:
  - { name: shared, key: [], limit: 10/h }
  - { name: here, key: [], limit: 3/h, consistency: local }",
        );
        assert_eq!(fleet.passing(&root(), 9).await, 3);
        assert_eq!(fleet.left(0, "shared", &root()).await, 7);
    });
}

#[test]
fn what_one_shared_rule_denies_spends_nothing_of_the_other() {
    run(async {
        let fleet = Fleet::new(
            2,
            "rules:
  - { name: wide, key: [], limit: 10/h }
  - { name: narrow, key: [], limit: 3/h }
  - { name: lent, key: [], limit: 6000/min }",
        );
        assert_eq!(fleet.passing(&root(), 12).await, 3);
        // What the store spent for nothing is undone there a moment later, less what that moment has
        // given back, which is there when it has passed once more.
        for _ in 0..100 {
            fleet.pass(Duration::from_millis(100)).await;
        }
        assert_eq!(fleet.left(0, "wide", &root()).await, 7);
        for _ in 0..600 {
            fleet.pass(Duration::from_millis(100)).await;
        }
        assert_eq!(fleet.left(0, "lent", &root()).await, 6_000);
    });
}

/// What the store spent for requests that another rule denies is undone there: neither lost for others,
/// nor there for them on top of what has come in since.
#[test]
fn what_another_rule_denies_is_there_for_others_at_once() {
    run(async {
        let rules = "rules:
  - { name: rate, key: [], limit: 100/s, consistency: strict }
  - { name: never, match: { path: /no }, key: [], limit: 1/h, consistency: local }";
        let fleet = Fleet::new(1, rules);
        let no = Request::new("GET", "/no");
        assert_eq!(fleet.passing_at_once(0, &[no; 100]).await, 1);
        settle().await;
        fleet.pass(Duration::from_millis(200)).await;
        let mut passed = 0;
        for _ in 0..3 {
            passed += fleet.passing_at_once(0, &[root(); 200]).await;
        }
        assert_eq!(passed, 100, "of a burst of a hundred, at one moment");
    });
}

#[test]
fn a_rule_in_shadow_denies_nothing_and_counts_what_passes() {
    run(async {
        let fleet = Fleet::new(
            2,
            "rules:
  - { name: trial, key: [], limit: 3/h, mode: shadow }
  - { name: real, key: [], limit: 8/h }",
        );
        assert_eq!(fleet.passing(&root(), 20).await, 8);
        assert_eq!(fleet.left(0, "trial", &root()).await, 0);
    });
}

#[test]
fn requests_of_a_batch_lack_what_they_need_in_all() {
    run(async {
        let fleet = Fleet::new(1, "rules: [{ name: a, key: [], limit: 7/h }]");
        let requests = [root(); 10];
        let wait = fleet.nodes[0].reserve(&requests, &[]).expect_err("the store has to be asked");
        wait.fetch().await;
        let mut passed = 0;
        fleet.nodes[0].decide_batch(&requests, |_, ruling| {
            passed += usize::from(ruling.is_allowed());
        });
        assert_eq!(passed, 7);
    });
}

#[test]
fn parts_of_a_request_pass_together_or_not_at_all() {
    run(async {
        let fleet = Fleet::new(1, "rules: [{ name: a, key: [path], limit: 2/h }]");
        let (a, b) = (Request::new("GET", "/a"), Request::new("GET", "/b"));
        let ask = async |requests: &[Request<'_>]| {
            if let Err(wait) = fleet.nodes[0].reserve(requests, &[]) {
                wait.fetch().await;
            }
            let mut allowed = Vec::new();
            fleet.nodes[0].decide_together(requests, |_, ruling| allowed.push(ruling.is_allowed()));
            allowed
        };
        assert_eq!(ask(&[a, b]).await, [true, true]);
        assert_eq!(ask(&[a]).await, [true]);
        assert_eq!(ask(&[a, b]).await, [false, true]);
        for _ in 0..10 {
            fleet.pass(Duration::from_millis(100)).await;
        }
        assert_eq!(fleet.left(0, "a", &b).await, 1, "it was not spent");
    });
}

/// A request that comes again finds one of its answers taken, and then the other one, if that were
/// undone because of the first.
#[test]
fn who_finds_one_of_two_answers_taken_asks_for_that_one_alone() {
    run(async {
        let rules = "rules:
  - { name: a, match: { path: /both }, key: [], limit: 100/h, consistency: strict }
  - { name: b, key: [], limit: 100/h, consistency: strict }";
        let fleet = Fleet::new(1, rules);
        let (engine, both, other) = (&fleet.nodes[0], Request::new("GET", "/both"), root());
        let wait = engine.try_decide(&both).expect_err("the store decides");
        let since = wait.since();
        wait.fetch().await;
        assert!(engine.decide(&other).is_allowed(), "it takes what was meant for another");
        let wait = engine.try_decide_again(&both, since).expect_err("one answer is missing");
        wait.fetch().await;
        let ruling = engine.try_decide_again(&both, since).expect("both are here");
        assert!(ruling.is_allowed());
        assert_eq!(engine.sharing().unwrap().exchanges, 3);
    });
}

/// What the store spent for a request that an earlier rule denies is undone at once, or as much would
/// come in before that, and nothing be left to undo.
#[test]
fn what_an_earlier_rule_denies_is_there_for_others_at_once() {
    run(async {
        let rules = "rules:
  - { name: never, match: { path: /no }, key: [], limit: 1/h, consistency: strict }
  - { name: rate, key: [], limit: 100/s, consistency: strict }";
        let fleet = Fleet::new(1, rules);
        let no = Request::new("GET", "/no");
        assert!(fleet.passes(0, &no).await);
        fleet.pass(Duration::from_secs(2)).await;
        for _ in 0..50 {
            assert!(!fleet.passes(0, &no).await);
        }
        settle().await;
        assert_eq!(fleet.left(0, "rate", &root()).await, 100);
        assert_eq!(fleet.passing_at_once(0, &[no; 50]).await, 0);
        settle().await;
        assert_eq!(fleet.left(0, "rate", &root()).await, 100);
    });
}

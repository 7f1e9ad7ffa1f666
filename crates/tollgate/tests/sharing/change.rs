//! Limits that change under traffic: nobody gets a second budget for it, and nobody is kept out for
//! longer than the new limit keeps out those who have spent everything.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate::{Engine, ManualClock, Request, RuleSet, Ruling};

use crate::{Fleet, root, run, settle};

fn change(node: &Engine<ManualClock>, rules: &str) {
    let rules = RuleSet::parse(rules).unwrap_or_else(|error| panic!("{error}"));
    node.exchange(rules).unwrap();
}

/// A rule that the store decides about.
fn strict(limit: &str) -> String {
    format!("rules: [{{ name: a, key: [], limit: {limit}, consistency: strict }}]")
}

/// One whose tokens are lent.
fn lent(limit: &str) -> String {
    format!("rules: [{{ name: a, key: [], limit: {limit} }}]")
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_lower_limit_denies_whoever_has_spent_more_until_it_gives_something_back() {
    run(async {
        let fleet = Fleet::new(2, &strict("100/min"));
        assert_eq!(fleet.passing(&root(), 80).await, 80);
        fleet.nodes.iter().for_each(|node| change(node, &strict("50/min")));
        assert_eq!(fleet.passing(&root(), 10).await, 0);
        // One comes back every 1.2 seconds.
        fleet.pass(Duration::from_millis(1_199)).await;
        assert_eq!(fleet.passing(&root(), 10).await, 0);
        fleet.pass(Duration::from_millis(1)).await;
        assert_eq!(fleet.passing(&root(), 10).await, 1);
        fleet.pass(60 * SECOND).await;
        assert_eq!(fleet.passing(&root(), 100).await, 50);
    });
}

#[test]
fn a_higher_limit_leaves_what_it_has_more() {
    run(async {
        let fleet = Fleet::new(2, &strict("100/min"));
        assert_eq!(fleet.passing(&root(), 80).await, 80);
        fleet.nodes.iter().for_each(|node| change(node, &strict("200/min")));
        assert_eq!(fleet.left(0, "a", &root()).await, 120);
        assert_eq!(fleet.left(1, "a", &root()).await, 120, "to look changes nothing");
        assert_eq!(fleet.passing(&root(), 300).await, 120);
    });
}

/// The old limit would keep it for a day, and the new one has given it back.
#[test]
fn a_key_that_comes_later_is_kept_out_by_the_new_limit_and_not_by_the_old_one() {
    run(async {
        for (later, left) in [(0, 0), (15, 15), (59, 59), (60, 60), (600, 60)] {
            let fleet = Fleet::new(1, &strict("100/day"));
            assert_eq!(fleet.passing(&root(), 90).await, 90);
            change(&fleet.nodes[0], &strict("60/min"));
            fleet.pass(later * SECOND).await;
            let passing = fleet.passing(&root(), 100).await;
            assert_eq!(passing, left, "after {later} seconds");
        }
    });
}

#[test]
fn every_algorithm_follows_every_other() {
    run(async {
        let algorithms =
            ["token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"];
        let rule = |algorithm: &str, most: u32| match algorithm {
            "leaky_bucket" => strict(&format!("{most}/h, burst: {most}, algorithm: {algorithm}")),
            _ => strict(&format!("{most}/h, algorithm: {algorithm}")),
        };
        for old in algorithms {
            for new in algorithms {
                let fleet = Fleet::new(1, &rule(old, 100));
                let passed = fleet.passing(&root(), 80).await;
                assert_eq!(passed, 80, "{old}");
                change(&fleet.nodes[0], &rule(new, 90));
                assert_eq!(fleet.passing(&root(), 100).await, 10, "{old}, {new}");
                // The widest of them is a sliding window after a full one.
                fleet.pass(7_200 * SECOND).await;
                assert_eq!(fleet.passing(&root(), 100).await, 90, "{old}, {new}");
            }
        }
    });
}

#[test]
fn a_quota_of_a_month_goes_on() {
    run(async {
        let quota = |limit: &str| {
            let rest = "window: { calendar: month, timezone: Europe/Berlin }";
            format!("rules: [{{ name: a, key: [user], limit: {limit}, {rest} }}]")
        };
        let fleet = Fleet::new(2, &quota("10k/month"));
        let users = [("user", "acme")];
        let acme = root().attributes(&users);
        assert!(fleet.passes(0, &acme.cost(7_000)).await);
        fleet.nodes.iter().for_each(|node| change(node, &quota("12k/month")));
        assert_eq!(fleet.left(1, "a", &acme).await, 5_000);
        assert!(!fleet.passes(1, &acme.cost(5_001)).await);
        assert!(fleet.passes(1, &acme.cost(4_000)).await);
        fleet.nodes.iter().for_each(|node| change(node, &quota("8k/month")));
        assert!(!fleet.passes(0, &acme).await);
        fleet.pass(31 * 86_400 * SECOND).await;
        assert_eq!(fleet.left(1, "a", &acme).await, 8_000);
    });
}

#[test]
fn several_changes_before_the_key_comes_again_count_as_one() {
    run(async {
        for changes in [2, 5, 15] {
            let fleet = Fleet::new(1, &strict("100/day"));
            assert_eq!(fleet.passing(&root(), 80).await, 80);
            for number in 1..changes {
                change(&fleet.nodes[0], &strict(&format!("{}/day", 200 + number)));
            }
            change(&fleet.nodes[0], &strict("90/day"));
            assert_eq!(fleet.passing(&root(), 100).await, 10, "{changes} changes");
        }
    });
}

/// What was spent under the first is back by the second when the third comes.
#[test]
fn what_a_limit_in_between_gave_back_stays_given_back() {
    run(async {
        let fleet = Fleet::new(1, &strict("100/day"));
        assert_eq!(fleet.passing(&root(), 100).await, 100);
        change(&fleet.nodes[0], &strict("100/min"));
        fleet.pass(300 * SECOND).await;
        change(&fleet.nodes[0], &strict("90/day"));
        assert_eq!(fleet.passing(&root(), 200).await, 90);
    });
}

#[test]
fn a_limit_that_is_changed_back_gives_nothing_twice() {
    run(async {
        let fleet = Fleet::new(1, &strict("100/day"));
        assert_eq!(fleet.passing(&root(), 10).await, 10);
        change(&fleet.nodes[0], &strict("50/day"));
        assert_eq!(fleet.passing(&root(), 100).await, 40);
        change(&fleet.nodes[0], &strict("100/day"));
        assert_eq!(fleet.passing(&root(), 200).await, 50, "fifty are spent");
        for limit in ["50/day", "100/day", "50/day", "100/day", "101/day"] {
            change(&fleet.nodes[0], &strict(limit));
            let most = if limit == "101/day" { 1 } else { 0 };
            assert_eq!(fleet.passing(&root(), 200).await, most, "{limit}");
        }
    });
}

/// Each node follows at its own time. Until then the old limit holds where it is in force; where the new
/// one is, it begins with what was spent of the old one, and whoever follows brings nothing new.
#[test]
fn nodes_that_follow_one_after_the_other_have_no_burst_each() {
    run(async {
        for rule in [strict, lent] {
            let fleet = Fleet::new(2, &rule("1000/day"));
            let mut passed = fleet.passing(&root(), 400).await;
            change(&fleet.nodes[0], &rule("600/day"));
            for _ in 0..2_000 {
                passed += fleet.passing(&root(), 2).await;
                fleet.pass(Duration::from_millis(5)).await;
            }
            assert!(passed <= 1_000 + 200, "{passed}, and 400 of the new one were spent");
            change(&fleet.nodes[1], &rule("600/day"));
            let before = passed;
            for _ in 0..200 {
                passed += fleet.passing(&root(), 20).await;
                fleet.pass(Duration::from_millis(5)).await;
            }
            assert!(passed - before <= 1, "{} for following", passed - before);
        }
    });
}

#[test]
fn a_limit_that_is_lent_gives_no_burst_either_and_is_whole_in_its_time() {
    run(async {
        let fleet = Fleet::new(3, &lent("6000/min"));
        let mut passed = 0;
        while passed < 5_400 {
            passed += fleet.passing(&root(), 30).await;
            fleet.pass(Duration::from_millis(1)).await;
        }
        fleet.nodes.iter().for_each(|node| change(node, &lent("1200/min")));
        // What had come back of the old limit meanwhile is not more than its rate gives in that time.
        let (mut after, mut millis) = (0, 0);
        while millis < 20_000 {
            after += fleet.passing(&root(), 9).await;
            fleet.pass(Duration::from_millis(10)).await;
            millis += 10;
        }
        assert!(after <= 20 * 20, "{after} in {millis} ms of twenty a second");
        assert!(after >= 20 * 20 * 9 / 10, "{after}");
        fleet.pass(60 * SECOND).await;
        let mut whole = 0;
        for _ in 0..500 {
            whole += fleet.passing(&root(), 30).await;
        }
        assert!((1_100..=1_200).contains(&whole), "{whole}");
    });
}

#[test]
fn tiers_and_overrides_follow_what_their_keys_had() {
    run(async {
        let rules = |own: &str, acme: &str| {
            format!(
                "tiers: {{ from: header.x-plan, known: [free, pro], else: free }}
rules:
  - name: a
    key: [user]
    consistency: strict
    limit: {own}
    overrides: {{ {acme} }}"
            )
        };
        let fleet = Fleet::new(1, &rules("{ free: 10/day, pro: 100/day }", "acme: 500/day"));
        let (free, pro) = ([("x-plan", "free")], [("x-plan", "pro")]);
        let of = |user: &'static [(&str, &str)]| root().attributes(user);
        let (alice, bob, acme) =
            (of(&[("user", "alice")]), of(&[("user", "bob")]), of(&[("user", "acme")]));
        let (alice, bob) = (alice.headers(&free), bob.headers(&pro));
        assert_eq!(fleet.passing(&alice, 6).await, 6);
        assert_eq!(fleet.passing(&bob, 60).await, 60);
        assert_eq!(fleet.passing(&acme, 300).await, 300);

        let node = &fleet.nodes[0];
        change(node, &rules("{ free: 20/day, pro: 70/day }", "acme: 310/day"));
        assert_eq!(fleet.passing(&alice, 50).await, 14);
        assert_eq!(fleet.passing(&bob, 50).await, 10);
        assert_eq!(fleet.passing(&acme, 50).await, 10);
        // Who gets a limit of their own, or loses it, brings along what they had spent.
        change(node, &rules("{ free: 20/day, pro: 70/day }", "bob: 310/day"));
        assert_eq!(fleet.passing(&bob, 400).await, 240);
        assert_eq!(fleet.passing(&acme.headers(&pro), 50).await, 0);
        let carol = of(&[("user", "carol")]).headers(&pro);
        assert_eq!(fleet.passing(&carol, 90).await, 70, "nobody else is concerned");
        // Also if they had the limit once before.
        change(node, &rules("{ free: 20/day, pro: 70/day }", "carol: 80/day"));
        assert_eq!(fleet.passing(&carol, 90).await, 10);
        change(node, &rules("{ free: 20/day, pro: 90/day }", "acme: 80/day"));
        assert_eq!(fleet.passing(&carol, 90).await, 10);
    });
}

/// The limit of all stays as it is, and knows the key from before.
#[test]
fn a_limit_of_ones_own_that_is_lost_again_gives_nothing_twice() {
    run(async {
        let rules = |limit: &str, overrides: &str| {
            format!(
                "rules: [{{ name: a, key: [user], limit: {limit}, consistency: strict, overrides: {{ {overrides} }} }}]"
            )
        };
        let fleet = Fleet::new(1, &rules("100/day", "acme: 1k/day"));
        let users = [("user", "alice")];
        let alice = root().attributes(&users);
        assert_eq!(fleet.passing(&alice, 10).await, 10);
        for (limit, overrides, spent, left) in [
            ("120/day", "acme: 1k/day", 5, 105),
            ("120/day", "alice: 500/day", 25, 460),
            ("120/day", "acme: 1k/day", 20, 60),
            ("120/day", "alice: 500/day", 1, 439),
        ] {
            change(&fleet.nodes[0], &rules(limit, overrides));
            fleet.pass(Duration::from_millis(5)).await;
            assert_eq!(fleet.passing(&alice, spent).await, spent);
            assert_eq!(fleet.left(0, "a", &alice).await, left, "{limit}, {overrides}");
        }
    });
}

#[test]
fn a_change_of_the_policy_alone_changes_nothing_that_was_spent() {
    run(async {
        let rule = |limit: &str, policy: &str| {
            format!(
                "rules: [{{ name: a, key: [], limit: {limit}, consistency: strict, on_store_failure: {policy} }}]"
            )
        };
        let fleet = Fleet::new(1, &rule("100/day", "deny"));
        assert_eq!(fleet.passing(&root(), 80).await, 80);
        change(&fleet.nodes[0], &rule("90/day", "deny"));
        change(&fleet.nodes[0], &rule("90/day", "allow"));
        assert_eq!(fleet.passing(&root(), 100).await, 10);
    });
}

#[test]
fn a_store_that_does_not_say_what_was_spent_grants_nothing() {
    run(async {
        let rule = |limit: &str| {
            format!(
                "rules: [{{ name: a, key: [], limit: {limit}, consistency: strict, on_store_failure: deny }}]"
            )
        };
        let fleet = Fleet::new(1, &rule("100/day"));
        assert_eq!(fleet.passing(&root(), 80).await, 80);
        change(&fleet.nodes[0], &rule("90/day"));
        fleet.shop.go();
        assert_eq!(fleet.passing(&root(), 2).await, 0);
        fleet.shop.come_back();
        assert_eq!(fleet.passing(&root(), 100).await, 10);
    });
}

#[test]
fn a_reset_forgets_what_was_spent_before_the_change_as_well() {
    run(async {
        let fleet = Fleet::new(1, &strict("100/day"));
        assert_eq!(fleet.passing(&root(), 80).await, 80);
        change(&fleet.nodes[0], &strict("90/day"));
        let reset = fleet.nodes[0].reset_waiting(&root(), None).unwrap().await;
        assert_eq!((reset.counters, reset.failure), (1, None));
        assert_eq!(fleet.passing(&root(), 100).await, 90);
    });
}

#[test]
fn what_passed_while_the_store_was_gone_is_paid_on_top_of_what_was_spent_before() {
    run(async {
        let rule = |limit: &str| {
            format!(
                "rules: [{{ name: a, key: [], limit: {limit}, consistency: strict, on_store_failure: allow }}]"
            )
        };
        let fleet = Fleet::new(1, &rule("100/day"));
        assert_eq!(fleet.passing(&root(), 50).await, 50);
        change(&fleet.nodes[0], &rule("200/day"));
        fleet.shop.go();
        assert_eq!(fleet.passing(&root(), 20).await, 20);
        fleet.shop.come_back();
        for _ in 0..10 {
            fleet.pass(Duration::from_millis(100)).await;
        }
        assert_eq!(fleet.left(0, "a", &root()).await, 130);
    });
}

/// Two answers take twice as long as one, which is no reason to leave the store alone.
#[test]
fn a_store_is_not_late_because_keys_are_looked_at_first() {
    run(async {
        let rules = |limit| {
            format!("rules: [{{ name: a, key: [path], limit: {limit}, consistency: strict }}]")
        };
        let fleet = Fleet::new(1, &rules("100/min"));
        fleet.shop.takes.store(20, Ordering::Relaxed);
        let ask_all = async || {
            for path in ["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i", "/j"] {
                assert!(fleet.passes(0, &Request::new("GET", path)).await);
            }
        };
        ask_all().await;
        change(&fleet.nodes[0], &rules("200/min"));
        ask_all().await;
        let stats = fleet.nodes[0].sharing().unwrap();
        assert_eq!((stats.late, stats.times_degraded, stats.degraded), (0, 0, 0));
        assert_eq!(fleet.shop.asked.load(Ordering::Relaxed), 30);
    });
}

/// A key that is asked about for the second time costs one question again.
#[test]
fn a_key_is_looked_at_once_after_a_change() {
    run(async {
        let fleet = Fleet::new(1, &strict("100/day"));
        assert_eq!(fleet.passing(&root(), 10).await, 10);
        change(&fleet.nodes[0], &strict("200/day"));
        fleet.pass(Duration::from_millis(2)).await;
        let asked = || fleet.shop.asked.load(Ordering::Relaxed);
        let before = asked();
        assert_eq!(fleet.passing(&root(), 1).await, 1);
        assert_eq!(asked() - before, 2);
        assert_eq!(fleet.passing(&root(), 10).await, 10);
        assert_eq!(asked() - before, 12);
    });
}

/// They are a part of what the store has to do.
#[test]
fn looks_at_what_limits_were_count_as_questions() {
    run(async {
        let fleet = Fleet::new(1, &strict("100/day"));
        let exchanges = || fleet.nodes[0].sharing().unwrap().exchanges;
        assert_eq!(fleet.passing(&root(), 10).await, 10);
        assert_eq!(exchanges(), 10);
        for (limit, looks) in [("200/day", 1), ("300/day", 2)] {
            change(&fleet.nodes[0], &strict(limit));
            fleet.pass(Duration::from_millis(2)).await;
            let before = exchanges();
            assert_eq!(fleet.passing(&root(), 1).await, 1);
            assert_eq!(exchanges() - before, looks + 1, "one for each limit before {limit}");
            assert_eq!(fleet.passing(&root(), 10).await, 10);
            assert_eq!(exchanges() - before, looks + 11, "{limit}");
        }
        // Also if they are in vain.
        change(&fleet.nodes[0], &strict("400/day"));
        fleet.pass(Duration::from_millis(2)).await;
        fleet.shop.go();
        let before = fleet.nodes[0].sharing().unwrap();
        fleet.passes(0, &root()).await;
        let after = fleet.nodes[0].sharing().unwrap();
        assert_eq!((after.exchanges - before.exchanges, after.failures - before.failures), (4, 1));
    });
}

async fn hold(fleet: &Fleet, times: usize) -> Vec<Ruling> {
    let mut held = Vec::new();
    for at in 0..times {
        let node = &fleet.nodes[at % fleet.nodes.len()];
        let ruling = node.decide_waiting(&Request::new("GET", "/")).await;
        if ruling.is_allowed() {
            held.push(ruling);
        }
        fleet.pass(Duration::from_millis(30)).await;
    }
    held
}

#[test]
fn who_holds_a_slot_holds_it_whatever_their_number_becomes() {
    run(async {
        let slots = |most: u32| format!("rules: [{{ name: a, key: [], concurrent: {most} }}]");
        for (old, new, more) in [(2, 3, 1), (3, 2, 0), (4, 9, 5)] {
            let fleet = Fleet::new(2, &slots(old));
            let mut held = hold(&fleet, 30).await;
            assert_eq!(held.len(), old as usize);
            fleet.nodes.iter().for_each(|node| change(node, &slots(new)));
            let others = hold(&fleet, 30).await;
            assert_eq!(others.len(), more, "{old} to {new}");
            // One comes back. If there are too many already, nobody gets it.
            held.truncate(held.len() - 1);
            settle().await;
            for _ in 0..20 {
                fleet.pass(Duration::from_millis(50)).await;
            }
            let next = hold(&fleet, 30).await;
            let free = (new as usize).saturating_sub(held.len() + others.len());
            assert_eq!(next.len(), free, "{old} to {new}");
        }
    });
}

/// Nodes that know of different numbers of slots never have more out together than the larger one.
#[test]
fn nodes_with_different_numbers_of_slots_keep_to_the_larger() {
    run(async {
        let slots = |most: u32| format!("rules: [{{ name: a, key: [], concurrent: {most} }}]");
        for (old, new) in [(2, 5), (5, 2)] {
            let fleet = Fleet::new(2, &slots(old));
            change(&fleet.nodes[0], &slots(new));
            let held = hold(&fleet, 60).await;
            assert_eq!(held.len(), 5);
        }
    });
}

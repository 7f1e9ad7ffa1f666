//! Who comes most often, and who is denied most often.

use tollgate::{Engine, ManualClock};

use crate::{engine, get, rules};

/// What keys are called, and how often they came.
fn top(engine: &Engine<ManualClock>, n: usize) -> Vec<(String, u64)> {
    engine.top(n).into_iter().map(|heavy| (heavy.key, heavy.count)).collect()
}

fn ask(engine: &Engine<ManualClock>, user: &str, times: usize) {
    for _ in 0..times {
        let attributes = [("user", user), ("account", user)];
        drop(engine.decide(&get("/v1").attributes(&attributes)));
    }
}

const RULES: &str = "rules:
  - { name: per-user, key: [user], limit: 5/h }
  - { name: same, key: [account], limit: 9/h, mode: shadow }
  - { name: everybody, key: [], limit: 1k/h }";

#[test]
fn keys_are_told_apart_by_rule_and_counted_for_each() {
    let (engine, _) = engine(RULES);
    ask(&engine, "alice", 3);
    ask(&engine, "bob", 2);
    let named = |name: &str, count| (name.to_owned(), count);
    let all = [
        named("everybody", 5),
        named("per-user user=alice", 3),
        named("same account=alice", 3),
        named("per-user user=bob", 2),
        named("same account=bob", 2),
    ];
    assert_eq!(top(&engine, 9), all);
    assert_eq!(top(&engine, 2), all[..2]);
    assert!(engine.top_denied(9).is_empty());
}

#[test]
fn a_denial_is_that_of_the_rule_that_says_no() {
    let (engine, _) = engine(RULES);
    ask(&engine, "alice", 12);
    ask(&engine, "bob", 1);
    let denied: Vec<_> = engine.top_denied(9).into_iter().map(|heavy| heavy.key).collect();
    assert_eq!(denied, ["per-user user=alice"], "everybody's rule would have let all pass");
    assert_eq!(engine.top_denied(1)[0].count, 7);
}

#[test]
fn a_share_is_one_of_requests_however_many_rules_apply() {
    let (engine, _) = engine(RULES);
    ask(&engine, "alice", 30);
    ask(&engine, "bob", 10);
    let share = |heavy: Vec<tollgate::HeavyKey>, name: &str| {
        heavy.into_iter().find(|heavy| heavy.key == name).map(|heavy| heavy.share)
    };
    assert_eq!(share(engine.top(9), "per-user user=alice"), Some(0.75));
    assert_eq!(share(engine.top(9), "everybody"), Some(1.0));
    // 25 of 30 denials.
    let denied = share(engine.top_denied(9), "per-user user=alice").unwrap();
    assert!((denied - 25.0 / 30.0).abs() < 1e-9, "{denied}");
}

#[test]
fn whoever_only_looks_is_not_counted() {
    let (engine, _) = engine(RULES);
    drop(engine.peek(&get("/v1").attributes(&[("user", "alice")])));
    assert!(engine.top(9).is_empty());
}

#[test]
fn credentials_are_not_shown() {
    let (engine, _) = engine("rules: [{ name: a, key: [header.authorization], limit: 5/h }]");
    for token in ["Bearer one", "Bearer two"] {
        drop(engine.decide(&get("/").headers(&[("Authorization", token)])));
    }
    let named = ("a header.authorization=(secret)".to_owned(), 1);
    assert_eq!(top(&engine, 9), [named.clone(), named], "and are two keys all the same");
}

#[test]
fn the_heaviest_of_very_many_is_found_in_bounded_memory() {
    let (engine, _) = engine("rules: [{ name: a, key: [user], limit: 1M/h }]");
    for round in 0..20_000 {
        ask(&engine, "alice", 1);
        ask(&engine, &format!("user-{round}"), 3);
    }
    let all = engine.top(usize::MAX);
    assert_eq!(all[0].key, "a user=alice");
    assert!((0.2..0.3).contains(&all[0].share), "a quarter: {}", all[0].share);
    assert_eq!(all.len(), 256);
}

#[test]
fn rules_that_are_exchanged_go_on_by_their_names() {
    let (engine, _) = engine(RULES);
    ask(&engine, "alice", 1);
    engine.exchange(rules("rules: [{ name: everybody, key: [], limit: 9/h }]")).unwrap();
    ask(&engine, "alice", 1);
    assert_eq!(top(&engine, 1), [("everybody".to_owned(), 2)]);
}

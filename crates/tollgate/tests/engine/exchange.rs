//! Rules that are exchanged: what stays the same goes on, and what changes begins where it was.

use tollgate::{Engine, ManualClock, Wall};

use crate::{MINUTE, TICK, engine, exchange, get, left, names, passing, rules};

const ALICE: [(&str, &str); 2] = [("user", "alice"), ("account", "alice")];

/// What alice has left, after each of these came into force.
fn left_after(first: &str, spent: usize, next: &str) -> Option<u64> {
    let (engine, _) = engine(first);
    let request = get("/v1").attributes(&ALICE);
    assert_eq!(passing(&engine, &request, spent), spent);
    exchange(&engine, next);
    left(&engine, "a", &request)
}

#[test]
fn limits_that_stay_keep_their_state_whatever_else_changes() {
    for algorithm in ["token_bucket", "leaky_bucket, burst: 9", "fixed_window", "sliding_window"] {
        let limit = format!("limit: 10/h, algorithm: {algorithm}");
        let first = format!("rules: [{{ name: a, key: [user], {limit} }}]");
        let (engine, clock) = engine(&first);
        let request = get("/v1").attributes(&ALICE);
        assert_eq!(passing(&engine, &request, 7), 7);
        clock.advance(MINUTE * 5);
        let before = engine.peek(&request).decision();
        for next in [
            format!(
                "rules: [{{ name: b, key: [], limit: 99/h }}, {{ name: a, key: [user], {limit} }}]"
            ),
            format!("rules: [{{ name: a, match: {{ path: /v1 }}, key: [user], {limit} }}]"),
            format!("rules: [{{ name: a, key: [user], key_missing: ip, {limit}, mode: shadow }}]"),
            format!("rules: [{{ name: a, key: [user], {limit}, mode: off }}]"),
            format!("rules: [{{ name: a, key: [user], {limit}, warn_at: [50%] }}]"),
            format!("rules: [{{ name: a, key: [user], {limit}, overrides: {{ bob: 3/h }} }}]"),
            first,
        ] {
            exchange(&engine, &next);
            let after = engine.peek(&request);
            let after = after.each().find(|each| each.name() == "a").map(|each| each.decision());
            assert!(after.is_none_or(|after| after == before), "{next}: {after:?}");
        }
        assert_eq!(left(&engine, "a", &request), Some(before.remaining()));
    }
}

#[test]
fn a_limit_that_changes_begins_with_what_was_spent() {
    let rule = |limit: &str| format!("rules: [{{ name: a, key: [user], limit: {limit} }}]");
    for (old, spent, new, left) in [
        ("10/h", 7, "20/h", 13),
        ("10/h", 7, "8/h", 1),
        ("10/h", 7, "5/h", 0),
        ("10/h", 7, "5/h, algorithm: sliding_log", 0),
        ("10/h, algorithm: fixed_window", 7, "10/h", 3),
        ("10/h, algorithm: sliding_log", 7, "12/h, algorithm: sliding_window", 5),
        ("10/h", 7, "10/h, burst: 8", 1),
    ] {
        assert_eq!(left_after(&rule(old), spent, &rule(new)), Some(left), "{old} to {new}");
    }
}

#[test]
fn nobody_waits_for_longer_than_the_new_limit_would_make_anybody_wait() {
    let (engine, clock) = engine("rules: [{ name: a, key: [user], limit: 100/day }]");
    let request = get("/").attributes(&ALICE);
    assert_eq!(passing(&engine, &request, 200), 100);
    exchange(&engine, "rules: [{ name: a, key: [user], limit: 3/min }]");
    let denied = engine.decide(&request);
    assert_eq!(denied.decision().retry_after(), Some(MINUTE / 3));
    clock.advance(MINUTE / 3 - TICK);
    assert!(!engine.decide(&request).is_allowed());
    clock.advance(TICK);
    assert_eq!(passing(&engine, &request, 3), 1);
    clock.advance(MINUTE);
    assert_eq!(passing(&engine, &request, 9), 3);
}

#[test]
fn limits_that_change_to_and_fro_give_nobody_anything() {
    let (engine, _) = engine("rules: [{ name: a, key: [user], limit: 10/h }]");
    let request = get("/").attributes(&ALICE);
    assert_eq!(passing(&engine, &request, 4), 4);
    // Nobody asks in between; of more changes than that the oldest are forgotten.
    for round in 0..15 {
        let limit = 10 + round % 3;
        exchange(&engine, &format!("rules: [{{ name: a, key: [user], limit: {limit}/h }}]"));
    }
    exchange(&engine, "rules: [{ name: a, key: [user], limit: 20/h }]");
    assert_eq!(passing(&engine, &request, 30), 16);
}

#[test]
fn another_key_another_name_and_another_namespace_begin_anew() {
    let first = "rules: [{ name: a, key: [user], limit: 10/h }]";
    for next in [
        "rules: [{ name: a, key: [user, path], limit: 10/h }]",
        "rules: [{ name: a, key: [], limit: 10/h }]",
        "rules: [{ name: a, key: [account], limit: 10/h }]",
        "rules: [{ name: a, key: [account], limit: 10/h, overrides: { alice: 10/h } }]",
        "namespace: other\nrules: [{ name: a, key: [user], limit: 10/h }]",
    ] {
        assert_eq!(left_after(first, 7, next), Some(10), "{next}");
    }
    let (engine, _) = engine(first);
    let request = get("/").attributes(&ALICE);
    assert_eq!(passing(&engine, &request, 7), 7);
    exchange(&engine, &first.replace("name: a", "name: b"));
    assert_eq!(left(&engine, "b", &request), Some(10));
    exchange(&engine, first);
    assert_eq!(left(&engine, "a", &request), Some(10), "nobody remembers it");
}

/// Tiers of one limit shared the counters of the first, and the second began anew.
#[test]
fn tiers_keep_what_is_theirs_although_limits_are_equal_or_change_places() {
    let file = |known: &str, limits: &str| {
        format!(
            "tiers: {{ from: claims.plan, known: [{known}], else: free }}
rules: [{{ name: a, key: [user], limit: {{ {limits} }} }}]"
        )
    };
    let pro = [("user", "alice"), ("claims.plan", "pro")];
    let request = get("/").attributes(&pro);
    let first = file("free, pro", "free: 10/h, pro: 10/h");
    for (next, remaining) in [
        (first.clone(), 3),
        (file("pro, free", "free: 10/h, pro: 10/h"), 3),
        (file("pro, free", "free: 99/h, pro: 10/h"), 3),
        (file("free, gold, pro", "free: 10/h, gold: 10/h, pro: 12/h"), 5),
        ("rules: [{ name: a, key: [user], limit: 10/h }]".to_owned(), 3),
    ] {
        let (engine, _) = engine(&first);
        assert_eq!(passing(&engine, &request, 7), 7);
        exchange(&engine, &next);
        assert_eq!(left(&engine, "a", &request), Some(remaining), "{next}");
    }
}

/// It found the counters of the other tier, where nobody knew it.
#[test]
fn a_tier_that_gets_the_limit_of_another_begins_with_what_was_spent() {
    let file = |pro: &str| {
        format!(
            "tiers: {{ from: claims.plan, known: [free, pro], else: free }}
rules: [{{ name: a, key: [user], limit: {{ free: 10/h, pro: {pro} }} }}]"
        )
    };
    let (engine, _) = engine(&file("20/h"));
    let pro = [("user", "alice"), ("claims.plan", "pro")];
    let request = get("/").attributes(&pro);
    assert_eq!(passing(&engine, &request, 7), 7);
    exchange(&engine, &file("10/h"));
    assert_eq!(left(&engine, "a", &request), Some(3));
}

#[test]
fn limits_of_single_keys_come_change_and_go_with_what_was_spent() {
    let file = |overrides: &str| {
        format!("rules: [{{ name: a, key: [user], limit: 10/h, overrides: {{ {overrides} }} }}]")
    };
    for (old, new, remaining) in [
        ("bob: 1/h", "alice: 20/h", 13),
        ("alice: 20/h", "alice: 30/h", 23),
        ("alice: 20/h", "alice: 20/h, bob: 5/h", 13),
        ("alice: 20/h, bob: 5/h", "alice: 8/h, bob: 20/h", 1),
        ("bob: 20/h", "alice: 20/h, bob: 20/h", 13),
        ("alice: 20/h, bob: 20/h", "bob: 20/h", 3),
    ] {
        assert_eq!(left_after(&file(old), 7, &file(new)), Some(remaining), "{old} to {new}");
    }
}

/// Of the 31 limits that an override has, only that of the first day was asked.
#[test]
fn months_that_begin_on_any_day_go_on_also_for_single_keys() {
    let file = |own: u32, limit: u32| {
        rules(&format!(
            "rules: [{{ name: a, key: [user], limit: {own}/month,
  overrides: {{ aaron: 3/month, alice: {limit}/month }},
  window: {{ calendar: month, timezone: UTC, anchor: account.billing_day }} }}]"
        ))
    };
    for (user, day) in [("alice", "1"), ("alice", "17"), ("bob", "31")] {
        let attributes = [("user", user), ("account.billing_day", day)];
        let request = get("/").attributes(&attributes);
        let clock = ManualClock::starting_at(Wall::from_unix_nanos(1_700_000_000_000_000_000));
        let engine: Engine<_> = Engine::builder(file(10, 10)).clock(clock).build().unwrap();
        assert_eq!(passing(&engine, &request, 7), 7);
        engine.exchange(file(12, 12)).unwrap();
        assert_eq!(left(&engine, "a", &request), Some(5), "{user} on day {day}");
    }
}

#[test]
fn rulings_keep_the_rules_they_began_with() {
    let (engine, _) = engine("rules: [{ name: first, key: [], limit: 9/h, mode: shadow }]");
    let ruling = engine.decide(&get("/"));
    for name in ["second", "third", "fourth"] {
        exchange(&engine, &format!("rules: [{{ name: {name}, key: [], limit: 9/h }}]"));
        assert_eq!(engine.rules().rules()[0].name(), name);
    }
    let later = engine.decide(&get("/"));
    drop(engine);
    assert_eq!((names(&ruling), ruling.rule()), (vec!["first"], None));
    assert_eq!((names(&later), later.rule()), (vec!["fourth"], Some("fourth")));
    assert_eq!(format!("{ruling:?}").matches("first").count(), 1);
}

/// What a ruling says is about the rules that decided, whatever is in force when it is read.
#[test]
fn a_ruling_knows_the_rules_that_decided() {
    let (engine, _) = engine(
        "rules:
  - { name: others, match: { method: PUT }, key: [], limit: 5/h }
  - { name: old, key: [], limit: 5/h }",
    );
    let before = engine.decide(&get("/"));
    exchange(&engine, "rules: [{ name: new, key: [], limit: 5/h }]");
    let after = engine.decide(&get("/"));
    for (ruling, name, number) in [(&before, "old", 1), (&after, "new", 0)] {
        let each = ruling.each().next().unwrap();
        assert_eq!((each.name(), each.number()), (name, number));
        assert_eq!(ruling.rules().rules()[each.number()].name(), name);
    }
    assert_ne!(before.version(), after.version());
    assert_eq!(after.version(), engine.rules().version());
}

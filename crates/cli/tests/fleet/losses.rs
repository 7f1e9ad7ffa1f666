//! What operators learn of a store that has lost its memory.

use crate::redis::{Redis, until};
use crate::{Fleet, check};

const RULES: &str = "rules:
  - { name: bucket, key: [user], limit: 20/day }
  - { name: month, key: [user], limit: 20/month, algorithm: fixed_window }
  - { name: sliding, key: [user], limit: 20/day, algorithm: sliding_window }
  - { name: log, key: [user], limit: 20/day, algorithm: sliding_log }
  - { name: slots, key: [user], concurrent: 20 }
  - { name: per-second, key: [user], limit: 20/s, consistency: local }";

/// A rule with one counter for each key, so that every question is one to the store.
const STRICT: &str = "rules: [{ name: strict, key: [user], limit: 20/day, consistency: strict }]";

const ALICE: &str = r#"{"path":"/","user":"alice"}"#;

/// What lines begin with about a store that has lost all it knew, and one that may lack a little.
const LOST: &str = "WARN the store has lost its memory";
const TAKEN_OVER: &str = "WARN the store was started again, or another server has taken over";

/// The lines that begin with that, once there are so many.
fn said(fleet: &Fleet, begin: &str, count: usize) -> Vec<String> {
    until("it is said", || {
        let lines = fleet.nodes[0].process.output();
        let lines: Vec<_> = lines.into_iter().filter(|line| line.contains(begin)).collect();
        (lines.len() >= count).then_some(lines)
    })
}

#[test]
fn a_loss_of_memory_is_said_once_and_counted() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::start(1, &redis.url(), STRICT);
    let http = fleet.addresses("http")[0];
    let losses = || fleet.metric(0, "tollgate_store_losses_total");
    let when = || fleet.metric(0, "tollgate_store_lost_timestamp_seconds");
    assert_eq!((check(http, ALICE), losses(), when()), (200, 0.0, 0.0), "a store that is new");
    for times in 1..3_u8 {
        redis.cli(&["FLUSHALL"]);
        (0..5).for_each(|_| assert_eq!(check(http, ALICE), 429));
        let lines = said(&fleet, LOST, times.into());
        assert_eq!((lines.len(), losses()), (times.into(), times.into()), "{lines:#?}");
        let process = redis.cli(&["INFO", "server"]);
        let process = process.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap();
        for part in [process.trim(), "server=", "after-the-memory-was-lost", "keys reset"] {
            assert!(lines[0].contains(part), "{part} is missing in {}", lines[0]);
        }
    }
    let epoch = || redis.cli(&["GET", "tg:epoch"]).split(' ').nth(3).unwrap().to_owned();
    let lost = epoch().parse::<f64>().unwrap() / 1e6;
    assert!((when() - lost).abs() < 1e-3, "{} and {lost}", when());
    // As a replica would find it that takes over.
    let mark = redis.cli(&["GET", "tg:epoch"]);
    let process = mark.split(' ').nth(1).unwrap();
    redis.cli(&["SET", "tg:epoch", &mark.replace(process, "another")]);
    check(http, ALICE);
    said(&fleet, TAKEN_OVER, 1);
    assert_eq!((said(&fleet, LOST, 0).len(), losses()), (2, 3.0));
}

#[test]
fn a_node_that_is_started_after_a_loss_says_so_and_does_not_count_it() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::start(1, &redis.url(), STRICT);
    check(fleet.addresses("http")[0], ALICE);
    redis.cli(&["FLUSHALL"]);
    check(fleet.addresses("http")[0], ALICE);
    drop(fleet);
    let fleet = Fleet::start(1, &redis.url(), STRICT);
    assert_eq!(check(fleet.addresses("http")[0], ALICE), 429);
    said(&fleet, LOST, 1);
    assert_eq!(fleet.metric(0, "tollgate_store_losses_total"), 0.0);
    assert!(fleet.metric(0, "tollgate_store_lost_timestamp_seconds") > 0.0);
}

#[test]
fn a_key_that_is_used_up_because_of_a_loss_says_why_and_is_reset() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::start(1, &redis.url(), RULES);
    assert_eq!(check(fleet.addresses("http")[0], ALICE), 200);
    let inspect = |user: &str| {
        let ran = fleet.nodes[0].run(&["keys", "inspect", user, "--output", "json"]);
        ran.json()["keys"].as_array().unwrap().clone()
    };
    let shown = |user: &str| fleet.nodes[0].run(&["keys", "inspect", user]).out;
    assert!(inspect("user=bob").iter().all(|key| key["lost_ago_ms"].is_null()));
    assert!(!shown("user=bob").contains("lost its memory"), "{}", shown("user=bob"));

    redis.cli(&["FLUSHALL"]);
    let keys = inspect("user=bob");
    for key in &keys[..4] {
        assert_eq!((&key["used"], &key["total"]), (&20.into(), &20.into()), "{key}");
        assert_eq!((&key["allowed"], key["lost_ago_ms"].is_u64()), (&false.into(), true), "{key}");
    }
    assert!(keys[5]["lost_ago_ms"].is_null(), "it is not shared: {}", keys[5]);
    let text = shown("user=bob");
    for part in ["the store lost its memory", "of bucket, log, month, sliding", "keys reset"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }

    let reset = fleet.nodes[0].run(&["keys", "reset", "user=bob", "--rule", "month"]);
    assert!(reset.out.contains("1 counter is reset"), "{}", reset.out);
    let keys = inspect("user=bob");
    assert_eq!((&keys[1]["used"], &keys[1]["lost_ago_ms"]), (&0.into(), &().into()), "{}", keys[1]);
    assert_eq!(keys[0]["used"], 20);
}

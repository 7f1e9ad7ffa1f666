//! Many requests of one key at once, at each of the doors that take them.

use serde_json::Value;

use crate::client::{Client, encode};
use crate::redis::Redis;
use crate::{Fleet, check, support};

const RULES: &str =
    "rules: [{ name: daily, key: [user], limit: 2150/day, on_store_failure: deny }]";

/// How many of so many checks pass that are asked in one body.
fn passing_in_a_body(fleet: &Fleet, user: &str, count: usize) -> usize {
    let checks = vec![format!(r#"{{"path":"/","user":"{user}"}}"#); count].join(",");
    let body = format!(r#"{{"checks":[{checks}]}}"#);
    let address = fleet.nodes[0].address("http");
    let (status, answer) = support::exchange(address, "POST", "/v1/check", &[], &body);
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let answers = answer["answers"].as_array().unwrap();
    answers.iter().filter(|answer| answer["allowed"] == true).count()
}

#[test]
fn nobody_is_denied_what_the_store_has() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::start(1, &redis.url(), RULES);
    let address = fleet.nodes[0].address("http");
    // Something is lent, and less than what comes at once.
    for _ in 0..50 {
        assert_eq!(check(address, r#"{"path":"/","user":"ann"}"#), 200);
    }
    assert_eq!(passing_in_a_body(&fleet, "ann", 1_000), 1_000);

    let mut client = Client::of(&fleet.nodes[0]);
    client.send(encode(&["TG.CHECK", "user", "ann"]).repeat(1_000));
    let passed = (0..1_000).filter(|_| client.answer().starts_with("*8\r\n:0\r\n")).count();
    assert_eq!(passed, 1_000);

    // A hundred are left, and one more comes every 40 seconds.
    let passed = passing_in_a_body(&fleet, "ann", 120);
    assert!((100..=102).contains(&passed), "{passed}");
}

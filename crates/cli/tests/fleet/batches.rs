//! Many requests of one key at once, at each of the doors that take them.

use serde_json::Value;

use crate::client::{Client, encode};
use crate::redis::Redis;
use crate::{Fleet, check, support};

const RULES: &str = "rules: [{ name: daily, key: [user], limit: 750/day, on_store_failure: deny }]";

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
    let fleet = Fleet::patient("1", 1, &redis.url(), RULES);
    let address = fleet.nodes[0].address("http");
    // Something is lent, and less than what comes at once.
    for _ in 0..50 {
        assert_eq!(check(address, r#"{"path":"/","user":"ann"}"#), 200);
    }
    assert_eq!(passing_in_a_body(&fleet, "ann", 300), 300);

    let mut client = Client::of(&fleet.nodes[0]);
    client.send(encode(&["TG.CHECK", "user", "ann"]).repeat(300));
    let passed = (0..300).filter(|_| client.answer().starts_with("*8\r\n:0\r\n")).count();
    assert_eq!(passed, 300);

    // A hundred are left, and one more comes every two minutes.
    let passed = passing_in_a_body(&fleet, "ann", 120);
    assert!((100..=102).contains(&passed), "{passed}");
}

#[test]
fn those_who_look_at_once_hear_what_the_store_has() {
    let redis = Redis::start(&[]);
    let rules = "rules: [{ name: daily, key: [user], limit: 9/day, on_store_failure: deny }]";
    let fleet = Fleet::patient("1", 2, &redis.url(), rules);
    for _ in 0..4 {
        assert_eq!(check(fleet.nodes[0].address("http"), r#"{"path":"/","user":"ann"}"#), 200);
    }
    let body = r#"{"checks":[{"user":"ann"},{"user":"ben"},{"user":"ann"}]}"#;
    let address = fleet.nodes[1].address("http");
    let (status, answer) = support::exchange(address, "POST", "/v1/peek", &[], body);
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let answers = answer["answers"].as_array().unwrap();
    let left: Vec<_> = answers.iter().map(|answer| answer["remaining"].as_u64()).collect();
    assert_eq!(left, [Some(5), Some(9), Some(5)]);

    let mut client = Client::of(&fleet.nodes[1]);
    let [ann, ben] = ["ann", "ben"].map(|user| encode(&["TG.PEEK", "user", user]));
    client.send(encode(&["MULTI"]) + &ann + &ben + &ann + &encode(&["EXEC"]));
    (0..4).for_each(|_| _ = client.answer());
    let answer = client.answer();
    let left: Vec<_> = answer.split("*8\r\n:0\r\n:9\r\n:").skip(1).map(|it| &it[..1]).collect();
    assert_eq!(left, ["5", "9", "5"], "{answer:?}");
}

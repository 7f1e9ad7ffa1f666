//! What operators see of a key that several nodes count, and a new start for it.

use serde_json::Value;

use crate::client::{Client, encode};
use crate::redis::{Redis, cli, until};
use crate::{Fleet, check};

const RULES: &str = "rules:
  - { name: shared, key: [user], limit: 600/day, on_store_failure: local 20% }
  - { name: alone, key: [user], limit: 900/day, consistency: local }";

const ALICE: &str = r#"{"path":"/","user":"alice"}"#;

fn spend(fleet: &Fleet, times: usize) -> usize {
    let addresses = fleet.addresses("http");
    (0..times).filter(|at| check(addresses[at % addresses.len()], ALICE) == 200).count()
}

fn inspect(fleet: &Fleet, node: usize) -> Value {
    let ran = fleet.nodes[node].run(&["keys", "inspect", "user=alice", "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.notes);
    ran.json()["keys"].clone()
}

#[test]
fn keys_of_shared_limits_are_those_of_the_store_and_reset_there() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::start(2, &redis.url(), RULES);
    assert_eq!(spend(&fleet, 40), 40);
    for node in 0..2 {
        let keys = inspect(&fleet, node);
        let (shared, alone) = (&keys[0], &keys[1]);
        assert_eq!((&shared["told_by"], &alone["told_by"]), (&"store".into(), &"node".into()));
        assert!((40..=600).contains(&shared["used"].as_u64().unwrap()), "{keys}");
        assert_eq!(alone["used"], 20, "each node has counted its own");
    }
    let shown = fleet.nodes[0].run(&["keys", "inspect", "user=alice"]);
    for part in [", shared", "as the store says, for all nodes"] {
        assert!(shown.out.contains(part), "{part} is missing in\n{}", shown.out);
    }
    assert_eq!(
        redis.cli(&["--raw", "KEYS", "tg:{user=alice}:default/shared:*"]).lines().count(),
        1
    );

    let reset = fleet.nodes[1].run(&["keys", "reset", "user=alice", "--rule", "shared"]);
    assert_eq!(reset.code, 0, "{}", reset.notes);
    assert!(reset.out.contains("1 counter is reset"), "{}", reset.out);
    assert!(reset.out.contains("other nodes may pass what was lent to them"), "{}", reset.out);
    // What the other node gives back meanwhile may be all that the store knows of it.
    assert_eq!(inspect(&fleet, 1)[0]["used"], 0);

    // The same from a client of Redis, among other commands.
    assert!(spend(&fleet, 2) > 0);
    let resp = fleet.nodes[0].address("resp").port();
    assert_eq!(cli(resp, &["TG.RESET", "user", "alice", "rule", "shared"]), "1");
    let refused = cli(resp, &["TG.RESET", "user", "alice", "rule", "shred"]);
    assert!(refused.contains("did you mean `shared`"), "{refused}");
}

#[test]
fn a_store_that_is_gone_is_named_to_operators() {
    let mut redis = Redis::start(&[]);
    let fleet = Fleet::start(1, &redis.url(), RULES);
    assert_eq!(spend(&fleet, 10), 10);
    redis.kill();
    until("the store is known to be gone", || {
        spend(&fleet, 1);
        (fleet.metric(0, "tollgate_store_degraded") == 1.0).then_some(())
    });
    let keys = inspect(&fleet, 0);
    assert_eq!(keys[0]["told_by"], "node_alone");
    assert_eq!(
        (&keys[0]["on_store_failure"], &keys[0]["total"]),
        (&"local 20%".into(), &120.into())
    );
    assert!(!keys[0]["store_failure"].as_str().unwrap().is_empty());
    let shown = fleet.nodes[0].run(&["keys", "inspect", "user=alice"]);
    for part in [
        "token bucket of 600/day, without the store: local 20%",
        "/120 ",
        "the store does not answer (it fails, and is left alone until it is well: ",
        "local 20%: this node lets its share pass",
    ] {
        assert!(shown.out.contains(part), "{part} is missing in\n{}", shown.out);
    }
    let reset = fleet.nodes[0].run(&["keys", "reset", "user=alice"]);
    assert_ne!(reset.code, 0, "{}", reset.out);
    assert!(reset.notes.contains("`tollgate doctor`"), "{}", reset.notes);
    let resp = fleet.nodes[0].address("resp").port();
    let refused = cli(resp, &["TG.RESET", "user", "alice", "rule", "shared"]);
    assert!(refused.contains("did not forget it"), "{refused}");
}

#[test]
fn commands_before_one_that_waits_are_carried_out_once() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::start(1, &redis.url(), RULES);
    let mut client = Client::of(&fleet.nodes[0]);
    let throttle = encode(&["CL.THROTTLE", "carol", "4", "5", "3600"]);
    let (reset, peek) = (encode(&["TG.RESET", "user", "bob"]), encode(&["TG.PEEK", "user", "bob"]));
    client.send([&throttle, &reset, &throttle, &peek, &throttle].map(String::as_str).concat());
    let answers: Vec<_> = (0..5).map(|_| client.answer()).collect();
    let throttled = [0, 2, 4].map(|at| answers[at].clone());
    for (left, answer) in [4, 3, 2].into_iter().zip(throttled) {
        let begin = format!("*5\r\n:0\r\n:5\r\n:{left}\r\n");
        assert!(answer.starts_with(&begin), "{left} are left: {answers:?}");
    }
    assert_eq!(client.ask(&["PING"]), "+PONG\r\n", "nothing else was answered");
}

#[test]
fn a_pipeline_longer_than_a_batch_is_answered_once_and_in_order() {
    let redis = Redis::start(&[]);
    let rules = "rules: [{ name: s, key: [user], limit: 60/day, consistency: strict }]";
    let fleet = Fleet::start(1, &redis.url(), rules);
    let mut client = Client::of(&fleet.nodes[0]);
    let throttle = encode(&["CL.THROTTLE", "carol", "4", "5", "3600"]);
    let checks = encode(&["TG.CHECK", "user", "eve"]).repeat(80);
    client.send(throttle.clone() + &checks + &throttle + &encode(&["PING"]));
    assert!(client.answer().starts_with("*5\r\n:0\r\n:5\r\n:4\r\n"));
    let passed = (0..80).filter(|_| client.answer().starts_with("*8\r\n:0\r\n")).count();
    assert_eq!(passed, 60);
    assert!(client.answer().starts_with("*5\r\n:0\r\n:5\r\n:3\r\n"));
    assert_eq!(client.answer(), "+PONG\r\n", "nothing was answered twice");
}

#[test]
fn all_checks_of_a_transaction_are_asked_for() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::start(1, &redis.url(), RULES);
    let mut client = Client::of(&fleet.nodes[0]);
    let users = ["ann", "ben", "cat", "dan"];
    let checks = users.map(|user| encode(&["TG.CHECK", "user", user])).concat();
    client.send(encode(&["MULTI"]) + &checks + &encode(&["EXEC"]));
    (0..5).for_each(|_| _ = client.answer());
    let answer = client.answer();
    assert_eq!(answer.matches("*8\r\n:0\r\n").count(), 4, "all pass: {answer:?}");
}

#[test]
fn a_transaction_cannot_wait_for_the_store_to_forget() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::start(1, &redis.url(), RULES);
    let mut client = Client::of(&fleet.nodes[0]);
    client.ask(&["MULTI"]);
    let refused = client.ask(&["TG.RESET", "user", "bob"]);
    assert!(refused.contains("send TG.RESET by itself"), "{refused}");
    assert!(client.ask(&["EXEC"]).contains("EXECABORT"));
}

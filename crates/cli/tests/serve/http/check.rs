//! May this request pass?

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{Reply, ask, get, post};
use crate::support::Server;

const RULES: &str = "
client_ip: { trusted_proxies: [10.0.0.0/8], header: x-forwarded-for }
rules:
  - { name: per-user, key: [user], limit: 2/h }
  - { name: per-ip, key: [ip], limit: 3/h }
  - { name: paid, match: { claims.plan: pro }, key: [account], limit: 10/h }
  - { name: trial, match: { path: /trial }, key: [], limit: 1/h, mode: shadow }
  - { name: gone, match: { path: /gone }, key: [], limit: 1/h, deny: { status: 503, message: 'No {rule}.' } }
";

fn check(at: SocketAddr, body: &Value) -> Reply {
    post(at, "/v1/check", body)
}

fn statuses(at: SocketAddr, body: &Value, times: usize) -> Vec<u16> {
    (0..times).map(|_| check(at, body).status).collect()
}

#[test]
fn says_yes_and_then_no_and_when_to_come_again() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let alice = json!({ "method": "GET", "path": "/", "user": "alice" });
    let first = check(at, &alice);
    assert_eq!((first.status, first.header("content-type")), (200, Some("application/json")));
    let told = first.json();
    assert_eq!((&told["allowed"], &told["rule"]), (&json!(true), &json!("per-user")));
    assert_eq!((&told["limit"], &told["remaining"]), (&json!(2), &json!(1)));
    assert_eq!(told["ticket"], Value::Null);
    assert_eq!(first.header("x-ratelimit-remaining"), Some("1"));
    assert_eq!(first.header("ratelimit-policy"), Some("\"per-user\";q=2;w=3600"));
    assert!(first.header("ratelimit").unwrap().starts_with("\"per-user\";r=1;t="));

    assert_eq!(check(at, &alice).status, 200);
    let denied = check(at, &alice);
    assert_eq!((denied.status, denied.header("cache-control")), (429, Some("no-store")));
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    let seconds: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    let told = denied.json();
    let milliseconds = told["retry_after_ms"].as_u64().unwrap();
    assert_eq!(seconds, milliseconds.div_ceil(1000), "{told}");
    assert_eq!((&told["allowed"], &told["retry"]), (&json!(false), &json!("after")));
    assert_eq!((&told["status"], &told["violated-policies"]), (&json!(429), &json!(["per-user"])));
    assert!(told["type"].as_str().unwrap().ends_with("#quota-exceeded"), "{told}");
}

#[test]
fn peeking_spends_nothing() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let alice = json!({ "user": "alice" });
    for _ in 0..5 {
        assert_eq!(post(at, "/v1/peek", &alice).json()["remaining"], 2);
    }
    assert_eq!(statuses(at, &alice, 3), [200, 200, 429]);
    assert_eq!(post(at, "/v1/peek", &alice).status, 429);
}

#[test]
fn the_address_is_the_one_that_is_told_and_never_the_callers() {
    let server = Server::start(RULES);
    let at = server.address("http");
    assert_eq!(statuses(at, &json!({}), 5), [200; 5], "nobody knows the address");
    assert_eq!(check(at, &json!({})).json()["rules"], json!([]));
    let client = json!({ "ip": "192.0.2.7" });
    assert_eq!(statuses(at, &client, 4), [200, 200, 200, 429]);
    let behind =
        |client: &str| json!({ "ip": "10.0.0.1", "headers": { "X-Forwarded-For": client } });
    assert_eq!(check(at, &behind("192.0.2.7")).status, 429, "it is the same client");
    assert_eq!(check(at, &behind("192.0.2.8")).status, 200);
    let liar = json!({ "ip": "192.0.2.7", "headers": { "x-forwarded-for": "192.0.2.9" } });
    assert_eq!(check(at, &liar).status, 429, "only trusted proxies are believed");
}

#[test]
fn counts_as_often_as_it_costs() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let cost = |cost: u64| json!({ "claims": { "plan": "pro" }, "account": "acme", "cost": cost });
    assert_eq!(check(at, &cost(7)).json()["remaining"], 3);
    assert_eq!(check(at, &cost(4)).status, 429);
    assert_eq!(check(at, &cost(0)).json()["remaining"], 3);
    let never = check(at, &cost(11));
    assert_eq!((never.status, never.header("retry-after")), (429, None));
    assert_eq!(never.json()["retry"], "never");
}

#[test]
fn several_are_decided_in_order() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let alice = json!({ "user": "alice" });
    let body = json!({ "checks": [alice, alice, { "user": "bob" }, alice] });
    let several = check(at, &body);
    assert_eq!(several.status, 200);
    let answers = several.json()["answers"].as_array().unwrap().clone();
    let allowed: Vec<_> = answers.iter().map(|answer| answer["allowed"].as_bool()).collect();
    assert_eq!(allowed, [Some(true), Some(true), Some(true), Some(false)]);
    assert_eq!(answers[2]["remaining"], 1);
    assert_eq!(check(at, &json!({ "checks": [] })).json(), json!({ "answers": [] }));
    let bad = check(at, &json!({ "checks": [{ "user": "carol" }, { "usre": "carol" }] }));
    assert_eq!(bad.status, 422);
    assert_eq!(post(at, "/v1/peek", &json!({ "user": "carol" })).json()["remaining"], 2);
}

#[test]
fn a_rule_denies_with_its_own_status_and_words() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let gone = json!({ "path": "/gone" });
    assert_eq!(statuses(at, &gone, 2), [200, 503]);
    let told = check(at, &gone).json();
    assert_eq!((&told["status"], &told["detail"]), (&json!(503), &json!("No gone.")));
}

#[test]
fn rules_in_shadow_are_told_and_deny_nothing() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let trial = json!({ "path": "/trial" });
    assert_eq!(statuses(at, &trial, 2), [200, 200]);
    let told = check(at, &trial).json();
    let rule = &told["rules"][0];
    assert_eq!((&rule["mode"], &rule["allowed"]), (&json!("shadow"), &json!(false)));
    assert_eq!((&told["allowed"], &told["rule"]), (&json!(true), &Value::Null));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let wrong = |body: &str| ask(at, "POST", "/v1/check", body);
    for (body, status, detail) in [
        ("", 400, "the body is empty"),
        ("{\n  user: 1}", 400, "line 2 column 3"),
        ("user=alice", 400, "line 1 column 1"),
        ("{\"usre\": \"alice\"}", 422, "did you mean `user`?"),
        ("{\"user\": \"a\", \"user\": \"b\"}", 422, "`user` is there twice"),
        ("{\"cost\": -1}", 422, "whole number"),
        ("{\"cost\": 1.5}", 422, "whole number"),
        ("{\"cost\": 1e30}", 422, "whole number"),
        ("[]", 422, "an object such as"),
    ] {
        let reply = wrong(body);
        assert_eq!(reply.status, status, "{body}");
        assert!(reply.detail().contains(detail), "{body}: {}", reply.detail());
    }
    let too_many = json!({ "checks": vec![json!({}); 1001] });
    assert_eq!(check(at, &too_many).status, 422);
}

#[test]
fn pages_that_are_not_there_and_methods_that_do_not_fit_are_told() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let reply = get(at, "/v1/check");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    assert!(reply.detail().contains("POST"));
    let reply = ask(at, "DELETE", "/openapi.json", "");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")));
    let reply = get(at, "/v1/chekc");
    assert_eq!(reply.status, 404);
    assert!(reply.detail().contains("GET /"));
    let reply = ask(at, "PUT", "/v2", "");
    assert_eq!(reply.status, 404);
    let welcome = get(at, "/");
    assert!(welcome.status == 200 && welcome.body.contains("POST /v1/check"), "{welcome:?}");
}

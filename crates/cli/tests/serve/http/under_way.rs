//! Requests under way, and how they ended.

use std::fs;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{Reply, post};
use crate::support::{Server, until};

const RULES: &str = "
rules:
  - { name: exports, match: { path: /export }, key: [user], concurrent: 1 }
  - name: failures
    match: { path: /login }
    key: [ip]
    limit: 1/h
    count_if: response.status == 401 || response.headers['x-failed'] == 'yes'
  - { name: plain, match: { path: /plain }, key: [], limit: 100/h }
";

/// A check that passes, and its ticket.
fn ticket(at: SocketAddr, body: &Value) -> String {
    let reply = post(at, "/v1/check", body);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["ticket"].as_str().unwrap_or_else(|| panic!("{reply:?}")).to_owned()
}

fn report(at: SocketAddr, body: &Value) -> Reply {
    post(at, "/v1/report", body)
}

fn export() -> Value {
    json!({ "path": "/export", "user": "alice" })
}

#[test]
fn a_slot_is_free_when_the_end_is_reported() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let ticket = ticket(at, &export());
    let denied = post(at, "/v1/check", &export());
    assert_eq!((denied.status, denied.header("retry-after")), (429, Some("1")));
    assert_eq!(denied.json()["retry"], "on_return");
    let done = report(at, &json!({ "ticket": ticket, "status": 200 }));
    assert_eq!((done.status, done.json()), (200, json!({ "reported": true })));
    assert_eq!(post(at, "/v1/check", &export()).status, 200);
    let again = report(at, &json!({ "ticket": ticket, "status": 200 }));
    assert_eq!(again.status, 404);
    assert!(again.detail().contains("reported before"));
}

#[test]
fn only_what_counts_is_spent() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let login = json!({ "method": "POST", "path": "/login", "ip": "192.0.2.7" });
    let end = |rest: Value| {
        let mut body = json!({ "ticket": ticket(at, &login) });
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        assert_eq!(report(at, &body).status, 200, "{body}");
        post(at, "/v1/peek", &login).status
    };
    assert_eq!(end(json!({ "status": 200, "headers": { "X-Failed": "no" } })), 200);
    assert_eq!(end(json!({ "status": 200, "headers": { "X-Failed": "yes" } })), 429);
}

#[test]
fn several_ends_are_reported_at_once() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let checks = json!({ "checks": [export(), { "path": "/plain" }, export()] });
    let answers = post(at, "/v1/check", &checks).json()["answers"].clone();
    assert_eq!((&answers[1]["ticket"], &answers[2]["allowed"]), (&Value::Null, &json!(false)));
    assert_eq!(answers[2]["ticket"], Value::Null, "whoever is denied holds nothing");
    let reports = json!({ "reports": [{ "ticket": answers[0]["ticket"] }, { "ticket": "t" }] });
    let reply = report(at, &reports);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json(), json!({ "answers": [{ "reported": true }, { "reported": false }] }));
}

#[test]
fn peeking_needs_no_ticket() {
    let server = Server::start(RULES);
    let reply = post(server.address("http"), "/v1/peek", &export());
    assert_eq!((reply.status, &reply.json()["ticket"]), (200, &Value::Null));
}

#[test]
fn tickets_that_nobody_reports_end() {
    let config = tempfile::NamedTempFile::new().unwrap();
    fs::write(config.path(), "[limits]\nticket_time = '50ms'\n").unwrap();
    let server = Server::with(RULES, &["--config", config.path().to_str().unwrap()]);
    let at = server.address("http");
    let ticket = ticket(at, &export());
    until("the slot is free again", || {
        (post(at, "/v1/check", &export()).status == 200).then_some(())
    });
    assert_eq!(report(at, &json!({ "ticket": ticket })).status, 404);
}

#[test]
fn no_more_are_under_way_than_there_is_room_for() {
    let config = tempfile::NamedTempFile::new().unwrap();
    fs::write(config.path(), "[limits]\ntickets = 2\n").unwrap();
    let server = Server::with(RULES, &["--config", config.path().to_str().unwrap()]);
    let at = server.address("http");
    let user = |name: &str| json!({ "path": "/export", "user": name });
    let first = ticket(at, &user("a"));
    ticket(at, &user("b"));
    let full = post(at, "/v1/check", &user("c"));
    assert_eq!((full.status, full.header("retry-after")), (503, Some("1")));
    assert!(full.detail().contains("/v1/report"));
    assert_eq!(post(at, "/v1/check", &json!({ "path": "/plain" })).status, 200);
    assert_eq!(report(at, &json!({ "ticket": first })).status, 200);
    ticket(at, &user("c"));
}

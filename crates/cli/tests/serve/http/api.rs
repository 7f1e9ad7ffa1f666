//! `/openapi.json` is true: its examples are sent, and what comes back is what it says.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{Reply, ask, get, post};
use crate::support::Server;

const RULES: &str = "
rules:
  - { name: per-user, key: [user], limit: 100/h, warn_at: [1%, 80%] }
  - { name: per-ip, key: [ip], limit: 100/h, mode: shadow }
  - { name: login, match: { path: /login }, key: [ip], limit: 5/h, count_if: response.status == 401 }
  - { name: exports, match: { path: /export }, key: [], concurrent: 1 }
  - { name: shaped, match: { path: /shaped }, key: [], limit: 5/min, algorithm: leaky_bucket, queue: 1 }
  - { name: blocked, match: { path: /blocked }, key: [], limit: 1/h, block_for: 1h }
  - { name: free, match: { path: /free }, key: [], limit: unlimited }
";

/// What is promised, by whoever serves it.
struct Api(Value);

impl Api {
    fn of(at: SocketAddr) -> Self {
        let reply = get(at, "/openapi.json");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
        Self(reply.json())
    }

    fn operations(&self) -> impl Iterator<Item = (&String, String, &Value)> {
        self.0["paths"].as_object().unwrap().iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, it)| (path, method.to_ascii_uppercase(), it))
        })
    }

    fn examples(operation: &Value) -> Vec<Value> {
        let examples = &operation["requestBody"]["content"]["application/json"]["examples"];
        examples.as_object().into_iter().flatten().map(|(_, it)| it["value"].clone()).collect()
    }

    /// Everything that is wrong with a value, by a schema of this document.
    fn faults(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut whole = schema.clone();
        whole["components"] = self.0["components"].clone();
        let validator = jsonschema::draft202012::new(&whole).unwrap();
        validator.iter_errors(value).map(|error| error.to_string()).collect()
    }

    /// An answer is one of those that are promised.
    fn assert_promised(&self, path: &str, method: &str, reply: &Reply) {
        let operation = &self.0["paths"][path][method.to_ascii_lowercase()];
        let promised = &operation["responses"][reply.status.to_string()];
        let kind = reply.header("content-type").unwrap();
        let schema = &promised["content"][kind]["schema"];
        assert!(schema.is_object(), "{method} {path} does not promise {reply:?}");
        let value = match kind.contains("json") {
            true => reply.json(),
            false => reply.body.clone().into(),
        };
        assert_eq!(self.faults(schema, &value), [""; 0], "{method} {path}: {value}");
        let known = |name: &str| {
            promised["headers"].as_object()?.keys().find(|it| it.eq_ignore_ascii_case(name))
        };
        for (name, _) in reply.headers.iter().filter(|(name, _)| name.contains("ratelimit")) {
            assert!(known(name).is_some(), "{method} {path} does not promise the header {name}");
        }
    }
}

#[test]
fn every_example_is_answered_as_promised() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let api = Api::of(at);
    let mut sent = 0;
    for (path, method, operation) in api.operations() {
        let examples = Api::examples(operation);
        assert_eq!(examples.is_empty(), method == "GET", "{method} {path} has no examples");
        for example in &examples {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            assert_eq!(api.faults(schema, example), [""; 0], "{example}");
            let reply = post(at, path, example);
            assert!(matches!(reply.status, 200 | 404), "{example}: {reply:?}");
            api.assert_promised(path, &method, &reply);
            sent += 1;
        }
        if method == "GET" {
            api.assert_promised(path, &method, &get(at, path));
        }
    }
    assert!(sent >= 12, "{sent} are few");
}

#[test]
fn every_kind_of_answer_is_promised() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let api = Api::of(at);
    let check = |body: Value| {
        let reply = post(at, "/v1/check", &body);
        api.assert_promised("/v1/check", "POST", &reply);
        api.assert_promised("/v1/peek", "POST", &post(at, "/v1/peek", &body));
        reply
    };
    for path in ["/shaped", "/shaped", "/shaped", "/blocked", "/blocked", "/free", "/export"] {
        check(json!({ "path": path }));
    }
    let denied = check(json!({ "path": "/export" }));
    assert_eq!((denied.status, &denied.json()["retry"]), (429, &json!("on_return")));
    let never = check(json!({ "user": "a", "cost": 101 }));
    assert_eq!((never.status, &never.json()["retry"]), (429, &json!("never")));
    let warned = check(json!({ "user": "a", "cost": 80 }));
    assert_eq!(warned.json()["rules"][0]["warning"], 80);
    let login = check(json!({ "path": "/login", "ip": "192.0.2.7" })).json();
    let report = json!({ "ticket": login["ticket"], "status": 200 });
    for status in [200, 404] {
        let reply = post(at, "/v1/report", &report);
        assert_eq!(reply.status, status);
        api.assert_promised("/v1/report", "POST", &reply);
    }
    for path in ["/v1/check", "/v1/peek", "/v1/report"] {
        for body in ["", "{", "[]", "{\"usre\": 1}"] {
            let reply = ask(at, "POST", path, body);
            assert!(matches!(reply.status, 400 | 422), "{reply:?}");
            api.assert_promised(path, "POST", &reply);
        }
    }
}

/// What the schema of a request refuses, the server refuses as well, and it takes what that takes.
#[test]
fn the_schema_of_a_request_is_as_strict_as_the_server() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let api = Api::of(at);
    let schema = json!({ "$ref": "#/components/schemas/Check" });
    for (body, is_good) in [
        (json!({ "user": 7, "account": true, "api_key": "k", "claims": null }), true),
        (json!({ "user": { "id": 7 }, "user.name": "a", "header.x": [1, "b"] }), true),
        (json!({ "body": { "a": { "b": { "c": 1 } } }, "descriptor.a.b": "c" }), true),
        (json!({ "usre": "a" }), false),
        (json!({ "query.page": "2" }), false),
        (json!({ "claims": "pro" }), false),
        (json!({ "claims": ["pro"] }), false),
        (json!({ "claims": { "roles": ["a"] } }), false),
        (json!({ "api_key": {} }), false),
        (json!({ "method": ["GET"] }), false),
        (json!({ "method": "" }), false),
        (json!({ "path": "" }), false),
        (json!({ "host": "" }), true),
        (json!({ "headers": "a" }), false),
        (json!({ "headers": { "a": {} } }), false),
        (json!({ "cost": -1 }), false),
        (json!({ "cost": "1" }), false),
        (json!({ "cost": 9007199254740992_u64 }), false),
    ] {
        assert_eq!(api.faults(&schema, &body).is_empty(), is_good, "{body}");
        let status = post(at, "/v1/peek", &body).status;
        assert_eq!(status, if is_good { 200 } else { 422 }, "{body}");
    }
}

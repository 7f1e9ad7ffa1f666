//! Lines of the log about denials.

use std::fs;

use serde_json::Value;

use crate::resp::{Client, encode};
use crate::support::{Server, exchange, until};

const RULES: &str = "rules: [{ name: per-user, key: [user, header.authorization], limit: 1/h }]";

/// Denies a request of a user so many times, and returns the lines about it.
fn denied(config: &str, user: &str, times: usize) -> (Server, Vec<Value>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), config).unwrap();
    let flags = ["--config", file.path().to_str().unwrap(), "--log-format", "json"];
    let server = Server::with(RULES, &flags);
    let request = serde_json::json!({
        "user": user, "path": "/a\nb", "method": "GET", "ip": "192.0.2.7",
        "headers": { "authorization": "s3cret" },
    });
    for _ in 0..=times {
        let check = request.to_string();
        let (status, body) = exchange(server.address("http"), "POST", "/v1/check", &[], &check);
        assert!(matches!(status, 200 | 429), "{body}");
    }
    let lines = lines(&server);
    (server, lines)
}

/// The lines about denials, once there are any.
fn lines(server: &Server) -> Vec<Value> {
    until("denials are written", || {
        let output = server.process.output();
        let lines = output.iter().filter_map(|line| serde_json::from_str(line).ok());
        let lines: Vec<Value> = lines.filter(|line: &Value| line["message"] == "denied").collect();
        Some(lines).filter(|lines| !lines.is_empty())
    })
}

#[test]
fn what_tells_a_key_is_not_written_beside_its_hash() {
    let rules = "rules: [{ name: per-item, match: { path: '/items/{id}' }, key: [path.id, ip], limit: 1/h }]";
    let server = Server::with(rules, &["--log-format", "json"]);
    let check = r#"{"path":"/items/s3cret","ip":"192.0.2.7"}"#;
    while exchange(server.address("http"), "POST", "/v1/check", &[], check).0 != 429 {}
    let line = lines(&server)[0].to_string();
    assert!(!line.contains("s3cret") && !line.contains("192.0.2.7"), "{line}");
    assert!(line.contains("path.id=") && line.contains(" ip="), "{line}");
}

#[test]
fn limits_that_come_with_the_command_are_written_about() {
    let commands = ["CL.THROTTLE", "CL.THROTTLE", "TOLLGATE.ALLOW"];
    let configs = ["", "[log]\nplain_keys = true\n", ""];
    for (command, config) in commands.into_iter().zip(configs) {
        let shown = !config.is_empty();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), config).unwrap();
        let flags = ["--config", file.path().to_str().unwrap(), "--log-format", "json"];
        let server = Server::with(RULES, &flags);
        let mut client = Client::of(&server);
        client.send(encode(&[command, "al\nice", "0", "1", "3600"]).repeat(5));
        (0..5).for_each(|_| _ = client.answer());
        let lines = lines(&server);
        let [line] = &*lines else { panic!("one for all that came together: {lines:?}") };
        assert_eq!((&line["door"], &line["rule"]), (&"resp".into(), &"(cl.throttle)".into()));
        let key = line["key"].as_str().unwrap();
        assert_eq!((key == "key=al\\nice", key.starts_with("key=")), (shown, true), "{line}");
        assert_eq!(line["left_out"], 3, "of four that were denied");
    }
}

#[test]
fn a_denial_is_a_line_with_who_and_why() {
    let (_, lines) = denied("", "alice\n{\"message\":\"denied\"}", 1);
    let [line] = &*lines else { panic!("one line: {lines:?}") };
    assert_eq!((&line["door"], &line["rule"]), (&"http".into(), &"per-user".into()));
    assert_eq!((&line["client"], &line["method"]), (&"192.0.2.7".into(), &"GET".into()));
    assert!(!line.to_string().contains("alice"), "keys are hashed: {line}");
    assert!(!line.to_string().contains("s3cret"), "{line}");
    assert!(line["key"].as_str().unwrap().starts_with("user="), "{line}");
}

#[test]
fn keys_are_plain_if_asked_for_but_credentials_never_are() {
    let (_, lines) = denied("[log]\nplain_keys = true\n", "alice", 1);
    let line = lines[0].to_string();
    assert!(line.contains("user=alice") && !line.contains("s3cret"), "{line}");
}

#[test]
fn only_so_many_are_written_and_the_rest_is_counted() {
    let (server, lines) = denied("[log]\ndenials = 1\n", "alice", 200);
    let unlogged = server.metric("tollgate_denials_unlogged_total").unwrap();
    // Another line a second may be written while the requests come.
    assert!(lines.len() < 100, "{} lines", lines.len());
    assert!(unlogged >= 100.0, "{unlogged}");
}

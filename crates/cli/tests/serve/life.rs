//! From its start to its end.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::support::{Server, run, until};

const RULES: &str = "rules: [{ name: everybody, key: [], limit: 3/h }]";

/// What is answered to a GET, all of it.
fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn is_ready_once_it_says_so_and_ends_when_told() {
    let mut server = Server::start(RULES);
    let ready = get(server.address("status"), "/readyz");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    server.process.signal("TERM");
    assert!(server.process.wait().success());
}

#[test]
fn rules_that_wait_for_outcomes_are_named_where_nobody_tells_them() {
    let waiting = "rules:
  - { name: slots, key: [], concurrent: 3 }
  - { name: failures, key: [], limit: 3/h, count_if: response.status == 401 }";
    let mut server = Server::start(RULES);
    assert!(!server.process.output().join("\n").contains(" at this door"), "all count everything");
    fs::write(server.rules(), waiting).unwrap();
    let slots = server.process.wait_for_line("when a request ends");
    assert!(slots.contains("slots") && slots.contains("forward_auth"), "{slots}");
    let failures = server.process.wait_for_line("how a request ended");
    assert!(failures.contains("failures") && !failures.contains("slots"), "{failures}");
    let mut server = Server::start(waiting);
    server.process.wait_for_line("when a request ends");
    let mut server = Server::with(waiting, &["--forward-auth", "off"]);
    let slots = server.process.wait_for_line("Envoy does not say at this door when a request ends");
    assert!(slots.contains("slots") && slots.contains("grpc"), "{slots}");
    let failures = server.process.wait_for_line("how a request ended");
    assert!(failures.contains("failures") && failures.contains("grpc"), "{failures}");
    let mut server = Server::with(waiting, &["--forward-auth", "off", "--grpc", "off"]);
    server.process.wait_for_line("serving");
    assert!(!server.process.output().join("\n").contains(" at this door"), "they report there");
}

#[test]
fn leaves_before_it_drains() {
    let config = tempfile::NamedTempFile::new().unwrap();
    fs::write(config.path(), "[drain]\ndelay = '1h'\n").unwrap();
    let server = Server::with(RULES, &["--config", config.path().to_str().unwrap()]);
    let status = server.address("status");
    server.process.signal("TERM");
    let answer = until("it is not ready any more", || {
        Some(get(status, "/readyz")).filter(|answer| !answer.starts_with("HTTP/1.1 200"))
    });
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let status_door = status.to_string();
    let told = run(&["ready", "--server", &status_door]);
    assert_eq!((told.code, &*told.out), (1, "not ready\n"), "{}", told.notes);
    let healthy = get(status, "/healthz");
    assert!(healthy.starts_with("HTTP/1.1 200"), "everybody is still served: {healthy}");
}

#[test]
fn a_command_asks_whether_it_is_ready() {
    let mut server = Server::start(RULES);
    for door in ["status", "http", "forward_auth", "admin"] {
        let address = server.address(door).to_string();
        let told = run(&["ready", "--server", &address]);
        assert_eq!((told.code, &*told.out), (0, "ready\n"), "{door}: {}", told.notes);
        let told = run(&["ready", "--server", &address, "--output", "json"]);
        assert_eq!((told.code, &*told.out), (0, "{\"ready\":true}\n"), "{door}: {}", told.notes);
    }
    let address = server.address("resp").to_string();
    assert_eq!(run(&["ready", "--server", &address]).code, 2, "that is no HTTP");
    let address = server.address("status").to_string();
    server.process.signal("TERM");
    server.process.wait();
    let told = run(&["ready", "--server", &address]);
    assert_eq!(told.code, 2);
    assert!(told.notes.contains("cannot be reached"), "{}", told.notes);
}

#[test]
fn rules_that_change_come_into_force_and_bad_ones_do_not() {
    let mut server = Server::start(RULES);
    fs::write(server.rules(), "rules: [{ name: everybody, key: [], limt: 5/h }]").unwrap();
    let refused = server.process.wait_for_line("rules are refused");
    assert!(refused.contains("limt") || server.process.output().join("\n").contains("limt"));
    fs::write(server.rules(), "rules: [{ name: everybody, key: [], limit: 5/h }]").unwrap();
    server.process.wait_for_line("rules are in force");
}

#[test]
fn reads_its_rules_again_when_hung_up_on() {
    let mut server = Server::start(RULES);
    server.process.signal("HUP");
    server.process.wait_for_line("rules are in force");
}

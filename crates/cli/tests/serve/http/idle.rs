//! Thousands of connections that do nothing.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use super::{connect, post};
use crate::support::Server;

const RULES: &str = "rules: [{ name: per-user, key: [user], limit: 1000/h }]";

/// As many files as this process may ever have open.
fn most_files() -> u64 {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    maximum.unwrap_or(u64::MAX)
}

/// What a process takes, in kilobytes.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The end of a short answer, after which there is nothing to read.
fn read_answer(stream: &mut TcpStream) {
    let mut seen = Vec::new();
    let mut room = [0; 512];
    while !seen.ends_with(b"ok\n") {
        let read = stream.read(&mut room).unwrap();
        assert_ne!(read, 0, "it was closed after {seen:?}");
        seen.extend_from_slice(&room[..read]);
    }
}

#[test]
fn ten_thousand_idle_connections_keep_nobody_waiting() {
    let count = most_files().saturating_sub(500).min(10_000);
    assert!(count >= 1_000, "this test needs more open files: raise the hard limit of `ulimit -n`");
    let server = Server::start(RULES);
    let at = server.address("http");
    assert_eq!(post(at, "/v1/check", &json!({ "user": "alice" })).status, 200);
    let before = resident(server.process.id());
    let mut idle = Vec::new();
    for number in 0..count {
        let mut stream = connect(at);
        // Every other one has been served before.
        if number % 2 == 0 {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
            read_answer(&mut stream);
        }
        idle.push(stream);
    }
    for _ in 0..100 {
        assert_eq!(post(at, "/v1/check", &json!({ "user": "alice" })).status, 200);
    }
    let each = resident(server.process.id()).saturating_sub(before) * 1024 / count;
    assert!(each < 30_000, "an idle connection takes {each} bytes");
    let served = idle.iter_mut().step_by(2).take(10);
    for stream in served {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        read_answer(stream);
    }
}

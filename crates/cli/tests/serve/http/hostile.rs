//! Clients that mean harm, or know no better. Others notice nothing.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use serde_json::json;

use super::{Reply, ask, connect, post};
use crate::support::{Server, until};

const RULES: &str = "rules: [{ name: per-user, key: [user], limit: 1000/h }]";

/// A server with settings of its own.
pub(super) fn server(config: &str) -> Server {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), config).unwrap();
    Server::with(RULES, &["--config", file.path().to_str().unwrap()])
}

pub(super) fn assert_serves(at: SocketAddr) {
    assert_eq!(post(at, "/v1/check", &json!({ "user": "alice" })).status, 200);
}

/// A connection on which this was sent.
pub(super) fn sent(at: SocketAddr, bytes: impl AsRef<[u8]>) -> TcpStream {
    let mut stream = connect(at);
    stream.write_all(bytes.as_ref()).unwrap();
    stream
}

#[test]
fn bodies_that_are_too_long_are_refused() {
    let server = server("[limits]\nbody_bytes = 1024\n");
    let at = server.address("http");
    let announced = "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n";
    let reply = Reply::read(sent(at, announced));
    assert_eq!(reply.status, 413);
    assert!(reply.detail().contains("more than 1024 bytes"));
    let chunk = format!("400\r\n{}\r\n", " ".repeat(0x400));
    let head = "POST /v1/check HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    let reply = Reply::read(sent(at, format!("{head}{chunk}1\r\n \r\n")));
    assert_eq!(reply.status, 413, "nobody said how long it would be");
    let longest = format!("{{\"user\": \"{}\"}}", "a".repeat(1012));
    assert_eq!(longest.len(), 1024);
    assert_eq!(ask(at, "POST", "/v1/check", longest).status, 200);
}

#[test]
fn long_requests_share_what_memory_there_is_for_them() {
    let server = server("[limits]\nbody_bytes = 65536\nheld_bytes = 131072\npatience = '1h'\n");
    let at = server.address("http");
    let body = format!("{}{{}}", " ".repeat(59_998));
    let head = "POST /v1/check HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
                content-length: 60000\r\n\r\n";
    let held = |bytes: f64| {
        let sample = || server.metric("tollgate_held_bytes").filter(|held| *held == bytes);
        until("so much is held", sample);
    };
    let begun = [(); 2].map(|()| sent(at, format!("{head}{}", &body[..59_000])));
    held(118_000.0);
    let refused = Reply::read(sent(at, format!("{head}{}", &body[..13_500])));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.detail().contains("try again"), "{refused:?}");
    assert_eq!(server.metric("tollgate_held_refused_total"), Some(1.0));
    assert_serves(at);
    for mut stream in begun {
        stream.write_all(&body.as_bytes()[59_000..]).unwrap();
        assert_eq!(Reply::read(stream).status, 200);
    }
    held(0.0);
    assert_eq!(ask(at, "POST", "/v1/check", &body).status, 200);
}

#[test]
fn so_do_requests_of_one_connection_of_http_2() {
    let server = server("[limits]\nbody_bytes = 65536\nheld_bytes = 131072\npatience = '1h'\n");
    let frame = |kind: u8, flags: u8, id: u8, body: &[u8]| {
        let length = (body.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, id], body].concat()
    };
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, b"")].concat();
    let mut stream = sent(server.address("http"), preface);
    let mut head = [0; 9];
    // Until it says how much all requests together may send.
    while head[3] != 8 {
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        std::io::copy(&mut (&stream).take(length.into()), &mut std::io::sink()).unwrap();
    }
    for id in [1, 3, 5] {
        // POST, http, and then names by their number and values as they are.
        let headers = frame(1, 0x04, id, b"\x83\x86\x04\x09/v1/check\x01\x01a");
        let data = frame(0, 0, id, &[b' '; 16_000]).repeat(3);
        stream.write_all(&[headers, data].concat()).unwrap();
    }
    let held = |bytes: f64| {
        let sample = || server.metric("tollgate_held_bytes").filter(|held| *held == bytes);
        until("so much is held", sample);
    };
    until("one is refused", || {
        server.metric("tollgate_held_refused_total").filter(|refused| *refused > 0.0)
    });
    held(96_000.0);
    drop(stream);
    held(0.0);
}

#[test]
fn floods_of_headers_are_refused() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let long = format!("x: {}\r\n", "a".repeat(100_000));
    let many: String = (0..1000).map(|number| format!("x-{number}: a\r\n")).collect();
    for headers in [long, many] {
        let request = format!("POST /v1/check HTTP/1.1\r\nhost: a\r\n{headers}\r\n");
        let mut stream = connect(at);
        // It may be closed before all of it is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut line = [0; 12];
        stream.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"HTTP/1.1 431");
    }
    assert_serves(at);
}

#[test]
fn what_is_no_http_ends_the_connection() {
    let server = Server::start(RULES);
    let at = server.address("http");
    for bytes in
        [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"*1\r\n$4\r\nPING\r\n", b"\0\0\0\0\r\n\r\n"]
    {
        let mut rest = Vec::new();
        let _ = sent(at, bytes).read_to_end(&mut rest);
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 400"), "{rest:?}");
    }
    assert_serves(at);
}

#[test]
fn what_is_no_text_is_refused() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let reply = ask(at, "POST", "/v1/check", b"{\"user\": \"\xff\xfe\"}");
    assert_eq!(reply.status, 400);
    assert!(reply.detail().contains("line 1 column"), "{}", reply.detail());
    // An overlong zero, and half a surrogate.
    for body in [&b"{\"user\": \"\xc0\x80\"}"[..], br#"{"user": "\ud800"}"#] {
        assert_eq!(ask(at, "POST", "/v1/check", body).status, 400);
    }
}

#[test]
fn clients_that_leave_in_the_middle_are_let_go() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let head = "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\n";
    for begun in [head, &head[..20], "{"] {
        let mut half_open = sent(at, begun);
        half_open.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        half_open.read_to_end(&mut rest).unwrap();
        drop(sent(at, begun));
    }
    assert_serves(at);
}

#[test]
fn requests_in_a_row_are_answered_in_order() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let one = |user: &str, more: &str| {
        let body = json!({ "user": user }).to_string();
        let length = body.len();
        format!(
            "POST /v1/check HTTP/1.1\r\nhost: a\r\n{more}content-length: {length}\r\n\r\n{body}"
        )
    };
    let row = [one("a", ""), one("a", ""), one("b", "connection: close\r\n")].concat();
    let mut text = String::new();
    sent(at, row).read_to_string(&mut text).unwrap();
    let left: Vec<_> = text.match_indices("x-ratelimit-remaining: 99").collect();
    assert_eq!((left.len(), text.matches("HTTP/1.1 200").count()), (3, 3), "{text}");
    let values = left.iter().map(|(at, found)| &text[at + found.len()..at + found.len() + 1]);
    assert_eq!(values.collect::<Vec<_>>(), ["9", "8", "9"]);
}

#[test]
fn one_connection_too_many_is_told_so() {
    let server = server("[limits]\nconnections = 2\n");
    let at = server.address("http");
    // Each has been let in, because it was answered.
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = sent(at, "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
        let mut line = [0; 12];
        stream.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"HTTP/1.1 200");
        kept.push(stream);
    }
    let refused = Reply::read(connect(at));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    drop(kept);
    until("there is room again", || {
        let mut stream = connect(at);
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.starts_with("HTTP/1.1 200").then_some(())
    });
}

//! Clients that are slow, silent or deaf. They are not waited for.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use super::hostile::{assert_serves, sent, server};
use super::{Reply, connect};
use crate::support::until;

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let server = server("[limits]\npatience = '200ms'\n");
    let at = server.address("http");
    let head = "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\n";
    let slow = sent(at, format!("{head}{{\"user\""));
    assert_serves(at);
    let reply = Reply::read(slow);
    assert_eq!(reply.status, 408);
    assert!(reply.detail().contains("in time"));
}

/// Reads until the other end closes. An abrupt end is one as well.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    if let Err(error) = stream.read_to_end(&mut rest) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
    rest
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";

#[test]
fn headers_that_do_not_come_are_not_waited_for() {
    let server = server("[limits]\npatience = '200ms'\nidle = '1h'\n");
    let at = server.address("http");
    let mut silent = sent(at, HEALTH);
    let ok = b"ok\n";
    read_until(&mut silent, ok);
    let half = "POST /v1/check HTTP/1.1\r\nhost: ";
    let long = format!("{half}{}", "a".repeat(20_000));
    let frame = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0";
    for begun in ["P", half, &long, "GET / HTTP/1.1\r\nhost: ", "PRI * HTTP/2.0\r\n", frame] {
        rest(sent(at, begun));
    }
    // The same after something that was answered, by either way.
    let body = json!({ "user": "alice" }).to_string();
    let check = format!("{half}a\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for (first, end) in [(&*check, &b"}"[..]), (HEALTH, ok)] {
        let mut stream = sent(at, first);
        read_until(&mut stream, end);
        stream.write_all(half.as_bytes()).unwrap();
        rest(stream);
    }
    silent.write_all(HEALTH.as_bytes()).unwrap();
    read_until(&mut silent, ok);
}

#[test]
fn headers_that_come_bit_by_bit_take_no_longer() {
    let server = server("[limits]\npatience = '200ms'\nidle = '1h'\n");
    let at = server.address("http");
    for begun in ["POST /v1/check HTTP/1.1\r\na: ", &format!("{HEALTH}GET / HTTP/1.1\r\na: ")] {
        let mut slow = sent(at, begun);
        let closed = || slow.write_all(b"x").err();
        until("it is closed", closed);
    }
    assert_serves(at);
}

#[test]
fn whoever_does_not_read_is_cut_off() {
    let server = server("[limits]\npatience = '300ms'\nidle = '1h'\n");
    let at = server.address("http");
    let check = "POST /v1/peek HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";
    for request in [check, HEALTH] {
        let mut deaf = connect(at);
        deaf.set_write_timeout(deaf.read_timeout().unwrap()).unwrap();
        let many = request.repeat(100);
        let error = loop {
            if let Err(error) = deaf.write_all(many.as_bytes()) {
                break error;
            }
        };
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it is still waited for");
    }
    assert_serves(at);
}

#[test]
fn silence_ends_a_connection() {
    let server = server("[limits]\nidle = '200ms'\npatience = '2s'\n");
    let at = server.address("http");
    rest(connect(at));
    rest(sent(at, HEALTH));
    // Who speaks HTTP/2 is asked to go first, and this one does not listen.
    rest(sent(at, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"));
    assert_serves(at);
}

fn read_until(stream: &mut TcpStream, end: &[u8]) {
    let (mut seen, mut room) = (Vec::new(), [0; 512]);
    while !seen.ends_with(end) {
        let read = stream.read(&mut room).unwrap();
        assert_ne!(read, 0, "it was closed after {seen:?}");
        seen.extend_from_slice(&room[..read]);
    }
}

//! Plain requests take a short way through the server. Nobody can tell.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::{Reply, connect};
use crate::support::Server;

const RULES: &str = "rules: [{ name: per-user, key: [user], limit: 1000/h }]";

const BODY: &str = r#"{"user": "alice"}"#;

fn request(path: &str, more: &str) -> String {
    let length = BODY.len();
    format!("POST {path} HTTP/1.1\r\nhost: a\r\n{more}content-length: {length}\r\n\r\n{BODY}")
}

/// One answer, after which the connection stays open.
fn read_one(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let mut room = [0; 1];
    let length = |text: &str| {
        let rest = text.split_once("content-length: ")?.1;
        rest.split_once("\r\n")?.0.parse::<usize>().ok()
    };
    loop {
        stream.read_exact(&mut room).unwrap();
        bytes.push(room[0]);
        if bytes.ends_with(b"\r\n\r\n") {
            let mut body = vec![0; length(str::from_utf8(&bytes).unwrap()).unwrap()];
            stream.read_exact(&mut body).unwrap();
            bytes.extend(body);
            return Reply::read(&*bytes);
        }
    }
}

/// The names of all headers, but the one that says that the connection ends.
fn names(reply: &Reply) -> Vec<&str> {
    let mut names: Vec<_> = reply.headers.iter().map(|(name, _)| &**name).collect();
    names.retain(|name| *name != "connection");
    names.sort_unstable();
    names
}

fn open(at: SocketAddr, text: &str) -> TcpStream {
    let mut stream = connect(at);
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

#[test]
fn both_ways_answer_alike() {
    let server = Server::start(RULES);
    let at = server.address("http");
    for path in ["/v1/peek", "/v1/report"] {
        let short = read_one(&mut open(at, &request(path, "")));
        let long = Reply::read(open(at, &request(path, "connection: close\r\n")));
        assert_eq!((short.status, &short.body), (long.status, &long.body));
        assert_eq!(names(&short), names(&long));
        let date = short.header("date").unwrap();
        assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
        assert!(long.header("date").unwrap().starts_with(&date[..16]), "it is the same day");
    }
}

#[test]
fn it_does_not_matter_how_a_request_comes() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let mut stream = connect(at);
    stream.set_nodelay(true).unwrap();
    for byte in request("/v1/check", "").bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(read_one(&mut stream).json()["remaining"], 999);
    stream.write_all(request("/v1/check", "").as_bytes()).unwrap();
    assert_eq!(read_one(&mut stream).json()["remaining"], 998);
}

#[test]
fn pages_of_other_sites_spend_nothing() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let own = "origin: http://a\r\nsec-fetch-site: same-origin\r\n";
    for (headers, status) in [
        ("sec-fetch-site: cross-site\r\n", 403),
        ("Sec-Fetch-Site: same-site\r\n", 403),
        ("origin: http://evil.example\r\n", 403),
        ("ORIGIN: null\r\n", 403),
        (own, 200),
        ("", 200),
    ] {
        let reply = read_one(&mut open(at, &request("/v1/check", headers)));
        assert_eq!(reply.status, status, "{headers}");
        match status {
            200 => {}
            _ => assert!(reply.detail().contains("a page in a browser"), "{reply:?}"),
        }
    }
    let left = read_one(&mut open(at, &request("/v1/peek", ""))).json()["remaining"].clone();
    assert_eq!(left, 998, "two were ours");
    let linked = "GET /openapi.json HTTP/1.1\r\nhost: a\r\nsec-fetch-site: cross-site\r\n\r\n";
    assert_eq!(read_one(&mut open(at, linked)).status, 200, "a link to it may be followed");
}

#[test]
fn whoever_sends_nothing_more_is_answered() {
    let server = Server::start(RULES);
    let shaped = "rules: [{ name: a, key: [], limit: 5/s, algorithm: leaky_bucket, queue: 9 }]";
    let slow = Server::start(shaped);
    let get = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    // The second of these has to wait for its turn, and so does the client.
    let row = "GET /envoy/a HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2);
    for (at, text, answers) in [
        (server.address("http"), request("/v1/check", ""), 1),
        (server.address("http"), request("/v1/check", "").repeat(3), 3),
        (server.address("http"), request("/v1/check", "connection: close\r\n"), 1),
        (server.address("http"), get.to_owned(), 1),
        (server.address("http"), [&*request("/v1/check", ""), get, get].concat(), 3),
        (slow.address("forward_auth"), row, 2),
    ] {
        let mut stream = open(at, &text);
        stream.shutdown(Shutdown::Write).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        assert_eq!(told.matches("HTTP/1.1 200 OK").count(), answers, "{text}\n{told}");
    }
}

#[test]
fn other_requests_in_between_are_answered_in_order() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let get = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    let check = request("/v1/check", "");
    let row = [&*check, &*check, get, &*check, &*request("/v1/chekc", ""), &*check].concat();
    let mut stream = open(at, &row);
    let statuses: Vec<_> = (0..6).map(|_| read_one(&mut stream).status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 404, 200]);
    stream.write_all(check.as_bytes()).unwrap();
    assert_eq!(read_one(&mut stream).json()["remaining"], 995);
}

#[test]
fn a_long_row_is_answered_in_full() {
    let server = Server::start(RULES);
    let at = server.address("http");
    let mut stream = open(at, &request("/v1/check", "").repeat(300));
    for left in (700..1000).rev() {
        assert_eq!(read_one(&mut stream).json()["remaining"], left);
    }
}

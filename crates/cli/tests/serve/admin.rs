//! Who may run a server, and how it is told to end.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::support::{Server, exchange, free_port, run, run_command};

const RULES: &str = "rules: [{ name: everybody, key: [], limit: 1/h }]";

#[test]
fn a_token_opens_the_door_and_nothing_else_does() {
    let folder = tempfile::TempDir::new().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "s3cret\n").unwrap();
    let token = token.to_str().unwrap();
    let server = Server::with(RULES, &["--admin-token-file", token]);
    let refused = server.run(&["rules", "show"]);
    assert_eq!(refused.code, 2);
    assert!(refused.notes.contains("--token-file"), "{}", refused.notes);
    assert_eq!(server.run(&["rules", "show", "--token-file", token]).code, 0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let admin = server.address("admin").to_string();
    command.args(["keys", "top", "--server", &admin]).env("TOLLGATE_ADMIN_TOKEN", "s3cret");
    assert_eq!(run_command(&mut command).code, 0);
    let here = server.run(&["rules", "show", "--token-file", token]);
    assert!(!here.notes.contains("warning"), "{}", here.notes);
    // That is here as well, but does not look like it.
    let elsewhere = format!("0.0.0.0:{}", server.address("admin").port());
    let shown = run(&["rules", "show", "--token-file", token, "--server", &elsewhere]);
    assert!(shown.code == 0 && shown.notes.contains("warning: the token is sent as it is"));
    assert!(!shown.out.contains("warning") && !shown.notes.contains("s3cret"));
    let wrong = [("authorization", "Bearer s3cre")];
    assert_eq!(exchange(server.address("admin"), "GET", "/v1/rules", &wrong, "").0, 401);
    assert!(!server.process.output().join("\n").contains("s3cret"));
}

/// A server whose token is `s3cret`.
fn server_with_token() -> Server {
    let token = tempfile::NamedTempFile::new().unwrap();
    fs::write(token.path(), "s3cret").unwrap();
    Server::with(RULES, &["--admin-token-file", token.path().to_str().unwrap()])
}

#[test]
fn wrong_tokens_end_a_connection() {
    let server = server_with_token();
    let mut stream = TcpStream::connect(server.address("admin")).unwrap();
    let ask = |token: &str| {
        let token = format!("authorization: Bearer {token}\r\n");
        format!("GET /v1/rules HTTP/1.1\r\nhost: a\r\n{token}\r\n")
    };
    let row = [ask("s3cre").repeat(9), ask("s3cret"), ask("s3cre"), ask("s3cret")].concat();
    stream.write_all(row.as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 401").count(), 10, "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 1, "the last is not read: {answers}");
    assert_eq!(answers.matches("connection: close").count(), 1, "{answers}");
    assert_eq!(server.metric(r#"tollgate_wrong_secrets_total{door="admin"}"#), Some(10.0));
}

#[test]
fn wrong_tokens_end_a_connection_of_http_2() {
    let config = tempfile::NamedTempFile::new().unwrap();
    // So that nothing else ends it.
    let settings = "[admin]\ntoken = 's3cret'\n[limits]\npatience = '1h'\nidle = '1h'\n";
    fs::write(config.path(), settings).unwrap();
    let server = Server::with(RULES, &["--config", config.path().to_str().unwrap()]);
    let mut stream = TcpStream::connect(server.address("admin")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let frame = |kind: u8, flags: u8, id: u8, body: &[u8]| {
        [&[0, 0, body.len() as u8, kind, flags, 0, 0, 0, id][..], body].concat()
    };
    // GET, http, and then names by their number and values as they are.
    let headers = b"\x82\x86\x04\x09/v1/rules\x01\x01a\x0f\x08\x0cBearer s3cre";
    let mut sent = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, b"")].concat();
    for number in 0..10 {
        sent.extend(frame(1, 0x05, 2 * number + 1, headers));
    }
    stream.write_all(&sent).unwrap();
    let mut head = [0; 9];
    // Until it says that it goes away.
    while head[3] != 7 {
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        std::io::copy(&mut (&stream).take(length.into()), &mut std::io::sink()).unwrap();
    }
    assert_eq!(server.metric(r#"tollgate_wrong_secrets_total{door="admin"}"#), Some(10.0));
}

#[test]
fn many_wrong_tokens_are_slowed_down_and_the_right_one_is_not() {
    let server = server_with_token();
    let admin = server.address("admin");
    let ask = |token: &str| {
        let token = format!("Bearer {token}");
        exchange(admin, "GET", "/v1/rules", &[("authorization", &token)], "").0
    };
    for _ in 0..20 {
        assert_eq!(ask("s3cre"), 401);
    }
    let slowed =
        crate::support::until("it is enough", || (ask("s3cre") == 429).then(|| ask("s3cret")));
    assert_eq!(slowed, 200, "the right one is always taken");
    assert_eq!(exchange(admin, "GET", "/v1/rules", &[], "").0, 401, "that is no guess");
    let mut stream = TcpStream::connect(admin).unwrap();
    let guess = "GET / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer x\r\n\r\n";
    stream.write_all(guess.repeat(3).as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "a connection each: {answers}");
    assert!(answers.contains("429") && answers.contains("retry-after: "), "{answers}");
    let output = server.process.output().join("\n");
    assert!(output.contains("a wrong token"), "{output}");
    assert!(!output.contains("s3cre"), "{output}");
}

#[test]
fn pages_in_a_browser_are_not_served() {
    let server = Server::start(RULES);
    let admin = server.address("admin");
    let kill = r#"{"all":true}"#;
    for headers in [
        &[("origin", "http://evil.example")][..],
        &[("host", "rebound.example")],
        &[("sec-fetch-site", "cross-site")],
    ] {
        assert_eq!(exchange(admin, "POST", "/v1/kill", headers, kill).0, 403, "{headers:?}");
    }
    assert!(server.allows("{}") && !server.allows("{}"), "nothing was killed");
    assert_eq!(exchange(admin, "POST", "/v1/kill", &[], kill).0, 200);
}

#[test]
fn commands_reach_unix_sockets() {
    let folder = tempfile::TempDir::new().unwrap();
    let socket = format!("unix:{}", folder.path().join("admin.sock").display());
    let _server = Server::with(RULES, &["--admin", &socket]);
    let shown = run(&["rules", "show", "--server", &socket]);
    assert_eq!(shown.code, 0, "{}", shown.notes);
    assert!(shown.out.contains("everybody"), "{}", shown.out);
}

#[test]
fn the_level_of_the_log_changes() {
    let server = Server::start(RULES);
    assert_eq!(server.run(&["log-level"]).out, "the level of the log is info\n");
    assert_eq!(server.run(&["log-level", "loud"]).code, 2);
    let changed = server.run(&["log-level", "error", "--output", "json"]).json();
    assert_eq!(changed["level"], "error");
    while server.allows("{}") {}
    assert!(
        !server.process.output().iter().any(|line| line.contains("denied")),
        "info is not shown"
    );
}

#[test]
fn it_drains_when_it_is_told_to() {
    let mut server = Server::start(RULES);
    assert_eq!(server.run(&["drain"]).code, 0, "it is answered first");
    assert!(server.process.wait().success());
}

#[test]
fn whoever_is_not_there_is_named_with_a_remedy() {
    let nobody = format!("127.0.0.1:{}", free_port());
    let ran = run(&["keys", "top", "--server", &nobody]);
    assert_eq!(ran.code, 2);
    assert!(ran.notes.contains(&nobody) && ran.notes.contains("--server"), "{}", ran.notes);
    let server = Server::start(RULES);
    let another = server.address("status").to_string();
    let ran = run(&["keys", "top", "--server", &another]);
    assert_eq!(ran.code, 2, "{}", ran.out);
}

#[test]
fn a_head_is_a_get_without_its_body() {
    let server = Server::start(RULES);
    for (door, path) in [
        ("admin", "/healthz"),
        ("admin", "/readyz"),
        ("admin", "/v1/rules"),
        ("admin", "/v1/nothing"),
        ("status", "/healthz"),
        ("status", "/metrics"),
        ("http", "/healthz"),
        ("http", "/openapi.json"),
        ("forward_auth", "/healthz"),
    ] {
        let (got, body) = exchange(server.address(door), "GET", path, &[], "");
        assert!(!body.is_empty(), "{door} {path}");
        let head = exchange(server.address(door), "HEAD", path, &[], "");
        assert_eq!(head, (got, String::new()), "{door} {path}");
    }
    assert_eq!(exchange(server.address("admin"), "POST", "/healthz", &[], "").0, 405);
}

#[test]
fn what_makes_no_sense_gets_a_problem() {
    let server = Server::start(RULES);
    let admin = server.address("admin");
    for (method, target, body, status) in [
        ("POST", "/v1/kill", "{", 400),
        ("POST", "/v1/kill", "{}", 400),
        ("POST", "/v1/kill", r#"{"all":true,"rule":"everybody"}"#, 400),
        ("POST", "/v1/kill", r#"{"al":true}"#, 400),
        ("POST", "/v1/kill", "\u{0}\u{1}", 400),
        ("POST", "/v1/keys/reset", r#"{"attributes":{"usr":"a"}}"#, 400),
        ("GET", "/v1/keys/top?n=1000000", "", 400),
        ("GET", "/v1/keys?user=%ff%00", "", 200),
        ("GET", "/v1/keys?user=a&method=", "", 400),
        ("DELETE", "/v1/rules", "", 405),
        ("GET", "/v1/nothing", "", 404),
        ("PUT", "/v1/log-level", r#"{"level":"x\ny"}"#, 400),
    ] {
        let (got, body) = exchange(admin, method, target, &[], body);
        assert_eq!(got, status, "{method} {target}: {body}");
        if target.ends_with("method=") {
            assert!(body.contains("`method` is none of HTTP"), "{body}");
        }
    }
}

//! `MULTI`, `EXEC` and what belongs to them.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use super::Client;
use super::client::answers;
use super::connect::server_with;
use crate::support::{Server, until};

const RULES: &str = "rules: [{ name: per-user, key: [user], limit: 2/h }]";

/// A server of Redis, which ends with the test.
struct Redis(Child, u16);

impl Redis {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("redis-server can be started: scripts/test.sh installs it"), port)
    }

    fn client(&self) -> Client {
        until("Redis answers", || Client::at(([127, 0, 0, 1], self.1).into()).ok())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn whatever_goes_wrong_is_answered_as_redis_does() {
    let (server, redis) = (Server::start(RULES), Redis::start());
    let (mut ours, mut theirs) = (Client::of(&server), redis.client());
    for lines in [
        &["EXEC"][..],
        &["DISCARD"],
        &["MULTI", "EXEC"],
        &["multi", "ping", "echo a", "ping b c", "exec"],
        &["MULTI", "PING", "MULTI", "PING", "EXEC"],
        &["MULTI", "PING", "DISCARD", "EXEC"],
        &["MULTI", "ECHO", "PING", "EXEC", "EXEC"],
        &["MULTI", "PING", "EXEC x", "EXEC"],
        &["EXEC x"],
        &["MULTI x", "EXEC"],
        &["MULTI", "WATCH a", "PING", "EXEC"],
        &["MULTI", "UNWATCH", "SELECT 0", "EXEC"],
        &["WATCH a b", "UNWATCH", "WATCH a", "MULTI", "PING", "EXEC"],
        &["WATCH", "UNWATCH a"],
        &["MULTI", "PING", "RESET", "EXEC"],
        &["MULTI", "PING", "HELLO 3", "EXEC", "HELLO 2", "RESET"],
        &["MULTI", "ECHO a", "QUIT"],
    ] {
        let comparable = |answers: Vec<String>| -> Vec<String> {
            let is_hello = |answer: &str| answer.contains("$6\r\nserver\r\n");
            let kind = |answer: String| match is_hello(&answer) {
                true => answer.chars().take(3).collect(),
                false => answer,
            };
            answers.into_iter().map(kind).collect()
        };
        let (our, their) = (answers(&mut ours, lines), answers(&mut theirs, lines));
        assert_eq!(comparable(our), comparable(their), "{lines:?}");
    }
}

#[test]
fn a_command_that_is_unknown_spoils_the_transaction_and_nothing_is_spent() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let spoiled = ["MULTI", "CL.THROTTLE k 0 1 3600", "TG.CHECK user a", "GET a", "PING", "EXEC"];
    let said = answers(&mut client, &spoiled);
    assert_eq!(said[1..3], ["+QUEUED\r\n", "+QUEUED\r\n"]);
    assert!(said[3].starts_with("-ERR unknown command 'GET'"), "{said:?}");
    assert_eq!(said[5], "-EXECABORT Transaction discarded because of previous errors.\r\n");
    let after = answers(&mut client, &["CL.THROTTLE k 0 1 3600", "TG.PEEK user a"]);
    assert!(after[0].starts_with("*5\r\n:0\r\n"), "{after:?}");
    assert!(after[1].starts_with("*8\r\n:0\r\n:2\r\n:2\r\n"), "{after:?}");
}

#[test]
fn decisions_of_a_transaction_are_made_in_order_and_errors_stand_in_their_places() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let all = [
        "MULTI",
        "CL.THROTTLE k 0 1 3600",
        "CL.THROTTLE k 0 1 3600",
        "TG.CHECK user a",
        "TG.CHECK acount a",
        "TG.CHECK user a",
        "TG.CHECK user a",
        "CL.THROTTLE k 0 0 3600",
        "EXEC",
    ];
    let said = answers(&mut client, &all);
    assert_eq!(said[0], "+OK\r\n");
    assert!(said[1..8].iter().all(|answer| answer == "+QUEUED\r\n"), "{said:?}");
    let mut parts = said[8].split("\r\n*").map(|part| part.get(..9).unwrap_or_default());
    assert!(said[8].starts_with("*7\r\n*5\r\n:0\r\n:1"), "{said:?}");
    assert_eq!(parts.by_ref().nth(2), Some("5\r\n:1\r\n:1"), "the second is denied");
    assert!(said[8].contains("\r\n-ERR there is no attribute `acount`"), "{said:?}");
    assert!(said[8].contains("\r\n-ERR CL.THROTTLE: count must be"), "{said:?}");
    assert_eq!(said[8].matches("*8\r\n:0\r\n").count(), 2);
    assert_eq!(said[8].matches("*8\r\n:1\r\n").count(), 1);
}

#[test]
fn a_transaction_has_a_longest_length() {
    let (server, _config) = server_with("[limits]\nbatch = 3\nbody_bytes = 2048\n");
    let mut client = Client::of(&server);
    for lines in [
        &["MULTI", "PING", "PING", "PING", "PING", "EXEC"][..],
        &{
            let long = "x".repeat(1000);
            ["MULTI".to_owned(), format!("ECHO {long}"), format!("ECHO {long}"), "EXEC".to_owned()]
        }
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>(),
    ] {
        let said = answers(&mut client, lines);
        let [.., refused, aborted] = &*said else { panic!("{said:?}") };
        assert!(
            refused.starts_with("-ERR a transaction has at most 3 commands and 2048"),
            "{said:?}"
        );
        assert!(aborted.starts_with("-EXECABORT "), "{said:?}");
    }
    let whole = answers(&mut client, &["MULTI", "PING", "PING", "PING", "EXEC"]);
    assert_eq!(whole[4], "*3\r\n+PONG\r\n+PONG\r\n+PONG\r\n");
}

#[test]
fn a_large_transaction_that_does_not_go_on_ends_the_connection() {
    let (server, _config) = server_with("[limits]\npatience = '300ms'\n");
    let (mut small, mut large) = (Client::of(&server), Client::of(&server));
    answers(&mut small, &["MULTI", "PING"]);
    answers(&mut large, &["MULTI", &format!("ECHO {}", "x".repeat(20_000))]);
    assert_eq!(large.rest(), "");
    assert_eq!(answers(&mut small, &["EXEC"]), ["*1\r\n+PONG\r\n"]);
}

#[test]
fn a_transaction_ends_with_its_connection() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let said = answers(&mut client, &["MULTI", "CL.THROTTLE gone 0 1 3600"]);
    assert_eq!(said, ["+OK\r\n", "+QUEUED\r\n"]);
    drop(client);
    let mut other = Client::of(&server);
    assert_eq!(answers(&mut other, &["EXEC"]), ["-ERR EXEC without MULTI\r\n"]);
    assert!(answers(&mut other, &["CL.THROTTLE gone 0 1 3600"])[0].starts_with("*5\r\n:0\r\n"));
}

#[test]
fn people_can_type_a_transaction() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    client.send("MULTI\r\necho 'a b'\r\nping\r\nEXEC\r\n");
    assert_eq!(
        [client.answer(), client.answer(), client.answer()].concat(),
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n"
    );
    assert_eq!(client.answer(), "*2\r\n$3\r\na b\r\n+PONG\r\n");
}

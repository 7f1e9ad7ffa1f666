//! What clients say before they ask for anything, and how connections end.

use std::fs;

use tempfile::NamedTempFile;

use super::Client;
use super::client::encode;
use crate::support::{Server, until};

const RULES: &str = "rules: []";

/// A server with these settings.
pub(super) fn server_with(settings: &str) -> (Server, NamedTempFile) {
    let config = NamedTempFile::new().unwrap();
    fs::write(config.path(), settings).unwrap();
    let server = Server::with(RULES, &["--config", config.path().to_str().unwrap()]);
    (server, config)
}

#[test]
fn hello_chooses_the_protocol() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let hello = client.ask(&["HELLO", "3", "SETNAME", "me"]);
    assert!(hello.starts_with("%7\r\n$6\r\nserver\r\n"), "{hello}");
    assert!(hello.contains("$5\r\nproto\r\n:3\r\n"), "{hello}");
    assert_eq!(client.ask(&["client", "getname"]), "$2\r\nme\r\n");
    assert_eq!(client.ask(&["CLIENT", "GETNAME", "x"]).get(..5), Some("-ERR "));
    let hello = client.ask(&["hello", "2"]);
    assert!(hello.starts_with("*14\r\n") && hello.contains("proto\r\n:2\r\n"), "{hello}");
    assert!(client.ask(&["HELLO"]).contains("proto\r\n:2\r\n"), "it stays as it is");
    assert!(client.ask(&["HELLO", "4"]).starts_with("-NOPROTO "));
    assert!(client.ask(&["HELLO", "x"]).starts_with("-ERR "));
    assert!(client.ask(&["HELLO", "3", "SETNAME"]).starts_with("-ERR "));
    assert!(client.ask(&["HELLO", "3", "SETNAME", "a b"]).starts_with("-ERR "));
    assert!(client.ask(&["HELLO"]).contains("proto\r\n:2\r\n"), "an error changes nothing");
    assert_eq!(client.ask(&["RESET"]), "+RESET\r\n");
    assert_eq!(client.ask(&["CLIENT", "GETNAME"]), "$-1\r\n");
}

#[test]
fn small_talk_is_answered() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    for (words, answer) in [
        (&["PING"][..], "+PONG\r\n"),
        (&["ping", "hi"], "$2\r\nhi\r\n"),
        (&["Echo", "a\r\nb"], "$4\r\na\r\nb\r\n"),
        (&["SELECT", "0"], "+OK\r\n"),
        (&["CLIENT", "SETINFO", "LIB-NAME", "x"], "+OK\r\n"),
        (&["CLIENT", "NO-EVICT", "on"], "+OK\r\n"),
        (&["CONFIG", "GET", "save"], "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        (&["CONFIG", "GET", "nothing"], "*0\r\n"),
        (&["COMMAND", "COUNT"], ":23\r\n"),
        (&["COMMAND", "DOCS", "nothing"], "*0\r\n"),
    ] {
        assert_eq!(client.ask(words), answer, "{words:?}");
    }
    for words in [
        &["SELECT", "1"][..],
        &["CLIENT", "MAINT_NOTIFICATIONS", "ON"],
        &["CONFIG", "SET", "a", "b"],
        &["CONFIG", "GET"],
        &["COMMAND", "GETKEYS"],
        &["PING", "a", "b"],
        &["ECHO"],
        &["AUTH", "x"],
        &["GET", "x"],
    ] {
        assert!(client.ask(words).starts_with("-ERR "), "{words:?}");
    }
    assert_eq!(
        client.ask(&["get\r\n+OK", "a\nb"]),
        "-ERR unknown command 'get  +OK', with args beginning with: 'a b' \r\n"
    );
    let info = client.ask(&["INFO"]);
    for field in ["redis_version:7.2.0\r\n", "loading:0\r\n", "role:master\r\n"] {
        assert!(info.contains(field), "{info}");
    }
    let server_alone = client.ask(&["info", "SERVER"]);
    assert!(server_alone.contains("redis_version") && !server_alone.contains("role"));
    let known = client.ask(&["CLIENT", "INFO"]);
    assert!(known.contains(" lib-name=x "), "{known}");
}

/// These bytes were seen from the library, with its defaults.
#[test]
fn go_redis_is_understood_that_is_not_here() {
    let server = Server::start(RULES);
    let mut go_redis = Client::of(&server);
    go_redis.send(
        encode(&["hello", "3"])
            + &encode(&["client", "maint_notifications", "on", "moving-endpoint-type", "none"])
            + &encode(&["client", "setinfo", "LIB-NAME", "go-redis(,go1.25.0)"])
            + &encode(&["client", "setinfo", "LIB-VER", "9.22.0"])
            + &encode(&["cl.throttle", "user", "2", "1", "10"]),
    );
    assert!(go_redis.answer().starts_with("%7\r\n"));
    assert!(go_redis.answer().starts_with("-ERR unknown subcommand"), "which it passes over");
    assert_eq!((go_redis.answer(), go_redis.answer()), ("+OK\r\n".into(), "+OK\r\n".into()));
    assert_eq!(go_redis.answer(), "*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:10\r\n");
}

#[test]
fn people_can_type() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    client.send("PING\r\n\r\n  echo 'a b'\ncl.throttle \"k\" 2 1 10\r\n");
    assert_eq!(client.answer(), "+PONG\r\n");
    assert_eq!(client.answer(), "$3\r\na b\r\n");
    assert_eq!(client.answer(), "*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:10\r\n");
    client.send("echo 'a\r\n");
    assert_eq!(client.rest(), "-ERR Protocol error: unbalanced quotes in request\r\n");
}

#[test]
fn nothing_is_done_for_those_who_do_not_know_the_password() {
    let (server, _config) = server_with("[resp]\npassword = 's3cret'\n");
    let mut client = Client::of(&server);
    for words in [
        &["PING"][..],
        &["CL.THROTTLE", "a", "1", "1", "1"],
        &["TOLLGATE.ALLOW", "a", "1", "1", "1"],
        &["TG.CHECK"],
        &["GET", "a"],
    ] {
        assert_eq!(client.ask(words), "-NOAUTH Authentication required.\r\n");
    }
    assert!(client.ask(&["HELLO", "3"]).starts_with("-NOAUTH HELLO must be called"));
    for words in [
        &["AUTH", "s3cre"][..],
        &["AUTH", "nobody", "s3cret"],
        &["HELLO", "3", "AUTH", "default", "wrong"],
    ] {
        assert!(client.ask(words).starts_with("-WRONGPASS "), "{words:?}");
    }
    assert_eq!(client.ask(&["PING"]), "-NOAUTH Authentication required.\r\n");
    assert_eq!(client.ask(&["AUTH", "s3cret"]), "+OK\r\n");
    assert_eq!(client.ask(&["PING"]), "+PONG\r\n");
    client.ask(&["RESET"]);
    assert_eq!(client.ask(&["PING"]), "-NOAUTH Authentication required.\r\n");
    let hello = client.ask(&["HELLO", "3", "AUTH", "default", "s3cret", "SETNAME", "a"]);
    assert!(hello.starts_with("%7\r\n"), "{hello}");
    assert_eq!(client.ask(&["PING"]), "+PONG\r\n");
    let mut long = Client::of(&server);
    long.send("*2\r\n$4\r\nAUTH\r\n$20000\r\n");
    assert_eq!(long.rest(), "-ERR Protocol error: unauthenticated bulk length\r\n");
    let mut many = Client::of(&server);
    many.send("*11\r\n");
    assert_eq!(many.rest(), "-ERR Protocol error: unauthenticated multibulk length\r\n");
    let output = server.process.output().join("\n");
    assert!(!output.contains("s3cret"), "{output}");
}

#[test]
fn passwords_cannot_be_tried_for_ever() {
    let (server, _config) = server_with("[resp]\npassword = 's3cret'\n");
    let mut guessing = Client::of(&server);
    for number in 0..10 {
        let answer = match number % 2 {
            0 => guessing.ask(&["AUTH", "s3cre"]),
            _ => guessing.ask(&["HELLO", "3", "AUTH", "default", "s3cre"]),
        };
        assert!(answer.starts_with("-WRONGPASS "), "{answer}");
    }
    assert_eq!(guessing.rest(), "");
    let mut pipeline = Client::of(&server);
    pipeline.send(encode(&["AUTH", "s3cre"]).repeat(10) + &encode(&["AUTH", "s3cret"]));
    let answers = pipeline.rest();
    assert_eq!(answers.matches("-WRONGPASS ").count(), 11, "nothing is looked at after ten");
    assert!(!answers.contains("+OK"), "{answers}");
    assert_eq!(server.metric(r#"tollgate_wrong_secrets_total{door="resp"}"#), Some(21.0));
    assert_eq!(Client::of(&server).ask(&["AUTH", "s3cret"]), "+OK\r\n");
}

#[test]
fn whoever_does_not_say_the_password_is_not_kept() {
    let settings = "[resp]\npassword = 's3cret'\n[limits]\npatience = '500ms'\n";
    let (server, _config) = server_with(settings);
    let mut known = Client::of(&server);
    assert_eq!(known.ask(&["AUTH", "s3cret"]), "+OK\r\n");
    assert_eq!(Client::of(&server).rest(), "", "it says nothing");
    let busy = Client::of(&server);
    let mut sender = busy.sender();
    // That there are commands, and answers, does not help.
    until("it is cut off", || sender.try_send(encode(&["PING"]).as_bytes()).err());
    known.send(encode(&["RESET"]));
    assert_eq!(known.rest(), "+RESET\r\n", "then it is unknown again");
    let mut known = Client::of(&server);
    assert_eq!(known.ask(&["AUTH", "s3cret"]), "+OK\r\n");
    assert_eq!(Client::of(&server).rest(), "");
    assert_eq!(known.ask(&["PING"]), "+PONG\r\n", "whoever has said it may be silent");
}

#[test]
fn whoever_quits_gets_all_answers_first() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    client.send(encode(&["PING"]) + &encode(&["QUIT"]) + &encode(&["PING"]));
    assert_eq!(client.rest(), "+PONG\r\n+OK\r\n");
    let mut silent = Client::of(&server);
    silent.send(encode(&["PING"]));
    silent.fall_silent();
    assert_eq!(silent.rest(), "+PONG\r\n");
}

#[test]
fn one_client_too_many_is_told_so() {
    let (server, _config) = server_with("[limits]\nconnections = 2\n");
    let mut first = Client::of(&server);
    let mut second = Client::of(&server);
    assert_eq!(first.ask(&["PING"]), "+PONG\r\n");
    assert_eq!(second.ask(&["PING"]), "+PONG\r\n");
    assert_eq!(Client::of(&server).rest(), "-ERR max number of clients reached\r\n");
    assert_eq!(first.ask(&["PING"]), "+PONG\r\n");
}

#[test]
fn connections_end_with_the_server() {
    let mut server = Server::start(RULES);
    let (mut idle, mut busy) = (Client::of(&server), Client::of(&server));
    assert_eq!(idle.ask(&["PING"]), "+PONG\r\n");
    busy.send("*1\r\n$4\r\nPI");
    server.process.signal("TERM");
    assert_eq!((idle.rest(), busy.rest()), (String::new(), String::new()));
    assert!(server.process.wait().success());
}

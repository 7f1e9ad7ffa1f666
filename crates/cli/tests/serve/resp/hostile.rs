//! Clients that mean harm, or are broken.

use std::fs;
use std::thread;

use super::Client;
use super::client::encode;
use super::connect::server_with;
use crate::support::{Server, until};

const RULES: &str = "rules: []";

/// How much memory the server has taken at most, in bytes.
fn peak(server: &Server) -> usize {
    memory(server, "VmHWM:")
}

fn memory(server: &Server, field: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn what_is_no_command_ends_the_connection_and_no_other() {
    let server = Server::start(RULES);
    let mut other = Client::of(&server);
    for (bytes, error) in [
        ("*x\r\n", "invalid multibulk length"),
        ("*1001\r\n", "invalid multibulk length"),
        ("*9223372036854775807\r\n", "invalid multibulk length"),
        ("*1\r\n$-5\r\n", "invalid bulk length"),
        ("*1\r\n$1048577\r\n", "invalid bulk length"),
        ("*1\r\n$9223372036854775807\r\n", "invalid bulk length"),
        ("*2\r\n$4\r\nECHO\r\n:1\r\n", "expected '$', got ':'"),
        ("*1\r\n\u{7}", "expected '$', got '\\x07'"),
        ("*1\r\n$4\r\nPINGPONG", "expected a line end behind an argument"),
        ("*11111111111111111111111111111111111111", "too big mbulk count string"),
    ] {
        let mut client = Client::of(&server);
        client.send(encode(&["PING"]) + bytes);
        let answer = client.rest();
        assert_eq!(answer, format!("+PONG\r\n-ERR Protocol error: {error}\r\n"), "{bytes:?}");
        assert_eq!(other.ask(&["PING"]), "+PONG\r\n");
    }
    let mut long = Client::of(&server);
    long.send("a".repeat(70_000));
    assert_eq!(long.rest(), "-ERR Protocol error: too big inline request\r\n");
    let mut browser = Client::of(&server);
    browser.send("POST / HTTP/1.1\r\nHost: a\r\n\r\nCL.THROTTLE a 1 1 1\r\n");
    assert_eq!(browser.rest(), "");
}

#[test]
fn what_is_announced_takes_no_room() {
    let server = Server::start(RULES);
    let before = peak(&server);
    let mut clients: Vec<_> = (0..100).map(|_| Client::of(&server)).collect();
    for client in &mut clients {
        client.send(encode(&["PING"]) + "*1\r\n$1048576\r\nabc");
    }
    for client in &mut clients {
        assert_eq!(client.answer(), "+PONG\r\n");
    }
    let more = peak(&server) - before;
    assert!(more < 20 << 20, "{more} bytes for a few that were sent");
}

#[test]
fn long_commands_share_what_memory_there_is_for_them() {
    let settings = "[limits]\nbody_bytes = 65536\nheld_bytes = 400000\npatience = '1h'\n";
    let (server, _config) = server_with(settings);
    let mut other = Client::of(&server);
    let begin = || {
        let mut client = Client::of(&server);
        client.send(format!("*2\r\n$4\r\nECHO\r\n$65000\r\n{}", "x".repeat(60_000)));
        client
    };
    let mut begun = Vec::new();
    let mut refused = loop {
        let before = server.metric("tollgate_held_bytes");
        let client = begin();
        let is_refused = until("it is held, or refused", || {
            let refused = server.metric("tollgate_held_refused_total") > Some(0.0);
            let held = server.metric("tollgate_held_bytes") >= before.map(|held| held + 60_000.0);
            (refused || held).then_some(refused)
        });
        if is_refused {
            break client;
        }
        begun.push(client);
        assert!(begun.len() <= 6, "400,000 bytes are enough for no more");
    };
    assert!(!begun.is_empty());
    assert_eq!(refused.rest(), "-ERR too many long commands come at once: try again\r\n");
    assert_eq!(other.ask(&["PING"]), "+PONG\r\n");
    for client in &mut begun {
        client.send("x".repeat(5_000) + "\r\n");
        assert!(client.answer().starts_with("$65000\r\n"));
    }
    until("nothing is held", || server.metric("tollgate_held_bytes").filter(|held| *held == 0.0));
}

#[test]
fn the_longest_command_is_taken_in_small_pieces() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let text = "x".repeat((1 << 20) - 4);
    let command = encode(&["ECHO", &text]) + &encode(&["PING"]);
    for piece in command.as_bytes().chunks(10_007) {
        client.send(piece);
    }
    assert_eq!(client.answer(), format!("${}\r\n{text}\r\n", text.len()));
    assert_eq!(client.answer(), "+PONG\r\n");
    client.send(format!("*2\r\n$4\r\nECHO\r\n${}\r\n", text.len() + 1));
    assert!(client.answer().starts_with("-ERR Protocol error"));
    assert_eq!(client.rest(), "");
}

#[test]
fn whoever_has_to_go_hears_why_even_if_it_goes_on_talking() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    client.send("*1\r\n$1048577\r\n");
    (0..30).for_each(|_| client.send("x".repeat(100_000)));
    assert!(client.answer().starts_with("-ERR Protocol error"));
    assert_eq!(client.rest(), "");
}

#[test]
fn a_million_commands_in_one_pipeline_take_little_memory() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let some: String = (0..1000)
        .map(|key| encode(&["CL.THROTTLE", &key.to_string(), "99", "1000", "60"]))
        .collect();
    // The first of them has the memory for keys made.
    client.send(&some);
    (0..1000).for_each(|_| _ = client.answer());
    let before = peak(&server);
    thread::scope(|scope| {
        let mut sender = client.sender();
        scope.spawn(move || (0..1000).for_each(|_| sender.send(&some)));
        for number in 0..1_000_000 {
            let answer = client.answer();
            assert!(answer.starts_with("*5\r\n:"), "{number}: {answer}");
        }
    });
    let more = peak(&server) - before;
    assert!(more < 8 << 20, "{more} bytes more");
}

#[test]
fn whoever_does_not_read_is_cut_off_and_others_notice_nothing() {
    let (server, _config) = server_with("[limits]\npatience = '500ms'\n");
    let mut other = Client::of(&server);
    assert_eq!(other.ask(&["PING"]), "+PONG\r\n");
    let before = peak(&server);
    let mut deaf = Client::of(&server);
    let flooding =
        thread::spawn(move || deaf.flood(encode(&["ECHO", &"x".repeat(999)]).as_bytes()));
    while !flooding.is_finished() {
        assert_eq!(other.ask(&["PING"]), "+PONG\r\n");
    }
    assert!(flooding.join().unwrap() > 0);
    let more = peak(&server) - before;
    assert!(more < 4 << 20, "{more} bytes more");
}

#[test]
fn a_command_that_does_not_end_in_time_ends_the_connection() {
    let (server, _config) = server_with("[limits]\npatience = '300ms'\n");
    let mut slow = Client::of(&server);
    slow.send("*2\r\n$4\r\nECHO\r\n$100000\r\n");
    let mut sender = slow.sender();
    // That something comes does not help.
    let dripping = thread::spawn(move || until("it is cut off", || sender.try_send(b"x").err()));
    assert_eq!(slow.rest(), "");
    dripping.join().unwrap();
    let mut silent = Client::of(&server);
    silent.ask(&["PING"]);
    let mut half = Client::of(&server);
    half.send("*1\r\n");
    assert_eq!(half.rest(), "");
    assert_eq!(silent.ask(&["PING"]), "+PONG\r\n", "who owes nothing may be silent");
}

#[test]
fn who_never_says_anything_is_not_kept_for_ever() {
    let (server, _config) = server_with("[limits]\nidle = '300ms'\n");
    assert_eq!(Client::of(&server).rest(), "");
}

#[test]
fn silent_connections_take_little_memory() {
    let server = Server::start(RULES);
    let mut first = Client::of(&server);
    first.ask(&["PING"]);
    let before = memory(&server, "VmRSS:");
    let count = 400;
    let mut clients: Vec<_> = (0..count).map(|_| Client::of(&server)).collect();
    for client in &mut clients {
        client.send(encode(&["ECHO", &"x".repeat(4000)]).repeat(3));
    }
    for client in &mut clients {
        (0..3).for_each(|_| _ = client.answer());
    }
    let each = memory(&server, "VmRSS:").saturating_sub(before) / count;
    assert!(each < 8 << 10, "{each} bytes each");
}

//! `TG.CHECK`, `TG.PEEK`, `TG.RESET` and `TG.REPORT`.

use super::Client;
use super::client::encode;
use crate::support::Server;

const RULES: &str = "
tiers: { from: claims.plan, known: [free, pro], else: free }
rules:
  - { name: per-user, match: { path: /v1/** }, key: [user], limit: { free: 2/h, pro: 1k/h } }
  - { name: exports, match: { path: /export }, key: [user], concurrent: 1 }
  - { name: failures, match: { method: POST, path: /login }, key: [ip], limit: 1/h, count_if: 'response.status == 401' }
  - { name: smooth, match: { path: /smooth }, key: [], limit: 10/s, algorithm: leaky_bucket, queue: 5 }
";

/// The answer in words, one for each line.
fn ask(client: &mut Client, line: &str) -> Vec<String> {
    let answer = client.ask(&line.split(' ').collect::<Vec<_>>());
    let lines: Vec<_> = answer.trim_end().split("\r\n").map(str::to_owned).collect();
    // Where a length stands before a text, the text says it all.
    let is_length = |line: &str| line.starts_with('$') && line != "$-1";
    lines.into_iter().filter(|line| !is_length(line)).collect()
}

#[test]
fn rules_decide() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let line = "TG.CHECK path /v1/items user alice";
    let peek = "TG.PEEK path /v1/items user alice";
    let first = ["*8", ":0", ":2", ":1", ":-1", ":1800", "per-user", ":0", "$-1"];
    let before = ["*8", ":0", ":2", ":2", ":-1", ":0", "per-user", ":0", "$-1"];
    assert_eq!(ask(&mut client, peek), before, "a look spends nothing");
    assert_eq!(ask(&mut client, line), first);
    assert_eq!(ask(&mut client, line)[1..4], [":0", ":2", ":0"]);
    let denied = ask(&mut client, line);
    assert_eq!(denied[1..4], [":1", ":2", ":0"]);
    assert!((1700..=1800).contains(&denied[4][1..].parse().unwrap()), "{denied:?}");
    assert_eq!(denied[6], "per-user");
    assert_eq!(ask(&mut client, "TG.CHECK path /v1/items user bob")[1], ":0");
    let pro = ask(&mut client, "TG.CHECK path /v1/items user alice claims.plan pro cost 100");
    assert_eq!(pro[1..4], [":0", ":1000", ":900"]);
}

#[test]
fn what_no_rule_is_about_has_no_limit() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let none = ["*8", ":0", ":-1", ":-1", ":-1", ":0", "$-1", ":0", "$-1"];
    assert_eq!(ask(&mut client, "tg.check"), none);
    client.ask(&["HELLO", "3"]);
    assert_eq!(ask(&mut client, "tg.check")[6..], ["_", ":0", "_"]);
}

#[test]
fn a_delay_is_told_in_milliseconds() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    client.send(encode(&["TG.CHECK", "path", "/smooth"]).repeat(2));
    let delays = [client.answer(), client.answer()].map(|answer| {
        let parts: Vec<_> = answer.split("\r\n:").collect();
        parts[6].split("\r\n").next().unwrap().parse::<u32>().unwrap()
    });
    assert_eq!(delays[0], 0);
    assert!((90..=100).contains(&delays[1]), "{delays:?}");
}

#[test]
fn what_was_spent_can_be_given_back() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let line = "TG.CHECK path /v1/items user alice";
    let limited =
        |client: &mut Client| (0..3).map(|_| ask(client, line)[1].clone()).collect::<Vec<_>>();
    assert_eq!(limited(&mut client), [":0", ":0", ":1"]);
    assert_eq!(ask(&mut client, "TG.RESET user alice rule per-user"), [":1"]);
    assert_eq!(limited(&mut client), [":0", ":0", ":1"]);
    assert_eq!(ask(&mut client, "TG.RESET user alice"), [":1"]);
    assert_eq!(limited(&mut client), [":0", ":0", ":1"]);
    assert_eq!(ask(&mut client, "TG.RESET user bob"), [":0"]);
    let unknown = ask(&mut client, "TG.RESET user alice rule per-usr");
    assert!(unknown[0].starts_with("-ERR ") && unknown[0].contains("per-usr"), "{unknown:?}");
}

#[test]
fn what_is_under_way_ends_with_a_report() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let first = ask(&mut client, "TG.CHECK path /export user a");
    assert_eq!(first[1..4], [":0", ":1", ":0"]);
    let ticket = &first[8];
    let denied = ask(&mut client, "TG.CHECK path /export user a");
    assert_eq!(denied[1..5], [":1", ":1", ":0", ":-1"], "nobody knows when");
    assert_eq!(denied[8], "$-1", "there is nothing to report");
    assert_eq!(ask(&mut client, &format!("TG.REPORT {ticket} status 200")), [":1"]);
    assert_eq!(ask(&mut client, &format!("TG.REPORT {ticket}")), [":0"], "it has ended");
    assert_eq!(ask(&mut client, "TG.CHECK path /export user a")[1], ":0");
}

#[test]
fn only_some_outcomes_count() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let login = "TG.CHECK method POST path /login ip 192.0.2.7";
    for (status, limited) in [("200", ":0"), ("401", ":0"), ("401", ":1")] {
        let answer = ask(&mut client, login);
        assert_eq!(answer[1], limited, "{answer:?}");
        if limited == ":0" {
            let report = format!("TG.REPORT {} status {status}", answer[8]);
            assert_eq!(ask(&mut client, &report), [":1"]);
        }
    }
}

#[test]
fn what_is_wrong_is_an_error_and_the_connection_lives() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    for (line, part) in [
        ("TG.CHECK user", "`user` has no value"),
        ("TG.CHECK acount a", "did you mean `account`?"),
        ("TG.CHECK user a user b", "given twice"),
        ("TG.CHECK cost -5", "`cost`"),
        ("TG.CHECK ip nowhere", "`ip` is no address"),
        ("TG.PEEK tier pro", "`tiers.from`"),
        ("TG.RESET", "wrong number of arguments for 'tg.reset'"),
        ("TG.RESET rule", "wrong number of arguments"),
        ("TG.REPORT", "wrong number of arguments"),
        ("TG.REPORT x state 200", "`state`"),
    ] {
        let answer = ask(&mut client, line);
        assert!(answer[0].starts_with("-ERR ") && answer[0].contains(part), "{line}: {answer:?}");
    }
    client.send(b"*3\r\n$8\r\nTG.CHECK\r\n$4\r\nuser\r\n$1\r\n\xff\r\n");
    assert_eq!(client.answer(), "-ERR the value of `user` is not text in UTF-8\r\n");
    assert_eq!(ask(&mut client, "PING"), ["+PONG"]);
}

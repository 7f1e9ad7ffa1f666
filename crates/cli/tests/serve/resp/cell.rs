//! `CL.THROTTLE`, as redis-cell answers it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::Client;
use super::client::answers;
use crate::support::Server;

const RULES: &str = "rules: []";

#[test]
fn answers_what_redis_cell_answers_byte_for_byte() {
    let server = Server::start(RULES);
    for (number, hello) in ["2", "3"].into_iter().enumerate() {
        let mut client = Client::of(&server);
        client.ask(&["HELLO", hello]);
        let one = format!("CL.THROTTLE k{number} 2 1 10");
        let look = format!("cl.throttle k{number} 2 1 10 0");
        let four = format!("Cl.Throttle k{number} 2 1 10 4");
        let other = format!("CL.THROTTLE other{number} 2 1 10 4");
        let all = [&look, &one, &one, &one, &one, &look, &four, &other].map(String::as_str);
        assert_eq!(
            answers(&mut client, &all),
            [
                "*5\r\n:0\r\n:3\r\n:3\r\n:-1\r\n:0\r\n",
                "*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:10\r\n",
                "*5\r\n:0\r\n:3\r\n:1\r\n:-1\r\n:20\r\n",
                "*5\r\n:0\r\n:3\r\n:0\r\n:-1\r\n:30\r\n",
                "*5\r\n:1\r\n:3\r\n:0\r\n:10\r\n:30\r\n",
                "*5\r\n:0\r\n:3\r\n:0\r\n:-1\r\n:30\r\n",
                "*5\r\n:1\r\n:3\r\n:0\r\n:-1\r\n:30\r\n",
                "*5\r\n:1\r\n:3\r\n:3\r\n:-1\r\n:0\r\n",
            ]
        );
    }
}

#[test]
fn rates_that_do_not_divide_evenly_are_told_in_whole_seconds_and_never_too_few() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let all = ["CL.THROTTLE a 6 7 60"; 8];
    let last = answers(&mut client, &all).pop().unwrap();
    // Seven times a seventh of a minute, each rounded up to a 64th of a nanosecond.
    assert_eq!(last, "*5\r\n:1\r\n:7\r\n:0\r\n:9\r\n:61\r\n");
}

#[test]
fn what_is_wrong_is_an_error_and_the_connection_lives() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    for arguments in [
        "",
        " k",
        " k 1 1",
        " k 1 1 1 1 1",
        " k 1 0 60",
        " k 1 1 0",
        " k 1 1 60 -1",
        " k -1 1 60",
        " k a 1 60",
        " k 1 1.5 60",
        " k 1 1 60 99999999999999999999",
        " k 1000000 1 31622400",
    ] {
        let [error, pong] =
            answers(&mut client, &[&format!("CL.THROTTLE{arguments}"), "PING"]).try_into().unwrap();
        assert!(error.starts_with("-ERR "), "{arguments}: {error}");
        assert_eq!(pong, "+PONG\r\n");
    }
    let allowed = answers(&mut client, &["CL.THROTTLE k 0 1 60"]);
    assert!(allowed[0].starts_with("*5\r\n:0\r\n:1\r\n:0\r\n"), "nothing was spent: {allowed:?}");
}

#[test]
fn answers_come_in_the_order_of_commands() {
    let server = Server::start("rules: [{ name: a, key: [user], limit: 100/h }]");
    let mut client = Client::of(&server);
    let mut commands = Vec::new();
    for number in 0..200 {
        commands.push(format!("CL.THROTTLE k 999 1 60 {}", number % 2));
        commands.push(format!("ECHO {number}"));
        commands.push("TG.CHECK user a".to_owned());
        commands.push("TG.CHECK user b".to_owned());
    }
    let lines: Vec<_> = commands.iter().map(String::as_str).collect();
    let mut left = [1000; 3];
    for (number, four) in answers(&mut client, &lines).chunks(4).enumerate() {
        left[0] -= number % 2;
        assert!(four[0].starts_with(&format!("*5\r\n:0\r\n:1000\r\n:{}\r\n", left[0])), "{four:?}");
        assert_eq!(four[1], format!("${}\r\n{number}\r\n", number.to_string().len()));
        for (answer, denied) in [(&four[2], number >= 100), (&four[3], number >= 100)] {
            let begin = format!("*8\r\n:{}\r\n:100\r\n", u8::from(denied));
            assert!(answer.starts_with(&begin), "{number}: {answer}");
        }
    }
}

#[test]
fn keys_are_any_bytes_and_can_be_given_everything_back() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let ask =
        b"*5\r\n$11\r\nCL.THROTTLE\r\n$3\r\n\xff\x00\n\r\n$1\r\n0\r\n$1\r\n1\r\n$4\r\n3600\r\n";
    for limited in ["0", "1"] {
        client.send(ask);
        assert_eq!(client.answer().split("\r\n").nth(1), Some(&*format!(":{limited}")));
    }
    client.send(b"*2\r\n$3\r\nDEL\r\n$3\r\n\xff\x00\n\r\n");
    assert_eq!(client.answer(), ":1\r\n");
    client.send(ask);
    assert!(client.answer().starts_with("*5\r\n:0\r\n"));
}

/// A page of the door for whoever watches.
pub(super) fn page(server: &Server, path: &str) -> String {
    let mut stream = TcpStream::connect(server.address("status")).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn decisions_are_counted() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    answers(&mut client, &["CL.THROTTLE a 0 1 3600"; 5]);
    let metrics = page(&server, "/metrics");
    for line in [
        "tollgate_rule_decisions_total{rule=\"(cl.throttle)\",outcome=\"allowed\"} 1\n",
        "tollgate_rule_decisions_total{rule=\"(cl.throttle)\",outcome=\"denied\"} 4\n",
        "tollgate_decisions_total{door=\"resp\",outcome=\"denied\"} 4\n",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
    for family in
        ["table_occupancy_ratio", "table_keys", "counters_bytes", "sketch_decisions_total"]
    {
        for table in ["rules", "(cl.throttle)"] {
            let sample = format!("tollgate_{family}{{table=\"{table}\"}} ");
            assert!(metrics.contains(&sample), "{sample} is missing in {metrics}");
        }
    }
}

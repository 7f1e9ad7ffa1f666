//! `TOLLGATE.ALLOW`: what `CL.THROTTLE` decides, in one number.

use super::Client;
use super::cell::page;
use super::client::answers;
use crate::support::Server;

const RULES: &str = "rules: []";

/// The same arguments to both, for two keys: what one says is what the other says in short.
#[test]
fn says_yes_where_cl_throttle_lets_pass_and_no_where_it_does_not() {
    let server = Server::start(RULES);
    for (number, hello) in ["2", "3"].into_iter().enumerate() {
        let mut client = Client::of(&server);
        client.ask(&["HELLO", hello]);
        let mut commands = Vec::new();
        for arguments in
            ["2 1 3600 0", "2 1 3600", "2 1 3600 2", "2 1 3600", "2 1 3600 0", "2 1 3600 4"]
        {
            commands.push(format!("CL.THROTTLE five{number} {arguments}"));
            commands.push(format!("Tollgate.Allow one{number} {arguments}"));
        }
        let lines: Vec<_> = commands.iter().map(String::as_str).collect();
        let answers = answers(&mut client, &lines);
        for (two, commands) in answers.chunks(2).zip(commands.chunks(2)) {
            let limited = two[0].starts_with("*5\r\n:1\r\n");
            assert_eq!(two[1], format!(":{}\r\n", u8::from(!limited)), "{commands:?}: {two:?}");
        }
        let said: Vec<_> = answers.iter().skip(1).step_by(2).map(String::as_str).collect();
        assert_eq!(said, [":1\r\n", ":1\r\n", ":1\r\n", ":0\r\n", ":1\r\n", ":0\r\n"]);
    }
}

#[test]
fn spends_from_the_counters_of_cl_throttle() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let said = answers(
        &mut client,
        &[
            "TOLLGATE.ALLOW k 2 1 3600",
            "CL.THROTTLE k 2 1 3600",
            "TOLLGATE.ALLOW k 2 1 3600",
            "TOLLGATE.ALLOW k 2 1 3600",
            "CL.THROTTLE k 2 1 3600",
            "DEL k",
            "TOLLGATE.ALLOW k 2 1 3600",
        ],
    );
    assert_eq!(said[0], ":1\r\n");
    assert!(said[1].starts_with("*5\r\n:0\r\n:3\r\n:1\r\n"), "{said:?}");
    assert_eq!(said[2..4], [":1\r\n", ":0\r\n"]);
    assert!(said[4].starts_with("*5\r\n:1\r\n:3\r\n:0\r\n"), "{said:?}");
    assert_eq!(said[5..], [":1\r\n", ":1\r\n"]);
}

#[test]
fn answers_of_both_forms_come_in_the_order_of_commands() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    // In runs of every length up to more than is decided together.
    let forms: Vec<_> = (1..50).flat_map(|run| vec![run % 2 == 0; run]).collect();
    let command =
        |short: &bool| if *short { "TOLLGATE.ALLOW a 999 1 60" } else { "CL.THROTTLE a 999 1 60" };
    let lines: Vec<_> = forms.iter().map(command).collect();
    for (at, (answer, short)) in answers(&mut client, &lines).iter().zip(&forms).enumerate() {
        let (passes, left) = (at < 1000, 999_usize.saturating_sub(at));
        match short {
            true => assert_eq!(*answer, format!(":{}\r\n", u8::from(passes)), "{at}"),
            false => {
                let begin = format!("*5\r\n:{}\r\n:1000\r\n:{left}\r\n", u8::from(!passes));
                assert!(answer.starts_with(&begin), "{at}: {answer}");
            }
        }
    }
    assert!(forms.len() > 1000, "some are denied");
}

#[test]
fn what_is_wrong_is_an_error_that_names_the_command_and_spends_nothing() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    for (arguments, part) in [
        ("", "ERR wrong number of arguments for 'tollgate.allow' command: TOLLGATE.ALLOW key"),
        (" k 1 1", "ERR wrong number of arguments for 'tollgate.allow' command"),
        (" k 1 1 1 1 1", "ERR wrong number of arguments for 'tollgate.allow' command"),
        (" k -1 1 60", "ERR TOLLGATE.ALLOW: max_burst must be"),
        (" k 1 0 60", "ERR TOLLGATE.ALLOW: count must be"),
        (" k 1 1 0", "ERR TOLLGATE.ALLOW: period must be"),
        (" k 1 1 60 -1", "ERR TOLLGATE.ALLOW: quantity must be"),
        (" k 1000000 1 31622400", "ERR TOLLGATE.ALLOW: "),
    ] {
        let all = [&*format!("TOLLGATE.ALLOW{arguments}"), "PING"];
        let [error, pong] = answers(&mut client, &all).try_into().unwrap();
        assert!(error.strip_prefix('-').is_some_and(|it| it.starts_with(part)), "{error}");
        assert_eq!(pong, "+PONG\r\n");
    }
    assert_eq!(client.ask(&["TOLLGATE.ALLOW", "k", "0", "1", "3600"]), ":1\r\n");
}

#[test]
fn waits_for_exec_as_others_do() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let ask = "TOLLGATE.ALLOW k 1 1 3600";
    let said = answers(&mut client, &["MULTI", ask, ask, "CL.THROTTLE k 1 1 3600 0", ask, "EXEC"]);
    let queued = "+QUEUED\r\n";
    assert_eq!(said[..5], ["+OK\r\n", queued, queued, queued, queued]);
    assert!(said[5].starts_with("*4\r\n:1\r\n:1\r\n*5\r\n:0\r\n:2\r\n:0\r\n"), "{said:?}");
    assert!(said[5].ends_with("\r\n:0\r\n"), "{said:?}");
}

#[test]
fn is_told_of_and_counted_with_cl_throttle() {
    let server = Server::start(RULES);
    let mut client = Client::of(&server);
    let known = client.ask(&["COMMAND", "INFO", "tollgate.allow"]);
    assert!(known.starts_with("*1\r\n*10\r\n$14\r\ntollgate.allow\r\n:-1\r\n"), "{known}");
    assert!(known.contains("\r\n:1\r\n:1\r\n:1\r\n"), "its first argument is a key: {known}");
    let docs = client.ask(&["COMMAND", "DOCS", "TOLLGATE.ALLOW"]);
    assert!(docs.contains("answered with 1 or 0"), "{docs}");
    answers(&mut client, &["TOLLGATE.ALLOW a 0 1 3600"; 5]);
    let metrics = page(&server, "/metrics");
    for line in [
        "tollgate_rule_decisions_total{rule=\"(cl.throttle)\",outcome=\"allowed\"} 1\n",
        "tollgate_rule_decisions_total{rule=\"(cl.throttle)\",outcome=\"denied\"} 4\n",
        "tollgate_decisions_total{door=\"resp\",outcome=\"denied\"} 4\n",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
}

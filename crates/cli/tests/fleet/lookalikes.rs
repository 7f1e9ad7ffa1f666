//! Values that are like others, or hard to write down, each of which counts for itself, whatever door they come by.

use std::collections::BTreeSet;

use crate::client::{Client, encode};
use crate::redis::Redis;
use crate::support::exchange;
use crate::{Fleet, check};

/// Two for each user; those without a name have them together.
const RULES: &str = "rules: [{ name: each, key: [user], key_missing: { together: anonymous },
    limit: 2/day, consistency: strict }]";

/// Values that are another's for whoever forgets to escape something, or does so twice, or cuts it off.
fn values() -> BTreeSet<String> {
    let [long, other] = ["x", "y"].map(|last| "x".repeat(70_000) + last);
    // About as many bytes as a name in the store has at most.
    let edges = (110..=125).map(|count| "x".repeat(count));
    SHORT.iter().map(|&text| text.to_owned()).chain(edges).chain([long, other]).collect()
}

const SHORT: [&str; 73] = [
    "",
    "(anonymous)",
    "%28anonymous)",
    "%28anonymous%29",
    "anonymous",
    "all",
    "null",
    "0",
    "00",
    "a",
    "A",
    " a",
    "a ",
    "a b",
    "a  b",
    "a+b",
    "a%20b",
    "a%2520b",
    "a\u{a0}b",
    "a\tb",
    "a\nb",
    "a\rb",
    "a\r\nb",
    "a\0",
    "a\0b",
    "a\u{1}b",
    "a\u{1b}[31mb",
    "a\u{7f}b",
    "a\u{85}b",
    "a\u{200b}b",
    "a\u{202e}b",
    "\u{feff}a",
    "{",
    "}",
    "{}",
    "}{",
    "{{",
    "{a}",
    "a}:default/each:0",
    "tg:{user=a}",
    "%7B",
    "%7b",
    "%7D",
    "%257B",
    "%",
    "%%",
    "%25",
    "%-",
    "%~",
    "%2",
    "\"",
    "'",
    "\\",
    "\\\"",
    "\\n",
    "\\u0022",
    "`",
    "*",
    "?",
    "[a]",
    "a:b",
    "a,b",
    "a,user=b",
    "user=a",
    "=",
    "$1\r\na\r\n",
    "\u{fc}",
    "u\u{308}",
    "%C3%BC",
    "\u{c3}\u{bc}",
    "\u{65e5}\u{672c}",
    "\u{1f600}",
    "\u{fffd}",
];

/// A question in JSON, with nothing escaped but what must be.
fn written(value: &str) -> String {
    format!(r#"{{"user":{}}}"#, serde_json::to_string(value).unwrap())
}

/// The same with everything escaped.
fn escaped(value: &str) -> String {
    let escaped: String = value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    format!(r#"{{"user":"{escaped}"}}"#)
}

fn passes(client: &mut Client, value: &str) -> bool {
    let answer = client.ask(&["TG.CHECK", "user", value]);
    assert!(answer.starts_with("*8\r\n"), "{value:?} gets {answer}");
    answer.starts_with("*8\r\n:0\r\n")
}

/// What the store calls the values that it counts. Every name is one that an operator can read and a Cluster
/// divides as we do.
fn names(redis: &Redis) -> BTreeSet<String> {
    let keys = redis.cli(&["--raw", "KEYS", "tg:*"]);
    let value = |name: &str| {
        let inner = name.strip_prefix("tg:{user=").and_then(|rest| rest.split_once('}'));
        let (value, rest) = inner.unwrap_or_else(|| panic!("{name:?} is no name of a key"));
        let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(is_plain && !value.contains(['{', '}']), "{name:?}");
        assert!(rest.starts_with(":default/each:") && !rest.contains(['{', '}']), "{name:?}");
        value.to_owned()
    };
    let (marks, keys): (Vec<_>, Vec<_>) = keys.lines().partition(|name| *name == "tg:epoch");
    let names: BTreeSet<_> = keys.iter().map(|name| value(name)).collect();
    assert_eq!((marks.len(), keys.len()), (1, names.len()), "no two names are alike");
    names
}

#[test]
fn values_that_look_like_others_count_for_themselves_at_all_doors() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::patient("1", 2, &redis.url(), RULES);
    let (http, values) = (fleet.addresses("http"), values());
    let mut clients: Vec<_> = fleet.nodes.iter().map(Client::of).collect();
    assert_eq!(values.len(), SHORT.len() + 18, "no value is there twice");
    let shown = |value: &str| value.chars().take(100).collect::<String>();
    // What counts for another value as well is used up before its turn has come twice.
    for value in &values {
        assert_eq!(check(http[0], &written(value)), 200, "{:?}", shown(value));
    }
    for value in &values {
        assert!(passes(&mut clients[1], value), "{:?}", shown(value));
    }
    for value in &values {
        assert_eq!(check(http[1], &escaped(value)), 429, "{:?}", shown(value));
        assert!(!passes(&mut clients[0], value), "{:?}", shown(value));
    }
    let known = names(&redis);
    assert_eq!(known.len(), values.len(), "each has one key: {known:#?}");
    // Nobody counts for another by the name that the store has for it.
    let called: Vec<_> = known.iter().filter(|name| !values.contains(*name)).collect();
    assert!(called.len() > values.len() / 2, "{called:#?}");
    for name in &called {
        assert_eq!(check(http[0], &written(name)), 200, "{name}");
    }
    assert_eq!(names(&redis).len(), values.len() + called.len());
}

#[test]
fn the_longest_values_count_for_themselves_and_longer_ones_are_refused() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::patient("1", 1, &redis.url(), RULES);
    let http = fleet.addresses("http")[0];
    let mut client = Client::of(&fleet.nodes[0]);
    let of = |length: usize, last: char| "x".repeat(length - 1) + &last.to_string();
    // The commands and names around it count as well.
    let longest = (1 << 20) - "TG.CHECK".len() - "user".len();
    for last in ['a', 'b'] {
        let value = of(longest, last);
        assert_eq!(check(http, &written(&value)), 200);
        assert!(passes(&mut client, &value));
        assert!(!passes(&mut client, &value));
        assert_eq!(check(http, &written(&value)), 429);
    }
    assert_eq!(names(&redis).len(), 2);

    let body = written(&of(longest + 2, 'a'));
    assert_eq!(body.len(), (1 << 20) + 1);
    let (status, problem) = exchange(http, "POST", "/v1/check", &[], &body);
    assert!(status == 413 && problem.contains("more than 1048576 bytes"), "{status}: {problem}");
    client.send(encode(&["TG.CHECK", "user", &of(longest + 1, 'a')]));
    assert_eq!(client.rest(), "-ERR Protocol error: invalid bulk length\r\n");
    assert_eq!(names(&redis).len(), 2, "nothing was counted");
}

#[test]
fn what_is_no_text_is_refused_and_counts_for_nobody() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::patient("1", 1, &redis.url(), RULES);
    let http = fleet.addresses("http")[0];
    let mut client = Client::of(&fleet.nodes[0]);
    for bytes in [&b"\xff"[..], b"a\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"] {
        let command = format!("*3\r\n$8\r\nTG.CHECK\r\n$4\r\nuser\r\n${}\r\n", bytes.len());
        client.send([command.as_bytes(), bytes, b"\r\n"].concat());
        assert_eq!(client.answer(), "-ERR the value of `user` is not text in UTF-8\r\n");
        let body = [br#"{"user":""#, bytes, br#""}"#].concat();
        let head = format!(
            "POST /v1/check HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut other = Client::at(http).unwrap();
        other.send([head.as_bytes(), &body].concat());
        let answer = other.rest();
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("unicode"), "{answer}");
    }
    for text in [r"\ud800", r"\udc00\ud800", r"\ud800a"] {
        let body = format!(r#"{{"user":"{text}"}}"#);
        let (status, problem) = exchange(http, "POST", "/v1/check", &[], &body);
        assert!(status == 400 && problem.contains("hex escape"), "{status}: {problem}");
    }
    assert!(passes(&mut client, "\u{fffd}"), "they are not taken for another text either");
    assert!(passes(&mut client, "\u{fffd}"));
    assert_eq!(names(&redis).len(), 1);
}

#[test]
fn an_empty_value_is_as_good_as_none() {
    let redis = Redis::start(&[]);
    let rules = "rules: [{ name: each, key: [user], limit: 2/day, consistency: strict }]";
    let fleet = Fleet::patient("1", 1, &redis.url(), rules);
    let http = fleet.addresses("http")[0];
    let mut client = Client::of(&fleet.nodes[0]);
    for _ in 0..5 {
        assert_eq!(check(http, &written("")), 200);
        assert_eq!(check(http, "{}"), 200);
        assert!(passes(&mut client, ""));
    }
    assert_eq!(redis.cli(&["KEYS", "tg:{*"]), "", "no rule counts it");
}

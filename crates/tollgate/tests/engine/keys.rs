//! What requests are counted by, and what becomes of those that lack it.

use tollgate::{Engine, ManualClock, Request};

use crate::{engine, get, left, names, passing};

const ALICE: [(&str, &str); 1] = [("user", "alice")];

fn from(ip: &str) -> Request<'static> {
    get("/").peer(ip.parse().unwrap())
}

/// Whether both requests are counted together.
fn together(engine: &Engine<ManualClock>, one: &Request<'_>, other: &Request<'_>) -> bool {
    let before = engine.peek(other).decision().remaining();
    assert!(engine.decide(one).is_allowed());
    engine.peek(other).decision().remaining() != before
}

#[test]
fn keys_of_one_part_are_counted_apart() {
    for key in ["user", "ip", "header.x-key", "query.key", "method", "host", "path"] {
        let (engine, _) = engine(&format!("rules: [{{ name: a, key: [{key}], limit: 50/h }}]"));
        let request = |n: usize| {
            let methods = ["GET", "PUT"];
            let request = Request::new(methods[n], ["/a?key=1", "/b?key=2"][n]);
            let request = request.host(["a.example", "b.example"][n]);
            let headers = [&[("x-key", "1")], &[("X-Key", "2")]];
            let users = [&[("user", "1")], &[("user", "2")]];
            request.headers(headers[n]).attributes(users[n]).peer([192, 0, 2, n as u8].into())
        };
        assert!(together(&engine, &request(0), &request(0)), "{key}");
        assert!(!together(&engine, &request(0), &request(1)), "{key}");
    }
}

#[test]
fn addresses_are_counted_by_client_and_by_network() {
    let (by_ip, _) = engine("rules: [{ name: a, key: [ip], limit: 50/h }]");
    let (by_net, _) = engine("rules: [{ name: a, key: [ip/24], limit: 50/h }]");
    for (one, other, same_ip, same_net) in [
        ("192.0.2.7", "192.0.2.7", true, true),
        ("192.0.2.7", "::ffff:192.0.2.7", true, true),
        ("192.0.2.7", "192.0.2.8", false, true),
        ("192.0.2.7", "192.0.3.7", false, false),
        ("2001:db8:1:2::7", "2001:db8:1:2:9::8", true, true),
        ("2001:db8:1:2::7", "2001:db8:1:3::7", false, true),
        ("2001:db8:1::", "2001:db8:2::", false, false),
    ] {
        assert_eq!(together(&by_ip, &from(one), &from(other)), same_ip, "{one} and {other}");
        assert_eq!(together(&by_net, &from(one), &from(other)), same_net, "{one} and {other}");
    }
}

#[test]
fn clients_behind_trusted_proxies_are_told_apart_and_others_choose_nothing() {
    let (engine, _) = engine(
        "client_ip: { trusted_proxies: [10.0.0.0/8] }
rules: [{ name: a, key: [ip], limit: 50/h }]",
    );
    let (one, two) = ([("x-forwarded-for", "192.0.2.1")], [("X-Forwarded-For", "192.0.2.2")]);
    let (ours, theirs) = (from("10.0.0.1"), from("198.51.100.1"));
    assert!(!together(&engine, &ours.headers(&one), &ours.headers(&two)));
    assert!(together(&engine, &ours.headers(&one), &from("192.0.2.1")));
    assert!(together(&engine, &theirs.headers(&one), &theirs.headers(&two)));
}

#[test]
fn a_key_of_two_parts_is_both_in_their_order() {
    let (engine, _) = engine("rules: [{ name: a, key: [user, header.x-key], limit: 50/h }]");
    let request = |user: &'static [(&str, &str)], header: &'static [(&str, &str)]| {
        get("/").attributes(user).headers(header)
    };
    let both = request(&[("user", "a")], &[("x-key", "b")]);
    assert!(together(&engine, &both, &both));
    assert!(!together(&engine, &both, &request(&[("user", "b")], &[("x-key", "a")])));
    assert!(!together(&engine, &both, &request(&[("user", "a")], &[("x-key", "c")])));
    assert!(!together(&engine, &both, &request(&[("user", "ab")], &[("x-key", "b")])));
    assert!(names(&engine.decide(&request(&[("user", "a")], &[]))).is_empty(), "one is missing");
}

#[test]
fn parts_of_the_path_are_keys_however_the_path_is_written() {
    let (engine, _) = engine(
        "rules: [{ name: a, match: { path: ['/users/{id}/**', '/v1/{id}'] }, key: [path.id],
          limit: 50/h }]",
    );
    assert!(together(&engine, &get("/users/7/items"), &get("/users/7")));
    assert!(together(&engine, &get("/users/7"), &get("/v1/7?page=2")));
    assert!(together(&engine, &get("/users/7"), &get("//users/x/../%37/")));
    assert!(!together(&engine, &get("/users/7"), &get("/users/8")));
    assert!(names(&engine.decide(&get("/users"))).is_empty());
    assert!(names(&engine.decide(&get("/v1/7/more"))).is_empty());
}

#[test]
fn a_rule_does_not_apply_to_whoever_lacks_its_key_or_sends_an_empty_one() {
    for rest in ["", ", key_missing: skip"] {
        let (engine, _) = engine(&format!("rules: [{{ name: a, key: [user], limit: 1/h{rest} }}]"));
        assert_eq!(passing(&engine, &get("/"), 9), 9);
        assert_eq!(passing(&engine, &get("/").attributes(&[("user", "")]), 9), 9);
        assert_eq!(passing(&engine, &get("/").attributes(&ALICE), 9), 1);
    }
}

#[test]
fn whoever_lacks_the_key_is_counted_by_something_else() {
    let (engine, _) = engine("rules: [{ name: a, key: [user], key_missing: ip, limit: 2/h }]");
    assert_eq!(passing(&engine, &from("192.0.2.1"), 9), 2);
    assert_eq!(passing(&engine, &from("192.0.2.2"), 9), 2);
    assert_eq!(passing(&engine, &from("192.0.2.1").attributes(&ALICE), 9), 2, "that is alice");
    assert_eq!(passing(&engine, &get("/"), 9), 9, "there is neither");
}

/// Whoever had no name could take that of another, and spend what was hers.
#[test]
fn what_stands_for_a_key_is_never_the_key_of_another() {
    let (engine, _) =
        engine("rules: [{ name: a, key: [user], key_missing: header.x-client, limit: 2/h }]");
    assert_eq!(passing(&engine, &get("/").headers(&[("x-client", "alice")]), 9), 2);
    assert_eq!(passing(&engine, &get("/").attributes(&ALICE), 9), 2);
}

#[test]
fn those_without_a_key_are_counted_together_under_a_name_that_nobody_has() {
    let (engine, _) = engine(
        "rules: [{ name: a, key: [user], key_missing: { together: anonymous }, limit: 3/h }]",
    );
    assert_eq!(passing(&engine, &from("192.0.2.1"), 2), 2);
    assert_eq!(passing(&engine, &from("192.0.2.2"), 9), 1);
    assert_eq!(passing(&engine, &get("/").attributes(&[("user", "anonymous")]), 9), 3);
}

#[test]
fn rules_count_the_same_key_apart() {
    let (engine, _) = engine(
        "rules:
  - { name: reads, match: { method: GET }, key: [user], limit: 2/h }
  - { name: writes, match: { method: POST }, key: [user], limit: 2/h }",
    );
    assert_eq!(passing(&engine, &get("/").attributes(&ALICE), 9), 2);
    let post = Request::new("POST", "/").attributes(&ALICE);
    assert_eq!(left(&engine, "writes", &post), Some(2));
    assert_eq!(passing(&engine, &post, 9), 2);
}

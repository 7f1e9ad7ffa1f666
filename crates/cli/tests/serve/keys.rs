//! `tollgate keys`.

use crate::resp::{Client, encode};
use crate::support::Server;

const RULES: &str = "rules:
  - { name: per-user, key: [user], limit: 2/h, block_for: 1h }
  - { name: everybody, key: [], limit: 100/h }";

fn spent() -> Server {
    let server = Server::start(RULES);
    while server.allows(r#"{"user":"alice"}"#) {}
    server
}

#[test]
fn a_key_is_shown_with_how_full_it_is() {
    let server = spent();
    let ran = server.run(&["keys", "inspect", "user=alice"]);
    assert_eq!(ran.code, 0, "{}", ran.notes);
    for part in
        ["per-user", "user=alice", "2/2", "[##########]", "blocked for", "everybody", "2/100"]
    {
        assert!(ran.out.contains(part), "{part} is missing in\n{}", ran.out);
    }
    let json = server.run(&["keys", "inspect", "user=alice", "--output", "json"]).json();
    assert_eq!((&json["keys"][0]["used"], &json["keys"][0]["allowed"]), (&2.into(), &false.into()));
    let bob = server.run(&["keys", "inspect", "user=bob", "--output", "json"]).json();
    assert_eq!((&bob["keys"][0]["used"], &bob["keys"][0]["allowed"]), (&0.into(), &true.into()));
}

#[test]
fn a_key_that_is_reset_passes_again_and_nobody_else_does() {
    let server = spent();
    while server.allows(r#"{"user":"bob"}"#) {}
    assert_eq!(server.run(&["keys", "reset", "user=alice"]).code, 0);
    assert!(server.allows(r#"{"user":"alice"}"#));
    assert!(!server.allows(r#"{"user":"bob"}"#));
    let unknown = server.run(&["keys", "reset", "user=alice", "--rule", "per-usr"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.notes.contains("did you mean `per-user`"), "{}", unknown.notes);
    let wrong = server.run(&["keys", "inspect", "usr=alice"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.notes.contains("user"), "{}", wrong.notes);
}

#[test]
fn keys_that_bring_their_limits_are_among_the_heaviest() {
    let server = spent();
    let mut client = Client::of(&server);
    client.send(encode(&["CL.THROTTLE", "carol", "0", "1", "3600"]).repeat(50));
    (0..50).for_each(|_| _ = client.answer());
    for list in
        [&["keys", "top", "--output", "json"][..], &["keys", "top", "--denied", "--output", "json"]]
    {
        let keys = server.run(list).json()["keys"].clone();
        let keys = keys.as_array().unwrap();
        // Every request is of one of them, whatever else it is counted by.
        let shares = ["(cl.throttle) key=carol", "per-user user=alice"].map(|name| {
            let key = keys.iter().find(|key| key["key"] == name);
            key.and_then(|key| key["share"].as_f64()).unwrap_or_else(|| panic!("{name}: {keys:?}"))
        });
        let all: f64 = shares.iter().sum();
        assert!((0.99..1.01).contains(&all), "they are shares of all: {keys:?}");
    }
}

#[test]
fn the_heaviest_and_the_most_denied_are_listed() {
    let server = spent();
    for _ in 0..20 {
        server.allows(r#"{"user":"alice"}"#);
    }
    assert!(server.run(&["keys", "top"]).out.contains("per-user user=alice"));
    let denied = server.run(&["keys", "top", "--denied", "-n", "1", "--output", "json"]).json();
    assert_eq!(denied["keys"].as_array().map(Vec::len), Some(1));
    assert_eq!(denied["keys"][0]["key"], "per-user user=alice");
}

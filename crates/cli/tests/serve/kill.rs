//! The kill switch.

use std::fs;

use crate::support::{Server, until};

const RULES: &str = "rules:
  - { name: per-user, key: [user], limit: 1/h }
  - { name: everybody, key: [], limit: 1/h }";
const ALICE: &str = r#"{"user":"alice"}"#;

#[test]
fn a_rule_that_is_killed_denies_nobody_until_it_is_back() {
    let server = Server::start(RULES);
    while server.allows(ALICE) {}
    let ran = server.run(&["kill", "everybody"]);
    assert_eq!((ran.code, &*ran.out), (0, "everybody is killed: off\n"), "{}", ran.notes);
    assert!(server.allows(r#"{"user":"bob"}"#), "at once");
    assert!(!server.allows(ALICE), "the other rule is in force");
    assert_eq!(server.metric(r#"tollgate_killed{rule="everybody",mode="off"}"#), Some(1.0));
    assert_eq!(server.run(&["unkill", "everybody"]).out, "no rule is killed\n");
    assert!(!server.allows(r#"{"user":"carol"}"#));
}

#[test]
fn a_file_that_changes_stays_killed() {
    let server = Server::start(RULES);
    while server.allows(ALICE) {}
    assert_eq!(server.run(&["kill", "--all", "--mode", "shadow"]).code, 0);
    assert!(server.allows(ALICE));
    fs::write(server.rules(), RULES.replace("name: per-user", "name: renamed")).unwrap();
    until("the rules are exchanged", || {
        server.metric("tollgate_rules_swaps_total").filter(|swaps| *swaps > 0.0)
    });
    assert!(server.allows(ALICE));
    assert_eq!(server.metric(r#"tollgate_killed_all{mode="shadow"}"#), Some(1.0));
    assert_eq!(server.run(&["unkill", "--all"]).code, 0);
    assert!(!server.allows(ALICE));
}

#[test]
fn only_what_is_there_can_be_killed() {
    let server = Server::start(RULES);
    let ran = server.run(&["kill", "everybdy"]);
    assert_eq!(ran.code, 2);
    assert!(ran.notes.contains("did you mean `everybody`"), "{}", ran.notes);
    let json = server.run(&["unkill", "everybody", "--output", "json"]);
    assert_eq!(json.code, 2);
    assert_eq!(json.json()["findings"][0]["code"], "refused");
    assert_eq!(server.run(&["kill"]).code, 2, "nothing is named");
    assert_eq!(server.run(&["kill", "everybody", "--all"]).code, 2, "both are");
}

//! `tollgate rules show` and `push`.

use std::fs;

use crate::support::{Server, exchange, until};

const RULES: &str = "rules: [{ name: everybody, key: [], limit: 1/h }]";

#[test]
fn rules_are_pushed_and_come_into_force() {
    let mut server = Server::start(RULES);
    let file = server.folder.path().join("new.yaml");
    fs::write(&file, "rules: [{ name: everybody, key: [], limit: 3/h }]").unwrap();
    let file = file.to_str().unwrap();
    let would = server.run(&["rules", "push", file, "--dry-run"]);
    assert_eq!(would.code, 1, "{}", would.notes);
    assert!(would.out.contains("everybody: looser"), "{}", would.out);
    assert!(server.allows("{}") && !server.allows("{}"), "nothing has changed");
    let pushed = server.run(&["rules", "push", file]);
    assert_eq!(pushed.code, 0, "{}", pushed.notes);
    assert!(server.allows("{}"), "what was spent is spent, and there is more");
    let shown = server.run(&["rules", "show"]);
    assert!(shown.out.contains("pushed") && shown.out.contains("limit: 3/h"), "{}", shown.out);
    let again = server.run(&["rules", "push", file, "--output", "json"]).json();
    assert_eq!(again["answer"], serde_json::Value::Null, "nothing is sent");
    // The file wins when it changes.
    fs::write(server.rules(), RULES.replace("1/h", "2/h")).unwrap();
    server.process.wait_for_line("replaced by those of the file");
    until("the file is in force", || {
        Some(server.run(&["rules", "show"]).out).filter(|shown| shown.contains("limit: 2/h"))
    });
}

#[test]
fn wrong_rules_are_refused_here_and_there() {
    let server = Server::start(RULES);
    let file = server.folder.path().join("new.yaml");
    fs::write(&file, "rules: [{ name: everybody, key: [], limt: 3/h }]").unwrap();
    let here = server.run(&["rules", "push", file.to_str().unwrap()]);
    assert_eq!(here.code, 1);
    assert!(here.notes.contains("limt"), "{}", here.notes);
    let text = fs::read_to_string(&file).unwrap();
    let (status, problem) = exchange(server.address("admin"), "PUT", "/v1/rules", &[], &text);
    assert_eq!(status, 422);
    let problem: serde_json::Value = serde_json::from_str(&problem).unwrap();
    assert_eq!(problem["findings"][0]["line"], 1, "{problem}");
    assert_eq!(server.metric("tollgate_rules_refused_total"), Some(1.0));
    fs::write(&file, "rules: [{ name: a, key: [user], limit: 3/h, overrides: vip.csv }]").unwrap();
    fs::write(server.folder.path().join("vip.csv"), "alice,9/h\n").unwrap();
    let files = server.run(&["rules", "push", file.to_str().unwrap()]);
    assert_eq!(files.code, 1, "{}", files.out);
    assert!(files.notes.contains("did not come from a file"), "{}", files.notes);
}

#[test]
fn who_was_slower_replaces_nothing() {
    let server = Server::start(RULES);
    let stale = [("if-match", "\"0\"")];
    let (status, _) = exchange(server.address("admin"), "PUT", "/v1/rules", &stale, "rules: []");
    assert_eq!(status, 412);
    assert!(server.allows("{}") && !server.allows("{}"));
}

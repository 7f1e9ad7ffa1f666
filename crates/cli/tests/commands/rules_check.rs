use crate::{Folder, SMALL, WRONG, shop, tollgate, tollgate_reading};

#[test]
fn a_good_file_is_said_back() {
    tollgate(&["rules", "check", &shop()]).ends(0).prints(&[
        "8 rules, 13 tests, 0 warnings; version ",
        "\nper-user\n  free: 100 per 60 s, at most 100 at one instant\n  pro: 10,000 per 60 s, at \
         most 500 at one instant\n  enterprise: unlimited\n  counted per user\n  a request without \
         a user is not limited\n  1 key has a limit of its own\n\n",
        "\nold-backend\n  50 per 1 s, evenly, with up to 20 waiting in line, one counter for",
        "\nexports\n  5 at once per account\n  a slot comes back after 10 min\n",
        "\nper-network (shadow)\n",
        "  it only reports, and denies nothing\n",
    ]);
    tollgate(&["rules", "check", "--strict", &shop()]).ends(0);
    tollgate_reading(SMALL, &["rules", "check", "-"]).ends(0).prints(&["standard input: 1 rule,"]);
}

#[test]
fn programs_read_every_rule() {
    let json = tollgate(&["rules", "check", &shop(), "--output", "json"]).ends(0).json();
    assert_eq!(json["namespace"], "shop");
    assert_eq!(json["tests"], 13);
    assert_eq!(json["version"].as_str().unwrap().len(), 32);
    assert_eq!(json["rules"][0]["key"][0], "user");
    assert_eq!(json["rules"][0]["limits"][1]["tier"], "pro");
    assert_eq!(json["rules"][0]["limits"][1]["limit"], "token bucket of 10k/min burst 500");
    assert_eq!(json["rules"][7]["mode"], "shadow");
    let words = json["rules"][1]["words"].as_str().unwrap();
    assert!(words.starts_with("20 per 1 s, at most 20 at one instant, per account; "), "{words}");
    assert_eq!(json["findings"], serde_json::json!([]));
}

#[test]
fn programs_hear_that_there_is_more_than_they_are_told() {
    let folder = Folder::new();
    let bad = "  - { nme: a, key: [], limit: 1/s }\n".repeat(300);
    let file = folder.write("rules.yaml", &format!("rules:\n{bad}"));
    let json = tollgate(&["rules", "check", &file, "--output", "json"]).ends(1).json();
    let told = json["findings"].as_array().unwrap().len() as u64;
    assert_eq!(told, 100);
    assert!(json["left_out"].as_u64().unwrap() >= 300 - told, "{}", json["left_out"]);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let folder = Folder::new();
    let file = folder.write("rules.yaml", WRONG);
    tollgate(&["rules", "check", &file]).ends(1).notes(&[
        &format!("{file}:2:22"),
        "did you mean `user`?",
        &format!("{file}:3:7"),
        "did you mean `name`?",
    ]);
    let json = tollgate(&["rules", "check", &file, "--output", "json"]).ends(1).json();
    let findings = json["findings"].as_array().unwrap();
    assert!(findings.len() >= 3, "{findings:?}");
    let first = &findings[0];
    assert_eq!(first["file"], file);
    assert_eq!((&first["line"], &first["column"]), (&2.into(), &22.into()));
    assert_eq!(
        (&first["severity"], &first["code"]),
        (&"error".into(), &"unknown-attribute".into())
    );
    assert_eq!(first["message"], "there is no attribute `usr`");
    assert_eq!(first["remedy"], "did you mean `user`?");
}

#[test]
fn what_cannot_be_read_ends_with_2() {
    let folder = Folder::new();
    let missing = folder.path("missing.yaml");
    let missing = missing.to_str().unwrap();
    tollgate(&["rules", "check", missing]).ends(2).notes(&["missing.yaml cannot be read"]);
    let json = tollgate(&["rules", "check", missing, "--output", "json"]).ends(2).json();
    assert_eq!(json["findings"][0]["code"], "unreadable-file");
    assert_eq!(json["findings"][0]["file"], missing);
    std::fs::write(folder.path("binary.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    let binary = folder.path("binary.yaml");
    tollgate(&["rules", "check", binary.to_str().unwrap()]).ends(2).notes(&["UTF-8"]);
    tollgate(&["rules", "check", folder.path("").to_str().unwrap()]).ends(2);
}

#[test]
fn files_that_a_file_names_are_beside_it() {
    let folder = Folder::new();
    folder.write("big.csv", "acme,50/min\n");
    let rules = "rules: [{ name: a, key: [user], limit: 5/s, overrides: big.csv }]\n";
    tollgate(&["rules", "check", &folder.write("rules.yaml", rules)]).ends(0);
    folder.write("big.csv", "acme\n");
    tollgate(&["rules", "check", &folder.write("rules.yaml", rules)]).ends(1);
}

#[test]
fn toml_and_json_are_rule_files_too() {
    let folder = Folder::new();
    let toml = "[[rules]]\nname = \"a\"\nkey = []\nlimit = \"5/s\"\n";
    let json = r#"{ "rules": [{ "name": "a", "key": [], "limit": "5/s" }] }"#;
    for file in [folder.write("rules.toml", toml), folder.write("rules.json", json)] {
        tollgate(&["rules", "check", &file]).ends(0).prints(&["\na\n  5 per 1 s, at most 5"]);
    }
}

#[test]
fn bytes_that_are_no_text_are_named_with_their_file_and_line() {
    let folder = Folder::new();
    let file = folder.write("rules.yaml", "");
    std::fs::write(&file, b"rules:\n- name: \xff\n").unwrap();
    let said = format!("{file} cannot be read: line 2 is not text in UTF-8");
    for command in ["check", "fmt", "test"] {
        tollgate(&["rules", command, &file]).ends(2).notes(&[&said]);
    }
}

#[test]
fn a_file_that_is_too_large_is_not_called_no_text() {
    let folder = Folder::new();
    // The limit is in the middle of a character.
    let file = folder.write("rules.yaml", &"\u{20ac}".repeat((64 << 20) / 3 + 1));
    let run = tollgate(&["rules", "check", &file]).ends(1);
    run.notes(&["the file has 64 MB, and at most 64 MB are read"]);
}

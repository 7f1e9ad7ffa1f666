use crate::{Folder, SMALL, WRONG, shop, tollgate, tollgate_reading};

const OLD: &str = "rules:
  - { name: reads, key: [user], limit: 100/min, overrides: { ann: 9/s } }
  - { name: writes, key: [user], limit: 10/min }
  - { name: gone, key: [ip], limit: 5/s }
  - { name: old-name, key: [account], limit: 7/s }
";
const NEW: &str = "rules:
  - { name: reads, key: [user], limit: 50/min, overrides: { ann: 8/s, bob: 2/s } }
  - { name: writes, key: [user], limit: 20/min }
  - { name: new-name, key: [account], limit: 7/s }
  - { name: fresh, key: [host], limit: 5/s }
";

#[test]
fn changes_are_said_in_groups() {
    let folder = Folder::new();
    let (old, new) = (folder.write("old.yaml", OLD), folder.write("new.yaml", NEW));
    let run = tollgate(&["rules", "diff", &old, &new]).ends(1);
    assert_eq!(
        run.out,
        "changed
  reads: stricter
    limit: 100/min -> 50/min (half)
    overrides: 1 added, 0 removed, 1 changed
      ann: 9/s -> 8/s
      bob: added with 2/s
  writes: looser
    limit: 10/min -> 20/min (double)

added
  fresh: stricter
    5 per 1 s, at most 5 at one instant, per host
    a request without a host is not limited

removed
  gone: looser
    5 per 1 s, at most 5 at one instant, per address
    a request without an address is not limited

renamed
  new-name: renamed from old-name; its counters begin anew

all in all: stricter in one way, and looser in another
"
    );
}

#[test]
fn programs_read_every_change() {
    let folder = Folder::new();
    let (old, new) = (folder.write("old.yaml", OLD), folder.write("new.yaml", NEW));
    let json = tollgate(&["rules", "diff", &old, &new, "--output", "json"]).ends(1).json();
    assert_eq!((&json["old"], &json["new"]), (&old.into(), &new.into()));
    assert_eq!(json["direction"], "both");
    let rules = json["rules"].as_array().unwrap();
    let of = |name: &str| rules.iter().find(|rule| rule["rule"] == name).unwrap();
    let reads = of("reads");
    assert_eq!((&reads["change"], &reads["direction"]), (&"changed".into(), &"stricter".into()));
    assert_eq!(reads["fields"][0]["from"], "100/min");
    assert_eq!(reads["fields"][0]["ratio"], "half");
    assert_eq!((&reads["overrides"]["added"], &reads["begins_anew"]), (&1.into(), &false.into()));
    assert_eq!(reads["overrides"]["first"][1]["from"], serde_json::Value::Null);
    assert_eq!(of("fresh")["change"], "added");
    assert_eq!(of("gone")["change"], "removed");
    assert_eq!(
        (&of("new-name")["change"], &of("new-name")["from"]),
        (&"renamed".into(), &"old-name".into())
    );
}

#[test]
fn what_is_only_written_differently_is_no_change() {
    let folder = Folder::new();
    let toml = "[[rules]]\nlimit = \"5/s\"\nkey = [\"user\"]\nname = \"per-user\"\n";
    let toml = folder.write("rules.toml", toml);
    let run = tollgate_reading(SMALL, &["rules", "diff", "-", &toml]).ends(0);
    assert_eq!(run.out, "nothing changes\n");
    tollgate_reading(SMALL, &["rules", "diff", &toml, "-"]).ends(0);
    let json = tollgate_reading(SMALL, &["rules", "diff", &toml, "-", "--output", "json"]).ends(0);
    assert_eq!(json.json()["rules"], serde_json::json!([]));
    tollgate(&["rules", "diff", &shop(), &shop()]).ends(0);
}

#[test]
fn what_is_beside_the_rules_counts_too() {
    let other = format!("namespace: other\n{SMALL}");
    let folder = Folder::new();
    let small = folder.write("small.yaml", SMALL);
    tollgate_reading(&other, &["rules", "diff", &small, "-"]).ends(1).prints(&[
        "beside the rules\n  namespace: default -> other\n",
        "whether that is stricter or looser cannot be told",
    ]);
}

#[test]
fn files_that_are_wrong_are_not_compared() {
    let folder = Folder::new();
    let wrong = folder.write("wrong.yaml", WRONG);
    tollgate_reading(SMALL, &["rules", "diff", "-", &wrong]).ends(1).notes(&["wrong.yaml:2:22"]);
    let missing = folder.path("missing.yaml");
    let missing = missing.to_str().unwrap();
    tollgate(&["rules", "diff", missing, &shop()]).ends(2).notes(&["cannot be read"]);
    tollgate(&["rules", "diff", "-", "-"]).ends(2).notes(&["standard input can be one of"]);
    let json = tollgate(&["rules", "diff", "-", "-", "--output", "json"]).ends(2).json();
    assert_eq!(json["findings"][0]["code"], "bad-flags");
}

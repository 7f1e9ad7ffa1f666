//! Files that a rule file names.

use std::fs;

use tollgate_rules::{Files, Folder, RuleSet, Source};

use crate::{codes, shown, with};

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("o.csv"), b"acme,5/s\nbo\xfflt,6/s\n").unwrap();
    let files = Folder::new(folder.path());
    let source = Source::new("a.yaml", with("overrides: o.csv"));
    let report = RuleSet::read(&source, &files).unwrap_err();
    let text = shown(&report, &source);
    assert_eq!(codes(&report), ["unreadable-file"]);
    assert!(
        text.contains("`o.csv`") && text.contains("line 2") && text.contains("UTF-8"),
        "{text}"
    );
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let files = Folder::new(folder.path());
    for name in [".", "/dev/zero", "/dev/stdin", "/dev/tty"] {
        assert!(files.read(name).is_err(), "{name}");
        let source = Source::new("a.yaml", with(&format!("overrides: {name}")));
        let report = RuleSet::read(&source, &files).unwrap_err();
        assert_eq!(codes(&report), ["unreadable-file"], "{}", shown(&report, &source));
    }
}

#[test]
fn files_are_bounded_together() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("o.csv"), "#".repeat(1 << 20)).unwrap();
    let rule =
        |at: usize| format!("- {{name: r{at}, key: [user], limit: 5/s, overrides: o.csv}}\n");
    let rules: String = (0..2_000).map(rule).collect();
    let source = Source::new("a.yaml", format!("rules:\n{rules}"));
    let report = RuleSet::read(&source, &Folder::new(folder.path())).unwrap_err();
    let text = shown(&report, &source);
    assert!(text.contains("together"), "{text}");
}

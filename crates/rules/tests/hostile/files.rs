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
fn files_are_only_read_from_the_folder_of_the_rules() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules");
    fs::create_dir_all(rules.join("more")).unwrap();
    for place in ["o.csv", "rules/o.csv", "rules/more/o.csv"] {
        fs::write(folder.path().join(place), "acme,9/s\n").unwrap();
    }
    let files = Folder::new(&rules);
    for name in ["o.csv", "./o.csv", "more/o.csv", "more//./o.csv"] {
        assert_eq!(files.read(name).unwrap(), "acme,9/s\n", "{name}");
    }
    let absolute = rules.join("o.csv").to_str().unwrap().to_owned();
    for name in ["../o.csv", "more/../o.csv", "more/../../o.csv", "..", &absolute, "/etc/passwd"] {
        assert!(files.read(name).is_err(), "{name}");
        for field in ["overrides", "tests"] {
            let text = match field {
                "tests" => format!("{}\ntests: '{name}'", with("mode: enforce")),
                _ => with(&format!("overrides: '{name}'")),
            };
            let source = Source::new("a.yaml", text);
            let report = RuleSet::read(&source, &files).unwrap_err();
            let text = shown(&report, &source);
            assert_eq!(codes(&report), ["unreadable-file"], "{text}");
            assert!(text.contains("only files in the folder of the rules"), "{text}");
        }
    }
}

#[cfg(unix)]
#[test]
fn pipes_are_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let files = Folder::new(folder.path());
    let rule = "key: [user], limit: 5/s";
    for text in [
        with("overrides: pipe"),
        format!("rules: [{{ name: a, {rule} }}]\ntests: pipe"),
        format!("geo: {{ country: pipe }}\nrules: [{{ name: a, {rule} }}]"),
        format!("geo: {{ asn: {} }}\nrules: [{{ name: a, {rule} }}]", pipe.display()),
        format!("geo: {{ asn: /dev/zero }}\nrules: [{{ name: a, {rule} }}]"),
    ] {
        let source = Source::new("a.yaml", text);
        let report = RuleSet::read(&source, &files).unwrap_err();
        let text = shown(&report, &source);
        assert_eq!(codes(&report), ["unreadable-file"], "{text}");
        assert!(text.contains("regular file"), "{text}");
    }
}

#[test]
fn lines_of_other_files_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "s3cret";
    let long = secret.repeat(10);
    let lines = format!("{secret}\n{long},5/s\nacme,{long}\n192.0.2.7,{long},{long}\n");
    fs::write(folder.path().join("o.csv"), lines).unwrap();
    let text = "rules: [{ name: a, key: [ip], limit: 5/s, overrides: o.csv }]";
    let source = Source::new("a.yaml", text);
    let report = RuleSet::read(&source, &Folder::new(folder.path())).unwrap_err();
    let text = shown(&report, &source);
    assert_eq!(codes(&report), ["bad-override"; 4], "{text}");
    assert!(text.contains("o.csv:1: ") && !text.contains(secret), "{text}");
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

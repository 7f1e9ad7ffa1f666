//! The binary as its users run it: every command, good and bad input, exit codes.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

#[path = "../../../store/tests/support/authority.rs"]
mod authority;
mod check;
mod completions;
mod doctor;
mod doctor_access;
mod doctor_timing;
mod lab;
mod man;
#[path = "../../../store/tests/support/process.rs"]
mod process;
#[path = "../../../store/tests/support/relay.rs"]
mod relay;
mod rules_check;
mod rules_diff;
mod rules_explain;
mod rules_fmt;
mod rules_import;
mod rules_schema;
mod rules_test;
mod starting;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What a run of the binary left.
struct Run {
    code: i32,
    out: String,
    notes: String,
}

impl Run {
    /// What it printed for programs: one object in one line.
    fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{}", self.out);
        assert_eq!(self.notes, "", "programs read one stream");
        serde_json::from_str(&self.out).unwrap()
    }

    #[track_caller]
    fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.notes);
        self
    }

    #[track_caller]
    fn prints(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.out.contains(part), "{part} is missing in\n{}", self.out);
        }
        self
    }

    #[track_caller]
    fn notes(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.notes.contains(part), "{part} is missing in\n{}", self.notes);
        }
        self
    }
}

fn tollgate(arguments: &[&str]) -> Run {
    tollgate_reading("", arguments)
}

fn tollgate_reading(input: &str, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.args(arguments).spawn().unwrap();
    // A command that does not read may end before all is written.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, notes) = (text(output.stdout), text(output.stderr));
    assert!(!out.contains('\u{1b}') && !notes.contains('\u{1b}'), "colours are for terminals");
    Run { code: output.status.code().unwrap(), out, notes }
}

/// A folder with rule files, gone with the test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Rules of every kind, with tests.
fn shop() -> String {
    format!("{}/tests/rules/shop.yaml", env!("CARGO_MANIFEST_DIR"))
}

const SMALL: &str = "rules: [{ name: per-user, key: [user], limit: 5/s }]\n";
const WRONG: &str = "rules:\n  - { name: a, key: [usr], limit: 5/s }\n  - { nam: b }\n";

#[test]
fn a_command_line_that_is_wrong_ends_with_2() {
    for arguments in [
        &["frobnicate"][..],
        &["rules"],
        &["rules", "check"],
        &["rules", "test"],
        &["rules", "fmt", "--check", "--stdout", "a"],
        &["rules", "diff", "a"],
        &["rules", "import", "nginx"],
        &["rules", "import", "nginx", "a", "--force"],
        &["check", "a"],
        &["check", "a", "--request", "GET /", "--times", "0"],
        &["check", "a", "--request", "GET /", "--times", "101k"],
    ] {
        assert_eq!(tollgate(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn programs_are_told_what_is_wrong_with_the_command_line() {
    let json = tollgate(&["rules", "check", "--output", "json"]).ends(2).json();
    let finding = &json["findings"][0];
    assert_eq!(finding["code"], "bad-usage");
    assert!(finding["message"].as_str().unwrap().ends_with("not provided: <FILE>"), "{finding}");
    assert!(finding["remedy"].as_str().unwrap().contains("Usage: tollgate rules check"));
    tollgate(&["rules", "check"]).ends(2).notes(&["required arguments", "Usage: "]);
    tollgate(&["--version", "--output", "json"]).ends(0).prints(&["tollgate "]);
}

#[test]
fn every_command_has_help() {
    for command in [
        &["--help"][..],
        &["check", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
        &["doctor", "--help"],
        &["ready", "--help"],
        &["rules", "--help"],
        &["rules", "check", "--help"],
        &["rules", "explain", "--help"],
        &["rules", "test", "--help"],
        &["rules", "fmt", "--help"],
        &["rules", "diff", "--help"],
        &["rules", "schema", "--help"],
        &["rules", "import", "--help"],
        &["bench", "--help"],
    ] {
        let run = tollgate(command).ends(0).prints(&["Usage: tollgate"]);
        let does_something = !run.out.contains("Commands:") && command[0] != "completions";
        assert!(!does_something || run.out.contains("Examples:\n  "), "{}", run.out);
    }
    tollgate(&["--help"]).prints(&["Exit codes: 0 all is well"]);
    tollgate(&["check", "--help"]).prints(&["GET /v1/items?page=2 user=u1"]);
    tollgate(&["rules", "test", "--help"]).prints(&["expect: { allowed: 100"]);
}

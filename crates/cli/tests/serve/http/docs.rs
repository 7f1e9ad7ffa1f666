//! The document about this door: its commands print what is shown.
//!
//! `...` stands for anything, and in what is sent for the last ticket.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::Server;

/// What stands in fences of this kind.
fn fences<'d>(document: &'d str, kind: &str) -> Vec<&'d str> {
    let begin = format!("```{kind}\n");
    let behind = document.split(&begin).skip(1);
    behind.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

/// Whether a line is as it is shown.
fn is_shown(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split("...");
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        let found =
            if is_last { rest.ends_with(part).then_some(rest.len()) } else { rest.find(part) };
        let Some(at) = found else { return false };
        rest = &rest[(at + part.len()).min(rest.len())..];
    }
    rest.is_empty()
}

fn ticket(line: &str) -> Option<&str> {
    line.split_once("\"ticket\":\"")?.1.split_once('"').map(|(ticket, _)| ticket)
}

#[test]
fn every_command_prints_what_is_shown() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doors/http.md");
    let document = fs::read_to_string(path).unwrap();
    let server = Server::start(fences(&document, "yaml rules.yaml")[0]);
    let address = server.address("http").to_string();
    let (mut last, mut run) = (String::new(), 0);
    for command in fences(&document, "console").iter().flat_map(|text| text.split("$ ").skip(1)) {
        let (line, shown) = command.split_once('\n').unwrap();
        let line = line.replace("localhost:4290", &address).replace("...", &last);
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let mut lines = printed.lines();
        for shown in shown.lines().filter(|line| !line.is_empty()) {
            let found = lines.any(|line| is_shown(shown, line));
            assert!(found, "{line}\n`{shown}` is missing, or comes too early, in\n{printed}");
        }
        last = printed.lines().find_map(ticket).unwrap_or_default().to_owned();
        run += 1;
    }
    assert!(run >= 8, "{run} are few");
}

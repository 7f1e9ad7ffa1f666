//! The documents about rules: their rule files are good and do what their tests say, their commands
//! print what is shown, and no field is left out of the reference.
//!
//! A fence says what it holds: `yaml NAME` is the rule file of that name, which commands can use;
//! `yaml part` is a part of one, and not read; `console` has commands behind `$` and lines of what
//! they print, where `...` stands for anything; `console exits-1` ends with that code.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod document;
#[path = "../../../rules/tests/geo/mmdb.rs"]
mod mmdb;

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

use document::{Block, Document};
use serde_json::Value;
use tempfile::TempDir;
use tollgate::{Rehearsal, RuleSet};
use tollgate_rules::{Folder, Source, schema};

/// A folder with all files of a document, gone with the test.
fn folder(blocks: &[Block<'_>]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut names = BTreeSet::new();
    for block in blocks {
        let Some(name) = block.file() else { continue };
        assert!(names.insert(name), "{}: there are two files `{name}`", block.place);
        std::fs::write(folder.path().join(name), &block.text).unwrap();
    }
    let operator = vec![("autonomous_system_number", mmdb::Value::U32(64496))];
    let operators = mmdb::database(6, &[("192.0.2.0/24", mmdb::Value::Map(operator))]);
    std::fs::write(folder.path().join("GeoLite2-ASN.mmdb"), operators).unwrap();
    folder
}

/// The rules of an example, which has nothing wrong with it.
fn rules(block: &Block<'_>, folder: &TempDir) -> Arc<RuleSet> {
    let name = block.file().map_or_else(|| format!("rules.{}", block.language), str::to_owned);
    let source = Source::new(name, block.text.clone());
    let rules = RuleSet::read(&source, &Folder::new(folder.path()));
    let rules = rules.unwrap_or_else(|report| {
        panic!("{} is refused:\n{}", block.place, report.to_text(&source))
    });
    let warnings = rules.warnings();
    assert!(warnings.diagnostics().is_empty(), "{}: {}", block.place, warnings.to_text(&source));
    Arc::new(rules)
}

#[test]
fn every_rule_file_is_good_and_passes_its_tests() {
    for document in Document::all() {
        let blocks = document.blocks();
        let folder = folder(&blocks);
        for block in blocks.iter().filter(|block| block.is_rule_file()) {
            let rules = rules(block, &folder);
            for case in rules.tests() {
                let rehearsal = Rehearsal::run(&rules, case).unwrap();
                let failures: Vec<_> =
                    rehearsal.failures().iter().map(ToString::to_string).collect();
                assert_eq!(failures, [""; 0], "{}: {}", block.place, case.name());
            }
        }
    }
}

#[test]
fn every_example_of_the_guide_has_tests() {
    let guide = Document::named("docs/rules/guide.md");
    let blocks = guide.blocks();
    let folder = folder(&blocks);
    let examples: Vec<_> = blocks.iter().filter(|block| block.is_rule_file()).collect();
    assert!(examples.len() >= 13, "{} are few", examples.len());
    for block in examples {
        assert!(block.file().is_some(), "{} has no name", block.place);
        assert!(!rules(block, &folder).tests().is_empty(), "{} has no tests", block.place);
    }
}

#[test]
fn every_command_prints_what_is_shown() {
    let mut run = 0;
    for document in Document::all() {
        let blocks = document.blocks();
        let folder = folder(&blocks);
        for block in blocks.iter().filter(|block| block.language == "console") {
            let code = block.remark.strip_prefix("exits-").map_or(0, |code| code.parse().unwrap());
            for command in block.text.split("$ ").skip(1) {
                let (command, shown) = command.split_once('\n').unwrap();
                let printed = printed(command, &folder, code, &block.place);
                assert_shown(shown, &printed, &block.place);
                run += 1;
            }
        }
    }
    assert!(run >= 5, "{run} commands are few");
}

/// What a command prints that ends with this code.
fn printed(command: &str, folder: &TempDir, code: i32, place: &str) -> String {
    let words = words(command);
    let (program, arguments) = words.split_first().unwrap();
    assert_eq!(program, "tollgate", "{place}");
    let mut tollgate = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let output = tollgate.args(arguments).current_dir(folder.path()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, notes) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(code), "{place}: {command}\n{out}{notes}");
    out + &notes
}

/// The words of a command line, as a shell has them. Only single quotes are known.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (part, quoted) in command.split('\'').zip([false, true].into_iter().cycle()) {
        match quoted {
            true => words.push(part.to_owned()),
            false => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    words
}

/// Each line that is shown is printed, in this order. Others may be printed between them.
fn assert_shown(shown: &str, printed: &str, place: &str) {
    let mut lines = printed.lines();
    for line in shown.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        let found = lines.by_ref().any(|printed| is_shown(line, printed.trim_end()));
        assert!(found, "{place}: `{line}` is missing, or comes too early, in\n{printed}");
    }
}

fn is_shown(line: &str, printed: &str) -> bool {
    match line.split_once("...") {
        Some((start, end)) => printed.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
        None => line == printed,
    }
}

#[test]
fn every_field_is_in_the_reference() {
    let reference = Document::named("docs/rules/reference.md").text;
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let mut fields = BTreeSet::new();
    collect(&schema, &mut fields);
    assert!(fields.len() > 60, "{fields:?}");
    let missing: Vec<_> =
        fields.iter().filter(|field| !reference.contains(&format!("`{field}`"))).collect();
    assert_eq!(missing, [""; 0]);
}

/// The names of all fields, and the words that they can be.
fn collect(schema: &Value, fields: &mut BTreeSet<String>) {
    let properties = schema["properties"].as_object();
    fields.extend(properties.into_iter().flatten().map(|(name, _)| name.clone()));
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    // Methods are those of HTTP, and need no list.
    let is_word = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    fields.extend(words.filter(is_word).map(str::to_owned));
    for inner in schema.as_object().into_iter().flatten().map(|(_, inner)| inner) {
        collect(inner, fields);
    }
    schema.as_array().into_iter().flatten().for_each(|inner| collect(inner, fields));
}

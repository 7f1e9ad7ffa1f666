//! Rule files that mean harm: all of them are read or refused soon, with a message that helps.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod depth;
mod expressions;
mod files;
mod growth;
mod lists;
mod reports;
mod size;
mod syntax;
mod values;

use std::collections::BTreeMap;
use std::io;

use tollgate_rules::{Diagnostic, Files, NoFiles, Report, RuleSet, Source};

/// What is wrong with a file: the codes, and the text for a terminal.
fn refused(name: &str, text: impl Into<String>) -> (Vec<&'static str>, String) {
    let source = Source::new(name, text);
    let report = RuleSet::read(&source, &NoFiles).expect_err("it is refused");
    assert!(report.has_errors());
    (codes(&report), shown(&report, &source))
}

fn codes(report: &Report) -> Vec<&'static str> {
    report.diagnostics().iter().map(Diagnostic::code).collect()
}

/// The report as text, which no file makes long, and no file fills with what moves a cursor.
fn shown(report: &Report, source: &Source) -> String {
    assert!(report.diagnostics().len() <= Report::MAX);
    for found in report.diagnostics() {
        assert!(found.message().len() < 5_000, "{} bytes", found.message().len());
        assert!(found.remedy().len() < 5_000, "{} bytes", found.remedy().len());
        assert!(!found.message().is_empty() && !found.remedy().is_empty(), "{found:?}");
    }
    let last = report.diagnostics().last().expect("there is one");
    assert!(last.place(source).line > 0);
    let text = report.to_text(source);
    assert!(!text.is_empty());
    assert!(text.len() < 20_000 * Report::MAX, "{} bytes", text.len());
    let control = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(control, None, "{text}");
    text
}

/// A file with one rule that has these fields.
fn with(fields: &str) -> String {
    format!("rules: [{{ name: a, key: [user], limit: 5/s, {fields} }}]")
}

/// Files that are not on a disk.
#[derive(Default)]
struct Given(BTreeMap<&'static str, String>);

impl Given {
    fn one(name: &'static str, text: String) -> Self {
        Self(BTreeMap::from([(name, text)]))
    }
}

impl Files for Given {
    fn read(&self, name: &str) -> io::Result<String> {
        self.0.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

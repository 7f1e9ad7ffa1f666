//! What is wrong, for programs.

use serde::Serialize;
use tollgate_rules::{Report, Severity, Source};

/// One thing that is wrong, or hardly meant.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    severity: &'static str,
    /// The same in every version.
    code: &'static str,
    message: String,
    remedy: String,
    file: Option<String>,
    /// From 1.
    line: Option<usize>,
    /// In characters, from 1.
    column: Option<usize>,
}

/// What a command that failed prints.
#[derive(Debug, Serialize)]
pub(crate) struct Findings {
    pub(crate) findings: Vec<Finding>,
    /// How many more there are.
    pub(crate) left_out: usize,
}

impl Finding {
    /// An error that has no place in the text of a file.
    pub(crate) fn error(
        code: &'static str,
        file: Option<&str>,
        column: Option<usize>,
        message: &str,
        remedy: &str,
    ) -> Self {
        Self {
            severity: "error",
            code,
            message: message.to_owned(),
            remedy: remedy.to_owned(),
            file: file.map(str::to_owned),
            line: column.map(|_| 1),
            column,
        }
    }
}

/// Everything in a report.
pub(crate) fn of_report(source: &Source, report: &Report) -> Vec<Finding> {
    let mut findings = Vec::new();
    for diagnostic in report.diagnostics() {
        let place = diagnostic.place(source);
        findings.push(Finding {
            severity: match diagnostic.severity() {
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
            code: diagnostic.code(),
            message: diagnostic.message().to_owned(),
            remedy: diagnostic.remedy().to_owned(),
            file: Some(source.name().to_owned()),
            line: Some(place.line),
            column: Some(place.column),
        });
    }
    findings
}

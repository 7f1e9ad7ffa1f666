//! The page about diagnostics: its examples show what they say, and no code is left out.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::collections::BTreeSet;
use std::path::Path;

use tollgate_rules::{
    Diagnostic, ImportError, ImportKind, NoFiles, Report, RuleSet, Severity, Source, format, import,
};

const PAGE: &str = include_str!("../../../docs/rules/errors.md");

/// Codes whose examples are too long for a page.
const LONG: [&str; 4] = ["not-formatted", "too-large", "too-many-rules", "too-many-tests"];

struct Section<'p> {
    code: &'p str,
    text: &'p str,
    /// How it is written, and what it says.
    example: Option<(&'p str, &'p str)>,
}

fn sections() -> Vec<Section<'static>> {
    let section = |part: &'static str| {
        let (code, text) = part.split_once("`\n").expect("a title");
        let example = text.split_once("```").map(|(_, rest)| {
            let (language, rest) = rest.split_once('\n').expect("a line");
            (language, rest.split_once("```").expect("an end").0)
        });
        Section { code, text, example }
    };
    PAGE.split("\n## `").skip(1).map(section).collect()
}

fn found(language: &str, example: &str) -> Report {
    let (language, what) = language.split_once(' ').unwrap_or((language, "read"));
    let source = Source::new(format!("rules.{language}"), example);
    match what {
        "fmt" => return format(&source).expect_err("it is refused"),
        "import" => match import(ImportKind::of(language).expect("a kind"), "limits", example) {
            Err(ImportError::Unreadable { report, .. }) => return report,
            other => panic!("{other:?}"),
        },
        _ => {}
    }
    match RuleSet::read(&source, &NoFiles) {
        Ok(set) => set.warnings().clone(),
        Err(report) => report,
    }
}

fn of<'r>(report: &'r Report, code: &str) -> Option<&'r Diagnostic> {
    report.diagnostics().iter().find(|diagnostic| diagnostic.code() == code)
}

#[test]
fn every_example_shows_what_it_says() {
    for Section { code, text, example } in sections() {
        let Some((language, example)) = example else {
            assert!(LONG.contains(&code), "`{code}` has no example");
            continue;
        };
        let report = found(language, example);
        let codes: BTreeSet<_> = report.diagnostics().iter().map(Diagnostic::code).collect();
        let Some(diagnostic) = of(&report, code) else { panic!("`{code}`: {codes:?}") };
        assert_eq!(codes.len(), 1, "`{code}` shows more: {codes:?}");
        let warns = diagnostic.severity() == Severity::Warning;
        assert_eq!(text.contains("Warning:"), warns, "`{code}`");
        assert!(text.contains("Remedy: "), "`{code}`");
    }
}

#[test]
fn what_is_too_long_for_the_page_is_found_too() {
    let long = " ".repeat(Source::MAX_BYTES + 1);
    assert!(of(&found("yaml", &long), "too-large").is_some());
    let name = format!("? {}\n: 1", "a".repeat(1100));
    let report = found("yaml fmt", &name);
    assert!(of(&report, "not-formatted").is_some(), "{report:?}");
    let rule = |number| format!("- {{ name: r{number}, key: [], concurrent: 5 }}\n");
    let rules: String = (0..=RuleSet::MAX_RULES).map(rule).collect();
    assert!(of(&found("yaml", &format!("rules:\n{rules}")), "too-many-rules").is_some());
    let test = "- { name: t, given: { request: GET /, times: 1M }, expect: { allowed: 1 } }\n";
    let tests = format!("rules: []\ntests:\n{}", test.repeat(101));
    assert!(of(&found("yaml", &tests), "too-many-tests").is_some());
}

#[test]
fn every_code_is_on_the_page() {
    let mut codes = BTreeSet::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut codes);
    let page = sections().iter().map(|section| section.code.to_owned()).collect();
    assert_eq!(codes, page);
}

/// The codes of all diagnostics that the sources make.
fn collect(folder: &Path, codes: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, codes);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for made in ["Diagnostic::error(", "warn(reader,"] {
            let after = text.split(made).skip(1).map(str::trim_start);
            let quoted = after.filter_map(|rest| rest.strip_prefix('"')?.split_once('"'));
            codes.extend(quoted.map(|(code, _)| code.to_owned()));
        }
    }
}

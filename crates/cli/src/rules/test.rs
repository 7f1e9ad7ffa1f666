//! `tollgate rules test`: the tests of rule files, run in simulated time.

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tollgate::{Failure, Rehearsal, RuleSet};
use tollgate_rules::Case;

use crate::error::{Ending, Error};
use crate::files;
use crate::finding::Finding;
use crate::flags::{Output, RulesTest};
use crate::print;

/// What came of all tests.
#[derive(Debug, Default, Serialize)]
struct Tested {
    files: Vec<TestedFile>,
    passed: usize,
    failed: usize,
}

#[derive(Debug, Serialize)]
struct TestedFile {
    file: String,
    tests: Vec<TestedCase>,
    /// Why there are no tests, if the file cannot be used.
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct TestedCase {
    name: String,
    passed: bool,
    failures: Vec<Failed>,
}

#[derive(Debug, Serialize)]
struct Failed {
    /// From 1; absent if the test has only one.
    step: Option<usize>,
    /// The field of `expect`.
    about: &'static str,
    expected: String,
    actual: String,
}

pub(super) fn run(flags: &RulesTest) -> Result<Ending, Error> {
    let mut tested = Tested::default();
    let mut ending = Ending::Good;
    for file in &flags.files {
        let one = test(file).unwrap_or_else(|error| {
            ending = ending.max(error.ending());
            if flags.output == Output::Text {
                print::note(&error.to_text(print::note_colours()));
            }
            TestedFile { file: file.clone(), tests: Vec::new(), findings: error.findings() }
        });
        if flags.output == Output::Text {
            print::text(&one.to_text(print::colours()))?;
        }
        let passed = one.tests.iter().filter(|test| test.passed).count();
        tested.passed += passed;
        tested.failed += one.tests.len() - passed;
        tested.files.push(one);
    }
    match flags.output {
        Output::Text => print::text(&tested.summary(print::colours()))?,
        Output::Json => print::json(&tested)?,
    }
    Ok(if tested.failed > 0 { ending.max(Ending::Findings) } else { ending })
}

fn test(file: &str) -> Result<TestedFile, Error> {
    let (source, rules) = files::load(file)?;
    let rules = Arc::new(rules);
    let bar = progress(rules.tests());
    let mut tests = Vec::new();
    for case in rules.tests() {
        bar.set_message(case.name().to_owned());
        tests.push(TestedCase::run(&rules, case)?);
        bar.inc(case.requests());
    }
    bar.finish_and_clear();
    Ok(TestedFile { file: source.name().to_owned(), tests, findings: Vec::new() })
}

/// Drawn on standard error, if that is a terminal and the tests take a while.
fn progress(tests: &[Case]) -> ProgressBar {
    let requests = tests.iter().map(Case::requests).sum();
    if requests < LONG && tests.len() < LONG_LIST {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(requests);
    let style = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} requests  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// So many requests, or tests, are done before anybody has read about them.
const LONG: u64 = 100_000;
const LONG_LIST: usize = 100;

impl TestedCase {
    fn run(rules: &Arc<RuleSet>, case: &Case) -> Result<Self, Error> {
        let rehearsal = Rehearsal::run(rules, case)?;
        let several = case.steps().len() > 1;
        let failed = |failure: &Failure| Failed {
            step: several.then_some(failure.step() + 1),
            about: failure.about().as_str(),
            expected: failure.expected().to_owned(),
            actual: failure.actual().to_owned(),
        };
        let failures = rehearsal.failures().iter().map(failed).collect();
        Ok(Self { name: case.name().to_owned(), passed: rehearsal.passed(), failures })
    }
}

impl TestedFile {
    fn to_text(&self, colours: bool) -> String {
        let mut text = format!("{}\n", self.file);
        for test in &self.tests {
            let word = match test.passed {
                true => print::good("ok    ", colours),
                false => print::bad("FAILED", colours),
            };
            text += &format!("  {word}  {}\n", test.name);
            for Failed { step, expected, actual, .. } in &test.failures {
                let step = step.map_or_else(String::new, |step| format!("step {step}: "));
                text += &format!("          {step}expected {expected}, got {actual}\n");
            }
        }
        let nothing = match (self.tests.is_empty(), self.findings.is_empty()) {
            (true, true) => "  no tests\n",
            (true, false) => "  cannot be used\n",
            _ => "",
        };
        text + nothing + "\n"
    }
}

impl Tested {
    fn summary(&self, colours: bool) -> String {
        let Self { passed, failed, files } = self;
        let total = passed + failed;
        let tests = if total == 1 { "test" } else { "tests" };
        let bad = files.iter().filter(|file| !file.findings.is_empty()).count();
        let word = match *failed == 0 && bad == 0 {
            true => print::good("ok", colours),
            false => print::bad("FAILED", colours),
        };
        let unusable = match bad {
            0 => String::new(),
            1 => "; 1 file cannot be used".to_owned(),
            _ => format!("; {bad} files cannot be used"),
        };
        format!("{word}: {total} {tests}, {passed} passed, {failed} failed{unusable}\n")
    }
}

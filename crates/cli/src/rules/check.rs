//! `tollgate rules check`: what is wrong with a rule file, or what its rules are.

use serde::Serialize;
use tollgate_rules::{Mode, Rule, RuleSet, Source};

use crate::answer::mode_name;
use crate::error::{Ending, Error};
use crate::files;
use crate::finding::{self, Finding};
use crate::flags::{Output, RulesCheck};
use crate::print;
use crate::rules::words;

/// A good rule file.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    file: &'a str,
    version: String,
    namespace: &'a str,
    rules: Vec<Line<'a>>,
    tests: usize,
    /// Warnings.
    findings: Vec<Finding>,
    /// How many more there are.
    left_out: usize,
}

/// A rule.
#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    /// The attributes that it counts by.
    key: Vec<String>,
    mode: &'static str,
    limits: Vec<Limit>,
    /// What it says, in plain words.
    words: String,
}

#[derive(Debug, Serialize)]
struct Limit {
    /// Absent if it is for all.
    tier: Option<String>,
    limit: String,
}

pub(super) fn run(flags: &RulesCheck) -> Result<Ending, Error> {
    let (source, rules) = files::load(&flags.file)?;
    let checked = Checked::of(&source, &rules);
    match flags.output {
        Output::Json => print::json(&checked)?,
        Output::Text => {
            let warnings = match print::note_colours() {
                true => rules.warnings().to_coloured_text(&source),
                false => rules.warnings().to_text(&source),
            };
            print::note(&warnings);
            print::text(&checked.to_text())?;
        }
    }
    let bad = flags.strict && !checked.findings.is_empty();
    Ok(if bad { Ending::Findings } else { Ending::Good })
}

impl<'a> Checked<'a> {
    fn of(source: &'a Source, rules: &'a RuleSet) -> Self {
        Self {
            file: source.name(),
            version: rules.version().to_string(),
            namespace: rules.namespace(),
            rules: rules.rules().iter().map(|rule| Line::of(rules, rule)).collect(),
            tests: rules.tests().len(),
            findings: finding::of_report(source, rules.warnings()),
            left_out: rules.warnings().left_out(),
        }
    }

    fn to_text(&self) -> String {
        let counted = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let mut text = format!(
            "{}: {}, {}, {}; version {}\n",
            self.file,
            counted(self.rules.len(), "rule"),
            counted(self.tests, "test"),
            counted(self.findings.len() + self.left_out, "warning"),
            self.version,
        );
        for rule in &self.rules {
            text += &rule.to_text();
        }
        text
    }
}

impl<'a> Line<'a> {
    fn of(rules: &RuleSet, rule: &'a Rule) -> Self {
        let limits = words::limits(rules, rule).into_iter();
        Self {
            name: rule.name(),
            key: rule.key().iter().map(ToString::to_string).collect(),
            mode: mode_name(rule.mode()),
            limits: limits.map(|(tier, limit)| Limit { tier, limit }).collect(),
            words: rule.in_words(rules.tiers()),
        }
    }

    fn to_text(&self) -> String {
        let mode = match self.mode == mode_name(Mode::Enforce) {
            true => String::new(),
            false => format!(" ({})", self.mode),
        };
        format!("\n{}{mode}\n{}", self.name, words::below(&self.words, 2))
    }
}

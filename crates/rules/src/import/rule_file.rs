//! A rule file in the making.

use std::collections::{BTreeMap, BTreeSet};

use super::{Failure, Notes};
use crate::condition::Condition;
use crate::diagnostic::Diagnostic;
use crate::fmt::{format, scalar};
use crate::read::Reader;
use crate::rule_set::{LoadError, RuleSet};
use crate::source::Source;

/// What an importer puts together.
#[derive(Default)]
pub(super) struct RuleFile {
    /// Comments at the top.
    pub(super) header: Vec<String>,
    pub(super) namespace: String,
    pub(super) entries: Vec<Entry>,
    names: BTreeSet<String>,
    /// The next number to try for a name that is taken.
    numbers: BTreeMap<String, u64>,
}

pub(super) enum Entry {
    Rule(Rule),
    /// Of these, the first that matches.
    Group {
        name: String,
        rules: Vec<Rule>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) comments: Vec<String>,
    pub(super) name: String,
    /// Attributes and what they may be.
    pub(super) matches: Vec<(String, Vec<String>)>,
    /// Conditions in CEL, all of which must hold.
    pub(super) when: Vec<String>,
    pub(super) key: Vec<String>,
    /// The other fields, with values that YAML can take as they are.
    pub(super) fields: Vec<(&'static str, String)>,
    /// Where it comes from: an offset in the text that is imported.
    pub(super) at: usize,
}

impl Rule {
    pub(super) fn set(&mut self, field: &'static str, value: impl Into<String>) {
        self.fields.retain(|(name, _)| *name != field);
        self.fields.push((field, value.into()));
    }

    /// It only counts until somebody has looked at what it lacks.
    pub(super) fn shadow_because(&mut self, comment: impl Into<String>) {
        self.comments.push(comment.into());
        self.set("mode", "shadow");
    }

    /// One of its conditions cannot be said here.
    pub(super) fn lose(&mut self, condition: &str, notes: &mut Notes<'_>, at: usize) {
        let message =
            format!("the condition `{condition}` is not carried over: its rule only counts");
        let remedy = "say it with `match` or `when`, and take `mode: shadow` away";
        notes.add(at, message, remedy);
        self.shadow_because(format!("Had another condition: {condition}"));
    }
}

impl RuleFile {
    pub(super) fn new(namespace: impl Into<String>, header: impl Into<String>) -> Self {
        let (namespace, header) = (namespace.into(), vec![header.into()]);
        Self { header, namespace, ..Self::default() }
    }

    /// Says what has no rule here, where readers of the file look first.
    pub(super) fn leave_out(&mut self, name: &str, why: &str) {
        self.header.push(format!("Left out: `{}`: {why}.", identifier(name)));
    }

    /// Counters of other namespaces must not mix, so a name that cannot be one is not just dropped.
    pub(super) fn check_namespace(&mut self, notes: &mut Notes<'_>, at: usize) {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        let name = &self.namespace;
        if !name.is_empty() && name.len() <= Reader::MAX_NAME && name.chars().all(fits) {
            return;
        }
        let new = identifier(name);
        let message = format!("`{name}` cannot be a namespace, which is now `{new}`");
        notes.add(at, message, "see that no other rule file has the same");
        self.namespace = new;
    }

    /// A name that no other rule of the file has, in letters that are safe in a header.
    pub(super) fn name(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        let mut name = base.clone();
        while !self.names.insert(name.clone()) {
            let number = self.numbers.entry(base.clone()).or_insert(1);
            *number += 1;
            let end = format!("-{number}");
            // Identifiers are ASCII, and a number is short.
            name = format!("{}{end}", &base[..base.len().min(Reader::MAX_NAME - end.len())]);
        }
        name
    }

    /// The file as text that can be loaded. Rules that cannot be, are left out with a note.
    pub(super) fn finish(mut self, notes: &mut Notes<'_>) -> Result<String, Failure> {
        self.join_conditions(notes);
        if let Ok(yaml) = self.loaded() {
            return Ok(yaml);
        }
        let entries = std::mem::take(&mut self.entries);
        for entry in entries {
            match entry {
                Entry::Rule(rule) => {
                    let rule = self.good(rule, notes);
                    self.entries.extend(rule.map(Entry::Rule));
                }
                Entry::Group { name, rules } => {
                    let rules = rules.into_iter().filter_map(|rule| self.good(rule, notes));
                    let rules: Vec<_> = rules.collect();
                    if !rules.is_empty() {
                        self.entries.push(Entry::Group { name, rules });
                    }
                }
            }
        }
        self.loaded().map_err(|error| {
            let message = format!("what comes out is no rule file: {}", first_line(&error));
            Diagnostic::error("too-large", 0..0, message, "", "import it in parts").into()
        })
    }

    /// Conditions of one rule that are too much together are lost.
    fn join_conditions(&mut self, notes: &mut Notes<'_>) {
        let rules = self.entries.iter_mut().flat_map(|entry| match entry {
            Entry::Rule(rule) => std::slice::from_mut(rule),
            Entry::Group { rules, .. } => rules,
        });
        for rule in rules.filter(|rule| !rule.when.is_empty()) {
            let all = all_of(&rule.when);
            if Condition::parse(&all).is_err() {
                rule.when.clear();
                rule.lose(&all, notes, rule.at);
            }
        }
    }

    /// The rule, if it can be loaded.
    fn good(&mut self, rule: Rule, notes: &mut Notes<'_>) -> Option<Rule> {
        let text = format!("rules:\n{}", rule_text(&rule, 2));
        let error = match RuleSet::parse(&text) {
            Ok(_) => return Some(rule),
            Err(error) => first_line(&error),
        };
        let message = format!("the limit `{}` is not carried over: {error}", rule.name);
        notes.add(rule.at, message, "write a rule for it by hand");
        self.leave_out(&rule.name, &error);
        None
    }

    /// The file as text, if it can be loaded.
    fn loaded(&self) -> Result<String, LoadError> {
        let yaml = self.to_yaml();
        RuleSet::parse(&yaml).map(|_| yaml)
    }

    fn to_yaml(&self) -> String {
        let mut text = String::new();
        for line in &self.header {
            text.push_str(&comment(line, 0));
        }
        let rules = if self.entries.is_empty() { "rules: []" } else { "rules:" };
        text.push_str(&format!("version: 1\nnamespace: {}\n\n{rules}\n", value(&self.namespace)));
        for entry in &self.entries {
            match entry {
                Entry::Rule(rule) => text.push_str(&rule_text(rule, 2)),
                Entry::Group { name, rules } => {
                    text.push_str(&format!("  - group: {}\n    first_match: true\n", value(name)));
                    text.push_str("    rules:\n");
                    rules.iter().for_each(|rule| text.push_str(&rule_text(rule, 6)));
                }
            }
        }
        // What we write ourselves can be read; were it not so, the reader of the file would say.
        format(&Source::new("import.yaml", text.as_str())).unwrap_or(text)
    }
}

/// What is wrong first of all.
fn first_line(error: &LoadError) -> String {
    let first = error.report().diagnostics().first();
    first.map_or_else(String::new, |diagnostic| diagnostic.message().to_owned())
}

fn rule_text(rule: &Rule, indent: usize) -> String {
    let mut text: String = rule.comments.iter().map(|line| comment(line, indent)).collect();
    let spaces = " ".repeat(indent);
    text.push_str(&format!("{spaces}- name: {}\n", value(&rule.name)));
    let mut conditions: Vec<_> = rule
        .matches
        .iter()
        .map(|(name, values)| match &values[..] {
            [one] => format!("{}: {}", scalar::name(name, true), value(one)),
            values => format!("{}: [{}]", scalar::name(name, true), joined(values)),
        })
        .collect();
    if !rule.when.is_empty() {
        conditions.push(format!("when: {}", value(&all_of(&rule.when))));
    }
    if !conditions.is_empty() {
        text.push_str(&format!("{spaces}  match: {{ {} }}\n", conditions.join(", ")));
    }
    text.push_str(&format!("{spaces}  key: [{}]\n", joined(&rule.key)));
    for (name, value) in &rule.fields {
        text.push_str(&format!("{spaces}  {name}: {value}\n"));
    }
    text
}

/// Conditions as one.
fn all_of(conditions: &[String]) -> String {
    match conditions {
        [one] => one.clone(),
        several => {
            let brace =
                |one: &String| if one.contains("||") { format!("({one})") } else { one.clone() };
            several.iter().map(brace).collect::<Vec<_>>().join(" && ")
        }
    }
}

fn joined(values: &[String]) -> String {
    values.iter().map(|one| value(one)).collect::<Vec<_>>().join(", ")
}

/// Text that is text for every reader of YAML, also within braces.
fn value(text: &str) -> String {
    scalar::text(text, true, true)
}

fn comment(line: &str, indent: usize) -> String {
    let clean: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{}# {}\n", " ".repeat(indent), clean.trim_end())
}

/// Letters, digits, dots, dashes and underscores, at most 64 of them.
fn identifier(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' || c == '.' => {
                name.push(c.to_ascii_lowercase());
            }
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
        if name.len() == Reader::MAX_NAME {
            break;
        }
    }
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "rule".to_owned() } else { name.to_owned() }
}

/// `100` in `60` seconds as `100/min`.
pub(super) fn rate(count: u64, seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let divides = |(unit, _): &&(u64, &str)| seconds > 0 && seconds.is_multiple_of(*unit);
    let (unit, name) = UNITS.iter().find(divides).copied().unwrap_or((1, "s"));
    match seconds / unit {
        1 => format!("{count}/{name}"),
        number => format!("{count}/{number}{name}"),
    }
}

/// Text as CEL has it.
pub(super) fn cel_text(text: &str) -> String {
    scalar::double_quoted(text)
}

/// An entry of a descriptor in CEL, and the question whether it is there.
pub(super) fn cel_entry(name: &str) -> (String, String) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (entry, there) = (format!("descriptor.{name}"), format!("has(descriptor.{name})"));
    // Words of the language are no names there.
    if name.chars().all(plain) && Condition::parse(&there).is_ok() {
        return (entry, there);
    }
    let name = cel_text(name);
    (format!("descriptor[{name}]"), format!("{name} in descriptor"))
}

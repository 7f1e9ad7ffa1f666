//! Limits of Limitador.
//!
//! There, all limits of a namespace whose conditions hold count a request, as rules do here.

use std::collections::BTreeSet;

use super::rule_file::{Entry, Rule, RuleFile, cel_entry, cel_text, rate};
use super::{Failure, Imported, Notes, fields, number, parsed, zero};
use crate::condition::Condition;
use crate::diagnostic::Report;
use crate::document::{Node, Value};
use crate::read::{Fields, Reader};
use crate::source::Source;

pub(super) fn import(source: &Source, namespace: Option<&str>) -> Result<Imported, Failure> {
    let document = parsed(source)?;
    let mut report = Report::default();
    let mut reader = Reader::new(&mut report);
    let mut notes = Notes::new(source);
    let nodes = match &document.root().value {
        Value::Null => &[],
        _ => reader.list(document.root(), "a file of limits").unwrap_or_default(),
    };
    let mut limits = Vec::new();
    for node in nodes {
        let limit = fields(&mut reader, &mut notes, node, "a limit", &LIMIT);
        let Some(limit) = limit else { continue };
        match limit.get("namespace") {
            Some(node) => limits.extend(reader.text(node, "a namespace").map(|name| (name, limit))),
            None => reader.missing(&limit, "a limit", "namespace", "write `namespace: name`"),
        }
    }
    let there: BTreeSet<&str> = limits.iter().map(|(name, _)| *name).collect();
    let chosen = match (namespace, there.len()) {
        (Some(name), _) if there.contains(name) => name,
        (None, 1) => there.first().copied().unwrap_or_default(),
        _ if report.has_errors() => return Err(report.into()),
        (_, 0) => return Err(Failure::Empty),
        _ => return Err(Failure::Namespace(there.iter().map(|name| (*name).to_owned()).collect())),
    };
    let header = format!("Imported from {}, limits of Limitador.", source.name());
    let mut file = RuleFile::new(chosen, header);
    file.check_namespace(&mut notes, 0);
    file.header.push(
        "Windows began with the first request of a key; here they begin at multiples of their length."
            .to_owned(),
    );
    let mut import = Import { reader: Reader::new(&mut report), notes };
    for (_, limit) in limits.iter().filter(|(name, _)| *name == chosen) {
        let (mut rule, count) = import.rule(limit);
        if count == Some(0) {
            zero(&mut file, &mut import.notes, &rule.name, limit.name_span("max_value").start);
            continue;
        }
        rule.name = file.name(&rule.name);
        file.entries.push(Entry::Rule(rule));
    }
    let mut notes = import.notes;
    if report.has_errors() {
        return Err(report.into());
    }
    Ok(Imported { yaml: file.finish(&mut notes)?, notes: notes.finish(), ignored: 0 })
}

const LIMIT: [&str; 7] =
    ["id", "namespace", "max_value", "seconds", "name", "conditions", "variables"];

struct Import<'a, 'r> {
    reader: Reader<'r>,
    notes: Notes<'a>,
}

impl Import<'_, '_> {
    /// The rule, and how much it allows.
    fn rule(&mut self, limit: &Fields<'_>) -> (Rule, Option<u64>) {
        let mut rule = Rule { at: limit.name_span("max_value").start, ..Rule::default() };
        let count = self.required(limit, "max_value");
        let seconds = self.required(limit, "seconds");
        if let (Some(count), Some(seconds)) = (count, seconds) {
            rule.set("limit", rate(count, seconds));
            rule.set("algorithm", "fixed_window");
        }
        for node in self.list(limit, "conditions") {
            if let Some(text) = self.reader.text(node, "a condition") {
                self.condition(node, text, &mut rule);
            }
        }
        for node in self.list(limit, "variables") {
            if let Some(text) = self.reader.text(node, "a variable") {
                self.variable(node, text, &mut rule);
            }
        }
        let name = limit.get("name").or_else(|| limit.get("id"));
        let given = name.and_then(|node| self.reader.text(node, "a name"));
        rule.name = given.map_or_else(|| made_name(&rule), str::to_owned);
        (rule, count)
    }

    fn required(&mut self, limit: &Fields<'_>, name: &str) -> Option<u64> {
        let Some(node) = limit.get(name) else {
            self.reader.missing(limit, "a limit", name, &format!("write `{name}: 60`"));
            return None;
        };
        let value = number(&mut self.reader, node, &format!("`{name}`"))?.0;
        if name == "seconds" && value == 0 {
            let never = self
                .reader
                .parsed(node, "`seconds`", "60", |_| Err::<u64, _>("nothing fits into no time"));
            return never.map(|value| value.value);
        }
        Some(value)
    }

    fn list<'n>(&mut self, limit: &Fields<'n>, name: &str) -> &'n [Node] {
        let node = limit.get(name);
        node.and_then(|node| self.reader.list(node, &format!("`{name}`"))).unwrap_or_default()
    }

    /// `name == 'value'` can be matched by a table; other conditions go into `when`.
    fn condition(&mut self, node: &Node, text: &str, rule: &mut Rule) {
        let Some((left, operator, right)) = comparison(text) else {
            let at = node.span.start;
            match cel(text) {
                Some(cel) if asks_itself(&cel) => {
                    let message = format!(
                        "`{text}` did not hold for requests that lack what it asks for; here, its rule then counts them"
                    );
                    let remedy = "put `has(...) &&` before what may be missing";
                    self.notes.add(at, message, remedy);
                    rule.when.push(cel);
                }
                Some(cel) => rule.when.push(guarded(&cel)),
                None => rule.lose(text, &mut self.notes, at),
            }
            return;
        };
        match operator {
            // A star would be a pattern here.
            "==" if !right.contains('*') && !rule.matches.iter().any(|(name, _)| *name == left) => {
                rule.matches.push((left, vec![right]));
            }
            operator => {
                let name = left.strip_prefix("descriptor.").unwrap_or(&left);
                let (entry, there) = cel_entry(name);
                // There, a limit whose condition asks for what is not there does not count.
                rule.when.push(format!("{there} && {entry} {operator} {}", cel_text(&right)));
            }
        }
    }

    fn variable(&mut self, node: &Node, text: &str, rule: &mut Rule) {
        match attribute(text.trim()) {
            Some(name) if rule.key.contains(&name) => {}
            Some(name) => rule.key.push(name),
            None => {
                let message =
                    format!("the variable `{text}` is not carried over: its rule only counts");
                let remedy = "add what it stands for to `key`, and take `mode: shadow` away";
                self.notes.add(node.span.start, message, remedy);
                rule.shadow_because(format!("Was also counted by: {text}"));
            }
        }
    }
}

/// A name of what the rule speaks of.
fn made_name(rule: &Rule) -> String {
    let last = |name: &str| name.strip_prefix("descriptor.").unwrap_or(name).to_owned();
    let matches = rule.matches.iter().flat_map(|(name, values)| [last(name), values.join("-")]);
    let by = rule.key.iter().map(|name| format!("per-{}", last(name)));
    let name = matches.chain(by).collect::<Vec<_>>().join("-");
    if name.is_empty() { "all".to_owned() } else { name }
}

/// The parts of `name == 'value'` and `name != 'value'`.
fn comparison(text: &str) -> Option<(String, &'static str, String)> {
    let (at, operator) =
        ["==", "!="].iter().filter_map(|operator| Some((text.find(operator)?, *operator))).min()?;
    let left = attribute(text[..at].trim())?;
    let right = quoted(text[at + 2..].trim())?;
    Some((left, operator, right.to_owned()))
}

/// The attribute of `name`, `descriptors[0].name` or `descriptors[0]['name']`.
fn attribute(text: &str) -> Option<String> {
    let name = match text.strip_prefix("descriptors[0]") {
        Some(rest) => match rest.strip_prefix('.') {
            Some(name) => name,
            None => quoted(rest.strip_prefix('[')?.strip_suffix(']')?.trim())?,
        },
        None => text,
    };
    let good = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | ':');
    (!name.is_empty() && name.chars().all(good)).then(|| format!("descriptor.{name}"))
}

/// Text between quotes that has neither quotes nor escapes in it.
fn quoted(text: &str) -> Option<&str> {
    let within = |mark| text.strip_prefix(mark)?.strip_suffix(mark);
    let inner = within('\'').or_else(|| within('"'))?;
    (!inner.contains(['\'', '"', '\\'])).then_some(inner)
}

/// CEL about the first descriptor, as it is written here.
fn cel(text: &str) -> Option<String> {
    let cel = text.replace("descriptors[0]", "descriptor");
    (cel != text && Condition::parse(&cel).is_ok()).then_some(cel)
}

/// Whether it may hold although something that it names is missing.
fn asks_itself(cel: &str) -> bool {
    ["||", "?", "has(", " in "].iter().any(|mark| cel.contains(mark))
}

/// The condition, behind questions whether all that it names is there: without them, a rule whose
/// condition nobody can tell would count the request.
fn guarded(cel: &str) -> String {
    let names: BTreeSet<_> = cel.split("descriptor").skip(1).filter_map(member).collect();
    let there = names.into_iter().map(|name| cel_entry(name).1);
    let all = there.chain([cel.to_owned()]).collect::<Vec<_>>().join(" && ");
    if Condition::parse(&all).is_ok() { all } else { cel.to_owned() }
}

/// The name in `.name` or `['name']`.
fn member(rest: &str) -> Option<&str> {
    match rest.strip_prefix('.') {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            Some(&rest[..end.unwrap_or(rest.len())])
        }
        None => quoted(rest.strip_prefix('[')?.split(']').next()?.trim()),
    }
}

//! Files of envoyproxy/ratelimit.
//!
//! There, a descriptor of a request walks down a tree: at each level an entry with its value is
//! preferred to one with a pattern, and that to one with the key alone; only a limit at the depth
//! of the whole descriptor counts, and nobody comes back to try another way. A descriptor thus meets
//! one limit at most. Here, rules for the same keys become alternatives, the most exact first, and
//! where a more exact way leads nowhere, a rule without a limit keeps others from it.

mod group;
mod step;

use std::collections::BTreeSet;

use self::step::{Step, Want};
use super::rule_file::{Rule, RuleFile};
use super::{Failure, Imported, Notes, fields, number, parsed, zero};
use crate::diagnostic::Report;
use crate::document::{Node, Value};
use crate::read::{Fields, Reader};
use crate::source::Source;

pub(super) fn import(source: &Source) -> Result<Imported, Failure> {
    let document = parsed(source)?;
    let mut report = Report::default();
    let mut walk = Walk::new(Reader::new(&mut report), Notes::new(source));
    let root = fields(
        &mut walk.reader,
        &mut walk.notes,
        document.root(),
        "a domain",
        &["domain", "descriptors"],
    );
    let mut namespace = String::new();
    if let Some(root) = &root {
        match root.get("domain") {
            Some(node) => {
                namespace = walk.reader.text(node, "a domain").unwrap_or_default().to_owned();
            }
            None => {
                walk.reader.missing(root, "the file", "domain", "write `domain: name` at the top");
            }
        }
        walk.level(root, &[]);
    }
    walk.close_dead_ends();
    let (mut found, zeros, mut notes) = (walk.found, walk.zeros, walk.notes);
    for found in &mut found {
        step::conditions(&namespace, &found.steps, &mut found.rule);
    }
    if report.has_errors() {
        return Err(report.into());
    }
    if found.is_empty() && zeros.is_empty() {
        return Err(Failure::Empty);
    }
    let header = format!("Imported from {}, a domain of envoyproxy/ratelimit.", source.name());
    let mut file = RuleFile::new(namespace, header);
    file.check_namespace(&mut notes, 0);
    for (name, at) in zeros {
        zero(&mut file, &mut notes, &name, at);
    }
    group::write(&mut file, found);
    Ok(Imported { yaml: file.finish(&mut notes)?, notes: notes.finish(), ignored: 0 })
}

/// A limit and the way to it.
struct Found {
    steps: Vec<Step>,
    rule: Rule,
}

struct Walk<'a, 'r> {
    reader: Reader<'r>,
    notes: Notes<'a>,
    found: Vec<Found>,
    /// Limits of 0: their names, and where they stand.
    zeros: Vec<(String, usize)>,
    /// The ways to all descriptors, also to those without a limit.
    ways: Vec<Vec<Step>>,
}

const DESCRIPTOR: [&str; 9] = [
    "key",
    "value",
    "rate_limit",
    "descriptors",
    "shadow_mode",
    "detailed_metric",
    "quota_mode",
    "share_threshold",
    "value_to_metric",
];

impl<'a, 'r> Walk<'a, 'r> {
    const fn new(reader: Reader<'r>, notes: Notes<'a>) -> Self {
        Self { reader, notes, found: Vec::new(), zeros: Vec::new(), ways: Vec::new() }
    }

    fn level(&mut self, parent: &Fields<'_>, steps: &[Step]) {
        let Some(node) = parent.get("descriptors") else { return };
        let Some(nodes) = self.reader.list(node, "`descriptors`") else { return };
        let mut level = Vec::new();
        for node in nodes {
            let known =
                fields(&mut self.reader, &mut self.notes, node, "a descriptor", &DESCRIPTOR);
            let Some(descriptor) = known else { continue };
            let Some(step) = self.step(&descriptor) else { continue };
            level.push((step, descriptor));
        }
        // Whether a value without a limit of its own is an exception from a limit without a value.
        let limited: BTreeSet<String> = level
            .iter()
            .filter(|(step, descriptor)| {
                !matches!(step.want, Want::Exact(_)) && descriptor.has("rate_limit")
            })
            .map(|(step, _)| step.key.clone())
            .collect();
        for (step, descriptor) in level {
            let exception = step.want != Want::Any && limited.contains(&step.key);
            let steps: Vec<_> = steps.iter().cloned().chain([step]).collect();
            self.limit(&descriptor, &steps, exception);
            self.ways.push(steps.clone());
            self.level(&descriptor, &steps);
        }
    }

    /// There, whoever has taken the more exact way does not come back to try the other one: what
    /// stands below that is not for them, also if nothing stands below theirs.
    fn close_dead_ends(&mut self) {
        let mut ends: Vec<(Vec<Step>, usize)> = Vec::new();
        for found in &self.found {
            let steps = &found.steps;
            for level in 0..steps.len().saturating_sub(1) {
                let preferred = |way: &&Vec<Step>| {
                    way.len() == level + 1
                        && way[..level] == steps[..level]
                        && way[level].is_preferred_to(&steps[level])
                };
                for way in self.ways.iter().filter(preferred) {
                    let rest = steps[level + 1..].iter();
                    let rest = rest.map(|step| Step { key: step.key.clone(), want: Want::Any });
                    let end: Vec<_> = way.iter().cloned().chain(rest).collect();
                    let is_known = |steps: &[Step]| *steps == *end;
                    if ends.iter().any(|(known, _)| is_known(known))
                        || self.found.iter().any(|found| is_known(&found.steps))
                    {
                        continue;
                    }
                    if ends.len() == MOST_ENDS {
                        let message = "there are too many values that lead nowhere: descriptors \
                            with such values meet what stands below the same key without a value";
                        let remedy = "add rules with `limit: unlimited` to the group";
                        self.notes.add(found.rule.at, message, remedy);
                        return self.add_ends(ends);
                    }
                    ends.push((end, found.rule.at));
                }
            }
        }
        self.add_ends(ends);
    }

    fn add_ends(&mut self, ends: Vec<(Vec<Step>, usize)>) {
        for (steps, at) in ends {
            let mut rule = Rule { at, name: step::chain_name(&steps), ..Rule::default() };
            rule.comments.push("No limit for these, and so none of those below.".to_owned());
            rule.set("limit", "unlimited");
            self.found.push(Found { steps, rule });
        }
    }

    fn step(&mut self, descriptor: &Fields<'_>) -> Option<Step> {
        let Some(node) = descriptor.get("key") else {
            self.reader.missing(descriptor, "a descriptor", "key", "write `key: name`");
            return None;
        };
        let named =
            |key: &str| if key.is_empty() { Err("it is empty") } else { Ok(key.to_owned()) };
        let key = self.reader.parsed(node, "a key", "remote_address", named)?.value;
        let shared = self.flag(descriptor, "share_threshold");
        let value = match descriptor.get("value") {
            Some(node) if matches!(node.value, Value::Bool(_)) => Some(flag_text(node)),
            Some(node) => Some(self.reader.text(node, "a value")?.to_owned()),
            None => None,
        };
        let want = match value {
            None => Want::Any,
            Some(value) if value.is_empty() => Want::Any,
            Some(value) if value.ends_with('*') => Want::Pattern(value, shared),
            Some(value) => Want::Exact(value),
        };
        Some(Step { key, want })
    }

    fn limit(&mut self, descriptor: &Fields<'_>, steps: &[Step], exception: bool) {
        for name in ["detailed_metric", "value_to_metric"] {
            if self.flag(descriptor, name) {
                let remedy = "nothing is to be done: a rule's own metrics are always there";
                self.note(descriptor, name, format!("`{name}` is left out"), remedy);
            }
        }
        let mut rule = Rule { at: descriptor.name_span("key").start, ..Rule::default() };
        let mut name = step::chain_name(steps);
        match descriptor.get("rate_limit") {
            Some(limit) => {
                if self.rate(limit, &mut rule, &mut name) == Some(0) {
                    self.zeros.push((name, limit.span.start));
                    return;
                }
            }
            None if exception => {
                rule.comments.push("No limit for these, and so none of those below.".to_owned());
                rule.set("limit", "unlimited");
            }
            None => return,
        }
        if self.flag(descriptor, "shadow_mode") {
            rule.set("mode", "shadow");
        }
        if self.flag(descriptor, "quota_mode") {
            let remedy = "look at the rule, and take `mode: shadow` away if it is to deny";
            self.note(descriptor, "quota_mode", "`quota_mode` reports and does not deny", remedy);
            rule.shadow_because("Was in quota_mode, which reports and does not deny.");
        }
        let repeated =
            |(index, step): (usize, &Step)| steps[..index].iter().any(|one| one.key == step.key);
        if steps.iter().enumerate().any(repeated) {
            let message =
                "a descriptor with one key twice is not carried over: its rule only counts";
            let remedy = "give the entries names of their own, and take `mode: shadow` away";
            self.note(descriptor, "key", message, remedy);
            rule.shadow_because("Had one key twice, of which the first is left.");
        }
        rule.name = name;
        self.found.push(Found { steps: steps.to_vec(), rule });
    }

    /// Reads how much it is, and says how many requests.
    fn rate(&mut self, node: &Node, rule: &mut Rule, name: &mut String) -> Option<u64> {
        let known = ["unit", "requests_per_unit", "unlimited", "name", "replaces"];
        let limit = fields(&mut self.reader, &mut self.notes, node, "a rate_limit", &known)?;
        if let Some(given) = limit.get("name").and_then(|node| self.reader.text(node, "a name")) {
            *name = given.to_owned();
        }
        if limit.has("replaces") {
            let remedy = "put both rules into one group with `first_match: true`, this one first";
            self.note(
                &limit,
                "replaces",
                "`replaces` is not carried over: both limits count",
                remedy,
            );
            rule.comments
                .push("Replaced other limits, which `replaces` named: now all count.".to_owned());
        }
        if self.flag(&limit, "unlimited") {
            rule.set("limit", "unlimited");
            return None;
        }
        let (Some(unit), Some(requests)) = (limit.get("unit"), limit.get("requests_per_unit"))
        else {
            let missing = if limit.has("unit") { "requests_per_unit" } else { "unit" };
            self.reader.missing(
                &limit,
                "a rate_limit",
                missing,
                "write both, or `unlimited: true`",
            );
            return None;
        };
        let lower = self.reader.text(unit, "a unit").map(str::to_ascii_lowercase);
        let unit = self
            .reader
            .parsed(unit, "a unit", "minute", |_| period(lower.as_deref().unwrap_or_default()));
        let requests = number(&mut self.reader, requests, "`requests_per_unit`");
        let (unit, (requests, _)) = (unit?, requests?);
        rule.set("limit", format!("{requests}/{}", unit.value));
        rule.set("algorithm", "fixed_window");
        Some(requests)
    }

    fn flag(&mut self, fields: &Fields<'_>, name: &str) -> bool {
        match fields.get(name) {
            Some(Node { value: Value::Bool(value), .. }) => *value,
            Some(node) => {
                self.reader.wrong_type(node, &format!("`{name}`"), "true or false");
                false
            }
            None => false,
        }
    }

    fn note(&mut self, fields: &Fields<'_>, name: &str, message: impl Into<String>, remedy: &str) {
        self.notes.add(fields.name_span(name).start, message, remedy);
    }
}

fn flag_text(node: &Node) -> String {
    if node.value == Value::Bool(true) { "true".to_owned() } else { "false".to_owned() }
}

/// So many ways that lead nowhere are closed.
const MOST_ENDS: usize = 1000;

/// Months and years of the original have as many days as these.
fn period(unit: &str) -> Result<&'static str, &'static str> {
    match unit {
        "second" => Ok("s"),
        "minute" => Ok("min"),
        "hour" => Ok("h"),
        "day" => Ok("d"),
        "week" => Ok("7d"),
        "month" => Ok("30d"),
        "year" => Ok("365d"),
        _ => Err("units are second, minute, hour, day, week, month and year"),
    }
}

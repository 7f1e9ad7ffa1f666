//! Reading tests.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::case::{Case, Comparison, Expect, Given, Step};
use crate::diagnostic::{Diagnostic, Report};
use crate::document::{Document, Node, Value};
use crate::files::Files;
use crate::read::{Fields, Reader, did_you_mean, shortened};
use crate::request_line::{RequestLine, RequestLineError};
use crate::source::{Source, Span};
use crate::tiers::Tiers;

/// What reading a test needs to know of its file.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) tiers: Option<&'a Tiers>,
    pub(crate) rules: &'a BTreeSet<&'a str>,
}

/// The tests of a file: a list of them, or the names of files with such lists, or both.
pub(crate) fn read_cases(
    reader: &mut Reader<'_>,
    node: &Node,
    rules: Rules<'_>,
    files: &dyn Files,
) -> Vec<Case> {
    let (mut cases, mut counted, mut requests) = (Vec::new(), 0, 0);
    for (number, node) in reader.items(node).iter().enumerate() {
        match &node.value {
            Value::Text(name) => read_tests_file(reader, node, name, rules, files, &mut cases),
            _ => cases.extend(Case::read(reader, node, rules)),
        }
        requests += cases[counted..].iter().map(Case::requests).sum::<u64>();
        counted = cases.len();
        // Also those that are no good are read in vain only so often.
        if too_many(reader, node, counted.max(number), requests) {
            break;
        }
    }
    cases
}

fn too_many(reader: &mut Reader<'_>, node: &Node, cases: usize, requests: u64) -> bool {
    let message = match (cases > Case::MAX, requests > Case::MAX_REQUESTS) {
        (true, _) => format!("there are more than {} tests", Case::MAX),
        (_, true) => format!("tests make more than {} requests", Case::MAX_REQUESTS),
        _ => return false,
    };
    let span = node.span.start..node.span.start;
    let remedy = "test with smaller limits, or fewer of them";
    reader.add(Diagnostic::error("too-many-tests", span, message, "from here", remedy));
    true
}

/// What is wrong in another file is said at the place that names it.
fn read_tests_file(
    reader: &mut Reader<'_>,
    node: &Node,
    name: &str,
    rules: Rules<'_>,
    files: &dyn Files,
    cases: &mut Vec<Case>,
) {
    let text = match files.read(name) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("the tests in `{}` cannot be read: {error}", shortened(name));
            let remedy = "name a file beside the rule file that has a list of `tests`";
            let span = node.span.clone();
            reader.add(Diagnostic::error("unreadable-file", span, message, "this file", remedy));
            return;
        }
    };
    let source = Source::new(name, text);
    let mut report = Report::default();
    match Document::parse(&source) {
        Ok(document) => {
            let reader = &mut Reader::new(&mut report);
            let tests = reader.fields(document.root(), "a file of tests", &["tests"]);
            let remedy = "list the tests: `tests: [...]`";
            let tests = tests.and_then(|fields| {
                let node = reader.required(&fields, "a file of tests", "tests", remedy)?;
                reader.list(node, "`tests`")
            });
            let read = |node| Case::read(reader, node, rules);
            cases.extend(tests.unwrap_or_default().iter().take(Case::MAX + 1).filter_map(read));
        }
        Err(found) => report = found,
    }
    for found in report.diagnostics().iter().take(MAX_RELAYED) {
        let message = format!("{name}:{}: {}", found.place(&source), found.message());
        let (span, remedy) = (node.span.clone(), found.remedy());
        reader.add(Diagnostic::error(found.code(), span, message, "in this file", remedy));
    }
}

/// More than this is not said about one file.
const MAX_RELAYED: usize = 10;

impl Case {
    pub(crate) const FIELDS: [&str; 4] = ["name", "given", "expect", "steps"];

    fn read(reader: &mut Reader<'_>, node: &Node, rules: Rules<'_>) -> Option<Self> {
        let fields = reader.fields(node, "a test", &Self::FIELDS)?;
        let remedy = "say what it is about: `name: a free user gets 100 a minute`";
        let name = reader.required(&fields, "a test", "name", remedy);
        let name = name.and_then(|node| {
            reader.parsed(node, "the name of a test", "five a second", name_of_case)
        });
        let steps = match fields.get("steps") {
            None => vec![Step::from_fields(reader, &fields, "a test", rules)?],
            Some(node) => {
                for other in ["given", "expect"].into_iter().filter(|name| fields.has(name)) {
                    let message = format!("a test with `steps` has no `{other}` beside them");
                    let span = fields.name_span(other);
                    let remedy = "make it a step, or leave `steps` out";
                    reader.add(Diagnostic::error("steps-beside", span, message, "here", remedy));
                }
                Step::read_all(reader, node, rules)?
            }
        };
        if !expects(node) {
            let message = "the test expects nothing";
            let span = fields.span.start..fields.span.start;
            let remedy = "say what must come out: `expect: { allowed: 100, denied_by: per-user }`";
            reader.add(Diagnostic::error("nothing-expected", span, message, "this test", remedy));
        }
        Some(Self { name: name?.value, steps: steps.into() })
    }
}

/// It is printed in one line.
fn name_of_case(text: &str) -> Result<Box<str>, &'static str> {
    match !text.is_empty() && text.len() <= MAX_NAME && !text.contains(char::is_control) {
        true => Ok(text.into()),
        false => Err("it must have 1 to 200 bytes, all in one line"),
    }
}

/// The longest name of a test, in bytes.
const MAX_NAME: usize = 200;

/// Whether a test or a step says what it expects, whether or not that is any good.
fn expects(node: &Node) -> bool {
    let Value::Map(fields) = &node.value else { return false };
    fields.iter().any(|field| match (&*field.name, &field.value.value) {
        ("expect", Value::Map(expected)) => !expected.is_empty(),
        ("steps", Value::List(steps)) => steps.iter().any(expects),
        _ => false,
    })
}

impl Step {
    pub(crate) const FIELDS: [&str; 3] = ["after", "given", "expect"];

    fn read_all(reader: &mut Reader<'_>, node: &Node, rules: Rules<'_>) -> Option<Vec<Self>> {
        let nodes = reader.list(node, "`steps`")?;
        if nodes.is_empty() || nodes.len() > Case::MAX_STEPS {
            let (is, most) = (nodes.len(), Case::MAX_STEPS);
            let message = format!("a test has 1 to {most} steps, and this has {is}");
            let span = node.span.start..node.span.start;
            let remedy = "make it several tests";
            reader.add(Diagnostic::error("bad-steps", span, message, "these steps", remedy));
            return None;
        }
        let mut steps = Vec::new();
        for node in nodes {
            let fields = reader.fields(node, "a step", &Self::FIELDS);
            steps.extend(fields.and_then(|it| Self::from_fields(reader, &it, "a step", rules)));
        }
        (steps.len() == nodes.len()).then_some(steps)
    }

    fn from_fields(
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        what: &str,
        rules: Rules<'_>,
    ) -> Option<Self> {
        let after = match fields.get("after") {
            Some(node) => reader.duration(node, "`after`"),
            None => Some(Duration::ZERO),
        };
        let remedy = "say what is asked: `given: { request: GET /v1/items user=u1 }`";
        let given = reader.required(fields, what, "given", remedy);
        let given = given.and_then(|node| Given::read(reader, node, rules.tiers));
        let expect = match fields.get("expect") {
            Some(node) => Expect::read(reader, node, rules.rules),
            None => Some(Expect::default()),
        };
        Some(Self { after: after?, given: given?, expect: expect? })
    }
}

impl Given {
    pub(crate) const FIELDS: [&str; 4] = ["request", "times", "over", "respond"];

    fn read(reader: &mut Reader<'_>, node: &Node, tiers: Option<&Tiers>) -> Option<Self> {
        let fields = reader.fields(node, "`given`", &Self::FIELDS)?;
        let remedy = "write one: `request: GET /v1/items user=u1`";
        let request = reader.required(&fields, "`given`", "request", remedy);
        let request = request.and_then(|node| read_request(reader, node, tiers));
        let times = match fields.get("times") {
            Some(node) => reader.parsed(node, "`times`", "100", times).map(|it| it.value),
            None => Some(1),
        };
        let over = match fields.get("over") {
            Some(node) => reader.duration(node, "`over`"),
            None => Some(Duration::ZERO),
        };
        let respond = match fields.get("respond") {
            Some(node) => reader.parsed(node, "a status", "401", status).map(|it| Some(it.value)),
            None => Some(None),
        };
        Some(Self { request: request?, times: times?, over: over?, respond: respond? })
    }
}

fn times(text: &str) -> Result<u64, String> {
    match tollgate_core::Quota::parse_count(text) {
        Ok(times @ 1..=Case::MAX_TIMES) => Ok(times),
        Ok(_) => Err(format!("a step makes at most {} requests", Case::MAX_TIMES)),
        Err(error) => Err(error.to_string()),
    }
}

fn status(text: &str) -> Result<u16, &'static str> {
    let status = text.parse().ok().filter(|status| (100..600).contains(status));
    status.ok_or("a status is a number from 100 to 599")
}

fn read_request(
    reader: &mut Reader<'_>,
    node: &Node,
    tiers: Option<&Tiers>,
) -> Option<RequestLine> {
    let text = reader.text(node, "a request")?;
    let line = text.parse().and_then(|line: RequestLine| line.for_tiers(tiers));
    let bad = |error: &RequestLineError| {
        let (message, remedy) = (format!("this is no request: {error}"), error.remedy());
        let span = span_within(node, text, error.at());
        Diagnostic::error("bad-request", span, message, "here", remedy)
    };
    line.inspect_err(|error| reader.add(bad(error))).ok()
}

/// From a place in a text to its end. If more than quotes is around it, all of it is meant.
fn span_within(node: &Node, text: &str, at: usize) -> Span {
    let Span { start, end } = node.span;
    match node.span.len().checked_sub(text.len()) {
        Some(quotes @ (0 | 2)) if at < text.len() => start + quotes / 2 + at..end - quotes / 2,
        _ => start..end,
    }
}

impl Expect {
    pub(crate) const FIELDS: [&str; 7] =
        ["allowed", "denied", "denied_by", "retry_after", "remaining", "delay", "warning"];

    fn read(reader: &mut Reader<'_>, node: &Node, rules: &BTreeSet<&str>) -> Option<Self> {
        let fields = reader.fields(node, "`expect`", &Self::FIELDS)?;
        let mut compared = |name: &str| {
            let Some(node) = fields.get(name) else { return Some(None) };
            let parse = if name == "warning" { Comparison::percent } else { Comparison::count };
            Some(Some(reader.parsed(node, &format!("`{name}`"), ">= 5", parse)?.value))
        };
        let (allowed, denied) = (compared("allowed"), compared("denied"));
        let (remaining, warning) = (compared("remaining"), compared("warning"));
        let mut compared = |name: &str| {
            let Some(node) = fields.get(name) else { return Some(None) };
            let parse = Comparison::duration;
            Some(Some(reader.parsed(node, &format!("`{name}`"), "<= 1s", parse)?.value))
        };
        let (retry_after, delay) = (compared("retry_after"), compared("delay"));
        let denied_by = match fields.get("denied_by") {
            Some(node) => {
                let nodes = reader.items(node);
                nodes.iter().map(|node| known_rule(reader, node, rules)).collect()
            }
            None => Some(Box::default()),
        };
        Some(Self {
            allowed: allowed?,
            denied: denied?,
            denied_by: denied_by?,
            retry_after: retry_after?,
            remaining: remaining?,
            delay: delay?,
            warning: warning?,
        })
    }
}

fn known_rule(reader: &mut Reader<'_>, node: &Node, rules: &BTreeSet<&str>) -> Option<Box<str>> {
    let name = reader.text(node, "`denied_by`")?;
    if rules.contains(name) {
        return Some(name.into());
    }
    reader.add_error(|| {
        let names: Vec<_> = rules.iter().copied().collect();
        let message = format!("there is no rule `{}`", shortened(name));
        let remedy =
            did_you_mean(name, &names).unwrap_or_else(|| "name a rule of this file".to_owned());
        let span = node.span.clone();
        Diagnostic::error("unknown-rule", span, message, "not a rule", remedy)
    });
    None
}

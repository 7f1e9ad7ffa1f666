//! `tollgate check`: one request, decided.

use serde::Serialize;
use tollgate::{Clock as _, Engine, ManualClock, Mode, Request, Ruling, SystemClock};

use crate::answer::Answer;
use crate::error::{Ending, Error};
use crate::files;
use crate::flags::{Check, Output};
use crate::print;

/// What came of the requests.
#[derive(Debug, Serialize)]
struct Checked {
    request: String,
    requests: u64,
    allowed: u64,
    denied: u64,
    /// Which request was the first to be denied, from 1.
    first_denial: Option<u64>,
    /// What was answered to the last.
    answer: Answer,
    /// By each rule that applies.
    rules: Vec<Answer>,
}

pub(crate) fn run(flags: &Check) -> Result<Ending, Error> {
    let (_, rules) = files::load(&flags.file)?;
    let line = files::request(&flags.request, &rules)?;
    // All requests are made at one instant, which is now: windows of the calendar begin with it.
    let clock = ManualClock::starting_at(SystemClock::new().wall());
    let engine = Engine::builder(rules).clock(clock).build()?;
    let checked = line.with(|request| decide(&engine, request, flags.times));
    let checked = Checked { request: line.to_string(), ..checked };
    match flags.output {
        Output::Text => print::text(&checked.to_text(print::colours()))?,
        Output::Json => print::json(&checked)?,
    }
    Ok(if checked.denied == 0 { Ending::Good } else { Ending::Findings })
}

fn decide(engine: &Engine<ManualClock>, request: &Request<'_>, times: u64) -> Checked {
    // What is under way at once stays so: else a limit on that would never be met.
    let mut under_way = Vec::new();
    let (mut allowed, mut first_denial) = (0, None);
    for number in 1..=times {
        let ruling = engine.decide(request);
        match ruling.is_allowed() {
            true => allowed += 1,
            false => first_denial = first_denial.or(Some(number)),
        }
        if number == times {
            return Checked { allowed, first_denial, ..Checked::of(&ruling, times, allowed) };
        }
        if ruling.each().any(|each| each.rule().concurrent().is_some()) {
            under_way.push(ruling);
        }
    }
    // There is one request at least.
    Checked::of(&engine.peek(request), times, allowed)
}

impl Checked {
    fn of(ruling: &Ruling, requests: u64, allowed: u64) -> Self {
        Self {
            request: String::new(),
            requests,
            allowed,
            denied: requests.saturating_sub(allowed),
            first_denial: None,
            answer: Answer::new(ruling.rule(), Mode::Enforce, ruling.decision()),
            rules: ruling.each().map(|each| Answer::of(&each)).collect(),
        }
    }

    fn to_text(&self, colours: bool) -> String {
        let word = match self.answer.allowed {
            true => print::good("allowed", colours),
            false => print::bad("denied", colours),
        };
        let mut text = match &self.answer.rule {
            None => format!("{word}: no rule applies\n"),
            Some(rule) if self.answer.allowed => format!("{word}; the strictest is `{rule}`\n"),
            Some(rule) => format!("{word} by `{rule}`\n"),
        };
        if self.requests > 1 {
            let Self { requests, allowed, denied, .. } = self;
            text += &format!("{requests} requests at once: {allowed} allowed, {denied} denied");
            if let Some(first) = self.first_denial {
                text += &format!(", the first denial is request {first}");
            }
            text += "\n";
        }
        if self.rules.is_empty() {
            return text;
        }
        let head = ["rule", "says", "limit", "remaining", "reset after", "retry after"];
        let row = |it: &Answer| {
            let name = it.rule.clone().unwrap_or_default();
            [name, it.says(), it.limit(), it.remaining(), it.reset(), it.retry()]
        };
        let rows: Vec<_> = self.rules.iter().map(row).collect();
        text + "\n" + &print::columns(head, &rows)
    }
}

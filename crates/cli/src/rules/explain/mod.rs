//! `tollgate rules explain`: which rules apply to a request, and what they would answer.

use serde::Serialize;
use tollgate::{Clock as _, Engine, ManualClock, Mode, Request, SystemClock};
use tollgate_rules::{Facts, Lasting, Rule, RuleSet};

use crate::answer::Answer;
use crate::error::{Ending, Error};
use crate::files;
use crate::flags::{Output, RulesExplain};
use crate::print;
use crate::rules::words;

/// What would be answered, and by whom.
#[derive(Debug, Serialize)]
struct Explained {
    request: String,
    answer: Answer,
    applying: Vec<Applying>,
    /// The names of the rules that do not apply.
    others: Vec<String>,
}

/// A rule that applies.
#[derive(Debug, Serialize)]
struct Applying {
    /// The value of each part of its key.
    key: Vec<String>,
    /// The limit that the request meets.
    meets: String,
    #[serde(flatten)]
    answer: Answer,
}

pub(super) fn run(flags: &RulesExplain) -> Result<Ending, Error> {
    let (_, rules) = files::load(&flags.file)?;
    let line = files::request(&flags.request, &rules)?;
    let clock = ManualClock::starting_at(SystemClock::new().wall());
    let engine = Engine::builder(rules).clock(clock).build()?;
    let explained = line.with(|request| explain(&engine, request));
    let explained = Explained { request: line.to_string(), ..explained };
    match flags.output {
        Output::Text => print::text(&explained.to_text(print::colours()))?,
        Output::Json => print::json(&explained)?,
    }
    Ok(Ending::Good)
}

fn explain(engine: &Engine<ManualClock>, request: &Request<'_>) -> Explained {
    let rules = engine.rules();
    // As the engine sees it.
    let mut room = String::new();
    let normal = request.normal(&mut room);
    let facts = Facts::new(&rules, &normal, None);
    let ruling = engine.peek(request);
    let applying: Vec<_> = ruling
        .each()
        .map(|each| Applying {
            key: key_values(each.rule(), &facts),
            meets: met_limit(&rules, each.rule(), &facts),
            answer: Answer::of(&each),
        })
        .collect();
    let applies = |name: &str| applying.iter().any(|it| it.answer.rule.as_deref() == Some(name));
    let others = rules.rules().iter().map(Rule::name).filter(|name| !applies(name));
    let others = others.map(str::to_owned).collect();
    let answer = Answer::new(ruling.rule(), Mode::Enforce, ruling.decision());
    Explained { request: String::new(), answer, applying, others }
}

fn key_values(rule: &Rule, facts: &Facts<'_>) -> Vec<String> {
    let value = |part| rule.key_value(part, facts).map(|value| value.to_string());
    rule.key().iter().filter_map(value).collect()
}

/// The limit that a request meets: that of its key, if it has one, or of its tier.
fn met_limit(rules: &RuleSet, rule: &Rule, facts: &Facts<'_>) -> String {
    if let Some((most, expires)) = rule.concurrent() {
        let tier = if most.len() > 1 { facts.tier() } else { 0 };
        let most = most.get(tier).copied().unwrap_or_default();
        return words::at_once(most, expires.map(Lasting));
    }
    let key = rule.key().iter().map(|part| rule.key_value(part, facts));
    let key: Option<Vec<_>> = key.collect();
    let is_it = |text: &str| {
        let written = rule.written_key(text).collect::<Option<Vec<_>>>();
        written.is_some() && written == key
    };
    let overridden = rule.overrides().find(|(text, _)| is_it(text));
    let limit = match overridden {
        Some((_, number)) => rule.override_limits().get(rule.limit_of(facts, Some(number))),
        None => rule.limits().get(rule.limit_of(facts, None)),
    };
    let limit = limit.map_or_else(|| "unlimited".to_owned(), ToString::to_string);
    match (overridden, rules.tiers()) {
        (Some(_), _) => format!("{limit}, of this key"),
        (None, Some(tiers)) if rule.limits().len() > 1 => {
            format!("{limit}, of {}", tiers.name(facts.tier()))
        }
        _ => limit,
    }
}

impl Explained {
    fn to_text(&self, colours: bool) -> String {
        let word = match self.answer.allowed {
            true => print::good("allowed", colours),
            false => print::bad("denied", colours),
        };
        let mut text = format!("{}\nwould be {word}", self.request);
        match &self.answer.rule {
            Some(rule) if self.answer.allowed => text += &format!("; the strictest is `{rule}`\n"),
            Some(rule) => text += &format!(" by `{rule}`\n"),
            None => text += ": no rule applies\n",
        }
        if !self.applying.is_empty() {
            let row = |it: &Applying| {
                let name = it.answer.rule.clone().unwrap_or_default();
                let key = if it.key.is_empty() { "everybody".into() } else { it.key.join(", ") };
                [name, key, it.meets.clone(), it.answer.says(), it.answer.remaining()]
            };
            let rows: Vec<_> = self.applying.iter().map(row).collect();
            text += "\n";
            text += &print::columns(["rule", "key", "limit", "says", "remaining"], &rows);
        }
        if !self.others.is_empty() {
            text += &format!("\nnot about it: {}\n", self.others.join(", "));
        }
        text
    }
}

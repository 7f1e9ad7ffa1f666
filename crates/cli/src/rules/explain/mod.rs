//! `tollgate rules explain`: why rules apply to a request or do not, and what they would answer.

mod reason;
mod text;

use serde::Serialize;
use tollgate::{Clock as _, Engine, ManualClock, Mode, Request, Ruling, SystemClock};
use tollgate_rules::{
    AppliedLimit, Applies, CostError, Explanation, Facts, KeyValue, Lasting, Rule, StandsFor,
    Verdict,
};

use self::reason::{Client, Why};
use crate::answer::{Answer, mode_name};
use crate::error::{Ending, Error};
use crate::files;
use crate::flags::{Output, RulesExplain};
use crate::print;
use crate::rules::words;

/// What would be answered, by whom, and why.
#[derive(Debug, Serialize)]
struct Explained {
    request: String,
    /// The path as rules see it, without detours and escapes.
    path: String,
    client: Client,
    /// Absent if the rules have no tiers.
    tier: Option<String>,
    answer: Answer,
    /// All rules, in the order of the file.
    rules: Vec<Explainee>,
}

#[derive(Debug, Serialize)]
struct Explainee {
    rule: String,
    mode: &'static str,
    applies: bool,
    /// How it applies, if it does.
    #[serde(flatten)]
    how: Option<How>,
    /// Why it does not, if it does not.
    why: Option<Why>,
}

/// How a rule applies.
#[derive(Debug, Serialize)]
struct How {
    key: Vec<Part>,
    limit: Limit,
    /// What the request costs; absent if it is refused, whatever there is.
    cost: Option<u64>,
    /// Why it is refused, or why that is not known, so that it is 1.
    cost_error: Option<String>,
    /// Whether it applies because nobody can tell if its `when` holds.
    when_failed: bool,
    answer: Option<Answer>,
}

/// A part of the key.
#[derive(Debug, Serialize)]
struct Part {
    part: String,
    value: String,
    /// The attribute that stands for a part that the request lacks.
    instead: Option<String>,
    /// Whether all requests that lack the part are counted together.
    together: bool,
    #[serde(skip)]
    text: String,
}

/// The limit that the request meets.
#[derive(Debug, Serialize)]
struct Limit {
    /// `token bucket of 100/min`
    text: String,
    /// `100/min`; absent if it is about what is under way at once.
    quota: Option<String>,
    /// So many at once.
    concurrent: Option<u32>,
    /// Whose limit it is, if tiers have different ones.
    tier: Option<String>,
    /// The override that it is of, as it is written.
    overridden: Option<String>,
}

pub(super) fn run(flags: &RulesExplain) -> Result<Ending, Error> {
    let (_, rules) = files::load(&flags.file)?;
    let line = files::request(&flags.request, &rules)?;
    let clock = ManualClock::starting_at(SystemClock::new().wall());
    let engine = Engine::builder(rules).clock(clock).build()?;
    let explained = line.with(|request| explain(&engine, request, line.to_string()));
    match flags.output {
        Output::Text => print::text(&explained.to_text(print::colours()))?,
        Output::Json => print::json(&explained)?,
    }
    Ok(Ending::Good)
}

/// Sees the request as the engine does: in its normal form, and where databases say it is from.
fn explain(engine: &Engine<ManualClock>, request: &Request<'_>, line: String) -> Explained {
    let rules = engine.rules();
    let mut room = String::new();
    let normal = request.normal(&mut room);
    let facts = Facts::new(&rules, &normal, rules.geo());
    let Explanation { client, client_reason, tier, rules: each, .. } = rules.explain(&facts);
    let ruling = engine.peek(request);
    let explainee = |(rule, verdict): (&Rule, Verdict)| {
        let (how, why) = match verdict {
            Verdict::Applies(applies) => (Some(How::of(rule, &applies, &facts, &ruling)), None),
            Verdict::Not(reason) => (None, Some(Why::of(&reason))),
        };
        let (name, mode) = (rule.name().to_owned(), mode_name(rule.mode()));
        Explainee { rule: name, mode, applies: how.is_some(), how, why }
    };
    let each = each.into_iter().map(|each| each.verdict);
    Explained {
        request: line,
        path: normal.path().to_owned(),
        client: Client::of(client, &client_reason),
        tier,
        answer: Answer::new(ruling.rule(), Mode::Enforce, ruling.decision()),
        rules: rules.rules().iter().zip(each).map(explainee).collect(),
    }
}

impl How {
    fn of(rule: &Rule, applies: &Applies, facts: &Facts<'_>, ruling: &Ruling) -> Self {
        let refused = applies.cost.as_ref().is_err_and(CostError::refuses);
        let answer = ruling.each().find(|each| each.name() == rule.name());
        Self {
            key: applies.key.iter().map(Part::of).collect(),
            limit: Limit::of(rule, applies, facts),
            cost: Some(facts.cost(rule)).filter(|_| !refused),
            cost_error: applies.cost.as_ref().err().map(ToString::to_string),
            when_failed: applies.when_failed,
            answer: answer.map(|each| Answer::of(&each)),
        }
    }
}

impl Part {
    fn of(value: &KeyValue) -> Self {
        let instead = match &value.instead {
            Some(StandsFor::Other(attribute)) => Some(attribute.to_string()),
            Some(StandsFor::Together) | None => None,
        };
        Self {
            part: value.part.to_string(),
            value: value.value.clone(),
            instead,
            together: value.instead == Some(StandsFor::Together),
            text: value.to_string(),
        }
    }
}

impl Limit {
    fn of(rule: &Rule, applies: &Applies, facts: &Facts<'_>) -> Self {
        let Applies { limit, tier, overridden, .. } = applies;
        let written = overridden.as_deref();
        let number = rule.overrides().find(|(key, _)| Some(*key) == written);
        let exact = match number {
            Some((_, number)) => rule.override_limits().get(rule.limit_of(facts, Some(number))),
            None => rule.limits().get(rule.limit_of(facts, None)),
        };
        let (text, quota, concurrent) = match limit {
            AppliedLimit::Concurrent(most) => {
                let expires = rule.concurrent().and_then(|(_, expires)| expires).map(Lasting);
                (words::at_once(*most, expires), None, Some(*most))
            }
            AppliedLimit::Rate(quota) => {
                let text = exact.map_or_else(|| quota.to_string(), ToString::to_string);
                (text, Some(quota.to_string()), None)
            }
        };
        Self { text, quota, concurrent, tier: tier.clone(), overridden: overridden.clone() }
    }
}

//! What is told about a rule again and again.

use std::sync::OnceLock;

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderValue;
use tollgate::{Retry, RuleDecision, RuleSet};
use tollgate_rules::{Rule, Version};

use crate::respond::fields::{Values, quoted};
use crate::respond::policy::Policy;
use crate::respond::prepared::Prepared;
use crate::respond::problem::{self, Cause, PROBLEM_JSON};
use crate::respond::template::{Filling, Template};

/// The terms of all rules of a set, each made when it is first needed.
#[derive(Debug)]
pub(super) struct AllTerms {
    version: Version,
    each: Box<[OnceLock<Box<Terms>>]>,
}

impl AllTerms {
    pub(super) fn new(rules: &RuleSet) -> Self {
        let each = rules.rules().iter().map(|_| OnceLock::new()).collect();
        Self { version: rules.version(), each }
    }

    /// What they are the terms of.
    pub(super) const fn version(&self) -> Version {
        self.version
    }

    /// The terms of a rule of this set.
    pub(super) fn of(&self, each: &RuleDecision<'_>) -> &Terms {
        self.each[each.number()].get_or_init(|| Box::new(Terms::new(each.rule())))
    }
}

/// What is told about a rule, as far as it is always the same.
#[derive(Debug)]
pub(super) struct Terms {
    /// Its name as a structured field has it.
    pub(super) name: Box<str>,
    /// Its name as JSON has it, with quotes.
    pub(super) json_name: Box<str>,
    /// By capacity.
    policies: Box<[Told]>,
    pub(super) status: StatusCode,
    cause: Cause,
    body: Body,
    /// The usual body, if nothing of it changes.
    ready: Option<Bytes>,
}

/// What is told about a limit of a rule.
#[derive(Debug)]
struct Told {
    capacity: u64,
    /// So many in so many seconds.
    numbers: (u64, Option<u64>),
    /// As the header that it is on its own.
    policy: HeaderValue,
    /// The headers of a denial without a body, and of one with it.
    prepared: [OnceLock<Box<Prepared>>; 2],
}

/// What a denial says.
#[derive(Debug)]
enum Body {
    /// What is usual.
    Problem,
    /// What is usual, in the words of the rule.
    Message(Template),
    /// What the rule says, and nothing else.
    Whole(HeaderValue, Template),
}

impl Terms {
    fn new(rule: &Rule) -> Self {
        let (name, deny) = (quoted(rule.name()), rule.deny());
        let told = |policy: Policy| Told {
            capacity: policy.capacity,
            numbers: (policy.quota, policy.window),
            policy: policy_value(&name, &policy),
            prepared: [const { OnceLock::new() }; 2],
        };
        let policies = Policy::all_of(rule).into_iter().map(told).collect();
        let body = match (&deny.body, &deny.message) {
            (Some(body), _) => {
                let template = Template::new(body, rule.name(), str::to_owned);
                Body::Whole(content_type(body), template)
            }
            (None, Some(text)) => Body::Message(Template::new(text, rule.name(), problem::escaped)),
            (None, None) => Body::Problem,
        };
        let mut terms = Self {
            json_name: format!("\"{}\"", problem::escaped(rule.name())).into(),
            name: name.into(),
            policies,
            status: StatusCode::from_u16(deny.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS),
            cause: if rule.block_for().is_some() { Cause::Abuse } else { Cause::Quota },
            body,
            ready: None,
        };
        if matches!(terms.body, Body::Problem) {
            let usual = if rule.concurrent().is_some() { Retry::OnReturn } else { USUAL };
            terms.ready = Some(terms.problem(usual, None, &terms.json_name).into());
        }
        terms
    }

    /// The policy behind a decision, as a header of its own and as an item of a list.
    pub(super) fn policy(&self, capacity: u64) -> HeaderValue {
        match self.told(capacity) {
            Some(told) => told.policy.clone(),
            None => policy_value(&self.name, &Policy::bare(capacity)),
        }
    }

    /// The same in numbers: so many in so many seconds.
    pub(super) fn numbers(&self, capacity: u64) -> (u64, Option<u64>) {
        self.told(capacity).map_or((capacity, None), |told| told.numbers)
    }

    /// Where the headers of a denial are kept, with or without a body.
    pub(super) fn prepared(&self, capacity: u64, body: bool) -> Option<&OnceLock<Box<Prepared>>> {
        Some(&self.told(capacity)?.prepared[usize::from(body)])
    }

    fn told(&self, capacity: u64) -> Option<&Told> {
        let at = self.policies.binary_search_by_key(&capacity, |told| told.capacity).ok()?;
        Some(&self.policies[at])
    }

    /// The body of a denial by this rule and perhaps others, and what kind of body it is. `rules`
    /// are their names as JSON has them, if there are others.
    pub(super) fn body(
        &self,
        retry: Retry,
        filling: Filling,
        rules: Option<&str>,
    ) -> (HeaderValue, Bytes) {
        match &self.body {
            Body::Whole(content_type, template) => {
                let mut text = String::new();
                template.write(filling, &mut text);
                (content_type.clone(), text.into())
            }
            _ => (PROBLEM_JSON, self.problem_of(retry, filling, rules)),
        }
    }

    /// The same as the problem that it is, whatever body the rule has.
    pub(super) fn problem_of(&self, retry: Retry, filling: Filling, rules: Option<&str>) -> Bytes {
        let names = rules.unwrap_or(&self.json_name);
        match (&self.body, &self.ready) {
            (_, Some(ready)) if rules.is_none() && retry != Retry::Never => ready.clone(),
            (Body::Message(template), _)
                if filling.retry_after.is_some() || !template.tells_time() =>
            {
                let mut detail = String::new();
                template.say(filling, &mut detail);
                self.problem(retry, Some(&detail), names).into()
            }
            _ => self.problem(retry, None, names).into(),
        }
    }

    fn problem(&self, retry: Retry, detail: Option<&str>, names: &str) -> String {
        let usual = match retry {
            Retry::After(_) => None,
            Retry::OnReturn => Some("Too many requests are under way at once."),
            Retry::Never => Some("The request costs more than the limit: waiting does not help."),
        };
        // Nobody is blocked for a request that is too large.
        let cause = if retry == Retry::Never { Cause::Quota } else { self.cause };
        problem::denial(cause, self.status, detail.or(usual), names)
    }
}

fn policy_value(name: &str, policy: &Policy) -> HeaderValue {
    let mut values = Values::new();
    values.add_policy(name, policy);
    values.take()
}

/// What a body is that somebody wrote for their clients.
fn content_type(body: &str) -> HeaderValue {
    HeaderValue::from_static(match body.trim_start().as_bytes().first() {
        Some(b'{' | b'[') => "application/json",
        Some(b'<') => "text/html; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    })
}

/// A denial of which only the time changes, which is not in its body.
const USUAL: Retry = Retry::After(std::time::Duration::ZERO);

//! What came of the requests of one step.

use std::fmt;
use std::time::Duration;

use tollgate_core::{Decision, Retry};
use tollgate_rules::{Comparison, Expect, Lasting};

use crate::engine::rehearsal::failure::{Expectation, Failure};
use crate::engine::ruling::Ruling;

#[derive(Debug, Default)]
pub(super) struct Tally {
    allowed: u64,
    denied: u64,
    first_denial: Option<Denial>,
    /// The rules that denied, each once, in the order in which they first did.
    denied_by: Vec<Box<str>>,
    last: Option<Decision>,
    /// The highest percentage of `warn_at` that the last request reached.
    warning: u64,
}

#[derive(Debug)]
struct Denial {
    /// Of the requests of the step, from 1.
    request: u64,
    after: Duration,
    by: Box<str>,
    retry: Option<Retry>,
}

impl Tally {
    /// Notes a decision, and how far the step was when it was made.
    pub(super) fn add(&mut self, ruling: &Ruling, after: Duration) {
        let decision = ruling.decision();
        self.last = Some(decision);
        self.warning = ruling.each().filter_map(|each| each.warning()).max().map_or(0, u64::from);
        if decision.is_allowed() {
            self.allowed += 1;
            return;
        }
        self.denied += 1;
        let by = ruling.rule().unwrap_or_default();
        if !self.denied_by.iter().any(|known| **known == *by) {
            self.denied_by.push(by.into());
        }
        let request = self.allowed + self.denied;
        let retry = decision.retry();
        self.first_denial.get_or_insert_with(|| Denial { request, after, by: by.into(), retry });
    }

    /// Adds what is not as expected to the failures.
    pub(super) fn compare(&self, step: usize, expect: &Expect, failures: &mut Vec<Failure>) {
        let mut fail = |about, expected: String, actual: String| {
            failures.push(Failure::new(step, about, expected, actual));
        };
        if let Some(expected) = differs(expect.allowed, self.allowed) {
            let actual = format!("{}; {}", self.allowed, self.denial());
            fail(Expectation::Allowed, format!("{expected} allowed"), actual);
        }
        if let Some(expected) = differs(expect.denied, self.denied) {
            let actual = format!("{}; {}", self.denied, self.denial());
            fail(Expectation::Denied, format!("{expected} denied"), actual);
        }
        let as_expected = self.denied_by.iter().all(|name| expect.denied_by.contains(name));
        if !expect.denied_by.is_empty() && (self.denied == 0 || !as_expected) {
            let expected = format!("denials by {}", listed(&expect.denied_by, " or "));
            let actual = match self.denied {
                0 => "none".to_owned(),
                _ => format!("denials by {}", listed(&self.denied_by, " and ")),
            };
            fail(Expectation::DeniedBy, expected, actual);
        }
        let Some(last) = self.last else { return };
        if let Some(expected) = expect.retry_after
            && !last.retry_after().is_some_and(|wait| expected.holds(&wait))
        {
            let actual = last
                .retry()
                .map_or_else(|| "an allowance".to_owned(), |retry| WhenToRetry(retry).to_string());
            fail(Expectation::RetryAfter, format!("retry after {expected}"), actual);
        }
        if let Some(expected) = differs(expect.remaining, last.remaining()) {
            let actual = match last.remaining() {
                Decision::UNLIMITED => "no limit".to_owned(),
                remaining => remaining.to_string(),
            };
            fail(Expectation::Remaining, format!("{expected} remaining"), actual);
        }
        if let Some(expected) = expect.delay
            && !(last.is_allowed() && expected.holds(&last.delay()))
        {
            let actual = match last.is_allowed() {
                true => Lasting(last.delay()).to_string(),
                false => "a denial".to_owned(),
            };
            fail(Expectation::Delay, format!("a delay of {expected}"), actual);
        }
        if let Some(expected) = differs(expect.warning, self.warning) {
            let actual = match self.warning {
                0 => "none".to_owned(),
                percent => format!("{percent}%"),
            };
            fail(Expectation::Warning, format!("a warning at {expected}%"), actual);
        }
    }

    fn denial(&self) -> String {
        let Some(Denial { request, after, by, retry }) = &self.first_denial else {
            return "nothing was denied".to_owned();
        };
        let after = Lasting(*after);
        let retry = retry.map_or_else(String::new, |retry| format!(", {}", WhenToRetry(retry)));
        format!("first denial at request {request} after {after} by `{by}`{retry}")
    }
}

fn differs(expected: Option<Comparison<u64>>, actual: u64) -> Option<Comparison<u64>> {
    expected.filter(|expected| !expected.holds(&actual))
}

fn listed(names: &[Box<str>], between: &str) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(between)
}

struct WhenToRetry(Retry);

impl fmt::Display for WhenToRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Retry::After(wait) => write!(f, "retry after {}", Lasting(wait)),
            Retry::OnReturn => f.write_str("retry when something under way ends"),
            Retry::Never => f.write_str("no retry helps: it costs more than the limit"),
        }
    }
}

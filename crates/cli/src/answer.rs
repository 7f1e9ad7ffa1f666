//! What rules answer, for people and for programs.

use std::time::Duration;

use serde::Serialize;
use tollgate::{Decision, Mode, Retry, RuleDecision, Verdict};
use tollgate_rules::Lasting;

/// What one rule answers, or all of them together.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Answer {
    pub(crate) rule: Option<String>,
    /// `enforce`, or `shadow`: then its answer is only noted.
    pub(crate) mode: &'static str,
    pub(crate) allowed: bool,
    /// Absent if there is no limit.
    limit: Option<u64>,
    remaining: Option<u64>,
    /// Rounded up, as all times here.
    reset_after_ms: u64,
    /// Absent if the request is allowed, or waiting does not help.
    retry_after_ms: Option<u64>,
    delay_ms: u64,
    #[serde(skip)]
    decision: Decision,
}

impl Answer {
    pub(crate) fn new(rule: Option<&str>, mode: Mode, decision: Decision) -> Self {
        let limited = |number| Some(number).filter(|number| *number != Decision::UNLIMITED);
        Self {
            rule: rule.map(str::to_owned),
            mode: mode_name(mode),
            allowed: decision.is_allowed(),
            limit: limited(decision.limit()),
            remaining: limited(decision.remaining()),
            reset_after_ms: millis(decision.reset_after()),
            retry_after_ms: decision.retry_after().map(millis),
            delay_ms: millis(decision.delay()),
            decision,
        }
    }

    pub(crate) fn of(each: &RuleDecision<'_>) -> Self {
        Self::new(Some(each.name()), each.mode(), each.decision())
    }

    /// What it says, in a few words.
    pub(crate) fn says(&self) -> String {
        let says = match self.decision.verdict() {
            Verdict::Allow => "allow".to_owned(),
            Verdict::AllowAfter(delay) => format!("allow after {}", Lasting(delay)),
            Verdict::Deny(_) => "deny".to_owned(),
        };
        if self.mode == "shadow" { format!("{says} (shadow)") } else { says }
    }

    /// Whether there is a limit at all.
    pub(crate) const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    pub(crate) fn limit(&self) -> String {
        self.limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
    }

    pub(crate) fn remaining(&self) -> String {
        self.remaining.map_or_else(|| "unlimited".to_owned(), |remaining| remaining.to_string())
    }

    pub(crate) fn reset(&self) -> String {
        Lasting(self.decision.reset_after()).to_string()
    }

    pub(crate) fn retry(&self) -> String {
        match self.decision.retry() {
            Some(Retry::After(wait)) => Lasting(wait).to_string(),
            Some(Retry::OnReturn) => "when one ends".to_owned(),
            Some(Retry::Never) => "never".to_owned(),
            None => String::new(),
        }
    }
}

pub(crate) const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Shadow => "shadow",
        Mode::Off => "off",
    }
}

/// Rounded up: who waits so long has waited long enough.
fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

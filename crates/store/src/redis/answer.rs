//! From what a script says to a grant.

use std::time::Duration;

use redis::Value;
use tollgate_core::lease::{Grant, LeaseId, Record};
use tollgate_core::{Decision, LogRule, Plan, Retry, State, Wall};

use crate::ask::Ask;
use crate::budget::Kind;
use crate::error::StoreError;
use crate::memory::unremembered;
use crate::redis::form::{BILLION, clamped};

/// What a script said about one question.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// This.
    Said(Result<Grant, StoreError>),
    /// That its clock is in none of the windows that were named.
    OtherWindow,
}

/// All that one call of a script said.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) now: Wall,
    pub(super) epoch: u64,
    /// When all that was before this memory was lost, in microseconds; 0 if it was not.
    pub(super) lost: u64,
    answers: Vec<Value>,
}

impl Answers {
    /// `None` if it is not what our scripts say.
    pub(super) fn read(value: Value, questions: usize) -> Option<Self> {
        let Value::Array(mut values) = value else { return None };
        if values.len() != questions + 3 {
            return None;
        }
        let answers = values.split_off(3);
        let head: Option<Vec<_>> = values.iter().map(whole).collect();
        let [now, epoch, lost] = head?[..] else { return None };
        Some(Self { now: wall(now), epoch, lost, answers })
    }

    pub(super) fn each(self) -> impl Iterator<Item = Value> {
        self.answers.into_iter()
    }
}

/// Reads the answer to a question about the key of that name.
pub(super) fn read(value: &Value, epoch: u64, ask: &Ask, name: &str) -> Answer {
    let garbled = |reason: String| StoreError::Garbled { name: name.into(), reason };
    let Value::Array(values) = value else {
        return Answer::Said(Err(garbled(format!("{value:?}"))));
    };
    Answer::Said(match values.first().and_then(whole) {
        Some(0) => record(values, epoch, ask).ok_or_else(|| garbled(format!("{values:?}"))),
        Some(1) => Err(StoreError::Overtaken),
        Some(2) => Err(match values.get(1).map(text).unwrap_or_default() {
            reason if reason == NOT_NUMBERS => garbled(reason),
            _ => StoreError::WrongType { name: name.into() },
        }),
        Some(3) => return Answer::OtherWindow,
        _ => Err(garbled(format!("{values:?}"))),
    })
}

fn record(values: &[Value], epoch: u64, ask: &Ask) -> Option<Grant> {
    let numbers = values.iter().map(signed).collect::<Option<Vec<_>>>()?;
    let once = clamped(ask.exchange().cost).try_into().ok()?;
    let [at, first, second, cost, lent, escrow, began, tokens] = match numbers[..] {
        // Nothing was lent, neither now nor before.
        [_, at, first, second] => [at, first, second, once, 0, 0, -1, 0],
        [_, at, first, second, cost, lent, escrow, began, tokens] => {
            [at, first, second, cost, lent, escrow, began, tokens]
        }
        _ => return None,
    };
    let unsigned = |number: i64| u64::try_from(number).ok();
    let (at, first, second) = (unsigned(at)?, unsigned(first)?, unsigned(second)?);
    let (cost, lent, escrow) = (unsigned(cost)?, unsigned(lent)?, unsigned(escrow)?);
    let budget = ask.budget();
    let lender = match budget.kind() {
        Kind::Lent(lender) => lender,
        Kind::Log(rule) => {
            let found = Found { at, spent: first, last: second, fits: lent == 1, retry: escrow };
            return Some(unremembered(ask, epoch, of_log(*rule, &found, ask.exchange().cost)));
        }
        Kind::Unlimited => return None,
    };
    let state = match lender.machine().map(|machine| machine.plan()) {
        Some(Plan::Bucket { per_nano, .. } | Plan::Shape { per_nano, .. }) => {
            let (nanos, part) = (second / per_nano, second % per_nano);
            let full = first.checked_mul(BILLION)?.checked_add(nanos)?;
            // A bucket that was full a year ago is full.
            let full = budget.tick_nanos(full);
            full.map(|nanos| State::Full { nanos, part })
        }
        Some(Plan::Window { .. }) => Some(State::Window { count: first }),
        Some(Plan::Sliding { .. }) => Some(State::Sliding { last: first, this: second }),
        Some(Plan::Unlimited) | None => None,
    };
    let held = match unsigned(began) {
        Some(began) => Some((LeaseId { epoch, began }, unsigned(tokens)?)),
        None => None,
    };
    let now = budget.tick_at(wall(at))?;
    let record = Record { now, state, cost, lent, escrow, held, epoch };
    lender.grant(ask.exchange(), &record, ask.phase())
}

/// What the script found in a log.
struct Found {
    at: u64,
    spent: u64,
    /// When something was spent last.
    last: u64,
    fits: bool,
    /// When that was spent which has to go first.
    retry: u64,
}

fn of_log(rule: LogRule, found: &Found, cost: u64) -> Decision {
    let until_over = |then: u64| {
        let passed = Duration::from_micros(found.at.saturating_sub(then));
        rule.window().saturating_sub(passed)
    };
    let reset = if found.last == 0 { Duration::ZERO } else { until_over(found.last) };
    let left = rule.limit().saturating_sub(found.spent);
    match found.fits {
        true => Decision::allow(rule.limit(), left, reset),
        false if cost > rule.limit() => Decision::deny(rule.limit(), left, reset, Retry::Never),
        false => {
            let wait = Retry::After(until_over(found.retry));
            Decision::deny(rule.limit(), left, reset, wait)
        }
    }
}

pub(super) fn wall(micros: u64) -> Wall {
    Wall::from_unix_nanos(micros.saturating_mul(1_000))
}

pub(super) fn whole(value: &Value) -> Option<u64> {
    u64::try_from(signed(value)?).ok()
}

fn signed(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => text(value).parse().ok(),
    }
}

/// A value as a text, if it is one.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.clone(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}

/// What scripts say of a hash that looks like ours.
const NOT_NUMBERS: &str = "no number";

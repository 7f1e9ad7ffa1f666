//! From what a script says to a grant.

use std::time::Duration;

use redis::Value;
use tollgate_core::lease::{Grant, LeaseId, Promise, Record};
use tollgate_core::{Decision, LogRule, Plan, Retry, State, Tick, Wall};

use crate::ask::Ask;
use crate::budget::{Budget, Kind};
use crate::error::StoreError;
use crate::memory::unremembered;
use crate::redis::form::{BILLION, clamped};

/// What a script said about one question.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// This.
    Said(Result<Reply, StoreError>),
    /// That the time is in none of the windows that were named: that of its clock, or a later one that the key
    /// has seen before the clock was set back.
    OtherWindow(Wall),
}

/// What whoever asked gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reply {
    Grant(Grant),
    /// Whether something was forgotten.
    Forgotten(bool),
}

/// All that one call of a script said: a line about all of it, and one for each question.
#[derive(Debug)]
pub(super) struct Answers<'a> {
    pub(super) now: Wall,
    pub(super) epoch: u64,
    /// When all that was before this memory was lost, in microseconds; 0 if it was not.
    pub(super) lost: u64,
    /// How often the slot was moved in this memory.
    pub(super) moves: u64,
    /// The epoch since which nothing was lost but last moments.
    pub(super) since: u64,
    lines: &'a [u8],
    questions: usize,
}

/// The mark of a slot that names another process than the one that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Strange {
    pub(super) process: String,
    pub(super) age: Age,
}

/// What tells a mark from those of the same slot before and after it: its memory, and how often the slot was
/// moved in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age {
    pub(super) epoch: u64,
    pub(super) moves: u64,
}

impl Strange {
    /// `None` if a script has said something else.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let Value::BulkString(bytes) = value else { return None };
        let text = str::from_utf8(bytes.strip_prefix(b"former ")?).ok()?;
        let mut words = text.split(' ');
        let process = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        Some(Self { process, age: Age { epoch: number()?, moves: number()? } })
    }
}

/// What a script said about one question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Line<'a> {
    Text(&'a str),
    /// The text of a bucket of which nothing is lent: when it is full, in seconds and grains.
    Bucket(u64, u64),
}

impl<'a> Answers<'a> {
    /// `None` if it is not what our scripts say.
    pub(super) fn read(value: &'a Value, questions: usize) -> Option<Self> {
        let Value::BulkString(bytes) = value else { return None };
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let numbers = Numbers::read(str::from_utf8(&bytes[..end]).ok()?)?;
        let Numbers([seconds, micros, epoch, lost, moves, since]) = numbers;
        let unsigned = |number: i64| u64::try_from(number).ok();
        let now = unsigned(seconds)?.checked_mul(MILLION)?.checked_add(unsigned(micros)?)?;
        let (now, epoch, lost) = (wall(now), unsigned(epoch)?, unsigned(lost)?);
        let (moves, since) = (unsigned(moves)?, unsigned(since)?);
        let answers = Self { now, epoch, lost, moves, since, lines: &bytes[end + 1..], questions };
        (answers.each().count() == questions).then_some(answers)
    }

    /// Whether the store's clock says a time that the budget counts in. By one that does not, windows are
    /// named that nobody is in, and whatever stands under a key seems to make no sense.
    pub(super) fn is_in_time_of(&self, budget: &Budget) -> bool {
        budget.tick_at(self.now).is_some_and(|now| now < Tick::MAX)
    }

    /// One for each question; fewer if something else stands there.
    pub(super) fn each(&self) -> impl Iterator<Item = Line<'a>> + use<'a> {
        let (mut rest, mut left) = (Some(self.lines), self.questions);
        let bucket = format!("bucket {} ", self.epoch).into_bytes();
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let (line, after) = line(rest?, &bucket)?;
            rest = match after {
                [] => None,
                [b'\n', after @ ..] => Some(after),
                _ => return None,
            };
            // There is more than was asked for.
            (left > 0 || rest.is_none()).then_some(line)
        })
    }
}

/// The first line, and what comes after it. Numbers of a bucket are bytes of any kind, so their end is
/// where there are as many as it takes.
fn line<'a>(lines: &'a [u8], bucket: &[u8]) -> Option<(Line<'a>, &'a [u8])> {
    if let Some(numbers) = lines.strip_prefix(bucket) {
        let (numbers, after) = numbers.split_at_checked(2 * NUMBER)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let (full, part) = numbers.split_at(NUMBER);
        return Some((Line::Bucket(number(full), number(part)), after));
    }
    let end = lines.iter().position(|byte| *byte == b'\n').unwrap_or(lines.len());
    let (text, after) = lines.split_at(end);
    Some((Line::Text(str::from_utf8(text).ok()?), after))
}

const MILLION: u64 = 1_000_000;

/// Bytes of a number in the text of a bucket.
const NUMBER: usize = 5;

/// Reads the answer to a question about the key of that name.
pub(super) fn read(line: Line<'_>, answers: &Answers<'_>, ask: &Ask, name: &str) -> Answer {
    let garbled = |reason: &str| StoreError::Garbled { name: name.into(), reason: reason.into() };
    let text = match line {
        Line::Text(text) => text,
        Line::Bucket(..) => "a time that cannot be",
    };
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Answer::Said(match word {
        "1" => Err(StoreError::Overtaken),
        "2" if rest == NOT_NUMBERS => Err(garbled(rest)),
        "2" if rest == OLDER => Err(StoreError::Older { name: name.into(), within: kept(ask) }),
        "2" => Err(StoreError::WrongType { name: name.into() }),
        "3" => match rest.parse().map(wall) {
            Ok(at) if ask.budget().tick_at(at).is_some_and(|at| at < Tick::MAX) => {
                return Answer::OtherWindow(at);
            }
            // There is no window beyond the time that the budget counts in: to ask about one would have no end.
            _ => Err(garbled(text)),
        },
        "4" => Ok(Reply::Forgotten(rest == "1")),
        _ => {
            let numbers = match line {
                Line::Text(_) => numbers(word, rest, answers, ask),
                Line::Bucket(full, part) => plain([full, part], answers, ask),
            };
            let grant = numbers.and_then(|numbers| grant(numbers, answers, ask));
            grant.map(Reply::Grant).ok_or_else(|| garbled(text))
        }
    })
}

/// How long a key is kept after it was last written, which is as long as former versions kept it.
fn kept(ask: &Ask) -> Duration {
    let form = ask.budget().form().ok().flatten();
    form.map_or(Duration::ZERO, |form| form.kept(ask.budget()))
}

/// So many whole numbers, separated by spaces.
struct Numbers<const N: usize>([i64; N]);

impl<const N: usize> Numbers<N> {
    fn read(text: &str) -> Option<Self> {
        let mut numbers = [0; N];
        let mut words = text.split(' ');
        for number in &mut numbers {
            *number = words.next()?.parse().ok()?;
        }
        words.next().is_none().then_some(Self(numbers))
    }
}

/// What a script wrote down about a question; or, where nothing is lent, neither now nor before, the
/// text that it found under the key.
fn numbers(word: &str, rest: &str, answers: &Answers<'_>, ask: &Ask) -> Option<[i64; 12]> {
    let (first, second) = match word {
        "0" => return record(rest),
        "window" => {
            let Numbers([_, _, _, count, _]) = Numbers::read(rest)?;
            (count, 0)
        }
        "sliding" => {
            let Numbers([_, _, _, last, this, _]) = Numbers::read(rest)?;
            (last, this)
        }
        _ => return None,
    };
    plain([u64::try_from(first).ok()?, u64::try_from(second).ok()?], answers, ask)
}

/// What was written down. Of a log, of which nothing is lent, the last four are left out.
fn record(text: &str) -> Option<[i64; 12]> {
    if let Some(Numbers(all)) = Numbers::read(text) {
        return Some(all);
    }
    let Numbers([at, first, second, cost, lent, escrow, began, tokens]) = Numbers::read(text)?;
    Some([at, first, second, cost, lent, escrow, began, tokens, 0, 0, 0, 0])
}

/// The same about a question that was asked once, from what was found.
fn plain(found: [u64; 2], answers: &Answers<'_>, ask: &Ask) -> Option<[i64; 12]> {
    let micros = answers.now.as_unix_nanos() / 1_000;
    let signed = |number: u64| i64::try_from(number).ok();
    let [first, second] = found.map(signed);
    Some([
        signed(micros)?,
        first?,
        second?,
        signed(clamped(ask.exchange().cost))?,
        0,
        0,
        -1,
        0,
        0,
        0,
        0,
        0,
    ])
}

fn grant(numbers: [i64; 12], answers: &Answers<'_>, ask: &Ask) -> Option<Grant> {
    let [at, first, second, cost, lent, escrow, began, tokens, promised, all_in, lanes, turn] =
        numbers;
    let unsigned = |number: i64| u64::try_from(number).ok();
    let (at, first, second) = (unsigned(at)?, unsigned(first)?, unsigned(second)?);
    let (cost, lent, escrow) = (unsigned(cost)?, unsigned(lent)?, unsigned(escrow)?);
    let (budget, epoch) = (ask.budget(), answers.epoch);
    let lender = match budget.kind() {
        Kind::Lent(lender) => lender,
        Kind::Log(rule) => {
            let found = Found { at, spent: first, last: second, fits: lent == 1, retry: escrow };
            let decision = of_log(*rule, &found, ask.exchange().cost);
            return Some(unremembered(ask, epoch, decision, wall(at)));
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
    let nanos = |number: i64| unsigned(number).map(Duration::from_nanos);
    let promise =
        Promise { tokens: unsigned(promised)?, all_in: nanos(all_in)?, lanes: unsigned(lanes)? };
    let turn = nanos(turn)?;
    let record = Record { now, state, cost, lent, escrow, held, promise, turn, epoch };
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

/// What scripts say of something that looks like ours.
const NOT_NUMBERS: &str = "no number";
const OLDER: &str = "an older version";

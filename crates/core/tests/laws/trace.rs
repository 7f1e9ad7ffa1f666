//! The requests that laws are tried with: at times and costs where things happen.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Decision, Rate, Step, Tick, Word};

use crate::subject::Subject;

/// So many times 400 cases, unless `PROPTEST_CASES` says how many.
pub(crate) fn cases(times: u32) -> ProptestConfig {
    ProptestConfig::with_cases(400 * times)
}

/// One request: so long after the last one, at such a cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) pause: Pause,
    pub(crate) cost: Cost,
    /// How far the clock is behind, for this request alone.
    pub(crate) behind: Option<Pause>,
}

/// How long after the last request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pause {
    Nanos(u64),
    /// So many 2^16ths of the quota's period.
    Period(u32),
    /// So many 2^16ths of the time one token takes to come back.
    Token(u32),
    /// Exactly as long as the last denial said, or a nanosecond less.
    Retry,
    BeforeRetry,
    /// Until the whole limit is back, or a nanosecond less.
    Reset,
    BeforeReset,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Cost {
    Tokens(u64),
    /// So many 2^16ths of the capacity.
    Share(u16),
    /// All that remains, and one more.
    Remaining,
    OneMore,
    Capacity,
    Beyond,
}

/// What one request met.
pub(crate) struct Visit {
    pub(crate) before: Word,
    pub(crate) now: Tick,
    pub(crate) cost: u64,
    pub(crate) step: Step,
}

impl Visit {
    pub(crate) fn spent(&self) -> bool {
        self.cost > 0 && self.step.decision.is_allowed()
    }
}

/// Runs the requests one after the other, and shows each with its answer.
pub(crate) fn walk(
    subject: &Subject,
    start: Tick,
    requests: &[Request],
    mut visit: impl FnMut(&Visit) -> Result<(), TestCaseError>,
) -> Result<Word, TestCaseError> {
    let (mut word, mut front) = (Word::REST, start);
    let mut last = subject.peek(word, front);
    for request in requests {
        front = front.after(request.pause.length(subject.rate(), &last));
        let now = earlier(
            front,
            request.behind.map_or(Duration::ZERO, |by| by.length(subject.rate(), &last)),
        );
        let cost = request.cost.tokens(subject.peek(word, now));
        let step = subject.step(word, now, cost);
        visit(&Visit { before: word, now, cost, step })?;
        (word, last) = (step.word, step.decision);
    }
    Ok(word)
}

/// The tick so long before, or the first of all.
pub(crate) fn earlier(tick: Tick, by: Duration) -> Tick {
    Tick::ZERO.after(tick.since(Tick::ZERO).saturating_sub(by))
}

impl Pause {
    /// Any number makes a pause, and small ones simple pauses: building them so is faster by far
    /// than choosing among strategies.
    fn numbered(number: u64) -> Self {
        const YEAR: u64 = 365 * 86_400 * 1_000_000_000;
        let (kind, amount) = (number % 22, number / 22);
        let share = (amount % (3 << 16)) as u32;
        match kind {
            0..4 => Self::Nanos(0),
            4..6 => Self::Nanos(1 + amount % 3),
            6..10 => Self::Token(share),
            10..14 => Self::Period(share),
            14 => Self::Nanos(amount % YEAR),
            15..18 => Self::Retry,
            18..20 => Self::BeforeRetry,
            20 => Self::Reset,
            _ => Self::BeforeReset,
        }
    }

    pub(crate) fn length(self, rate: Rate, last: &Decision) -> Duration {
        let retry = last.retry_after().unwrap_or_default();
        let period = rate.period().as_duration().as_nanos();
        let nanos = match self {
            Self::Nanos(nanos) => u128::from(nanos),
            Self::Period(share) => (period * u128::from(share)) >> 16,
            Self::Token(share) => ((period * u128::from(share)) >> 16) / u128::from(rate.count()),
            Self::Retry => retry.as_nanos(),
            Self::BeforeRetry => retry.as_nanos().saturating_sub(1),
            Self::Reset => last.reset_after().as_nanos(),
            Self::BeforeReset => last.reset_after().as_nanos().saturating_sub(1),
        };
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Cost {
    fn numbered(number: u64) -> Self {
        let (kind, amount) = (number % 19, number / 19);
        match kind {
            0..4 => Self::Tokens(1),
            4..7 => Self::Tokens(2 + amount % 4),
            7 => Self::Tokens(0),
            8..12 => Self::Share((amount % (1 << 16)) as u16),
            12..14 => Self::Remaining,
            14..16 => Self::OneMore,
            16 => Self::Capacity,
            17 => Self::Beyond,
            _ => Self::Tokens(u64::MAX),
        }
    }

    /// The cost of a request to which the limit would say `peek`.
    pub(crate) fn tokens(self, peek: Decision) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Share(share) => ((u128::from(peek.limit()) * u128::from(share)) >> 16) as u64,
            Self::Remaining => peek.remaining(),
            Self::OneMore => peek.remaining() + 1,
            Self::Capacity => peek.limit(),
            Self::Beyond => peek.limit() + 1,
        }
    }
}

pub(crate) fn requests(most: usize) -> impl Strategy<Value = Vec<Request>> {
    let request = [any::<u64>(), any::<u64>()];
    let request = request.prop_map(|[pause, cost]| Request {
        pause: Pause::numbered(pause),
        cost: Cost::numbered(cost),
        behind: None,
    });
    prop::collection::vec(request, 1..most)
}

/// Requests whose clock is behind now and then.
pub(crate) fn stumbling(most: usize) -> impl Strategy<Value = Vec<Request>> {
    let request = [any::<u64>(), any::<u64>(), any::<u64>()];
    let request = request.prop_map(|[pause, cost, behind]| Request {
        pause: Pause::numbered(pause),
        cost: Cost::numbered(cost),
        behind: (behind % 5 > 2).then(|| Pause::numbered(behind / 5)),
    });
    prop::collection::vec(request, 1..most)
}

pub(crate) fn pauses() -> impl Strategy<Value = Pause> {
    any::<u64>().prop_map(Pause::numbered)
}

pub(crate) fn costs() -> impl Strategy<Value = Cost> {
    any::<u64>().prop_map(Cost::numbered)
}

/// Where a trace begins: at the clock's beginning, anywhere, or close to its end.
pub(crate) fn starts() -> impl Strategy<Value = Tick> {
    const END: u64 = Tick::MAX.as_nanos();
    prop_oneof![
        2 => Just(0),
        2 => 0..1_000_000_000u64,
        4 => 0..END / 2,
        1 => END - 1_000_000_000..=END,
    ]
    .prop_map(Tick::from_nanos)
}

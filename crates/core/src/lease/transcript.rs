//! For a store that keeps its books outside of this process, and so follows the rules of lending in
//! a language of its own: what it wrote down about an exchange, made an answer here.

use std::num::NonZeroU32;
use std::time::Duration;

use super::budget::{Balance, Budget};
use super::exchange::{Exchange, Grant, LeaseId, Promise};
use super::lender::Lender;
use super::terms::Terms;
use crate::algorithm::{Machine, Phase, State};
use crate::time::Tick;
use crate::word::Word;

/// What such a store says of one exchange: what it found and what it did, and nothing that can be
/// worked out from that.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Anchor, Limit, Phase, State, Tick};
/// use tollgate_core::lease::{Exchange, LeaseId, Lender, Promise, Record};
/// let limit = Limit::fixed_window("1k/s")?;
/// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
/// let record = Record {
///     now: Tick::ZERO,
///     state: Some(State::Window { count: 10 }),
///     cost: 5,
///     lent: 0,
///     escrow: 0,
///     held: None,
///     promise: Promise::NOTHING,
///     turn: Duration::ZERO,
///     epoch: 0,
/// };
/// let grant = lender.grant(&Exchange::once(5), &record, Phase::default()).expect("it makes sense");
/// assert_eq!(grant.decision.remaining(), 985);
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When the exchange was first answered, by the store's clock.
    pub now: Tick,
    /// The balance before anything was spent or lent, and after all was settled. `None` for permits,
    /// and for a key that has its whole budget.
    pub state: Option<State>,
    /// What the request that waits costs.
    pub cost: u64,
    /// What was lent, the cost of permits included.
    pub lent: u64,
    /// All that was lent and not settled afterwards.
    pub escrow: u64,
    /// The lease that the node has from now on, and all that it holds of it. `None` if the store
    /// does not remember it.
    pub held: Option<(LeaseId, u64)>,
    /// What of that is not in yet.
    pub promise: Promise,
    /// After how long it is the node's turn to ask again.
    pub turn: Duration,
    /// The store's memory.
    pub epoch: u64,
}

impl Lender {
    /// The answer to an exchange, from what the store wrote down about it. `None` if that makes no
    /// sense.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use tollgate_core::{Phase, Tick, lease::{Exchange, Lender, Promise, Record}};
    /// let lender = Lender::of_permits(NonZeroU32::MIN, Duration::ZERO);
    /// let (promise, turn) = (Promise::NOTHING, Duration::ZERO);
    /// let record = Record {
    ///     now: Tick::ZERO, state: None, cost: 1, lent: 0, escrow: 1, held: None, promise, turn, epoch: 0,
    /// };
    /// let grant = lender.grant(&Exchange::once(1), &record, Phase::default()).expect("it makes sense");
    /// assert!(!grant.decision.is_allowed());
    /// ```
    pub fn grant(&self, exchange: &Exchange, record: &Record, phase: Phase) -> Option<Grant> {
        let word = match (&self.budget, record.state) {
            (Budget::Tokens(machine), Some(state)) => machine.word(state, record.now, phase)?,
            _ => Word::REST,
        };
        let mut balance = Balance { word, phase, escrow: record.escrow };
        let now = record.now;
        let decision = match self.budget {
            Budget::Tokens(_) => {
                let decision = self.budget.spend(&mut balance, now, record.cost);
                match record.lent {
                    0 => decision,
                    lent => {
                        self.budget.take(&mut balance, now, lent);
                        decision.with_remaining_of(self.budget.spend(&mut balance, now, 0))
                    }
                }
            }
            Budget::Permits(_) => {
                let beyond = if record.lent < record.cost { u64::MAX } else { 0 };
                self.budget.spend(&mut balance, now, beyond)
            }
        };
        let (sequence, at) = (exchange.sequence, self.anchor.wall_at(now));
        let Some((lease, tokens)) = record.held else {
            let lease = LeaseId { epoch: record.epoch, ..self.lease_id(now) };
            let (span, promise, turn) = (Duration::ZERO, Promise::NOTHING, Duration::ZERO);
            return Some(Grant { sequence, lease, tokens: 0, span, promise, turn, decision, at });
        };
        let end = self.budget.window_end(now, phase);
        let hold = |terms: Terms| end.map_or(Duration::MAX, |end| end.since(now)).min(terms.hold());
        let span = self.terms.map_or(Duration::ZERO, |terms| Terms::span_of(hold(terms)));
        let Record { promise, turn, .. } = *record;
        Some(Grant { sequence, lease, tokens, span, promise, turn, decision, at })
    }

    /// The machine of a limit; `None` for permits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Plan, lease::Lender};
    /// let limit = Limit::fixed_window("9/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// assert_eq!(lender.machine().map(|machine| machine.plan()), Some(Plan::Window { limit: 9 }));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn machine(&self) -> Option<&Machine> {
        match &self.budget {
            Budget::Tokens(machine) => Some(machine),
            Budget::Permits(_) => None,
        }
    }

    /// How many permits there are; `None` for a limit.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use tollgate_core::lease::Lender;
    /// let lender = Lender::of_permits(NonZeroU32::MIN, Duration::ZERO);
    /// assert_eq!(lender.permits(), Some(NonZeroU32::MIN));
    /// ```
    pub const fn permits(&self) -> Option<NonZeroU32> {
        match &self.budget {
            Budget::Tokens(_) => None,
            Budget::Permits(max) => Some(*max),
        }
    }
}

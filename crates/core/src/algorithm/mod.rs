//! The algorithms: pure state machines, `step(state, now, cost) -> (state, decision)`.
//!
//! Those with a state of fixed size keep it in a [`Word`] and are reached through [`Machine`];
//! [`Log`] and [`Permits`] have a state that grows with the limit, and stand for themselves.

mod bucket;
mod common_bucket;
mod fixed_window;
mod grid;
mod leaky_bucket;
mod permits;
mod sliding_counter;
mod sliding_log;
mod token_bucket;
mod transcript;
mod usual;

pub use common_bucket::CommonBucket;
pub use permits::{Permit, Permits};
pub use sliding_log::{Log, LogRule};
pub use transcript::{Plan, State};
pub use usual::{Usual, UsualAsk};

pub(crate) use bucket::Bucket;
pub(crate) use fixed_window::FixedWindow;
pub(crate) use grid::{CalendarStart, Grid};
pub(crate) use leaky_bucket::Shape;
pub(crate) use sliding_counter::SlidingCounter;
pub(crate) use token_bucket::TokenBucket;

use crate::decision::Decision;
use crate::time::Tick;
use crate::word::Word;

/// What one step of a [`Machine`] did.
///
/// ```
/// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
/// let machine = Limit::token_bucket("2/s")?.machine(Anchor::default()).expect("a word is enough");
/// let step = machine.step(Word::REST, Tick::ZERO, 1, Phase::default());
/// assert!(step.decision.is_allowed());
/// assert_ne!(step.word, Word::REST);
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The state afterwards; the same as before if nothing was spent.
    pub word: Word,
    /// The answer.
    pub decision: Decision,
}

/// The step of one algorithm, at one time and for one cost: see [`Machine::step_with`].
///
/// ```
/// use tollgate_core::{BoundStep, Decision, Word};
/// fn of_a_new_key(step: &impl BoundStep) -> Decision {
///     step.step(Word::REST).decision
/// }
/// ```
pub trait BoundStep {
    /// As [`Machine::step`].
    fn step(&self, word: Word) -> Step;
}

/// Somebody to whom [`Machine::step_with`] hands a step.
///
/// ```
/// use tollgate_core::{BoundStep, StepUser, Word};
/// struct Once(Word);
/// impl StepUser for Once {
///     type Output = bool;
///     fn with(self, step: &impl BoundStep) -> bool {
///         step.step(self.0).decision.is_allowed()
///     }
/// }
/// ```
pub trait StepUser {
    /// What comes of it.
    type Output;

    /// Uses the step.
    fn with(self, step: &impl BoundStep) -> Self::Output;
}

/// A machine with all that a step needs beside the state. No closure: those are not always
/// inlined.
struct Bound<'a, M> {
    machine: &'a M,
    now: Tick,
    cost: u64,
    phase: Phase,
}

impl<M: Steps> BoundStep for Bound<'_, M> {
    #[inline(always)]
    fn step(&self, word: Word) -> Step {
        self.machine.step(word, self.now, self.cost, self.phase)
    }
}

struct Unlimited;

impl BoundStep for Unlimited {
    fn step(&self, word: Word) -> Step {
        Step { word, decision: Decision::unlimited() }
    }
}

/// Budget taken ahead of need by somebody who will spend it piece by piece.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
/// let machine = Limit::fixed_window("10k/s")?.machine(Anchor::default()).expect("a word is enough");
/// let loan = machine.lend(Word::REST, Tick::ZERO, 8, Phase::default()).expect("there is plenty");
/// assert_eq!(loan.tokens, 8);
/// assert_eq!(loan.until, Tick::from_nanos(999_999_999), "the last tick of its window");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loan {
    /// The lender's state afterwards.
    pub word: Word,
    /// How many tokens were lent, all spent as far as the lender is concerned.
    pub tokens: u64,
    /// The last tick at which they may be used.
    pub until: Tick,
    /// What the lender says to a request that spends the whole loan at once.
    pub decision: Decision,
}

impl Loan {
    /// What a borrower with `left` tokens of the loan says: no less than what it holds, no more
    /// than what there is.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
    /// let machine = Limit::fixed_window("10k/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let loan = machine.lend(Word::REST, Tick::ZERO, 8, Phase::default()).expect("there is plenty");
    /// assert_eq!(loan.decision_with(7).remaining(), 9_999);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline]
    pub const fn decision_with(&self, left: u64) -> Decision {
        self.decision.with_extra(left)
    }
}

/// Where in its window a key stands, so that not all windows end at once: a hash of the key.
/// Limits that are not jittered ignore it.
///
/// ```
/// use tollgate_core::Phase;
/// assert_eq!(Phase::default(), Phase(0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase(pub u64);

/// A limit made ready to decide: see [`Limit::machine`](crate::Limit::machine).
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
///
/// let machine = Limit::token_bucket("1/s")?.machine(Anchor::default()).expect("a word is enough");
/// let first = machine.step(Word::REST, Tick::ZERO, 1, Phase::default());
/// let second = machine.step(first.word, Tick::ZERO, 1, Phase::default());
/// assert!(first.decision.is_allowed());
/// assert_eq!(second.decision.retry_after(), Some(Duration::from_secs(1)));
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Machine(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Unlimited,
    TokenBucket(TokenBucket),
    Shape(Shape),
    FixedWindow(FixedWindow),
    SlidingCounter(SlidingCounter),
}

/// What every machine can do. `now` may stand still or run backwards: that adds no budget.
pub(crate) trait Steps {
    /// Spends `cost` if the limit allows it.
    fn step(&self, word: Word, now: Tick, cost: u64, phase: Phase) -> Step;

    /// The stricter of two states, in every respect. Words order by time, and of two moments at
    /// which a bucket is full, or of two counts of one window, the higher is the stricter.
    fn join(&self, one: Word, two: Word, _: Phase) -> Word {
        one.max(two)
    }

    /// Gives back `cost` that was spent earlier, up to the whole limit.
    fn refund(&self, word: Word, now: Tick, cost: u64, phase: Phase) -> Word;

    /// Whether `word` is of the window in which `cost` was spent at `then`, and that still lasts.
    fn is_recent(&self, _: Word, _: Tick, _: Tick, _: u64, _: Phase) -> bool {
        false
    }

    /// Takes back `cost` that was spent at `then`, as far as time has not given it back since.
    fn undo(&self, word: Word, then: Tick, now: Tick, cost: u64, phase: Phase) -> Word {
        match self.is_recent(word, then, now, cost, phase) {
            true => self.refund(word, now, cost, phase),
            false => word,
        }
    }

    /// When a key that spent all it could at `now` has everything back, whatever its phase.
    fn rested_by(&self, now: Tick) -> Tick;

    /// Lends up to `want` tokens to a single borrower.
    fn lend(&self, word: Word, now: Tick, want: u64, phase: Phase) -> Option<Loan>;

    /// The state that `word` has come to at `now` if so many tokens of it were lent all the time:
    /// time does not give back what somebody still holds.
    fn held_down(&self, word: Word, _: Tick, _: u64) -> Word {
        word
    }

    /// How many tokens are left if those count that come in soon, at most `ahead` of them, and none
    /// that could not come in because so many are `lent`.
    fn left_ahead(&self, _: Word, _: Tick, _ahead: u64, _lent: u64) -> u64 {
        0
    }

    /// Spends tokens that are left, or [will be](Self::left_ahead).
    fn overdraw(&self, word: Word, now: Tick, tokens: u64, phase: Phase) -> Word {
        self.step(word, now, tokens, phase).word
    }

    /// In how many nanoseconds all that is spent has come in.
    fn all_in(&self, _: Word, _: Tick) -> u64 {
        0
    }

    /// How many nanoseconds so many tokens take to come in, if they do one by one.
    fn time_of(&self, _tokens: u64) -> u64 {
        0
    }

    /// How many tokens take so many nanoseconds to come in, or more.
    fn tokens_of(&self, _nanos: u64) -> u64 {
        0
    }

    /// The end of the window that `now` lies in, if there are windows.
    fn window_end(&self, _: Tick, _: Phase) -> Option<Tick> {
        None
    }
}

macro_rules! dispatch {
    ($self:ident, $machine:ident => $body:expr, unlimited => $unlimited:expr) => {
        match &$self.0 {
            Kind::TokenBucket($machine) => $body,
            Kind::FixedWindow($machine) => $body,
            Kind::SlidingCounter($machine) => $body,
            Kind::Shape($machine) => $body,
            Kind::Unlimited => $unlimited,
        }
    };
}

impl Machine {
    /// Whether there is no limit at all, so that no state is worth keeping.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit};
    /// let machine = Limit::token_bucket("unlimited")?.machine(Anchor::default()).expect("no state");
    /// assert!(machine.is_unlimited());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline]
    pub const fn is_unlimited(&self) -> bool {
        matches!(self.0, Kind::Unlimited)
    }

    /// Spends `cost` if the limit allows it. A cost of 0 spends nothing, is always allowed, and
    /// tells what remains. A denial spends nothing.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, Retry, Tick, Word};
    /// let machine = Limit::token_bucket("10/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let step = machine.step(Word::REST, Tick::ZERO, 11, Phase::default());
    /// assert_eq!(step.decision.retry(), Some(Retry::Never), "eleven never fit into ten");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn step(&self, word: Word, now: Tick, cost: u64, phase: Phase) -> Step {
        dispatch!(self, machine => machine.step(word, now, cost, phase),
            unlimited => Unlimited.step(word))
    }

    /// Hands [`step`](Self::step), at one time and for one cost, to `user`, which is compiled for
    /// each algorithm: for the one place where decisions are made by the million.
    ///
    /// ```
    /// use tollgate_core::{Anchor, BoundStep, Limit, Phase, StepUser, Tick, Word};
    ///
    /// struct Twice;
    /// impl StepUser for Twice {
    ///     type Output = Word;
    ///     fn with(self, step: &impl BoundStep) -> Word {
    ///         step.step(step.step(Word::REST).word).word
    ///     }
    /// }
    /// let machine = Limit::fixed_window("10/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let word = machine.step_with(Tick::ZERO, 1, Phase::default(), Twice);
    /// assert_eq!(word, machine.step(Word::REST, Tick::ZERO, 2, Phase::default()).word);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline(always)]
    pub fn step_with<U: StepUser>(&self, now: Tick, cost: u64, phase: Phase, user: U) -> U::Output {
        dispatch!(self, machine => user.with(&Bound { machine, now, cost, phase }),
            unlimited => user.with(&Unlimited))
    }

    /// The machine as a [`Usual`] one. If it is another, that never answers.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Tick};
    /// let machine = Limit::token_bucket("100/min")?.machine(Anchor::default()).expect("a word is enough");
    /// assert!(machine.usual().at(Tick::ZERO, 1).is_some());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn usual(&self) -> Usual {
        match &self.0 {
            Kind::TokenBucket(bucket) => bucket.0.usual(),
            _ => Usual::NONE,
        }
    }

    /// The state of several keys that are to be counted as one, of which one has the state `one` and
    /// the others have `two`: it allows nothing that either would not. Both must have the same phase.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
    /// let machine = Limit::token_bucket("10/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let spent = |cost| machine.step(Word::REST, Tick::ZERO, cost, Phase::default()).word;
    /// assert_eq!(machine.join(spent(7), spent(3), Phase::default()), spent(7));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn join(&self, one: Word, two: Word, phase: Phase) -> Word {
        dispatch!(self, machine => machine.join(one, two, phase), unlimited => one.max(two))
    }

    /// Gives back `cost` that was spent earlier. What time has given back already is not given
    /// twice: the limit never becomes more than full.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
    /// let machine = Limit::token_bucket("10/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let spent = machine.step(Word::REST, Tick::ZERO, 4, Phase::default()).word;
    /// let word = machine.refund(spent, Tick::ZERO, 3, Phase::default());
    /// assert_eq!(machine.step(word, Tick::ZERO, 0, Phase::default()).decision.remaining(), 9);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn refund(&self, word: Word, now: Tick, cost: u64, phase: Phase) -> Word {
        dispatch!(self, machine => machine.refund(word, now, cost, phase), unlimited => word)
    }

    /// Takes back `cost` that was spent at `then`, as if it had never been, as far as time cannot
    /// have given it back since: a bucket keeps as much of it as comes back between `then` and
    /// `now`, a window that has ended keeps all. It never favours the client.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
    /// let machine = Limit::token_bucket("10/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let spent = machine.step(Word::REST, Tick::ZERO, 1, Phase::default()).word;
    /// let (now, late) = (Tick::from_nanos(5), Tick::from_nanos(100_000_000));
    /// assert!(machine.undo(spent, Tick::ZERO, now, 1, Phase::default()).is_at_rest(now));
    /// assert_eq!(machine.undo(spent, Tick::ZERO, late, 1, Phase::default()), spent);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn undo(&self, word: Word, then: Tick, now: Tick, cost: u64, phase: Phase) -> Word {
        dispatch!(self, machine => machine.undo(word, then, now, cost, phase), unlimited => word)
    }

    /// The state of a key that has spent `spent` at `since`, or as much as the limit allows: of one
    /// that comes from another limit, where it had spent so much.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, Tick};
    /// let machine = Limit::token_bucket("10/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let left = |spent| {
    ///     let word = machine.rebased(Tick::ZERO, spent, Phase::default());
    ///     machine.step(word, Tick::ZERO, 0, Phase::default()).decision.remaining()
    /// };
    /// assert_eq!((left(0), left(4), left(400)), (10, 6, 0));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn rebased(&self, since: Tick, spent: u64, phase: Phase) -> Word {
        let limit = self.step(Word::REST, since, 0, phase).decision.limit();
        self.step(Word::REST, since, spent.min(limit), phase).word
    }

    /// When everything that can be spent at `now` is back at the latest, whatever the phase.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Tick};
    /// let machine = Limit::token_bucket("10/min")?.machine(Anchor::default()).expect("a word is enough");
    /// assert_eq!(machine.rested_by(Tick::ZERO), Tick::ZERO.after(Duration::from_secs(60)));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn rested_by(&self, now: Tick) -> Tick {
        dispatch!(self, machine => machine.rested_by(now), unlimited => now)
    }

    /// Lends up to `want` tokens to a borrower that spends them by itself, if there is so much
    /// that nobody will miss them. Whatever the borrower does with them before
    /// [`until`](Loan::until), the limit holds.
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
    /// let machine = Limit::token_bucket("10/s")?.machine(Anchor::default()).expect("a word is enough");
    /// let loan = machine.lend(Word::REST, Tick::ZERO, 8, Phase::default());
    /// assert_eq!(loan, None, "ten are too few to lend from");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn lend(&self, word: Word, now: Tick, want: u64, phase: Phase) -> Option<Loan> {
        dispatch!(self, machine => machine.lend(word, now, want, phase), unlimited => None)
    }

    pub(crate) fn held_down(&self, word: Word, now: Tick, tokens: u64) -> Word {
        dispatch!(self, machine => machine.held_down(word, now, tokens), unlimited => word)
    }

    pub(crate) fn left_ahead(&self, word: Word, now: Tick, ahead: u64, lent: u64) -> u64 {
        dispatch!(self, machine => machine.left_ahead(word, now, ahead, lent), unlimited => 0)
    }

    pub(crate) fn overdraw(&self, word: Word, now: Tick, tokens: u64, phase: Phase) -> Word {
        dispatch!(self, machine => machine.overdraw(word, now, tokens, phase), unlimited => word)
    }

    pub(crate) fn all_in(&self, word: Word, now: Tick) -> u64 {
        dispatch!(self, machine => machine.all_in(word, now), unlimited => 0)
    }

    pub(crate) fn time_of(&self, tokens: u64) -> u64 {
        dispatch!(self, machine => machine.time_of(tokens), unlimited => 0)
    }

    pub(crate) fn tokens_of(&self, nanos: u64) -> u64 {
        dispatch!(self, machine => machine.tokens_of(nanos), unlimited => 0)
    }

    pub(crate) fn window_end(&self, now: Tick, phase: Phase) -> Option<Tick> {
        dispatch!(self, machine => machine.window_end(now, phase), unlimited => None)
    }
}

/// A loan is at most this part of what is left, so that those who do not borrow are not starved.
pub(crate) const LOAN_SHARE: u64 = 64;

/// A loan is at most what comes back in so many nanoseconds: a borrower that ends without having
/// used it costs others no more than that. Whoever comes back more slowly has no need to lend,
/// because nobody can spend from it fast for long.
pub(crate) const LOAN_TIME: u64 = 1_000_000;

/// What of a window's limit comes back in [`LOAN_TIME`], if the window lasts for so much longer.
pub(crate) fn soon_back(limit: u64, lasts: u64) -> u64 {
    let part = u128::from(limit) * u128::from(LOAN_TIME) / u128::from(lasts.max(LOAN_TIME));
    // At most the limit.
    part as u64
}

//! The most common decision, made ready: a token bucket of a round rate, asked for a cost that
//! fits into it.

use crate::algorithm::Step;
use crate::decision::{Decision, Room};
use crate::time::Tick;
use crate::word::Word;

/// A token bucket whose words need no conversion, with nothing in it that a decision does not
/// need: small enough to be copied, and to be inlined where decisions are made by the million.
///
/// ```
/// use tollgate_core::{Anchor, Limit, Tick};
/// let machine = Limit::token_bucket("100/min")?.machine(Anchor::default()).expect("a word is enough");
/// assert!(machine.usual().at(Tick::ZERO, 1).is_some());
/// assert!(machine.usual().at(Tick::ZERO, 101).is_none(), "more than ever fits");
///
/// let machine = Limit::sliding_window("100/min")?.machine(Anchor::default()).expect("a word is enough");
/// assert!(machine.usual().at(Tick::ZERO, 1).is_none(), "another algorithm");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// What the bucket holds, in tokens; 0 if the machine is not a usual one.
    pub(super) tokens: u64,
    /// Units of a word until one token is back.
    pub(super) interval: u64,
    /// What the bucket holds, in units of a word.
    pub(super) capacity: u64,
}

/// A [`Usual`] machine at one time, asked for one cost: for any number of keys.
///
/// ```
/// use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
/// let machine = Limit::token_bucket("2/s")?.machine(Anchor::default()).expect("a word is enough");
/// let ask = machine.usual().at(Tick::ZERO, 1).expect("nothing is more usual");
/// assert_eq!(ask.step(Word::REST), machine.step(Word::REST, Tick::ZERO, 1, Phase::default()));
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct UsualAsk {
    now: u64,
    /// A bucket that is full later than this is one that cannot spare the price.
    end: u64,
    price: u64,
    tokens: u64,
    interval: u64,
}

impl Usual {
    /// What is no usual machine.
    pub(super) const NONE: Self = Self { tokens: 0, interval: 0, capacity: 0 };

    /// Ready to decide about requests of `cost` at `now`. `None` if the machine is not a usual
    /// one, or the cost is nothing, or more than the bucket ever holds.
    ///
    /// ```
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # let machine = Limit::token_bucket("2/s")?.machine(Anchor::default()).expect("a word is enough");
    /// assert!(machine.usual().at(Tick::ZERO, 0).is_none());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline(always)]
    pub const fn at(&self, now: Tick, cost: u64) -> Option<UsualAsk> {
        if cost.wrapping_sub(1) >= self.tokens {
            return None;
        }
        let now = Word::at(now).bits();
        Some(UsualAsk {
            now,
            end: now + self.capacity,
            price: cost * self.interval,
            tokens: self.tokens,
            interval: self.interval,
        })
    }
}

impl UsualAsk {
    /// As [`Machine::step`](crate::Machine::step).
    ///
    /// ```
    /// # use tollgate_core::{Anchor, Limit, Tick, Word};
    /// # let machine = Limit::token_bucket("2/s")?.machine(Anchor::default()).expect("a word is enough");
    /// # let ask = machine.usual().at(Tick::ZERO, 1).expect("nothing is more usual");
    /// assert!(ask.step(Word::REST).decision.is_allowed());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline(always)]
    pub const fn step(&self, word: Word) -> Step {
        let turn = if word.bits() > self.now { word.bits() } else { self.now };
        let full = turn + self.price;
        if full <= self.end {
            Step { word: Word::new(full), decision: Decision::allowed(self.room(full)) }
        } else {
            let wait = (full - self.end).div_ceil(Self::PER_NANO);
            Step { word, decision: Decision::denied_for(wait, self.room(turn)) }
        }
    }

    /// What is left when the bucket is full again at `full`.
    #[inline(always)]
    const fn room(&self, full: u64) -> Room {
        Room {
            limit: self.tokens,
            room: self.end.saturating_sub(full),
            unit: self.interval,
            reset: (full - self.now).div_ceil(Self::PER_NANO),
        }
    }

    /// Units of a word in a nanosecond.
    const PER_NANO: u64 = 1 << Word::FRACTION_BITS;
}

//! The most common decision, made ready: a token bucket of a round rate, asked for a cost that
//! fits into it.

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
/// use tollgate_core::{Anchor, Limit, Tick, Word};
/// let machine = Limit::token_bucket("1/s")?.machine(Anchor::default()).expect("a word is enough");
/// let usual = machine.usual();
/// let ask = usual.at(Tick::ZERO, 1).expect("nothing is more usual");
///
/// let spent = ask.spend(Word::REST).expect("a full bucket has one to spare");
/// assert_eq!(ask.allowed(spent).remaining(), 0);
/// assert_eq!(ask.spend(spent), None);
/// assert!(!ask.denied(spent).is_allowed());
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct UsualAsk<'a> {
    // What follows from these is worked out for each state, so that it does not have to be kept
    // while the state is on its way from memory.
    usual: &'a Usual,
    now: u64,
    cost: u64,
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
    /// assert!(machine.usual().at(Tick::ZERO, 0).is_none(), "nothing to decide");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline(always)]
    pub const fn at(&self, now: Tick, cost: u64) -> Option<UsualAsk<'_>> {
        if cost.wrapping_sub(1) >= self.tokens {
            return None;
        }
        Some(UsualAsk { usual: self, now: Word::at(now).bits(), cost })
    }
}

impl UsualAsk<'_> {
    /// The state after spending, if the bucket can spare the cost.
    ///
    /// ```
    /// # use tollgate_core::{Anchor, Limit, Tick, Word};
    /// # let machine = Limit::token_bucket("2/s")?.machine(Anchor::default()).expect("a word is enough");
    /// # let usual = machine.usual();
    /// # let ask = usual.at(Tick::ZERO, 1).expect("nothing is more usual");
    /// assert!(ask.spend(Word::REST).is_some());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline(always)]
    pub const fn spend(&self, word: Word) -> Option<Word> {
        let full = self.turn(word) + self.cost * self.usual.interval;
        if full <= self.end() { Some(Word::new(full)) } else { None }
    }

    /// The answer to a request that [left](Self::spend) the state as `word`.
    ///
    /// ```
    /// # use tollgate_core::{Anchor, Limit, Tick, Word};
    /// # let machine = Limit::token_bucket("2/s")?.machine(Anchor::default()).expect("a word is enough");
    /// # let usual = machine.usual();
    /// # let ask = usual.at(Tick::ZERO, 1).expect("nothing is more usual");
    /// let spent = ask.spend(Word::REST).expect("a full bucket has two to spare");
    /// assert_eq!(ask.allowed(spent).remaining(), 1);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline(always)]
    pub const fn allowed(&self, word: Word) -> Decision {
        Decision::allowed(self.room(word.bits()))
    }

    /// The answer to a request that found the state as `word`, and could not spend.
    ///
    /// ```
    /// # use tollgate_core::{Anchor, Limit, Tick, Word};
    /// # let machine = Limit::token_bucket("1/s")?.machine(Anchor::default()).expect("a word is enough");
    /// # let usual = machine.usual();
    /// # let ask = usual.at(Tick::ZERO, 1).expect("nothing is more usual");
    /// let spent = ask.spend(Word::REST).expect("a full bucket has one to spare");
    /// assert_eq!(ask.denied(spent).retry_after(), Some(std::time::Duration::from_secs(1)));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline(always)]
    pub const fn denied(&self, word: Word) -> Decision {
        let turn = self.turn(word);
        let full = turn + self.cost * self.usual.interval;
        // What is missing fits a word with room to spare, so this is a sum and a shift.
        #[expect(
            clippy::manual_div_ceil,
            reason = "that would also think of numbers that are too large"
        )]
        let wait = (full.saturating_sub(self.end()) + (Word::PER_NANO - 1)) / Word::PER_NANO;
        Decision::denied_for(wait, self.room(turn))
    }

    /// The answer to a request that only looks, and finds the state as `word`: with what is left
    /// before it would spend.
    ///
    /// ```
    /// # use tollgate_core::{Anchor, Limit, Tick, Word};
    /// # let machine = Limit::token_bucket("2/s")?.machine(Anchor::default()).expect("a word is enough");
    /// # let usual = machine.usual();
    /// # let ask = usual.at(Tick::ZERO, 1).expect("nothing is more usual");
    /// assert_eq!(ask.looked(Word::REST).remaining(), 2);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline(always)]
    pub const fn looked(&self, word: Word) -> Decision {
        match self.spend(word) {
            Some(_) => Decision::allowed(self.room(self.turn(word))),
            None => self.denied(word),
        }
    }

    /// A bucket that would be full later than this cannot spare the cost.
    #[inline(always)]
    const fn end(&self) -> u64 {
        self.now + self.usual.capacity
    }

    /// When the bucket is full if nothing is spent.
    #[inline(always)]
    const fn turn(&self, word: Word) -> u64 {
        if word.bits() > self.now { word.bits() } else { self.now }
    }

    /// What is left when the bucket is full again at `full`.
    #[inline(always)]
    const fn room(&self, full: u64) -> Room {
        let Usual { tokens, interval, .. } = *self.usual;
        Room::Time { limit: tokens, spent: full.wrapping_sub(self.now), interval }
    }
}

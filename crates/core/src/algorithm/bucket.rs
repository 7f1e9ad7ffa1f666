//! The arithmetic of buckets: one moment in time says how full a bucket is.
//!
//! ```text
//!             now                           full again (the state)
//!   -----------|-----------------------------|-------------> time
//!              |<------- spent tokens ------>|
//!              |<------------------- capacity ---------------->|
//!              |                             |<--- room left -->|
//! ```
//!
//! A token takes `interval` to come back. The interval of 3 per second is not a whole number of
//! nanoseconds, so time is counted in *grains*: `per_nano` of them make a nanosecond, chosen so
//! that an interval is a whole number of grains and no error can build up. At most 64 grains fit
//! into a word beside the nanoseconds. That is exact for every rate whose interval in nanoseconds
//! is a fraction with a denominator up to 64, which covers all round numbers; the interval of any
//! other rate is rounded up to the next 64th of a nanosecond, never down.

use crate::algorithm::usual::Usual;
use crate::algorithm::{LOAN_SHARE, LOAN_TIME, Loan, Plan};
use crate::decision::{Decision, Room};
use crate::error::LimitError;
use crate::quota::{Quota, Rate};
use crate::time::Tick;
use crate::word::Word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// Grains in a nanosecond: 1 to 64.
    per_nano: u64,
    /// Grains until one token is back.
    interval: u64,
    /// What the bucket holds, in tokens.
    tokens: u64,
    /// What the bucket holds, in grains: `tokens * interval`.
    capacity: u64,
}

/// What spending came to, in grains.
#[derive(Clone, Copy)]
pub(crate) enum Spent {
    /// It fits; the spender's turn comes at `turn`, and afterwards the bucket is full at `full`.
    Fits { now: u64, turn: u64, full: u64 },
    /// It fits later; the bucket is full at `full`.
    Later { now: u64, full: u64, wait: u64 },
    /// It never fits.
    Never { now: u64, full: u64 },
}

impl Bucket {
    /// The longest a bucket may take to fill.
    const MAX_SPAN: u64 = 400 * 86_400 * 1_000_000_000;

    /// The largest there can be, with a token every millisecond.
    pub(crate) const LONGEST: Self = {
        let (per_nano, interval) = (64, 64 * 1_000_000);
        let tokens = Self::MAX_SPAN / 1_000_000;
        Self { per_nano, interval, tokens, capacity: tokens * interval }
    };

    /// A bucket of `tokens` that refills at the quota's rate.
    pub(crate) fn try_new(quota: Quota, rate: Rate, tokens: u64) -> Result<Self, LimitError> {
        let (count, period) = (rate.count(), rate.period().nanos());
        if count > period {
            return Err(LimitError::TooFast { quota });
        }
        let shared = gcd(count, period);
        let (per_nano, interval) = match count / shared {
            // Grains of a 64th of a nanosecond are the units of words, and need no conversion.
            exact @ (1 | 2 | 4 | 8 | 16 | 32 | 64) => (64, period / shared * (64 / exact)),
            exact @ 1..=64 => (exact, period / shared),
            _ => (64, binary_interval(count, period)),
        };
        Self::with_interval(quota, per_nano, interval, tokens)
    }

    /// The same in grains of a 64th of a nanosecond, whatever the rate: the interval is rounded up
    /// to whole ones.
    #[inline]
    pub(crate) fn try_binary(quota: Quota, rate: Rate, tokens: u64) -> Result<Self, LimitError> {
        let (count, period) = (rate.count(), rate.period().nanos());
        if count > period {
            return Err(LimitError::TooFast { quota });
        }
        Self::with_interval(quota, 64, binary_interval(count, period), tokens)
    }

    #[inline]
    fn with_interval(
        quota: Quota,
        per_nano: u64,
        interval: u64,
        tokens: u64,
    ) -> Result<Self, LimitError> {
        let max = Self::MAX_SPAN * per_nano;
        match tokens.checked_mul(interval) {
            // No overflow from here on: a tick is at most 6 years and a capacity 400 days, so a
            // tick plus two capacities is below 2^64 in grains of a 64th of a nanosecond.
            Some(capacity) if capacity <= max => Ok(Self { per_nano, interval, tokens, capacity }),
            _ => Err(Self::too_large(quota, per_nano, interval, tokens)),
        }
    }

    #[cold]
    fn too_large(quota: Quota, per_nano: u64, interval: u64, tokens: u64) -> LimitError {
        let nanos = u128::from(tokens) * u128::from(interval) / u128::from(per_nano);
        LimitError::BurstTooLarge {
            quota,
            takes: std::time::Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)),
            max: std::time::Duration::from_nanos(Self::MAX_SPAN),
            largest: Self::MAX_SPAN * per_nano / interval,
        }
    }

    #[inline(always)]
    pub(crate) fn spend(&self, word: Word, now: Tick, cost: u64) -> Spent {
        let now = self.grains(now);
        let turn = self.unpack(word).max(now);
        if cost > self.tokens {
            return Spent::Never { now, full: turn };
        }
        let full = turn + cost * self.interval;
        match full.checked_sub(now + self.capacity) {
            None | Some(0) => Spent::Fits { now, turn, full },
            Some(wait) => Spent::Later { now, full: turn, wait },
        }
    }

    pub(crate) fn refund(&self, word: Word, cost: u64) -> Word {
        self.pack(self.unpack(word).saturating_sub(cost.saturating_mul(self.interval)))
    }

    /// Takes back `cost` that was spent at `then`, less the time since. Without that, those who
    /// took from the bucket in the meantime would be better off than if it had never been spent:
    /// where the bucket would have been full, and time lost, it was not, and time was not lost.
    pub(crate) fn undo(&self, word: Word, then: Tick, now: Tick, cost: u64) -> Word {
        let passed = self.grains(now).saturating_sub(self.grains(then));
        let left = cost.saturating_mul(self.interval).saturating_sub(passed);
        self.pack(self.unpack(word).saturating_sub(left))
    }

    /// Lends tokens from the bucket.
    ///
    /// A token lent at one time and used at a later one must not come on top of a full bucket:
    /// while the loan runs, the bucket must lack at least what is lent. What the bucket lacks
    /// already (it is full only at `turn`) keeps it so until `turn`; a bucket that lacks nothing
    /// is kept from filling for [`Self::HOLD`], if its tokens come back so fast that this is
    /// nothing to it.
    pub(crate) fn lend(&self, word: Word, now: Tick, want: u64) -> Option<Loan> {
        let now = self.grains(now);
        let hold = Self::HOLD * self.per_nano;
        let mut turn = self.unpack(word).max(now);
        if turn < now + hold && self.interval <= hold / 16 && hold <= self.capacity / LOAN_SHARE {
            turn = now + hold;
        }
        let left = (now + self.capacity).saturating_sub(turn) / self.interval;
        let soon_back = LOAN_TIME * self.per_nano / self.interval;
        let tokens = want.min(left / LOAN_SHARE).min(soon_back);
        if tokens < 2 || turn <= now {
            return None;
        }
        let full = turn + tokens * self.interval;
        let decision = Decision::allowed(self.room(now, full));
        let until = Tick::from_nanos(turn / self.per_nano);
        Some(Loan { word: self.pack(full), tokens, until, decision })
    }

    /// Keeps the bucket from having filled beyond what it holds less `tokens`, at most all of it.
    pub(crate) fn held_down(&self, word: Word, now: Tick, tokens: u64) -> Word {
        let least = self.grains(now) + tokens.min(self.tokens) * self.interval;
        self.pack(self.unpack(word).max(if tokens == 0 { 0 } else { least }))
    }

    /// What is left, and up to `ahead` of the tokens that come in next, as far as nobody has them yet.
    /// With what is `lent` it is no more than the bucket holds: a full one lets nothing come in.
    pub(crate) fn left_ahead(&self, word: Word, now: Tick, ahead: u64, lent: u64) -> u64 {
        let now = self.grains(now);
        let end = now + self.capacity + ahead.min(self.tokens) * self.interval;
        let left = end.saturating_sub(self.unpack(word).max(now)) / self.interval;
        left.min(self.tokens.saturating_sub(lent))
    }

    /// Spends tokens that are left, or come in next: no more than the bucket holds.
    pub(crate) fn overdraw(&self, word: Word, now: Tick, tokens: u64) -> Word {
        match tokens.min(self.tokens) {
            0 => word,
            tokens => self.pack(self.unpack(word).max(self.grains(now)) + tokens * self.interval),
        }
    }

    /// In how many nanoseconds all that is spent has come in.
    pub(crate) fn all_in(&self, word: Word, now: Tick) -> u64 {
        self.nanos(self.unpack(word).saturating_sub(self.grains(now) + self.capacity))
    }

    /// How long so many tokens take to come in, in nanoseconds, rounded up.
    pub(crate) fn time_of(&self, tokens: u64) -> u64 {
        self.nanos(tokens.min(self.tokens) * self.interval)
    }

    /// So many tokens, the last of which comes in when so many nanoseconds are over, or after that.
    pub(crate) fn tokens_of(&self, nanos: u64) -> u64 {
        nanos.saturating_mul(self.per_nano).div_ceil(self.interval)
    }

    /// When a bucket that is empty at `now` is full.
    pub(crate) const fn rested_by(&self, now: Tick) -> Tick {
        Tick::from_nanos(now.as_nanos() + self.nanos(self.capacity))
    }

    /// What is left when the bucket is full again at `full`.
    #[inline(always)]
    pub(crate) const fn room(&self, now: u64, full: u64) -> Room {
        if self.is_binary() {
            return Room::Time { limit: self.tokens, spent: full - now, interval: self.interval };
        }
        let left = (now + self.capacity).saturating_sub(full) / self.interval;
        Room::Tokens { limit: self.tokens, left, reset: self.nanos(full - now) }
    }

    /// The bucket as numbers, for whoever keeps it elsewhere.
    pub(crate) const fn plan(&self) -> Plan {
        let Self { per_nano, interval, tokens, .. } = *self;
        Plan::Bucket { per_nano, interval, tokens }
    }

    /// The word of a bucket that is full at so many nanoseconds and grains; `None` if none can be. An
    /// empty one that lends ahead, or waits for leases to end, is full at most half a minute after its
    /// span. Up to a quarter of the longest more, what is spent and lent next is a word as well.
    pub(crate) const fn word_of(&self, nanos: u64, part: u64) -> Option<Word> {
        let last = Tick::MAX.as_nanos() + Self::MAX_SPAN + Self::MAX_SPAN / 4;
        if nanos > last || part >= self.per_nano {
            return None;
        }
        Some(self.pack(nanos * self.per_nano + part))
    }

    /// What the bucket holds.
    pub(crate) const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Whether grains are the units of words.
    #[inline(always)]
    const fn is_binary(&self) -> bool {
        self.per_nano == 64
    }

    /// The bucket as a usual one, if it is binary.
    pub(crate) const fn usual(&self) -> Usual {
        let Self { interval, tokens, capacity, .. } = *self;
        if self.is_binary() { Usual { tokens, interval, capacity } } else { Usual::NONE }
    }

    /// The moment as a word.
    #[inline(always)]
    pub(crate) const fn pack(&self, grains: u64) -> Word {
        if self.is_binary() {
            return Word::new(grains);
        }
        let (nanos, part) = (grains / self.per_nano, grains % self.per_nano);
        Word::new((nanos << Word::FRACTION_BITS) | part)
    }

    #[inline(always)]
    const fn unpack(&self, word: Word) -> u64 {
        if self.is_binary() {
            return word.bits();
        }
        const PART: u64 = (1 << Word::FRACTION_BITS) - 1;
        (word.bits() >> Word::FRACTION_BITS) * self.per_nano + (word.bits() & PART)
    }

    #[inline(always)]
    const fn grains(&self, now: Tick) -> u64 {
        now.as_nanos() * self.per_nano
    }

    /// Grains as nanoseconds, rounded up: whoever waits for them has waited long enough.
    #[inline(always)]
    pub(crate) const fn nanos(&self, grains: u64) -> u64 {
        if self.is_binary() { grains.div_ceil(64) } else { grains.div_ceil(self.per_nano) }
    }

    /// How long a loan keeps a full bucket from filling, in nanoseconds.
    const HOLD: u64 = 32_000;
}

/// The 64ths of a nanosecond until one token is back: at most 366 days of them, far below 2^64;
/// rounded up, against the client.
#[inline]
const fn binary_interval(count: u64, period: u64) -> u64 {
    (period * 64).div_ceil(count)
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

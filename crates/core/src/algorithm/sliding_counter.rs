//! Sliding window counter: the count of this window plus the share of the last one that still
//! lies within a window's length.
//!
//! ```text
//!        last window            this window
//!   |---------------------|---------------------|
//!              [=========== length ===========] now
//!    estimate = last x (part of it still inside) + this
//! ```
//!
//! Where a limit is so large that two exact counts do not fit into a word, the count of the last
//! window is rounded up to a multiple of a power of two, at the coarsest a 63rd of the limit.

use crate::algorithm::grid::{Divisor, Grid, PowerOfTwo};
use crate::algorithm::{LOAN_SHARE, Loan, Phase, Plan, Step, Steps, soon_back};
use crate::decision::{Decision, Room};
use crate::time::Tick;
use crate::word::Word;

#[derive(Clone, Debug)]
pub(crate) struct SlidingCounter {
    grid: Grid,
    length: u64,
    by_length: Divisor,
    limit: u64,
    /// The lowest bits of a word hold this window's count, the next ones the last one's.
    this_bits: u32,
    /// Both of them.
    counts_bits: u32,
    /// The bits of each count, at the lowest place.
    this_mask: u64,
    last_mask: u64,
    /// How many low bits of the last count are rounded away.
    last_shift: u32,
    /// When a window is forgotten is kept in units of so many nanoseconds.
    unit: PowerOfTwo,
    /// Whether tokens times the length of a window fit into 64 bits, as nearly always.
    is_narrow: bool,
}

/// The windows under way.
struct Current {
    /// The high bits of the words of this window: they say when it is forgotten, one window
    /// after its end.
    prefix: u64,
    end: u64,
    /// Nanoseconds of the last window that still count.
    weight: u64,
    last: u64,
    this: u64,
}

/// The parts of a word.
#[derive(Clone, Copy)]
struct Counts {
    prefix: u64,
    /// Less the bits that are rounded away.
    last: u64,
    this: u64,
}

impl SlidingCounter {
    /// The largest limit that windows of `length` nanoseconds can count to.
    pub(crate) const fn max_limit(length: u64) -> u64 {
        (1 << (Self::bits(length) - Self::MIN_LAST_BITS)) - 1
    }

    /// The bits of a word that the counts can have: the coarsest unit that tells two windows
    /// apart is half of one.
    const fn bits(length: u64) -> u32 {
        Word::FRACTION_BITS + length.ilog2() - 1
    }

    const MIN_LAST_BITS: u32 = 7;

    /// The caller has checked that `limit` is at most [`max_limit`](Self::max_limit).
    pub(crate) fn new(grid: Grid, length: u64, limit: u64) -> Self {
        let this_bits = (limit.ilog2() + 1).max(Word::FRACTION_BITS);
        let last_bits = this_bits.min(Self::bits(length) - this_bits);
        let fits = |shift: &u32| limit.div_ceil(1 << shift) < (1 << last_bits);
        // Found at once where both counts fit, and at the latest when nothing is left.
        let last_shift = (0..64).find(fits).unwrap_or(63);
        let by_length = Divisor::new(length);
        let counts_bits = this_bits + last_bits;
        let unit = PowerOfTwo::new(counts_bits - Word::FRACTION_BITS);
        let (this_mask, last_mask) = ((1 << this_bits) - 1, (1 << last_bits) - 1);
        // Also if a word of another limit is read while its slot changes hands.
        let most = limit.max(last_mask << last_shift);
        let is_narrow = most.checked_mul(length).is_some_and(|all| all < 1 << 62);
        Self {
            grid,
            length,
            by_length,
            limit,
            this_bits,
            counts_bits,
            this_mask,
            last_mask,
            last_shift,
            unit,
            is_narrow,
        }
    }

    pub(crate) const fn plan(&self) -> Plan {
        let (limit, length) = (self.limit, self.length);
        Plan::Sliding { limit, length, rounding: 1 << self.last_shift }
    }

    /// The word of the window that `now` lies in, with these counts; `None` if they have no room.
    pub(crate) fn word_of(&self, now: Tick, last: u64, this: u64, phase: Phase) -> Option<Word> {
        let current = self.current(Word::REST, now.as_nanos(), phase);
        let fits = this <= self.limit && last >> self.last_shift <= self.last_mask;
        let is_rounded = self.rounded(last) == last;
        match (last, this) {
            (0, 0) => Some(Word::REST),
            _ => (fits && is_rounded).then(|| self.word(&Current { last, ..current }, this)),
        }
    }

    /// The begin and the end of the window that `now` lies in.
    pub(crate) fn window(&self, now: Tick, phase: Phase) -> (u64, u64) {
        let now = now.as_nanos();
        (self.grid.end_at_or_before(now, phase), self.grid.end(now, phase))
    }

    #[inline(always)]
    fn counts(&self, word: Word) -> Counts {
        Counts {
            prefix: word.bits() >> self.counts_bits,
            last: (word.bits() >> self.this_bits) & self.last_mask,
            this: word.bits() & self.this_mask,
        }
    }

    #[inline(always)]
    const fn packed(&self, counts: Counts) -> u64 {
        let Counts { prefix, last, this } = counts;
        (prefix << self.counts_bits) | (last << self.this_bits) | this
    }

    /// The prefix of the words of the window before.
    fn prefix_before(&self, prefix: u64, phase: Phase) -> u64 {
        let forgotten = self.grid.end_at_or_before(self.unit.times(prefix), phase);
        self.unit.in_units(forgotten.saturating_sub(self.length))
    }

    /// A step that is allowed in the window of the word, as most are: in the shortest way.
    #[inline(always)]
    fn usual_step(&self, word: Word, now: u64, end: u64, cost: u64) -> Option<Step> {
        let Counts { prefix, last, this } = self.counts(word);
        let is_usual = self.is_narrow && cost.wrapping_sub(1) < self.limit;
        if !is_usual || prefix != self.prefix(end) {
            return None;
        }
        let free = self.limit.checked_sub(this + cost)? * self.length;
        let free = free.checked_sub((last << self.last_shift) * (end - now))?;
        let (left, reset) = (self.by_length.small_quotient(free), end + self.length - now);
        let decision = Decision::allowed(Room::Tokens { limit: self.limit, left, reset });
        // This window's count stands lowest, and has room for the limit.
        Some(Step { word: Word::new(word.bits() + cost), decision })
    }

    fn current(&self, word: Word, now: u64, phase: Phase) -> Current {
        self.current_of(word, now, self.grid.end(now, phase), phase)
    }

    /// The same, of a window that ends at `end`.
    fn current_of(&self, word: Word, now: u64, end: u64, phase: Phase) -> Current {
        let prefix = self.prefix(end);
        let Counts { prefix: stored, last, this } = self.counts(word);
        if stored == prefix {
            let last = last << self.last_shift;
            return Current { prefix, end, weight: end - now, last, this };
        }
        if stored > prefix {
            // Time ran backwards: the window of the word has only just begun.
            let forgotten = self.grid.end_at_or_before(self.unit.times(stored), phase);
            let (end, last) = (forgotten - self.length, last << self.last_shift);
            return Current { prefix: stored, end, weight: self.length, last, this };
        }
        // The last window is forgotten when this one ends.
        let last = match stored == self.unit.in_units(end) {
            true => self.rounded(this),
            false => 0,
        };
        Current { prefix, end, weight: end - now, last, this: 0 }
    }

    #[inline(always)]
    fn word(&self, current: &Current, this: u64) -> Word {
        let last = current.last >> self.last_shift;
        Word::new(self.packed(Counts { prefix: current.prefix, last, this }))
    }

    /// What is left when `this` is spent in this window: tokens times the window's length. `None`
    /// if that is more than the limit.
    #[inline(always)]
    fn free(&self, current: &Current, this: u64) -> Option<u128> {
        let all = u128::from(self.limit.checked_sub(this)?) * u128::from(self.length);
        all.checked_sub(u128::from(current.last) * u128::from(current.weight))
    }

    #[inline(always)]
    fn room(&self, now: u64, current: &Current, this: u64, free: u128) -> Room {
        let reset = match (this, current.last) {
            (0, 0) => 0,
            (0, _) => current.end.saturating_sub(now),
            _ => current.end + self.length - now,
        };
        Room::Tokens { limit: self.limit, left: self.by_length.quotient(free), reset }
    }

    /// What is left if nothing is spent.
    #[inline]
    fn present_room(&self, now: u64, current: &Current) -> Room {
        let free = self.free(current, current.this).unwrap_or(0);
        self.room(now, current, current.this, free)
    }

    #[inline(never)]
    fn other_step(&self, word: Word, now: u64, end: u64, cost: u64, phase: Phase) -> Step {
        let current = self.current_of(word, now, end, phase);
        if cost == 0 {
            return Step { word, decision: Decision::allowed(self.present_room(now, &current)) };
        }
        let this = current.this.saturating_add(cost);
        if let Some(free) = self.free(&current, this) {
            let decision = Decision::allowed(self.room(now, &current, this, free));
            return Step { word: self.word(&current, this), decision };
        }
        let room = self.present_room(now, &current);
        let decision = match cost > self.limit {
            true => Decision::denied_forever(room),
            false => Decision::denied_for(self.wait(&current, now, cost), room),
        };
        Step { word, decision }
    }

    /// When `cost` fits: the first nanosecond, as a time from `now`.
    fn wait(&self, current: &Current, now: u64, cost: u64) -> u64 {
        let free = self.limit - cost;
        if let Some(left) = free.checked_sub(current.this) {
            let weight = self.weight_for(left, current.last);
            if weight > 0 {
                // It is not before now, except for a word of another limit, read while its slot
                // changed hands.
                return current.end.saturating_sub(now + weight);
            }
        }
        let weight = self.weight_for(free, self.rounded(current.this));
        current.end + (self.length - weight) - now
    }

    /// The most nanoseconds of a window with `last` requests that cost no more than `free`.
    fn weight_for(&self, free: u64, last: u64) -> u64 {
        let all = u128::from(free) * u128::from(self.length);
        let weight = all.checked_div(u128::from(last)).unwrap_or(u128::MAX);
        u64::try_from(weight).map_or(self.length, |weight| weight.min(self.length))
    }

    #[inline]
    const fn rounded(&self, count: u64) -> u64 {
        count.div_ceil(1 << self.last_shift) << self.last_shift
    }

    #[inline]
    const fn prefix(&self, end: u64) -> u64 {
        self.unit.in_units(end + self.length)
    }
}

impl Steps for SlidingCounter {
    #[inline(always)]
    fn step(&self, word: Word, now: Tick, cost: u64, phase: Phase) -> Step {
        let now = now.as_nanos();
        let end = self.grid.end(now, phase);
        match self.usual_step(word, now, end, cost) {
            Some(step) => step,
            None => self.other_step(word, now, end, cost, phase),
        }
    }

    /// Both counts, each for itself: what the later word counts in its last window is what an
    /// earlier one counts in its own.
    fn join(&self, one: Word, two: Word, phase: Phase) -> Word {
        let (early, late) = (self.counts(one.min(two)), self.counts(one.max(two)));
        let joined = if early.prefix == late.prefix {
            Counts {
                prefix: late.prefix,
                last: late.last.max(early.last),
                this: late.this.max(early.this),
            }
        } else if early.prefix == self.prefix_before(late.prefix, phase) {
            Counts { last: late.last.max(self.rounded(early.this) >> self.last_shift), ..late }
        } else {
            late
        };
        Word::new(self.packed(joined))
    }

    fn refund(&self, word: Word, now: Tick, cost: u64, phase: Phase) -> Word {
        let current = self.current(word, now.as_nanos(), phase);
        match current.this.saturating_sub(cost) {
            0 if current.last == 0 => Word::REST,
            this => self.word(&current, this),
        }
    }

    /// The word must be of the same window as well: somebody whose clock is ahead of `now` may
    /// have begun the next one, whose count knows nothing of `cost`.
    fn is_recent(&self, word: Word, then: Tick, now: Tick, _: u64, phase: Phase) -> bool {
        let end = self.grid.end(then.as_nanos(), phase);
        let of_word = word.bits() >> self.counts_bits;
        of_word == self.prefix(end) && end >= self.grid.end(now.as_nanos(), phase)
    }

    fn rested_by(&self, now: Tick) -> Tick {
        Tick::from_nanos(self.grid.last_end(now.as_nanos()) + self.length)
    }

    /// The estimate only falls while a window lasts, so what fits now fits until its end.
    fn lend(&self, word: Word, now: Tick, want: u64, phase: Phase) -> Option<Loan> {
        let now = now.as_nanos();
        let current = self.current(word, now, phase);
        let left = self.present_room(now, &current).left();
        let soon_back = soon_back(self.limit, current.end.saturating_sub(now));
        let tokens = want.min(left / LOAN_SHARE).min(soon_back);
        if tokens < 2 {
            return None;
        }
        let this = current.this + tokens;
        let free = self.free(&current, this)?;
        Some(Loan {
            word: self.word(&current, this),
            tokens,
            until: Tick::from_nanos(current.end - 1),
            decision: Decision::allowed(self.room(now, &current, this, free)),
        })
    }

    fn window_end(&self, now: Tick, phase: Phase) -> Option<Tick> {
        Some(Tick::from_nanos(self.grid.end(now.as_nanos(), phase)))
    }
}

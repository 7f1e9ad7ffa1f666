//! Fixed window: so many per window, and a new window starts from nothing.
//!
//! Around the end of a window twice the limit can pass: that is the price of its simplicity.

use crate::algorithm::grid::{Grid, PowerOfTwo};
use crate::algorithm::{LOAN_SHARE, Loan, Phase, Step, Steps, soon_back};
use crate::decision::{Decision, Room};
use crate::time::Tick;
use crate::word::Word;

#[derive(Clone, Debug)]
pub(crate) struct FixedWindow {
    grid: Grid,
    limit: u64,
    /// The low bits of a word, which hold the count.
    count_bits: u32,
    count_mask: u64,
    /// The end of a window is kept in units of so many nanoseconds.
    unit: PowerOfTwo,
}

/// A window that is under way.
struct Current {
    /// The high bits of its words.
    prefix: u64,
    end: u64,
    count: u64,
}

impl FixedWindow {
    /// The largest limit that windows of `shortest` nanoseconds can count to.
    pub(crate) const fn max_limit(shortest: u64) -> u64 {
        // The coarsest unit that tells two windows apart is half of one.
        (1 << (Word::FRACTION_BITS + shortest.ilog2() - 1)) - 1
    }

    /// The caller has checked that `limit` is at most [`max_limit`](Self::max_limit).
    pub(crate) fn new(grid: Grid, limit: u64) -> Self {
        let count_bits = (limit.ilog2() + 1).max(Word::FRACTION_BITS);
        let unit = PowerOfTwo::new(count_bits - Word::FRACTION_BITS);
        Self { grid, limit, count_bits, count_mask: (1 << count_bits) - 1, unit }
    }

    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// The word of the window that `now` lies in, with that count; `None` if it has no room.
    pub(crate) fn word_of(&self, now: Tick, count: u64, phase: Phase) -> Option<Word> {
        let current = self.current(Word::REST, now.as_nanos(), phase);
        match count {
            0 => Some(Word::REST),
            _ => (count <= self.limit).then(|| self.word(&current, count)),
        }
    }

    /// The begin and the end of the window that `now` lies in.
    pub(crate) fn window(&self, now: Tick, phase: Phase) -> (u64, u64) {
        let now = now.as_nanos();
        (self.grid.end_at_or_before(now, phase), self.grid.end(now, phase))
    }

    /// A step that is allowed in the window of the word, as most are: in the shortest way.
    #[inline(always)]
    fn usual_step(&self, word: Word, now: u64, end: u64, cost: u64) -> Option<Step> {
        let is_usual = cost.wrapping_sub(1) < self.limit;
        if !is_usual || word.bits() >> self.count_bits != self.unit.in_units(end) {
            return None;
        }
        let left = self.limit.checked_sub((word.bits() & self.count_mask) + cost)?;
        let room = Room::Tokens { limit: self.limit, left, reset: end - now };
        // The count stands lowest, and has room for the limit.
        Some(Step { word: Word::new(word.bits() + cost), decision: Decision::allowed(room) })
    }

    fn current(&self, word: Word, now: u64, phase: Phase) -> Current {
        self.current_of(word, self.grid.end(now, phase), phase)
    }

    /// The same, of a window that ends at `end`.
    fn current_of(&self, word: Word, end: u64, phase: Phase) -> Current {
        let prefix = self.unit.in_units(end);
        let stored = word.bits() >> self.count_bits;
        if stored < prefix {
            return Current { prefix, end, count: 0 };
        }
        let count = word.bits() & self.count_mask;
        if stored == prefix {
            return Current { prefix, end, count };
        }
        // Time ran backwards, and the window of the word is not reached yet: it stays.
        let end = self.grid.end_at_or_before(self.unit.times(stored), phase);
        Current { prefix: stored, end, count }
    }

    #[inline(always)]
    fn word(&self, current: &Current, count: u64) -> Word {
        Word::new((current.prefix << self.count_bits) | count)
    }

    #[inline(always)]
    fn room(&self, now: u64, current: &Current, count: u64) -> Room {
        let reset = if count == 0 { 0 } else { current.end - now };
        Room::Tokens { limit: self.limit, left: self.limit.saturating_sub(count), reset }
    }

    #[inline(never)]
    fn other_step(&self, word: Word, now: u64, end: u64, cost: u64, phase: Phase) -> Step {
        let current = self.current_of(word, end, phase);
        let room = self.room(now, &current, current.count);
        if cost == 0 {
            return Step { word, decision: Decision::allowed(room) };
        }
        if cost <= room.left() {
            let count = current.count + cost;
            let decision = Decision::allowed(self.room(now, &current, count));
            return Step { word: self.word(&current, count), decision };
        }
        let decision = match cost > self.limit {
            true => Decision::denied_forever(room),
            false => Decision::denied_for(current.end - now, room),
        };
        Step { word, decision }
    }
}

impl Steps for FixedWindow {
    #[inline(always)]
    fn step(&self, word: Word, now: Tick, cost: u64, phase: Phase) -> Step {
        let now = now.as_nanos();
        let end = self.grid.end(now, phase);
        match self.usual_step(word, now, end, cost) {
            Some(step) => step,
            None => self.other_step(word, now, end, cost, phase),
        }
    }

    fn refund(&self, word: Word, now: Tick, cost: u64, phase: Phase) -> Word {
        let current = self.current(word, now.as_nanos(), phase);
        match current.count.checked_sub(cost) {
            None | Some(0) => Word::REST,
            Some(count) => self.word(&current, count),
        }
    }

    /// The word must be of the same window as well: somebody whose clock is ahead of `now` may
    /// have begun the next one, which knows nothing of `cost`.
    fn is_recent(&self, word: Word, then: Tick, now: Tick, _: u64, phase: Phase) -> bool {
        let end = self.grid.end(then.as_nanos(), phase);
        let of_word = word.bits() >> self.count_bits;
        of_word == self.unit.in_units(end) && end >= self.grid.end(now.as_nanos(), phase)
    }

    fn rested_by(&self, now: Tick) -> Tick {
        Tick::from_nanos(self.grid.last_end(now.as_nanos()))
    }

    fn lend(&self, word: Word, now: Tick, want: u64, phase: Phase) -> Option<Loan> {
        let now = now.as_nanos();
        let current = self.current(word, now, phase);
        let left = self.limit.saturating_sub(current.count);
        let tokens = want.min(left / LOAN_SHARE).min(soon_back(self.limit, current.end - now));
        if tokens < 2 {
            return None;
        }
        let count = current.count + tokens;
        Some(Loan {
            word: self.word(&current, count),
            tokens,
            until: Tick::from_nanos(current.end - 1),
            decision: Decision::allowed(self.room(now, &current, count)),
        })
    }

    fn window_end(&self, now: Tick, phase: Phase) -> Option<Tick> {
        Some(Tick::from_nanos(self.grid.end(now.as_nanos(), phase)))
    }
}

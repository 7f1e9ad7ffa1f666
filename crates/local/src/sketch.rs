//! Where keys are counted when their lines are full of live keys: too high, never too low.
//!
//! A cell is the state of all the keys that fall into it, taken as one. It knows of everything
//! any of them has spent, so none of them is given more than its limit; they share it instead.

use tollgate_core::{Decision, Phase, Tick, Word};

use crate::key::{KeyHash, MULTIPLIER};
use crate::sync::{AtomicU64, Ordering, fence};
use crate::table::{Spend, Stepping};

pub(crate) struct Sketch {
    cells: Box<[AtomicU64]>,
    /// All cells are at rest at this word's time.
    quiet_from: AtomicU64,
}

impl Sketch {
    pub(crate) fn with_cells(cells: usize) -> Self {
        Self {
            cells: (0..cells.max(1)).map(|_| AtomicU64::new(0)).collect(),
            quiet_from: AtomicU64::new(0),
        }
    }

    /// Decides in the key's cell. What the caller reads after something was spent, it reads after
    /// the spending can be seen by others.
    pub(crate) fn spend(&self, hash: KeyHash, spend: &Spend<'_>) -> (Decision, Spent) {
        let cell = self.cell(hash);
        let mut bits = cell.load(Ordering::Acquire);
        loop {
            let step = spend.step(word(bits));
            if step.word.bits() == bits {
                return (step.decision, Spent::Nothing);
            }
            // First, so that whoever does not look at the cell cannot have missed this.
            self.raise_quiet(step.word);
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match cell.compare_exchange(bits, step.word.bits(), success, failure) {
                Ok(_) => {
                    fence(Ordering::SeqCst);
                    return (step.decision, Spent::Something);
                }
                Err(changed) => bits = changed,
            }
        }
    }

    /// What the cell knows of the key, and maybe of others: at least what the key has spent here.
    pub(crate) fn read(&self, hash: KeyHash, now: Tick) -> Word {
        if self.quiet_from.load(Ordering::Acquire) <= Word::at(now).bits() {
            return Word::REST;
        }
        let word = word(self.cell(hash).load(Ordering::Acquire));
        if word.is_at_rest(now) { Word::REST } else { word }
    }

    /// Changes the key's cell by `change`, which must not take from other keys.
    pub(crate) fn update(&self, hash: KeyHash, change: impl Fn(Word) -> Word) {
        let change = |bits| Some(change(word(bits)).bits());
        // `change` always answers, so this cannot fail.
        let _ = self.cell(hash).fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    }

    pub(crate) fn memory(&self) -> usize {
        size_of_val::<[AtomicU64]>(&self.cells)
    }

    fn raise_quiet(&self, word: Word) {
        if self.quiet_from.load(Ordering::Acquire) < word.bits() {
            let ahead = word.bits().saturating_add(Self::AHEAD).min(Word::END - 1);
            self.quiet_from.fetch_max(ahead, Ordering::AcqRel);
        }
    }

    /// How far ahead the end of all cells is set, so that it is not written for every decision:
    /// an eighth of a second, in the units of words.
    const AHEAD: u64 = (1 << 27) << 6;

    /// Where the windows of a key begin, if they are jittered: at the same time for all keys of a
    /// cell, because keys whose windows differ could not be counted as one.
    #[inline]
    pub(crate) fn phase(&self, hash: KeyHash) -> Phase {
        Phase((self.index(hash) as u64).wrapping_mul(MULTIPLIER))
    }

    fn cell(&self, hash: KeyHash) -> &AtomicU64 {
        &self.cells[self.index(hash)]
    }

    /// The high bits choose the line of a key, so others are turned to the front here.
    #[inline]
    fn index(&self, hash: KeyHash) -> usize {
        ((u128::from(hash.0.rotate_left(17)) * self.cells.len() as u128) >> 64) as usize
    }
}

/// Whether a decision in the sketch changed it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    Nothing,
    Something,
}

/// Cells hold nothing but words.
fn word(bits: u64) -> Word {
    Word::from_bits(bits).unwrap_or(Word::REST)
}

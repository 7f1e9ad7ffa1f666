//! Where keys are counted when their lines are full of live keys: too high, never too low.
//!
//! A cell is the state of all the keys that fall into it, taken as one. It knows of everything
//! any of them has spent, so none of them is given more than its limit; they share it instead.

use tollgate_core::{Decision, Phase, Tick, Word};

use crate::key::{KeyHash, MULTIPLIER};
use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};
use crate::table::Spend;

pub(crate) struct Sketch {
    cells: Box<[AtomicU64]>,
    /// All cells are at rest at this word's time.
    quiet_from: AtomicU64,
    /// Whether a key that was counted elsewhere may have come into a cell.
    joined: AtomicBool,
    /// How many are taking something back just now.
    undoing: AtomicU64,
}

impl Sketch {
    pub(crate) fn with_cells(cells: usize) -> Self {
        Self {
            cells: (0..cells.max(1)).map(|_| AtomicU64::new(0)).collect(),
            quiet_from: AtomicU64::new(0),
            joined: AtomicBool::new(false),
            undoing: AtomicU64::new(0),
        }
    }

    /// A sketch from which nothing is ever taken back, as if keys had always been joining it.
    pub(crate) fn always_joined(cells: usize) -> Self {
        Self { joined: AtomicBool::new(true), ..Self::with_cells(cells) }
    }

    /// Decides in the key's cell, which learns that the key has spent `base` elsewhere, unless it is
    /// at rest: that takes a sketch that was [always joined](Self::always_joined). What the caller reads after something was spent, it reads after
    /// the spending can be seen by others.
    pub(crate) fn spend(&self, hash: KeyHash, spend: &Spend<'_>, base: Word) -> (Decision, Spent) {
        let cell = self.cell(hash);
        let mut bits = cell.load(Ordering::Acquire);
        loop {
            let step = spend.step(spend.machine.join(word(bits), base, spend.phase));
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

    /// Takes back from the key's cell what was spent there, by `undo`. Not once a key may have
    /// [joined](Self::join) a cell: a cell would then know less than that one has spent.
    pub(crate) fn undo(&self, hash: KeyHash, undo: impl Fn(Word) -> Word) {
        self.undoing.fetch_add(1, Ordering::AcqRel);
        // Either this sees that somebody joins, or whoever joins sees that somebody undoes.
        fence(Ordering::SeqCst);
        if !self.joined.load(Ordering::Acquire) {
            self.change(hash, undo);
        }
        self.undoing.fetch_sub(1, Ordering::AcqRel);
    }

    /// Makes the key's cell know as well what the key has spent elsewhere; `join` makes one of the
    /// cell's state and the key's. `false`, and nothing is done, if it cannot be done now.
    pub(crate) fn join(&self, hash: KeyHash, join: impl Fn(Word) -> Word) -> bool {
        self.joined.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.undoing.load(Ordering::Acquire) > 0 {
            return false;
        }
        self.change(hash, join);
        true
    }

    fn change(&self, hash: KeyHash, change: impl Fn(Word) -> Word) {
        let change = |bits| {
            let changed = change(word(bits));
            self.raise_quiet(changed);
            Some(changed.bits())
        };
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

    /// Whether two keys are counted in one cell.
    pub(crate) fn is_shared(&self, one: KeyHash, two: KeyHash) -> bool {
        self.index(one) == self.index(two)
    }

    fn cell(&self, hash: KeyHash) -> &AtomicU64 {
        &self.cells[self.index(hash)]
    }

    /// From what a line knows of its keys, so that one that loses its slot finds its cell: the tag,
    /// whose lowest bit is always set.
    #[inline]
    fn index(&self, hash: KeyHash) -> usize {
        let tag = u64::from(hash.0 as u32 >> 1);
        ((u128::from(tag) * self.cells.len() as u128) >> 31) as usize
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

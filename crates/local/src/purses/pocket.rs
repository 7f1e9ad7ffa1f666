//! What a thread has taken out of the purse of a hot key, to spend without touching it.
//!
//! Threads that take from one purse at the same time fight for its line of memory. A thread that
//! notices takes a handful at once and spends it by itself: it still reads the line, and writes to it
//! once for all of them. When the borrower is asked, what is in pockets counts as spent: whoever
//! finds that out later has lost it. So that little is, a first handful is small, the next one twice as
//! large only if the last was used, and none is more than a small part of what lies in the purse.

use std::cell::Cell;

use tollgate_core::Tick;

use crate::purses::Place;

/// What a thread has of one purse.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pocket {
    /// Whose purse it was taken from, and where it lies.
    pub(super) purses: u64,
    pub(super) place: u32,
    /// The filling it was taken from.
    pub(super) filling: u32,
    /// What was taken, and what is not spent of it.
    pub(super) taken: u32,
    pub(super) left: u32,
    /// When it is worth nothing any more.
    pub(super) until: Tick,
}

/// A thread has one pocket for each of so many purses, by where they lie.
const POCKETS: usize = 8;

/// The most requests that a handful is for, and the fewest.
const MOST: u64 = 64;
const FEWEST: u64 = 8;

/// A handful is no more than this part of what lies in the purse: a thread loses no more than that
/// when the borrower is asked.
const PART: u64 = 4096;

#[cfg(not(loom))]
thread_local! {
    static HELD: [Cell<Pocket>; POCKETS] = const { [const { Cell::new(Pocket::EMPTY) }; POCKETS] };
}
#[cfg(loom)]
loom::thread_local! {
    static HELD: [Cell<Pocket>; POCKETS] = [const { Cell::new(Pocket::EMPTY) }; POCKETS];
}

impl Pocket {
    const EMPTY: Self =
        Self { purses: 0, place: 0, filling: 0, taken: 0, left: 0, until: Tick::ZERO };

    /// What this thread has of a purse, if it ever had any.
    #[inline]
    pub(super) fn of(purses: u64, place: Place) -> Option<Self> {
        let held = HELD.with(|held| held[place.0 as usize % POCKETS].get());
        (held.place == place.0 && held.purses == purses).then_some(held)
    }

    /// This is what the thread has of the purse now.
    #[inline]
    pub(super) fn keep(self) {
        HELD.with(|held| held[self.place as usize % POCKETS].set(self));
    }

    /// For how many requests that cost so much a thread should take from a purse with so many tokens,
    /// if this is what it had before.
    pub(super) fn handful(before: Option<Self>, cost: u64, tokens: u64) -> u64 {
        let last = before.filter(|pocket| pocket.left <= pocket.taken / 2);
        let wanted = last.map_or(FEWEST, |pocket| u64::from(pocket.taken) / cost * 2);
        wanted.clamp(FEWEST, MOST).min(tokens / PART / cost).max(1)
    }
}

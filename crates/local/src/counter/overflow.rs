//! Keys that find all their slots taken by live keys: counted in the sketch, and, if they are heavy,
//! given the slot of a lighter one.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Decision, Step, Tick, Word};

use crate::counter::{Counter, Refresh};
use crate::key::KeyHash;
use crate::sketch::Spent;
use crate::sync::pause;
use crate::table::{Found, Lightest, Owner, Place, Spend, Tag};

impl Counter {
    /// Decides in the sketch, and makes sure that whoever is claiming a slot for the key knows of
    /// it. `None` if the key has got a slot by then: that decides.
    #[cold]
    pub(super) fn in_sketch(
        &self,
        place: Place<'_>,
        hash: KeyHash,
        spend: &mut Spend<'_>,
        refresh: Refresh<'_>,
    ) -> Option<Decision> {
        // The key may have had a slot, and lost it at rest, since the caller read its clock.
        spend.now = spend.now.max(refresh());
        let base = self.base(spend.key, spend.phase, spend.now);
        let (decision, spent) = self.sketch.spend(hash, spend, base);
        if spent == Spent::Something && !Self::tell_claimers(place) {
            let Spend { machine, now: then, cost, phase, .. } = *spend;
            // The time is taken after the state, so it is later than all that the state knows of.
            self.sketch.undo(hash, |word| machine.undo(word, then, refresh(), cost, phase));
            return None;
        }
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        if self.heavy.is(hash) {
            self.displace(place, hash, refresh());
        }
        Some(decision)
    }

    /// Gives a heavy key the slot of a lighter one, which goes to the sketch. Nothing happens if
    /// there is none, or if others are about to change the same slots: the key comes again.
    ///
    /// `now` only helps to choose. What the lighter key has spent is known from its state alone, and
    /// its cell from then on knows at least that: so it does not matter how old `now` is.
    fn displace(&self, place: Place<'_>, hash: KeyHash, now: Tick) {
        let left = |word, hash| {
            self.machine.step(word, now, 0, self.sketch.phase(hash)).decision.remaining()
        };
        let lightest = place.lightest(self.owner, now, |word, tag| left(word, tag.as_hash()));
        let Some(Lightest { spot, vacancy, tag, left: most }) = lightest else { return };
        let is_heavier = left(self.sketch.read(hash, now), hash) < most;
        // Two keys of one cell would go on counting as one: the heavy one takes its cell along.
        if self.owner == Owner::ANY || !is_heavier || self.sketch.is_shared(hash, tag.as_hash()) {
            return;
        }
        let line = place.line(spot);
        if !self.join_sketch(tag, vacancy.word) || !line.claim(vacancy, place.tag) {
            return;
        }
        // A refund or a reset can make an old state come again, under another key: then that one
        // lost its slot.
        let former = line.former_tag(vacancy.slot);
        while former != tag && !self.join_sketch(former, vacancy.word) {
            pause();
        }
        if place.look(Some(spot)).is_some() {
            line.abandon(vacancy.slot);
            return;
        }
        line.publish(vacancy.slot, place.tag, self.owner, || {
            let word = self.sketch.read(hash, now);
            Step { word, decision: Decision::unlimited() }
        });
        self.promoted.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes the sketch know what a key has spent whose state is `word`. `false` if it cannot now.
    fn join_sketch(&self, tag: Tag, word: Word) -> bool {
        let hash = tag.as_hash();
        let phase = self.sketch.phase(hash);
        self.sketch.join(hash, |cell| self.machine.join(cell, word, phase))
    }

    /// Asks all who are claiming a slot for the key for another look at the sketch. `false` if the
    /// key has a slot already.
    pub(super) fn tell_claimers(place: Place<'_>) -> bool {
        for spot in Place::spots() {
            let line = place.line(spot);
            loop {
                match place.found(spot) {
                    Some(Found::Owned(_)) => return false,
                    Some(Found::Claimed(_, claim)) if !line.nudge(spot.slot, claim) => {}
                    _ => break,
                }
            }
        }
        true
    }
}

/// The keys that came to the sketch last, in a few places: one that finds itself still there comes
/// often.
pub(super) struct Heavy(Box<[AtomicU64]>);

impl Heavy {
    const MOST_PLACES: usize = 64;
    const CELLS_PER_PLACE: usize = 8;

    /// Of counters with so many cells in their sketch. An owner that cannot be told from others
    /// displaces nobody, and need not know.
    pub(super) fn new(owner: Owner, cells: usize) -> Self {
        let places = match owner {
            Owner::ANY => 0,
            _ => cells.div_ceil(Self::CELLS_PER_PLACE).min(Self::MOST_PLACES),
        };
        Self((0..places).map(|_| AtomicU64::new(0)).collect())
    }

    fn is(&self, hash: KeyHash) -> bool {
        let index = ((hash.0 >> 32) as usize).checked_rem(self.0.len());
        index.is_some_and(|index| self.0[index].swap(hash.0, Ordering::Relaxed) == hash.0)
    }
}

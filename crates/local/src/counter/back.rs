//! What is given back: to keys in their slots, as far as it can be told what is theirs.

use tollgate_core::{CommonBucket, Phase, Tick, Word};

use crate::counter::{Counter, Refresh};
use crate::key::{KeyHash, Salted};
use crate::loan;
use crate::sync::{Ordering, fence};
use crate::table::Found;

impl Counter {
    /// Gives back `cost`. Nothing happens to a key that is counted in the sketch: what it shares
    /// there with others cannot be told apart.
    pub(crate) fn refund(&self, key: KeyHash, cost: u64, now: Tick) {
        let Salted { key, hash } = Salted::new(key, self.salt);
        if loan::give_back(&self.borrower, hash, cost, now) {
            return;
        }
        let phase = self.sketch.phase(hash);
        let _recall = self.borrower.recall();
        let refunded = |word| self.machine.refund(word, now, cost, phase);
        if !self.rewrite(hash, refunded) && self.base(key, phase, now) != Word::REST {
            // A decision that costs nothing gives it a slot with what it spent in the past.
            let mut nothing = self.spend(Salted { key, hash }, 0, now);
            self.check_new(hash, &mut nothing, false, &|| now);
            self.rewrite(hash, refunded);
        }
    }

    /// Takes back `cost` that was spent at `then`, as if it had never been. The time is taken
    /// after the state was read: whoever is suspended in between must not bring an old one.
    pub(crate) fn undo(&self, hash: KeyHash, cost: u64, then: Tick, refresh: Refresh<'_>) {
        let hash = hash.salted(self.salt);
        if loan::give_back(&self.borrower, hash, cost, refresh()) {
            return;
        }
        let phase = self.sketch.phase(hash);
        let undone = |word| self.machine.undo(word, then, refresh(), cost, phase);
        let _recall = self.borrower.recall();
        if !self.rewrite(hash, undone) {
            self.sketch.undo(hash, undone);
        }
    }

    /// Gives the key its whole budget back. `false` if it is counted in the sketch, together with
    /// others, and cannot be reset alone, or if its past cannot.
    pub(crate) fn reset(&self, key: KeyHash, now: Tick) -> bool {
        let Salted { key, hash } = Salted::new(key, self.salt);
        let _recall = self.borrower.recall();
        // First: whoever gives the key a slot afterwards finds nothing there.
        let forgotten = self.before.as_ref().is_none_or(|before| before.forget(key, now));
        // As behind a claim: either this sees the claim, or the claimer sees that it is forgotten.
        fence(Ordering::SeqCst);
        let mut done = self.rewrite(hash, |_| Word::REST);
        // Whoever is giving it one just now may have asked before: it has to ask again.
        while !done && self.before.is_some() && !Self::tell_claimers(self.table.place(hash)) {
            done = self.rewrite(hash, |_| Word::REST);
        }
        forgotten && (done || self.sketch.read(hash, now) == Word::REST)
    }

    /// Gives back `cost` of a bucket that came with the request. Nothing happens to a key that is
    /// counted in the sketch, as above.
    pub(crate) fn refund_by(&self, key: KeyHash, bucket: &CommonBucket, cost: u64, now: Tick) {
        let machine = bucket.machine();
        // Nobody borrows from these, and buckets have no phase.
        self.rewrite(key.salted(self.salt), |word| {
            machine.refund(word, now, cost, Phase::default())
        });
    }

    /// Changes the state of the key in its slot. `false` if it has none.
    fn rewrite(&self, hash: KeyHash, change: impl Fn(Word) -> Word) -> bool {
        let place = self.table.place(hash);
        // A claimed slot is about to get its state from the sketch.
        while let Some(Found::Owned(spot)) = place.look(None) {
            let change = |word| Some(change(word));
            if place.line(spot).change_at(spot.slot, place.tag, change).is_ok() {
                return true;
            }
        }
        false
    }
}

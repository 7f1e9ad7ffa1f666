//! A key that has no slot yet gets one.

use std::sync::atomic::Ordering;

use tollgate_core::{Decision, Retry, Word};

use crate::counter::{Counter, Refresh};
use crate::key::KeyHash;
use crate::sync::pause;
use crate::table::{Found, Line, Place, Spend, Spot, Vacancy};

impl Counter {
    /// Finds a place for a key that is in neither line, and decides there. `None` if it is worth
    /// another look at the lines.
    pub(super) fn settle(
        &self,
        place: Place<'_>,
        hash: KeyHash,
        spend: &mut Spend<'_>,
        patience: &mut Patience,
        refresh: Refresh<'_>,
    ) -> Option<Decision> {
        match place.look(None) {
            Some(Found::Owned(spot)) => return Self::check_spot(place, spot, spend),
            Some(Found::Claimed(..)) if patience.wait() => return None,
            Some(Found::Claimed(..)) => return self.in_sketch(place, hash, spend, refresh),
            None => {}
        }
        let base = self.base(spend.key, spend.phase, spend.now);
        let known = self.sketch.read(hash, spend.now);
        let unseen = spend.step(self.machine.join(known, base, spend.phase)).decision;
        // Nothing to remember: a peek, or a cost that never fits.
        let is_unchanged = spend.cost == 0 || unseen.retry() == Some(Retry::Never);
        if is_unchanged && base == Word::REST {
            return Some(unseen);
        }
        let Some((spot, vacancy)) = place.vacancy(spend.now) else {
            return self.in_sketch(place, hash, spend, refresh);
        };
        let line = place.line(spot);
        if !line.claim(vacancy, place.tag) {
            return None;
        }
        while let Some(found) = place.look(Some(spot)) {
            match found {
                // The later of two spots gives way, so this one has only to wait for it.
                Found::Claimed(other, _) if spot < other && patience.wait() => {}
                _ => {
                    line.abandon(vacancy.slot);
                    return None;
                }
            }
        }
        spend.now = spend.now.max(refresh());
        Some(self.publish(line, vacancy, place, hash, spend))
    }

    /// Decides in a slot of the key. One before it in the same line may still carry the key's tag
    /// while it passes to another key, and then nobody finds this one by its tag alone.
    fn check_spot(place: Place<'_>, spot: Spot, spend: &Spend<'_>) -> Option<Decision> {
        place.line(spot).attempt_at(spot.slot, place.tag, spend).ok()
    }

    fn publish(
        &self,
        line: &Line,
        vacancy: Vacancy,
        place: Place<'_>,
        hash: KeyHash,
        spend: &Spend<'_>,
    ) -> Decision {
        let mut known = Word::REST;
        let decision = line.publish(vacancy.slot, place.tag, self.owner, || {
            known = self.sketch.read(hash, spend.now);
            let base = self.base(spend.key, spend.phase, spend.now);
            spend.step(self.machine.join(known, base, spend.phase))
        });
        if let Some(before) = &self.before {
            before.end(spend.now);
        }
        if known != Word::REST {
            self.promoted.fetch_add(1, Ordering::Relaxed);
        }
        decision
    }
}

/// How long a thread waits for another one that is putting the same key into a slot: a moment, as
/// that takes no more, but not for one that was suspended in the middle of it.
pub(super) struct Patience(u32);

impl Default for Patience {
    fn default() -> Self {
        Self(if cfg!(loom) { 3 } else { 100 })
    }
}

impl Patience {
    /// Waits for a moment; `false` if there were enough of them.
    fn wait(&mut self) -> bool {
        let Some(left) = self.0.checked_sub(1) else { return false };
        self.0 = left;
        pause();
        true
    }
}

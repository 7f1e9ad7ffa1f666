//! Decisions by a token bucket that comes with the request.
//!
//! All such buckets read each other's states, so all share one salt, one sketch and the slots of
//! the table: what a key spends under one limit counts under every other, also where it finds no
//! slot. The counter's own machine only compares how soon keys come to rest.
//!
//! Nobody borrows: a loan would be of one limit, and spent under another.

use tollgate_core::{CommonBucket, Decision, Phase, Tick};

use crate::clock::Clock;
use crate::counter::settle::Patience;
use crate::counter::{Counter, Refresh};
use crate::key::{KeyHash, Salted};
use crate::table::{Failed, Spend};

impl Counter {
    #[inline(always)]
    pub(crate) fn check_by(
        &self,
        key: KeyHash,
        bucket: &CommonBucket,
        cost: u64,
        clock: &impl Clock,
    ) -> Decision {
        let place = self.table.place(key.salted(self.salt));
        place.prefetch();
        if self.table.is_far() {
            place.prefetch_second();
        }
        // The clock is read while the memory is under way.
        self.check_by_at(key, bucket, cost, &mut clock.now(), &|| clock.now())
    }

    /// The same at a time that was read before. If the decision had to be made at a later one,
    /// `now` says so.
    #[inline(always)]
    pub(crate) fn check_by_at(
        &self,
        key: KeyHash,
        bucket: &CommonBucket,
        cost: u64,
        now: &mut Tick,
        refresh: Refresh<'_>,
    ) -> Decision {
        let key = Salted::new(key, self.salt);
        let (place, usual) = (self.table.place(key.hash), bucket.usual());
        if let Some(ask) = usual.at(*now, cost)
            && let Ok(decision) = place.first().attempt(place.tag, &ask)
        {
            return decision;
        }
        self.check_by_late(key, bucket, cost, now, refresh)
    }

    /// Decides at both lines, or where the key is new.
    #[inline(never)]
    fn check_by_late(
        &self,
        key: Salted,
        bucket: &CommonBucket,
        cost: u64,
        now: &mut Tick,
        refresh: Refresh<'_>,
    ) -> Decision {
        let (place, machine) = (self.table.place(key.hash), bucket.machine());
        // Buckets have no windows, and so no phase.
        let (phase, at_once) = (Phase::default(), false);
        let mut spend = Spend { machine: &machine, key: key.key, now: *now, cost, phase, at_once };
        let mut patience = Patience::default();
        let decision = 'decided: loop {
            for line in [place.second(), place.first()] {
                match line.attempt(place.tag, &spend) {
                    Ok(decision) => break 'decided decision,
                    Err(Failed::Contended) => continue 'decided,
                    Err(Failed::Absent) => {}
                }
            }
            if let Some(decision) = self.settle(place, key.hash, &mut spend, &mut patience, refresh)
            {
                break decision;
            }
        };
        *now = spend.now;
        decision
    }
}

//! What keys had spent before rules were exchanged.

use std::collections::BTreeSet;
use std::sync::Arc;

use tollgate_core::{Log, Tick};
use tollgate_local::{Counters, KeyHash, Past};

use crate::engine::counted::{Counted, Kept};

/// What a key had spent under the limits that a rule had before: it has one of them, and if it has
/// gone from one to another, the most counts.
impl Past for Counted {
    fn spent(&self, key: KeyHash, at: Tick) -> u64 {
        self.all_of(key).map(|counters| counters.spent(key, at)).max().unwrap_or(0)
    }

    fn forget(&self, key: KeyHash, now: Tick) -> bool {
        // Each of them, also after one that cannot.
        self.all_of(key).fold(true, |all, counters| counters.forget(key, now) & all)
    }

    fn log(&self, key: KeyHash, at: Tick) -> Option<Log> {
        let most = self.all_of(key).max_by_key(|counters| counters.spent(key, at))?;
        most.log(key, at)
    }

    fn shorten(&self, changes: usize, now: Tick) {
        for (_, counters) in &self.limits {
            counters.shorten(changes, now);
        }
    }
}

impl Counted {
    /// Keys that got a limit of their own, or lost it, and so come to counters that others have had:
    /// these do not ask what was before them, and are told.
    pub(in crate::engine) fn tell_of_moved_keys(&self, old: &Self, now: Tick) {
        if self.key != old.key || self.per_tier != old.per_tier {
            return;
        }
        let known: BTreeSet<_> =
            old.limits.iter().map(|(_, counters)| Arc::as_ptr(counters)).collect();
        let keys = self.overridden.iter().chain(old.overridden.iter());
        for (key, _) in keys.filter(|(key, _)| self.has_moved(old, *key)) {
            for (at, (_, counters)) in self.present(key).iter().enumerate() {
                if known.contains(&Arc::as_ptr(counters)) {
                    let day =
                        old.present(key).iter().skip(at % self.per_tier).step_by(self.per_tier);
                    let spent = day.map(|(_, from)| from.spent(key, now)).max().unwrap_or(0);
                    tell(counters, key, spent, now);
                }
            }
        }
    }

    /// Whether the key has other limits than before: those of another override, or for the first
    /// time or no longer those of one.
    pub(super) fn has_moved(&self, old: &Self, key: KeyHash) -> bool {
        let is_overridden = [self, old].map(|one| one.overridden.get(key).is_some());
        let pairs = || self.present(key).iter().zip(old.present(key));
        is_overridden != [true; 2] || pairs().any(|((new, _), (old, _))| new != old)
    }

    /// The limits of the key: those of its override, or else those of all tiers.
    pub(super) fn present(&self, key: KeyHash) -> &[Kept] {
        let (own, overrides) = self.limits.split_at(self.own);
        self.overridden.get(key).map_or(own, |number| {
            let first = number as usize * self.per_tier;
            overrides.get(first..first + self.per_tier).unwrap_or_default()
        })
    }

    /// Those of all tiers, and those of the key's override.
    pub(super) fn all_of(&self, key: KeyHash) -> impl Iterator<Item = &Arc<Counters>> {
        let own = &self.limits[..self.own];
        let overridden = self.overridden.get(key).map_or(&[][..], |_| self.present(key));
        own.iter().chain(overridden).map(|(_, counters)| counters)
    }
}

/// Spends what the key has spent elsewhere, as far as there is so much.
fn tell(counters: &Counters, key: KeyHash, spent: u64, now: Tick) {
    let more = spent.saturating_sub(counters.spent(key, now));
    let cost = more.min(counters.peek(key, 0, now).remaining());
    if cost > 0 {
        let _ = counters.check_at(key, cost, now);
    }
}

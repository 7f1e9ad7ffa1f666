//! The counters of single keys, for whoever looks into them or resets them.

use std::sync::Arc;

use tollgate_core::{Limit, Tick};
use tollgate_local::{Counters, KeyHash};

use crate::engine::counted::Counted;
use crate::sharing::SharedLimit;

/// Counters of a key.
pub(in crate::engine) struct Candidate<'a> {
    pub(in crate::engine) limit: &'a Limit,
    pub(in crate::engine) counters: &'a Counters,
    /// Where they are among those of the rule, or of its overrides.
    pub(in crate::engine) at: usize,
    /// How the limit is shared with other nodes, if it is.
    pub(in crate::engine) shared: Option<&'a Arc<SharedLimit>>,
}

impl Counted {
    /// The number of the key's override, if it has one.
    pub(in crate::engine) fn override_of(&self, key: KeyHash) -> Option<usize> {
        self.overridden.get(key).map(|number| number as usize)
    }

    /// The tiers that have limits of their own, if they differ.
    pub(in crate::engine) fn tiers(&self) -> &[Box<str>] {
        &self.tiers
    }

    /// How many limits a tier or an override has.
    pub(in crate::engine) const fn per_tier(&self) -> usize {
        self.per_tier
    }

    /// All counters, of whatever limit.
    pub(in crate::engine) fn every(&self) -> impl Iterator<Item = &Counters> {
        let limits = self.limits.iter().map(|(_, counters)| counters);
        limits.chain(self.blocks()).map(|counters| &**counters)
    }

    /// The memory that tells which keys have limits of their own, in bytes.
    pub(in crate::engine) fn memory_of_overrides(&self) -> usize {
        self.overridden.memory()
    }

    /// How often there was no room for another slot.
    pub(in crate::engine) fn turned_away(&self) -> u64 {
        // All tiers have theirs from the same place.
        self.slots.first().map_or(0, |slots| slots.concurrency.turned_away())
    }

    /// The counters that a key may be counted by: those of its override, or else those of all
    /// tiers.
    pub(in crate::engine) fn candidates(
        &self,
        key: KeyHash,
    ) -> impl Iterator<Item = Candidate<'_>> {
        let overridden = self.override_of(key);
        let first = overridden.map_or(0, |number| number * self.per_tier);
        let before = if overridden.is_some() { self.own } else { 0 };
        let present = self.present(key).iter().zip(first..);
        present.map(move |((limit, counters), at)| {
            let shared = self.shared.get(before + at);
            Candidate { limit, counters, at, shared }
        })
    }

    /// How the limits are shared that a key may ever have been counted by: those of all tiers, and
    /// of its override.
    pub(in crate::engine) fn shared_of(
        &self,
        key: KeyHash,
    ) -> impl Iterator<Item = &Arc<SharedLimit>> {
        let own = self.shared.iter().take(self.own);
        let overridden = self.override_of(key).map(|number| self.own + number * self.per_tier);
        let overridden = overridden.and_then(|at| self.shared.get(at..at + self.per_tier));
        own.chain(overridden.unwrap_or_default())
    }

    /// Gives a key back whatever any counters of the rule know of it, and ends its block. Says how
    /// many of them knew anything, and could forget it.
    pub(in crate::engine) fn reset(&self, key: KeyHash, now: Tick) -> usize {
        let reset = |counters: &&Arc<Counters>| is_reset(counters, key, now);
        self.all_of(key).filter(reset).count() + self.end_block(key, now)
    }

    /// Ends the block of a key. How many there were.
    pub(in crate::engine) fn end_block(&self, key: KeyHash, now: Tick) -> usize {
        usize::from(self.blocks().is_some_and(|blocks| is_reset(blocks, key, now)))
    }
}

/// Whether there was anything to give back, and it is given back.
fn is_reset(counters: &Counters, key: KeyHash, now: Tick) -> bool {
    let knew = !is_at_rest(counters, key, now);
    // Also what seems to be at rest: a thread may hold something of it.
    counters.reset(key, now) && knew
}

/// Whether a key has everything.
pub(in crate::engine) fn is_at_rest(counters: &Counters, key: KeyHash, now: Tick) -> bool {
    let peek = counters.peek(key, 0, now);
    peek.remaining() >= peek.limit() && peek.reset_after().is_zero()
}

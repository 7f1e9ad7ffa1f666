//! Many decisions at once: their memory is brought side by side.

use tollgate_core::{Decision, Tick};

use crate::counter::{Counter, Refresh};
use crate::key::KeyHash;
use crate::table::Failed;

/// The most keys of one [`Batch`]: the bits of a `u32`.
pub(crate) const BATCH: usize = 32;

/// Keys that are decided at one time. Their first lines are loaded when they are added.
pub(crate) struct Batch<'a> {
    counter: &'a Counter,
    hashes: [KeyHash; BATCH],
    len: usize,
}

impl<'a> Batch<'a> {
    #[inline(always)]
    pub(crate) const fn new(counter: &'a Counter) -> Self {
        Self { counter, hashes: [KeyHash(0); BATCH], len: 0 }
    }

    /// Adds a key; there is room for [`BATCH`] of them.
    #[inline(always)]
    pub(crate) fn add(&mut self, hash: KeyHash) {
        let hash = hash.salted(self.counter.salt);
        self.counter.table.place(hash).prefetch();
        self.hashes[self.len % BATCH] = hash;
        self.len += 1;
    }

    #[inline(always)]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Decides, and appends the answers to `decisions`. The second lines of keys that need one
    /// are loaded while the others are decided.
    #[inline]
    pub(crate) fn check(
        &self,
        cost: u64,
        now: &mut Tick,
        refresh: Refresh<'_>,
        decisions: &mut Vec<Decision>,
    ) {
        let begin = decisions.len();
        let hashes = &self.hashes[..self.len.min(BATCH)];
        // A bit for each key: whether it comes late, and whether because of others.
        let (mut late, mut contended) = (0u32, 0u32);
        decisions.resize(begin + hashes.len(), Decision::unlimited());
        let answers = &mut decisions[begin..];
        for (index, (hash, answer)) in hashes.iter().zip(answers.iter_mut()).enumerate() {
            let place = self.counter.table.place(*hash);
            if let Err(failed) = self.counter.check_first(place, *hash, cost, *now, answer) {
                place.prefetch_second();
                late |= 1 << index;
                contended |= u32::from(failed == Failed::Contended) << index;
            }
        }
        while late != 0 {
            let index = late.trailing_zeros() as usize;
            late &= late - 1;
            let failed = match contended >> index & 1 {
                0 => Failed::Absent,
                _ => Failed::Contended,
            };
            let (hash, answer) = (hashes[index], &mut answers[index]);
            *now = self.counter.check_late(hash, cost, *now, failed, refresh, answer);
        }
    }
}

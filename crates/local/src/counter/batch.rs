//! Many decisions at once: their memory is brought side by side.

use tollgate_core::{Decision, Tick};

use crate::counter::{Counter, Refresh, Undecided};
use crate::key::KeyHash;
use crate::loan;
use crate::table::{Failed, Place};

/// The most keys of one [`Batch`]: the bits of a `u32`.
pub(crate) const BATCH: usize = 32;

/// How many keys ahead of the one that is decided memory is asked for. More at once than the
/// processor can have under way would make it wait; fewer leave memory idle while it decides.
const AHEAD: usize = 20;

/// Keys that are decided at one time. The first lines of the first keys are loaded when they are
/// added, those of the others while the first are decided.
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
        if self.len < AHEAD {
            self.counter.table.place(hash).prefetch();
        }
        self.hashes[self.len % BATCH] = hash;
        self.len += 1;
    }

    #[inline(always)]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Decides, and appends the answers to `decisions`. The second lines of keys that need one
    /// are loaded while the others are decided.
    pub(crate) fn check(
        &self,
        cost: u64,
        now: &mut Tick,
        refresh: Refresh<'_>,
        decisions: &mut Vec<Decision>,
    ) {
        let counter = self.counter;
        let begin = decisions.len();
        let mut late = match counter.usual.at(*now, cost) {
            Some(ask) => self
                .check_first(|place, _| place.first().attempt(place.tag, &ask), decisions),
            None => {
                let now = *now;
                let attempt = |place: Place<'_>, hash| {
                    counter.attempt(place.first(), place.tag, hash, cost, now)
                };
                self.check_first(attempt, decisions)
            }
        };
        while late.keys != 0 {
            let index = late.keys.trailing_zeros() as usize;
            late.keys &= late.keys - 1;
            let hash = self.hashes[index];
            let why = match late.contended >> index & 1 {
                0 if loan::may_hold(hash) => Undecided::MayHold,
                0 => Undecided::Absent,
                _ => Undecided::Contended,
            };
            decisions[begin + index] = counter.check_late(hash, cost, now, why, refresh);
        }
    }

    /// Decides what can be decided at first lines.
    #[inline(always)]
    fn check_first(
        &self,
        attempt: impl Fn(Place<'_>, KeyHash) -> Result<Decision, Failed>,
        decisions: &mut Vec<Decision>,
    ) -> Late {
        let table = &self.counter.table;
        let hashes = &self.hashes[..self.len.min(BATCH)];
        let mut late = Late { keys: 0, contended: 0 };
        decisions.extend(hashes.iter().enumerate().map(|(index, hash)| {
            if let Some(next) = hashes.get(index + AHEAD) {
                table.place(*next).prefetch();
            }
            let place = table.place(*hash);
            let failed = match loan::may_hold(*hash) {
                true => Failed::Absent,
                false => match attempt(place, *hash) {
                    Ok(decision) => return decision,
                    Err(failed) => failed,
                },
            };
            place.prefetch_second();
            late.keys |= 1 << index;
            late.contended |= u32::from(failed == Failed::Contended) << index;
            Decision::unlimited()
        }));
        late
    }
}

/// The keys of a batch that are not decided yet, a bit for each.
struct Late {
    keys: u32,
    /// Those of them on which somebody else decided at the same time.
    contended: u32,
}

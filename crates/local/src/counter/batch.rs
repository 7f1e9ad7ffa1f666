//! Many decisions at once: their memory is brought side by side.

use tollgate_core::{Decision, Tick};

use crate::counter::{Counter, Refresh, Undecided};
use crate::key::{KeyHash, Salted};
use crate::loan;
use crate::table::{Failed, Line, Tag};

/// The most keys of one [`Batch`]: the bits of a `u32`.
const BATCH: usize = 32;

/// Keys that are decided at one time. The first lines of the first keys are loaded when they come,
/// those of the others while the first are decided.
pub(crate) struct Batch<'a> {
    counter: &'a Counter,
    hashes: [KeyHash; BATCH],
    /// The keys by which other limits know them: kept only if the limit had another one before.
    keys: Option<[KeyHash; BATCH]>,
    /// Where their first lines are.
    lines: [u32; BATCH],
    len: usize,
}

impl<'a> Batch<'a> {
    #[inline(always)]
    pub(crate) fn new(counter: &'a Counter) -> Self {
        Self { counter, hashes: [KeyHash(0); BATCH], keys: None, lines: [0; BATCH], len: 0 }
    }

    /// Takes the next keys, as many as there are and as fit. `false` if there are none.
    #[inline(always)]
    pub(crate) fn fill(&mut self, keys: &mut impl Iterator<Item = KeyHash>) -> bool {
        match self.counter.before() {
            None => self.take(keys),
            Some(_) => self.keep(keys),
        }
        self.len > 0
    }

    /// The same with the keys by which other limits know them.
    fn keep(&mut self, keys: &mut impl Iterator<Item = KeyHash>) {
        let mut kept = [KeyHash(0); BATCH];
        let mut slots = kept.iter_mut();
        self.take(&mut keys.inspect(|key| {
            if let Some(slot) = slots.next() {
                *slot = *key;
            }
        }));
        self.keys = Some(kept);
    }

    #[inline]
    fn take(&mut self, keys: &mut impl Iterator<Item = KeyHash>) {
        let (places, salt) = (self.counter.table.places(), self.counter.salt);
        let mut slots = self.hashes.iter_mut().zip(&mut self.lines);
        // Not in `self`: that would be written to for every key.
        let mut len = 0;
        for ((hash, line), key) in slots.by_ref().take(Self::AHEAD).zip(keys.by_ref()) {
            *hash = key.salted(salt);
            *line = places.number(*hash);
            places.prefetch(*line);
            len += 1;
        }
        for ((hash, line), key) in slots.zip(keys) {
            *hash = key.salted(salt);
            *line = places.number(*hash);
            len += 1;
        }
        self.len = len;
    }

    /// How many keys ahead of the one that is decided memory is asked for. Measured: more lines at
    /// once than the processor can have under way make it wait, fewer leave memory idle while it
    /// decides.
    const AHEAD: usize = 20;

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
        let at = *now;
        // A copy: what others may change at any time has to be read again for every key.
        let usual = counter.usual;
        let mut late = match (usual.at(at, cost), loan::may_hold_any()) {
            (Some(ask), false) => {
                self.check_lines(decisions, |line, tag, _| line.attempt(tag, &ask))
            }
            _ => self.check_lines(decisions, |line, tag, hash| match loan::may_hold(hash) {
                true => Err(Failed::Absent),
                false => counter.attempt(line, tag, hash, cost, at),
            }),
        };
        let answers = &mut decisions[begin..];
        while let Some(index) = late.next() {
            let key = Salted { key: self.key(index), hash: self.hashes[index] };
            let why = match late.is_contended(index) {
                false if loan::may_hold(key.hash) => Undecided::MayHold,
                false => Undecided::Absent,
                true => Undecided::Contended,
            };
            let answer = &mut answers[index];
            *answer = counter.check_late(key, cost, now, why, refresh);
        }
    }

    /// The key by which other limits know one of them, if that matters.
    fn key(&self, index: usize) -> KeyHash {
        self.keys.as_ref().map_or(KeyHash(0), |keys| keys[index])
    }

    /// Decides what `attempt` can decide at first and at second lines.
    #[inline(always)]
    fn check_lines(
        &self,
        decisions: &mut Vec<Decision>,
        attempt: impl Fn(&Line, Tag, KeyHash) -> Result<Decision, Failed>,
    ) -> Late {
        let places = self.counter.table.places();
        let begin = decisions.len();
        let hashes = &self.hashes[..self.len.min(BATCH)];
        let mut late = Late::default();
        let lines = &self.lines[..self.len.min(BATCH)];
        decisions.extend(hashes.iter().zip(lines).enumerate().map(|(index, (hash, line))| {
            if let Some(next) = lines.get(index + Self::AHEAD) {
                places.prefetch(*next);
            }
            attempt(places.at(*line), Tag::new(hash.0), *hash).unwrap_or_else(|failed| {
                places.of(*hash).prefetch_second();
                late.add(index, failed);
                Decision::unlimited()
            })
        }));
        let answers = &mut decisions[begin..];
        let mut left = Late { keys: late.contended, ..late };
        late.keys &= !late.contended;
        while let Some(index) = late.next() {
            let place = places.of(hashes[index]);
            match attempt(place.second(), place.tag, hashes[index]) {
                Ok(decision) => answers[index] = decision,
                Err(failed) => left.add(index, failed),
            }
        }
        left
    }
}

/// The keys of a batch that are not decided yet, a bit for each.
#[derive(Default)]
struct Late {
    keys: u32,
    /// Those of them on which somebody else decided at the same time.
    contended: u32,
}

impl Late {
    fn add(&mut self, index: usize, failed: Failed) {
        self.keys |= 1 << index;
        self.contended |= u32::from(failed == Failed::Contended) << index;
    }

    /// Takes out the first key.
    fn next(&mut self) -> Option<usize> {
        let index = self.keys.trailing_zeros();
        self.keys &= self.keys.checked_sub(1)?;
        Some(index as usize)
    }

    const fn is_contended(&self, index: usize) -> bool {
        self.contended >> index & 1 == 1
    }
}

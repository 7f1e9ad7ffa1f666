//! The table: the states of many keys, in memory that is bounded and chosen at start.
//!
//! A key has two lines of five slots it may stand in. It is put into the first unless that is
//! nearly full and the second is much emptier, so that 94 of 100 keys are found at the first look,
//! and at the planned load 7 in 10,000 find both lines full.
//!
//! Nothing is ever removed: a slot whose state is at rest is taken over by the next key that needs
//! one. See [`line`] for how a slot passes from key to key without a lock, and
//! [`crate::counter`] for the way of a decision through it.

mod line;
mod tags;

pub(crate) use line::{Claim, Failed, Line, Own, Owner, SLOTS, Tag, Vacancy};

use line::Survey;

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{BoundStep, Decision, Machine, Phase, Step, StepUser, Tick, UsualAsk, Word};

use crate::key::{KeyHash, MULTIPLIER};
use crate::memory::Lines;
use crate::prefetch::prefetch;

/// Memory for the states of many keys, under any number of limits.
///
/// ```
/// use tollgate_local::Table;
/// let table = Table::with_keys(100_000)?;
/// assert!(table.memory() < 100_000 * 24);
/// # Ok::<(), tollgate_local::TableError>(())
/// ```
pub struct Table {
    lines: Lines,
    /// A bit for each owner that is in use.
    owners: AtomicU64,
    is_far: bool,
}

/// Why there is no table. Nothing was changed.
///
/// ```
/// use tollgate_local::{Table, TableError};
/// assert!(matches!(Table::with_keys(0), Err(TableError::TooSmall)));
/// assert!(matches!(Table::with_keys(usize::MAX), Err(TableError::TooLarge { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The caller asked for too little.
    #[error("a table needs room for at least one key, or 128 bytes")]
    TooSmall,
    /// The caller asked for too much.
    #[error("a table holds at most {max} keys")]
    TooLarge {
        /// The most keys.
        max: usize,
    },
    /// The system has no such amount of memory.
    #[error("no memory for a table of {bytes} bytes; plan for fewer keys")]
    NoMemory {
        /// How much was asked for.
        bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Table {
    /// The most keys a table can be planned for.
    ///
    /// ```
    /// use tollgate_local::Table;
    /// assert!(Table::with_keys(Table::MAX_KEYS + 1).is_err());
    /// ```
    pub const MAX_KEYS: usize = 10_000_000_000;

    /// What a planned key costs: five slots of a line of 64 bytes, 56 % of them in use.
    const BITS_PER_KEY: usize = 188;

    /// A table in which `keys` keys can be live at once, at 23.5 bytes each. With more, the excess
    /// is counted too high, never too low.
    ///
    /// ```
    /// let table = tollgate_local::Table::with_keys(1_000)?;
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn with_keys(keys: usize) -> Result<Self, TableError> {
        if keys == 0 {
            return Err(TableError::TooSmall);
        }
        if keys > Self::MAX_KEYS {
            return Err(TableError::TooLarge { max: Self::MAX_KEYS });
        }
        Self::with_lines((keys * Self::BITS_PER_KEY).div_ceil(8 * size_of::<Line>()))
    }

    /// A table of at most `bytes` bytes.
    ///
    /// ```
    /// let table = tollgate_local::Table::with_memory(1 << 20)?;
    /// assert!(table.memory() <= 1 << 20);
    /// assert!(table.keys() > 40_000);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn with_memory(bytes: usize) -> Result<Self, TableError> {
        let lines = bytes / size_of::<Line>();
        if lines > Self::MAX_KEYS / 2 {
            return Err(TableError::TooLarge { max: Self::MAX_KEYS });
        }
        match lines {
            0 | 1 => Err(TableError::TooSmall),
            lines => Self::with_lines(lines),
        }
    }

    fn with_lines(lines: usize) -> Result<Self, TableError> {
        // The two lines of a key are never the same.
        let lines = lines.max(2);
        let bytes = lines.saturating_mul(size_of::<Line>());
        let lines =
            Lines::try_new(lines).map_err(|source| TableError::NoMemory { bytes, source })?;
        Ok(Self { lines, owners: AtomicU64::new(0), is_far: bytes > Self::IN_CACHE })
    }

    /// A table of so many bytes can be expected to be in the processor's last cache.
    const IN_CACHE: usize = 48 << 20;

    /// Whether most lines have to come from memory, and not from a cache.
    #[inline(always)]
    pub(crate) const fn is_far(&self) -> bool {
        self.is_far
    }

    /// The memory of the table in bytes, in use or not.
    ///
    /// ```
    /// assert_eq!(tollgate_local::Table::with_memory(6400)?.memory(), 6400);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn memory(&self) -> usize {
        size_of_val::<[Line]>(&self.lines)
    }

    /// How many keys can be live at once before the excess is counted too high.
    ///
    /// ```
    /// assert!(tollgate_local::Table::with_keys(500)?.keys() >= 500);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn keys(&self) -> usize {
        self.memory() * 8 / Self::BITS_PER_KEY
    }

    /// The part of the slots that are not at rest, 0 to 1, estimated from a sample of the table.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// assert_eq!(tollgate_local::Table::with_keys(500)?.occupancy(Tick::ZERO), 0.0);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn occupancy(&self, now: Tick) -> f64 {
        let step = self.lines.len().div_ceil(Self::SAMPLE);
        let (mut live, mut slots) = (0, 0);
        for line in self.lines.iter().step_by(step) {
            live += line.live(now);
            slots += SLOTS;
        }
        live as f64 / slots as f64
    }

    const SAMPLE: usize = 4096;

    /// An owner of slots that nobody else is, until it is [given back](Self::give_back).
    pub(crate) fn new_owner(&self) -> Owner {
        let free = |owners: u64| owners.trailing_ones().min(Owner::ANY.number());
        let take = |owners| Some(owners | 1 << free(owners));
        // `take` always answers, so this cannot fail.
        let (Ok(owners) | Err(owners)) =
            self.owners.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        match free(owners) {
            number if number < Owner::ANY.number() => Owner::numbered(number),
            _ => Owner::ANY,
        }
    }

    /// Ends an owner. Slots that are left of it may pass for those of the next one, and are then
    /// counted there as well: too high, never too low.
    pub(crate) fn give_back(&self, owner: Owner) {
        if owner != Owner::ANY {
            self.owners.fetch_and(!(1 << owner.number()), Ordering::AcqRel);
        }
    }

    /// Where the key may stand.
    #[inline(always)]
    pub(crate) fn place(&self, hash: KeyHash) -> Place<'_> {
        self.places().of(hash)
    }

    /// Where keys may stand, for whoever looks for many of them.
    #[inline(always)]
    pub(crate) fn places(&self) -> Places<'_> {
        Places(&self.lines)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("memory", &self.memory()).finish_non_exhaustive()
    }
}

/// A slot as one key sees it. Spots are ordered, the same for everybody who looks for the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    which: Which,
    pub(crate) slot: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    First,
    Second,
}

impl Which {
    const BOTH: [Self; 2] = [Self::First, Self::Second];
}

/// What a table holds of a key.
pub(crate) enum Found {
    /// A slot with its state.
    Owned(Spot),
    /// A slot that is passing to it, and the claim.
    Claimed(Spot, Claim),
}

/// All lines of a table.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a>(&'a [Line]);

impl<'a> Places<'a> {
    #[inline(always)]
    pub(crate) fn of(self, hash: KeyHash) -> Place<'a> {
        Place { all: self, hash: hash.0, first: self.line(hash.0), tag: Tag::new(hash.0) }
    }

    /// The number of the line that a hash chooses first. No table has more lines than numbers: they
    /// would take 256 GB.
    #[inline(always)]
    pub(crate) fn number(self, hash: KeyHash) -> u32 {
        ((u128::from(hash.0) * self.0.len() as u128) >> 64) as u32
    }

    #[inline(always)]
    pub(crate) fn at(self, number: u32) -> &'a Line {
        &self.0[number as usize]
    }

    #[inline(always)]
    pub(crate) fn prefetch(self, number: u32) {
        prefetch(&self.0[number as usize]);
    }

    /// The line that the high bits of `hash` choose.
    #[inline(always)]
    fn line(self, hash: u64) -> &'a Line {
        &self.0[((u128::from(hash) * self.0.len() as u128) >> 64) as usize]
    }
}

/// The two lines of a key.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    all: Places<'a>,
    hash: u64,
    first: &'a Line,
    pub(crate) tag: Tag,
}

impl<'a> Place<'a> {
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch(self.first);
    }

    #[inline]
    pub(crate) fn prefetch_second(&self) {
        prefetch(self.second());
    }

    #[inline(always)]
    pub(crate) const fn first(&self) -> &'a Line {
        self.first
    }

    pub(crate) fn second(&self) -> &'a Line {
        let hash = self.hash.wrapping_mul(MULTIPLIER);
        let second = self.all.line(hash);
        if !std::ptr::eq(second, self.first) {
            return second;
        }
        // A table has at least two lines, and the other half of the numbers another line.
        self.all.line(hash ^ (1 << 63))
    }

    /// The state of the key, if it has one.
    pub(crate) fn read(&self) -> Option<Word> {
        let read = self.first().read(self.tag).or_else(|| self.second().read(self.tag));
        // A slot before the key's own may carry its tag while it passes to another key.
        read.or_else(|| match self.look(None) {
            Some(Found::Owned(spot)) => self.line(spot).read_at(spot.slot, self.tag),
            _ => None,
        })
    }

    /// What there is of the key, but not in the spot `except`: its slot, or else a claim.
    pub(crate) fn look(&self, except: Option<Spot>) -> Option<Found> {
        let mut claimed = None;
        for spot in Self::spots().filter(|spot| Some(*spot) != except) {
            match self.found(spot) {
                Some(found @ Found::Owned(_)) => return Some(found),
                found => claimed = claimed.or(found),
            }
        }
        claimed
    }

    /// Where the key may stand, in order.
    pub(crate) fn spots() -> impl Iterator<Item = Spot> {
        Which::BOTH.into_iter().flat_map(|which| (0..SLOTS).map(move |slot| Spot { which, slot }))
    }

    /// What there is of the key in one spot.
    pub(crate) fn found(&self, spot: Spot) -> Option<Found> {
        match self.line(spot).owner(spot.slot) {
            Ok(tag) => (tag == self.tag).then_some(Found::Owned(spot)),
            Err(claim) => (claim.tag() == self.tag).then_some(Found::Claimed(spot, claim)),
        }
    }

    #[inline]
    pub(crate) fn line(&self, spot: Spot) -> &'a Line {
        match spot.which {
            Which::First => self.first(),
            Which::Second => self.second(),
        }
    }

    /// The live key of this owner that stands where this one may and has most left, as `left` says.
    pub(crate) fn lightest(
        &self,
        owner: Owner,
        now: Tick,
        left: impl Fn(Word, Tag) -> u64,
    ) -> Option<Lightest> {
        let of_line = |which| {
            let line = self.line(Spot { which, slot: 0 });
            line.of_owner(owner, now).map(move |found| (which, found))
        };
        let weigh = |(which, (vacancy, tag)): (Which, (Vacancy, Tag))| Lightest {
            spot: Spot { which, slot: vacancy.slot },
            vacancy,
            tag,
            left: left(vacancy.word, tag),
        };
        Which::BOTH.into_iter().flat_map(of_line).map(weigh).max_by_key(|key| key.left)
    }

    /// The slot for a new key, or `None` if all are live.
    pub(crate) fn vacancy(&self, now: Tick) -> Option<(Spot, Vacancy)> {
        let (one, two) = (self.first().survey(now), self.second().survey(now));
        // The last slot of a line is kept for keys whose other line is full as well.
        let crowded = one.live >= SLOTS - 1 && two.live + 1 < one.live;
        // A key that is at rest now may come back, so slots nobody has used yet come first.
        let used = |survey: &Survey| survey.vacancy.is_some_and(|vacancy| vacancy.is_used());
        let second_is_new = used(&one) && !used(&two);
        let spot = |which| move |vacancy: Vacancy| (Spot { which, slot: vacancy.slot }, vacancy);
        let one = one.vacancy.map(spot(Which::First));
        let two = two.vacancy.map(spot(Which::Second));
        if crowded || second_is_new { two.or(one) } else { one.or(two) }
    }
}

/// A key that has a slot and could do without.
pub(crate) struct Lightest {
    pub(crate) spot: Spot,
    pub(crate) vacancy: Vacancy,
    pub(crate) tag: Tag,
    /// What it has left.
    pub(crate) left: u64,
}

/// What a decision is about to do to a state. A trait and not a closure, because it must be inlined
/// into the search for the state.
pub(crate) trait Deciding {
    /// Decides about a state. Another state takes its place by a replacement, which may fail, and
    /// then nothing is decided.
    fn decide(&self, own: &Own<'_>) -> Result<Decision, Failed>;
}

/// A cost that is spent at a time, by any machine.
#[derive(Clone, Copy)]
pub(crate) struct Spend<'a> {
    pub(crate) machine: &'a Machine,
    /// By which other limits know it.
    pub(crate) key: KeyHash,
    pub(crate) now: Tick,
    pub(crate) cost: u64,
    pub(crate) phase: Phase,
    /// Whether nothing is spent for what may pass only after a delay.
    pub(crate) at_once: bool,
}

impl Spend<'_> {
    #[inline]
    pub(crate) fn step(&self, word: Word) -> Step {
        let step = self.machine.step(word, self.now, self.cost, self.phase);
        match self.at_once && !step.decision.delay().is_zero() {
            true => Step { word, ..step },
            false => step,
        }
    }
}

impl Deciding for Spend<'_> {
    #[inline]
    fn decide(&self, own: &Own<'_>) -> Result<Decision, Failed> {
        own.make(self.step(own.word))
    }
}

/// An attempt to decide at one line, compiled for each algorithm.
pub(crate) struct Attempt<'a> {
    pub(crate) line: &'a Line,
    pub(crate) tag: Tag,
}

impl StepUser for Attempt<'_> {
    type Output = Result<Decision, Failed>;

    #[inline(always)]
    fn with(self, step: &impl BoundStep) -> Result<Decision, Failed> {
        self.line.attempt(self.tag, &Often(step))
    }
}

/// A step that is made often enough to be worth a copy for each algorithm.
struct Often<'a, S>(&'a S);

impl<S: BoundStep> Deciding for Often<'_, S> {
    #[inline(always)]
    fn decide(&self, own: &Own<'_>) -> Result<Decision, Failed> {
        own.make(self.0.step(own.word))
    }
}

/// The decision is made after the replacement, so that nothing of it has to be kept during it.
impl Deciding for UsualAsk<'_> {
    #[inline(always)]
    fn decide(&self, own: &Own<'_>) -> Result<Decision, Failed> {
        match self.spend(own.word) {
            Some(word) => {
                own.replace(word)?;
                Ok(self.allowed(word))
            }
            None => Ok(self.denied(own.word)),
        }
    }
}

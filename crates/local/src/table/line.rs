//! A set of slots in one cache line.
//!
//! ```text
//!   0       8       16      24      32      40   44   48   52   56   60   64
//!   | state | state | state | state | state | tag| tag| tag| tag| tag|owners|
//! ```
//!
//! A slot belongs to the key whose tag it carries. Its state is a [`Word`], or a *claim*: then it
//! is passing to the key whose tag is in the claim, and belongs to nobody else any more.
//!
//! What follows from the order in which claimers write (claim, then tag, then state) and readers
//! read (state, then tag): whoever reads a state and afterwards finds its own tag has read its
//! own state, or one that a compare-and-swap will find changed.

use tollgate_core::{Decision, Step, Tick, Word};

use crate::key::KeyHash;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use crate::table::{Deciding, tags};

/// Slots in a line. Models with loom have fewer, to have fewer interleavings.
pub(crate) const SLOTS: usize = if cfg!(loom) { 1 } else { 5 };

#[cfg_attr(not(loom), repr(C, align(64)))]
#[derive(Default)]
pub(crate) struct Line {
    states: [AtomicU64; SLOTS],
    tags: [AtomicU32; SLOTS],
    /// Six bits for each slot: whose counters its key belongs to.
    owners: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == 64);

/// The part of a key's hash that its slot carries. Never 0, which no key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u32);

/// The counters of a limit, as slots know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    /// One of too many to be told apart.
    pub(crate) const ANY: Self = Self((1 << Self::BITS) - 1);

    const BITS: usize = 6;

    /// The owner of this number, which is less than [`ANY`](Self::ANY)'s.
    pub(crate) const fn numbered(number: u32) -> Self {
        Self(number % Self::ANY.0)
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}

/// Why a line could not be used to decide.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The key has no state here that can be used.
    Absent,
    /// Somebody else changed the state at the same time.
    Contended,
}

/// A slot with the state that was read from it, which belonged to the key that looked.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    line: &'a Line,
    slot: usize,
    tag: Tag,
    pub(crate) word: Word,
}

/// The state of a slot that is passing to another key: the new tag, and how often somebody asked
/// the claimer to look at the sketch again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim(u64);

/// A slot that may be claimed, as long as its state is this.
#[derive(Clone, Copy)]
pub(crate) struct Vacancy {
    pub(crate) slot: usize,
    pub(crate) word: Word,
}

/// How full a line is.
pub(crate) struct Survey {
    /// Slots that are not at rest.
    pub(crate) live: usize,
    /// The slot that has been at rest for the longest.
    pub(crate) vacancy: Option<Vacancy>,
}

impl Vacancy {
    /// Whether a key has stood here before.
    pub(crate) fn is_used(&self) -> bool {
        self.word != Word::REST
    }
}

impl Tag {
    #[inline]
    pub(crate) const fn new(hash: u64) -> Self {
        Self(hash as u32 | 1)
    }

    /// A hash with this tag: all that a line knows of its key, and all that a sketch needs.
    pub(crate) const fn as_hash(self) -> KeyHash {
        KeyHash(self.0 as u64)
    }
}

impl Claim {
    const fn new(tag: Tag) -> Self {
        Self(Word::END | tag.0 as u64)
    }

    const fn from_bits(bits: u64) -> Option<Self> {
        if bits >= Word::END { Some(Self(bits)) } else { None }
    }

    pub(crate) const fn tag(self) -> Tag {
        Tag(self.0 as u32)
    }

    /// The claim after somebody asked once more; `None` if it cannot be counted any more.
    const fn nudged(self) -> Option<Self> {
        match self.0.checked_add(1 << 32) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }
}

impl Own<'_> {
    /// Makes a step, and answers with its decision.
    #[inline(always)]
    pub(crate) fn make(&self, step: Step) -> Result<Decision, Failed> {
        if step.word != self.word {
            self.replace(step.word)?;
        }
        Ok(step.decision)
    }

    /// Puts another state in place of the one that was read, if it is still there.
    #[inline(always)]
    pub(crate) fn replace(&self, new: Word) -> Result<(), Failed> {
        let (old, new) = (self.word.bits(), new.bits());
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        match self.line.states[self.slot].compare_exchange(old, new, success, failure) {
            // A refund or a reset can make an old state come again, under another key. Then that
            // key was charged, which is safe, and ours was not, so it has to be.
            Ok(_) if self.line.tag(self.slot) == self.tag => Ok(()),
            Ok(_) => Err(Failed::Absent),
            Err(_) => Err(Failed::Contended),
        }
    }
}

impl Line {
    /// Decides at this line if the key is here, and nobody interferes.
    #[inline(always)]
    pub(crate) fn attempt(&self, tag: Tag, spend: &impl Deciding) -> Result<Decision, Failed> {
        match self.find(tag) {
            Some(slot) => self.attempt_at(slot, tag, spend),
            None => Err(Failed::Absent),
        }
    }

    /// The same in one slot of the line.
    #[inline(always)]
    pub(crate) fn attempt_at(
        &self,
        slot: usize,
        tag: Tag,
        spend: &impl Deciding,
    ) -> Result<Decision, Failed> {
        let Some(own) = self.own(slot, tag) else { return Err(Failed::Absent) };
        spend.decide(&own)
    }

    /// The key's slot with its state, if it is here.
    #[inline(always)]
    pub(crate) fn look(&self, tag: Tag) -> Option<Own<'_>> {
        self.own(self.find(tag)?, tag)
    }

    /// Puts what `change` makes of it in place of the key's state, if it is here. `change` may
    /// decline.
    pub(crate) fn change(
        &self,
        tag: Tag,
        change: impl FnOnce(Word) -> Option<Word>,
    ) -> Result<(), Failed> {
        let slot = self.find(tag).ok_or(Failed::Absent)?;
        self.change_at(slot, tag, change)
    }

    /// Puts what `change` makes of it in place of a slot's state, if it still belongs to the key.
    pub(crate) fn change_at(
        &self,
        slot: usize,
        tag: Tag,
        change: impl FnOnce(Word) -> Option<Word>,
    ) -> Result<(), Failed> {
        let own = self.own(slot, tag).ok_or(Failed::Absent)?;
        own.replace(change(own.word).ok_or(Failed::Absent)?)
    }

    /// The state of a slot, if it is a state and belongs to the key.
    #[inline(always)]
    fn own(&self, slot: usize, tag: Tag) -> Option<Own<'_>> {
        let word = Word::from_bits(self.states[slot].load(Ordering::Acquire))?;
        (self.tag(slot) == tag).then_some(Own { line: self, slot, tag, word })
    }

    /// The state of the key, if it is here.
    #[inline]
    pub(crate) fn read(&self, tag: Tag) -> Option<Word> {
        self.read_at(self.find(tag)?, tag)
    }

    /// The state of a slot, if it belongs to the key.
    pub(crate) fn read_at(&self, slot: usize, tag: Tag) -> Option<Word> {
        self.own(slot, tag).map(|own| own.word)
    }

    /// The first slot with this tag.
    #[inline(always)]
    fn find(&self, tag: Tag) -> Option<usize> {
        let found = tags::matches(&self.tags, tag.0);
        (found != 0).then(|| found.trailing_zeros() as usize % SLOTS)
    }

    #[inline(always)]
    fn tag(&self, slot: usize) -> Tag {
        Tag(self.tags[slot].load(Ordering::Acquire))
    }

    /// The claim on a slot, if it is passing to another key, or else its owner.
    pub(crate) fn owner(&self, slot: usize) -> Result<Tag, Claim> {
        match Claim::from_bits(self.states[slot].load(Ordering::Acquire)) {
            Some(claim) => Err(claim),
            None => Ok(self.tag(slot)),
        }
    }

    pub(crate) fn survey(&self, now: Tick) -> Survey {
        let mut survey = Survey { live: 0, vacancy: None };
        for slot in 0..SLOTS {
            let word = Word::from_bits(self.states[slot].load(Ordering::Acquire));
            match word.filter(|word| word.is_at_rest(now)) {
                None => survey.live += 1,
                Some(word) if survey.vacancy.is_none_or(|best| word < best.word) => {
                    survey.vacancy = Some(Vacancy { slot, word });
                }
                Some(_) => {}
            }
        }
        survey
    }

    /// The live keys of this owner: their slots and tags.
    pub(crate) fn of_owner(&self, owner: Owner, now: Tick) -> impl Iterator<Item = (Vacancy, Tag)> {
        (0..SLOTS).filter_map(move |slot| {
            let word = Word::from_bits(self.states[slot].load(Ordering::Acquire))?;
            let is_one = !word.is_at_rest(now) && self.owner_of(slot) == owner;
            is_one.then(|| (Vacancy { slot, word }, self.tag(slot)))
        })
    }

    pub(crate) fn owner_of(&self, slot: usize) -> Owner {
        Owner(self.owners.load(Ordering::Acquire) >> (slot * Owner::BITS) & Owner::ANY.0)
    }

    /// Takes a slot out of service for `tag`. `false` if its state has changed. What the
    /// caller reads afterwards, it reads after the claim can be seen by others.
    pub(crate) fn claim(&self, vacancy: Vacancy, tag: Tag) -> bool {
        let (old, new) = (vacancy.word.bits(), Claim::new(tag).0);
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let claimed = self.states[vacancy.slot].compare_exchange(old, new, success, failure);
        fence(Ordering::SeqCst);
        claimed.is_ok()
    }

    /// The tag of a claimed slot: of the key that had it.
    pub(crate) fn former_tag(&self, slot: usize) -> Tag {
        self.tag(slot)
    }

    /// Leaves a claimed slot to nobody. Not to the key it was taken from: that may have come back
    /// in the meantime, found its slot gone, and got another one.
    pub(crate) fn abandon(&self, slot: usize) {
        self.tags[slot].store(0, Ordering::Release);
        self.states[slot].store(Word::REST.bits(), Ordering::Release);
    }

    /// Makes a claimed slot the key's own, with the state that `step` gives it. `step` runs again
    /// for as long as others ask for another look.
    pub(crate) fn publish(
        &self,
        slot: usize,
        tag: Tag,
        owner: Owner,
        mut step: impl FnMut() -> Step,
    ) -> Decision {
        self.tags[slot].store(tag.0, Ordering::Release);
        // Nobody but the claimer writes these bits.
        let change = self.owner_of(slot).0 ^ owner.0;
        if change != 0 {
            self.owners.fetch_xor(change << (slot * Owner::BITS), Ordering::AcqRel);
        }
        let state = &self.states[slot];
        let mut claim = state.load(Ordering::Acquire);
        loop {
            let Step { word, decision } = step();
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match state.compare_exchange(claim, word.bits(), success, failure) {
                Ok(_) => return decision,
                Err(nudged) => claim = nudged,
            }
        }
    }

    /// Asks a claimer for another look at the sketch. `false` if the claim has changed.
    pub(crate) fn nudge(&self, slot: usize, claim: Claim) -> bool {
        let Some(nudged) = claim.nudged() else { return false };
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.states[slot].compare_exchange(claim.0, nudged.0, success, failure).is_ok()
    }

    /// How many slots are not at rest.
    pub(crate) fn live(&self, now: Tick) -> usize {
        self.survey(now).live
    }
}

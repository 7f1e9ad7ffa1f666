//! A set of slots in one cache line.
//!
//! ```text
//!   0       8       16      24      32      40   44   48   52   56   60   64
//!   | state | state | state | state | state | tag| tag| tag| tag| tag|free|
//! ```
//!
//! A slot belongs to the key whose tag it carries. Its state is a [`Word`], or a *claim*: then it
//! is passing to the key whose tag is in the claim, and belongs to nobody else any more.
//!
//! What follows from the order in which claimers write (claim, then tag, then state) and readers
//! read (state, then tag): whoever reads a state and afterwards finds its own tag has read its
//! own state, or one that a compare-and-swap will find changed.

use tollgate_core::{Decision, Step, Tick, Word};

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::table::Spend;

/// Slots in a line. Models with loom have fewer, to have fewer interleavings.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 5 };

#[cfg_attr(not(loom), repr(C, align(64)))]
#[derive(Default)]
pub(crate) struct Line {
    states: [AtomicU64; SLOTS],
    tags: [AtomicU32; SLOTS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == 64);

/// The part of a key's hash that its slot carries. Never 0, which no key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u32);

/// What came of trying to decide at one line.
pub(crate) enum Attempt {
    /// Decided.
    Done(Decision),
    /// The key has no state here that can be used.
    Absent,
    /// Somebody else changed the state at the same time.
    Contended,
}

/// What a line holds of one key.
pub(crate) enum Found {
    /// The slot with its state.
    Owned(usize),
    /// A slot that is passing to it, and the claim.
    Claimed(usize, Claim),
}

/// The state of a slot that is passing to another key: the new tag, and how often somebody asked
/// the claimer to look at the sketch again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim(u64);

/// A slot at rest, free to be claimed.
#[derive(Clone, Copy)]
pub(crate) struct Vacancy {
    pub(crate) slot: usize,
    word: Word,
}

/// How full a line is.
pub(crate) struct Survey {
    /// Slots that are not at rest.
    pub(crate) live: usize,
    /// The slot that has been at rest for the longest.
    pub(crate) vacancy: Option<Vacancy>,
}

impl Tag {
    #[inline]
    pub(crate) const fn new(hash: u64) -> Self {
        let low = hash as u32;
        Self(if low == 0 { 1 } else { low })
    }
}

impl Claim {
    const fn new(tag: Tag) -> Self {
        Self(Word::END | tag.0 as u64)
    }

    const fn from_bits(bits: u64) -> Option<Self> {
        if bits >= Word::END { Some(Self(bits)) } else { None }
    }

    const fn tag(self) -> Tag {
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

impl Line {
    /// Decides at this line if the key is here, and nobody interferes.
    #[inline(always)]
    pub(crate) fn attempt(&self, tag: Tag, spend: &Spend<'_>) -> Attempt {
        self.attempt_with(tag, |word| Some(spend.step(word)))
    }

    /// Applies `step` to the state of the key if it is here. `step` may decline.
    #[inline(always)]
    pub(crate) fn attempt_with(
        &self,
        tag: Tag,
        step: impl FnOnce(Word) -> Option<Step>,
    ) -> Attempt {
        match self.find(tag) {
            Some(slot) => self.attempt_at(slot, tag, step),
            None => Attempt::Absent,
        }
    }

    /// Applies `step` to the state of a slot if it still belongs to the key. `step` may decline.
    #[inline(always)]
    pub(crate) fn attempt_at(
        &self,
        slot: usize,
        tag: Tag,
        step: impl FnOnce(Word) -> Option<Step>,
    ) -> Attempt {
        let state = &self.states[slot];
        let bits = state.load(Ordering::Acquire);
        let Some(word) = Word::from_bits(bits) else { return Attempt::Absent };
        if self.tag(slot) != tag {
            return Attempt::Absent;
        }
        let Some(step) = step(word) else { return Attempt::Absent };
        if step.word == word {
            return Attempt::Done(step.decision);
        }
        let new = step.word.bits();
        match state.compare_exchange(bits, new, Ordering::AcqRel, Ordering::Acquire) {
            // A refund or a reset can make an old state come again, under another key. Then that
            // key was charged, which is safe, and ours was not, so it has to be.
            Ok(_) if self.tag(slot) == tag => Attempt::Done(step.decision),
            Ok(_) => Attempt::Absent,
            Err(_) => Attempt::Contended,
        }
    }

    /// The state of the key, if it is here.
    #[inline]
    pub(crate) fn read(&self, tag: Tag) -> Option<Word> {
        let slot = self.find(tag)?;
        let word = Word::from_bits(self.states[slot].load(Ordering::Acquire))?;
        (self.tag(slot) == tag).then_some(word)
    }

    #[inline(always)]
    fn find(&self, tag: Tag) -> Option<usize> {
        let mut found = 0u32;
        for slot in 0..SLOTS {
            found |= u32::from(self.tags[slot].load(Ordering::Relaxed) == tag.0) << slot;
        }
        (found != 0).then(|| found.trailing_zeros() as usize % SLOTS)
    }

    #[inline(always)]
    fn tag(&self, slot: usize) -> Tag {
        Tag(self.tags[slot].load(Ordering::Acquire))
    }

    /// What this line holds of the key, claims included; `except` is not looked at. Together with
    /// claims, which are sequentially consistent too, this decides who of two claimers of one key
    /// was first.
    pub(crate) fn look(&self, tag: Tag, except: Option<usize>) -> Option<Found> {
        (0..SLOTS).filter(|slot| Some(*slot) != except).find_map(|slot| {
            let bits = self.states[slot].load(Ordering::SeqCst);
            match Claim::from_bits(bits) {
                Some(claim) => (claim.tag() == tag).then_some(Found::Claimed(slot, claim)),
                None => {
                    (self.tags[slot].load(Ordering::SeqCst) == tag.0).then_some(Found::Owned(slot))
                }
            }
        })
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

    /// Takes a slot at rest out of service for `tag`. `false` if its state has changed.
    pub(crate) fn claim(&self, vacancy: Vacancy, tag: Tag) -> bool {
        let (old, new) = (vacancy.word.bits(), Claim::new(tag).0);
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        self.states[vacancy.slot].compare_exchange(old, new, success, failure).is_ok()
    }

    /// Gives a claimed slot back to the key it was taken from, which was at rest.
    pub(crate) fn abandon(&self, vacancy: Vacancy) {
        self.states[vacancy.slot].store(vacancy.word.bits(), Ordering::SeqCst);
    }

    /// Makes a claimed slot the key's own, with the state that `step` gives it. `step` runs again
    /// for as long as others ask for another look.
    pub(crate) fn publish(
        &self,
        slot: usize,
        tag: Tag,
        mut step: impl FnMut() -> Step,
    ) -> Decision {
        self.tags[slot].store(tag.0, Ordering::SeqCst);
        let state = &self.states[slot];
        let mut claim = state.load(Ordering::SeqCst);
        loop {
            let Step { word, decision } = step();
            let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
            match state.compare_exchange(claim, word.bits(), success, failure) {
                Ok(_) => return decision,
                Err(nudged) => claim = nudged,
            }
        }
    }

    /// Asks a claimer for another look at the sketch. `false` if the claim has changed.
    pub(crate) fn nudge(&self, slot: usize, claim: Claim) -> bool {
        let Some(nudged) = claim.nudged() else { return false };
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        self.states[slot].compare_exchange(claim.0, nudged.0, success, failure).is_ok()
    }

    /// How many slots are not at rest.
    pub(crate) fn live(&self, now: Tick) -> usize {
        self.survey(now).live
    }
}

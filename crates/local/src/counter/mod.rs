//! The way of a decision through a table: the counters of one limit.
//!
//! ```text
//!   borrowed? -----> yes: spend what this thread holds
//!      | no
//!   first line ----> there: one compare-and-swap, or none if denied
//!      | absent
//!   second line ---> there: the same
//!      | absent
//!   a slot at rest?  yes: claim it, take over what the sketch knows of the key, publish
//!      | no
//!   sketch --------> decide in a cell shared with others, and tell whoever is claiming a slot
//!      |             for the same key at the same time
//!   heavy? --------> takes the slot of the lightest of its neighbours, which goes to the sketch
//! ```
//!
//! # Why nothing is under-counted
//!
//! *A key never has two slots.* Whoever claims a slot for a key looks afterwards whether there is
//! another one, owned or claimed, and backs out if so, or waits until the other one has. A fence
//! stands between the claim and the look: of two claimers at least one sees the other.
//!
//! *What was spent in the sketch is not forgotten when the key gets a slot.* The claimer reads
//! the sketch after its claim; whoever spends in the sketch looks for a claim afterwards, again
//! with fences in between. At least one sees the other: either the claimer has read the spending,
//! or the spender nudges the claim, so that the claimer reads again, or finds the published slot,
//! takes its spending back, and asks there. Of several claims it nudges all: any of them may be
//! the one that is published.
//!
//! *A key that loses its slot to a heavier one is not forgotten.* Its cell learns its state before
//! the slot is claimed, and the claim fails if it has spent more in the meantime. A cell that is no
//! less strict than the state of any of its keys stays so, whichever of them spends. It would not
//! if another took back what it had spent there, so nobody does once a key has come that way.
//!
//! *A key at rest is no key.* A claimer takes the time after it holds the slot, and whoever goes
//! to the sketch after having looked for a slot, so nobody who is late brings an older time to a
//! key whose state was dropped at a later one. A claimer that backs out leaves the slot to nobody:
//! the key that had it may have another one by then.
//!
//! *What was spent under a limit before this one is not forgotten.* A key that has no slot has at
//! least the state that its [past](crate::past) tells: claimers publish no less, and a cell learns it
//! together with what is spent there. Nobody takes back from a cell of such counters.

mod back;
mod batch;
mod overflow;
mod prepared;
mod settle;
mod throttle;

pub(crate) use batch::Batch;
pub use prepared::Prepared;

use overflow::Heavy;
use settle::Patience;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Decision, Machine, Phase, Tick, Usual, Word};

use crate::clock::Clock;
use crate::counters::Pressure;
use crate::key::{KeyHash, Salt, Salted};
use crate::loan::{self, Borrower, Spending};
use crate::past::Before;
use crate::sketch::Sketch;
use crate::table::{Attempt, Failed, Line, Owner, Place, SLOTS, Spend, Table, Tag};

/// Where a decision that puts a key into a slot gets a fresh time from.
pub(crate) type Refresh<'a> = &'a dyn Fn() -> Tick;

/// The counters of one limit, whose states fit a word, in a table shared with others.
pub(crate) struct Counter {
    table: Arc<Table>,
    machine: Machine,
    usual: Usual,
    /// Keeps the keys of different limits apart.
    salt: Salt,
    /// Whose the slots are.
    owner: Owner,
    sketch: Sketch,
    heavy: Heavy,
    borrower: Borrower,
    /// What keys had spent before the limit was this one.
    before: Option<Before>,
    overflowed: AtomicU64,
    promoted: AtomicU64,
}

impl Counter {
    /// The counters of one of so many limits that share the table.
    pub(crate) fn new(
        table: &Arc<Table>,
        machine: Machine,
        among: usize,
        salt: Salt,
        before: Option<Before>,
    ) -> Self {
        let slots = table.memory() / size_of::<Line>() * SLOTS;
        let of_all = (slots / Self::SLOTS_PER_CELL).max(Self::MIN_CELLS);
        let cells = (of_all / among.max(1)).max(Self::MIN_CELLS_OF_MANY);
        let cells = if cfg!(loom) { 2 } else { cells };
        let owner = table.new_owner();
        let sketch = match before {
            Some(_) => Sketch::always_joined(cells),
            None => Sketch::with_cells(cells),
        };
        Self {
            table: Arc::clone(table),
            usual: machine.usual(),
            machine,
            salt,
            owner,
            heavy: Heavy::new(owner, cells),
            sketch,
            borrower: Borrower::new(),
            before,
            overflowed: AtomicU64::new(0),
            promoted: AtomicU64::new(0),
        }
    }

    const SLOTS_PER_CELL: usize = 64;
    const MIN_CELLS: usize = 512;
    const MIN_CELLS_OF_MANY: usize = 16;

    /// Starts to load what the next decision on this key will need.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        let place = self.table.place(hash.salted(self.salt));
        place.prefetch();
        if self.table.is_far() {
            place.prefetch_second();
        }
    }

    #[inline(always)]
    pub(crate) fn check(&self, key: KeyHash, cost: u64, clock: &impl Clock) -> Decision {
        let key = Salted::new(key, self.salt);
        let place = self.table.place(key.hash);
        place.prefetch();
        if self.table.is_far() {
            // It is better asked for in vain than waited for when the first does not have the key.
            place.prefetch_second();
        }
        // The clock is read while the memory is under way.
        let now = clock.now();
        match self.check_first(place, key.hash, cost, now) {
            Ok(decision) => decision,
            Err(why) => self.check_on(key, cost, &mut { now }, why, || clock.now()),
        }
    }

    /// As [`check`](Self::check), at a time that was read before. If the decision had to be made
    /// at a later one, `now` says so.
    #[inline(always)]
    pub(crate) fn check_at(
        &self,
        key: KeyHash,
        cost: u64,
        now: &mut Tick,
        refresh: impl Fn() -> Tick,
    ) -> Decision {
        let key = Salted::new(key, self.salt);
        let place = self.table.place(key.hash);
        // With no clock to read in between, decisions that follow each other overlap, until one
        // has to wait for its second line: it is better asked for in vain.
        place.prefetch_second();
        match self.check_first(place, key.hash, cost, *now) {
            Ok(decision) => decision,
            Err(why) => {
                let mut later = *now;
                let decision = self.check_on(key, cost, &mut later, why, refresh);
                *now = later;
                decision
            }
        }
    }

    /// As [`check`](Self::check), but a place in a queue is not taken.
    pub(crate) fn check_at_once(&self, key: KeyHash, cost: u64, clock: &impl Clock) -> Decision {
        let key = Salted::new(key, self.salt);
        let mut spend = Spend { at_once: true, ..self.spend(key, cost, clock.now()) };
        self.check_new(key.hash, &mut spend, false, &|| clock.now())
    }

    /// What [`check`](Self::check) would answer.
    pub(crate) fn would(&self, key: KeyHash, cost: u64, now: Tick) -> Decision {
        let key = Salted::new(key, self.salt);
        self.spend(key, cost, now).step(self.read(key, now)).decision
    }

    /// The same, with what is left now in place of what would be left afterwards.
    pub(crate) fn peek(&self, key: KeyHash, cost: u64, now: Tick) -> Decision {
        let key = Salted::new(key, self.salt);
        let word = self.read(key, now);
        if let Some(ask) = self.usual.at(now, cost) {
            return ask.looked(word);
        }
        let would = self.spend(key, cost, now).step(word).decision;
        would.with_remaining_of(self.spend(key, 0, now).step(word).decision)
    }

    pub(crate) fn pressure(&self) -> Pressure {
        Pressure {
            overflowed: self.overflowed.load(Ordering::Relaxed),
            promoted: self.promoted.load(Ordering::Relaxed),
            memory: self.sketch.memory(),
        }
    }

    pub(crate) const fn salt(&self) -> Salt {
        self.salt
    }

    pub(crate) fn rested_by(&self, now: Tick) -> Tick {
        self.machine.rested_by(now)
    }

    pub(crate) const fn before(&self) -> Option<&Before> {
        self.before.as_ref()
    }

    #[inline(always)]
    fn spend(&self, key: Salted, cost: u64, now: Tick) -> Spend<'_> {
        let phase = self.sketch.phase(key.hash);
        Spend { machine: &self.machine, key: key.key, now, cost, phase, at_once: false }
    }

    fn read(&self, key: Salted, now: Tick) -> Word {
        self.table.place(key.hash).read().unwrap_or_else(|| {
            let phase = self.sketch.phase(key.hash);
            let base = self.base(key.key, phase, now);
            self.machine.join(self.sketch.read(key.hash, now), base, phase)
        })
    }

    /// The state with which a key begins that has no slot: what it spent in the past, if that
    /// matters.
    fn base(&self, key: KeyHash, phase: Phase, now: Tick) -> Word {
        let Some(before) = &self.before else { return Word::REST };
        match before.spent(key, now).map(|spent| self.machine.rebased(before.since, spent, phase)) {
            Some(word) if !word.is_at_rest(now) => word,
            _ => Word::REST,
        }
    }

    /// Decides at the first line, as nearly all decisions are. Nothing but that is inlined into
    /// callers, and they are not kept from having their numbers in registers.
    #[inline(always)]
    fn check_first(
        &self,
        place: Place<'_>,
        hash: KeyHash,
        cost: u64,
        now: Tick,
    ) -> Result<Decision, Undecided> {
        if loan::may_hold(hash) {
            return Err(Undecided::MayHold);
        }
        let Some(ask) = self.usual.at(now, cost) else { return Err(Undecided::Unusual) };
        place.first().attempt(place.tag, &ask).map_err(Undecided::from)
    }

    /// Decides where [`check_first`](Self::check_first) did not: at the first line by any machine,
    /// or on the way of all others.
    #[inline(never)]
    fn check_on(
        &self,
        key: Salted,
        cost: u64,
        now: &mut Tick,
        why: Undecided,
        refresh: impl Fn() -> Tick,
    ) -> Decision {
        if why == Undecided::Unusual {
            let place = self.table.place(key.hash);
            if let Ok(decision) = self.attempt(place.first(), place.tag, key.hash, cost, *now) {
                return decision;
            }
        }
        self.check_late(key, cost, now, why, &refresh)
    }

    /// Decides at a line, by any machine.
    #[inline(always)]
    fn attempt(
        &self,
        line: &Line,
        tag: Tag,
        hash: KeyHash,
        cost: u64,
        now: Tick,
    ) -> Result<Decision, Failed> {
        self.machine.step_with(now, cost, self.sketch.phase(hash), Attempt { line, tag })
    }

    /// Decides with what this thread holds, or at both lines, or where the key is new.
    #[inline(never)]
    fn check_late(
        &self,
        key: Salted,
        cost: u64,
        now: &mut Tick,
        mut why: Undecided,
        refresh: Refresh<'_>,
    ) -> Decision {
        let hash = key.hash;
        let place = self.table.place(hash);
        if why == Undecided::MayHold {
            why = match loan::spend(&self.borrower, hash, cost, *now) {
                Spending::Done(decision) => return decision,
                Spending::UsedUp => Undecided::Contended,
                Spending::NothingHeld => Undecided::Unusual,
            };
        }
        if why == Undecided::Unusual {
            why = match self.attempt(place.first(), place.tag, hash, cost, *now) {
                Ok(decision) => return decision,
                Err(failed) => failed.into(),
            };
        }
        if why == Undecided::Absent
            && let Ok(decision) = self.attempt(place.second(), place.tag, hash, cost, *now)
        {
            return decision;
        }
        let mut spend = self.spend(key, cost, *now);
        let decision = self.check_new(hash, &mut spend, why == Undecided::Contended, refresh);
        *now = spend.now;
        decision
    }

    /// Decides about a key that is in neither line, or on which others decide at the same time.
    #[cold]
    #[inline(never)]
    fn check_new(
        &self,
        hash: KeyHash,
        spend: &mut Spend<'_>,
        mut contended: bool,
        refresh: Refresh<'_>,
    ) -> Decision {
        let place = self.table.place(hash);
        let mut patience = Patience::default();
        'decided: loop {
            if contended && let Some(decision) = self.borrow(place, hash, spend) {
                break decision;
            }
            for line in [place.second(), place.first()] {
                contended = match line.attempt(place.tag, spend) {
                    Ok(decision) => break 'decided decision,
                    Err(failed) => failed == Failed::Contended,
                };
                if contended {
                    continue 'decided;
                }
            }
            if let Some(decision) = self.settle(place, hash, spend, &mut patience, refresh) {
                break decision;
            }
        }
    }

    /// Somebody else spends from the same key at the same time. If there is plenty, this thread
    /// borrows, and leaves the line alone for a while. `None` if the key is not there any more.
    #[cold]
    fn borrow(&self, place: Place<'_>, hash: KeyHash, spend: &Spend<'_>) -> Option<Decision> {
        let mut lines = [place.first(), place.second()].into_iter().peekable();
        while let Some(line) = lines.peek() {
            let (epoch, want) =
                (self.borrower.epoch(), loan::want(&self.borrower, hash, spend.cost));
            let mut borrowed = None;
            let changed = line.change(place.tag, |word| {
                epoch?;
                let loan = self.machine.lend(word, spend.now, want, spend.phase)?;
                let left = loan.tokens.checked_sub(spend.cost).filter(|_| spend.cost > 0)?;
                borrowed = Some((loan, left));
                Some(loan.word)
            });
            if let (Ok(()), Some(epoch), Some((loan, left))) = (changed, epoch, borrowed) {
                loan::keep(&self.borrower, epoch, hash, loan, left);
                return Some(loan.decision_with(left));
            }
            match line.attempt(place.tag, spend) {
                Ok(decision) => return Some(decision),
                Err(Failed::Contended) => {}
                Err(Failed::Absent) => _ = lines.next(),
            }
        }
        None
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.table.give_back(self.owner);
    }
}

/// Why a decision was not made at the first line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Undecided {
    /// This thread may hold something of the key.
    MayHold,
    /// The machine is not the usual one, or the cost is not.
    Unusual,
    /// The key is not in the first line.
    Absent,
    /// Somebody else changed the state at the same time.
    Contended,
}

impl From<Failed> for Undecided {
    #[inline(always)]
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Absent => Self::Absent,
            Failed::Contended => Self::Contended,
        }
    }
}

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
//!                    for the same key at the same time
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
//! takes its spending back, and asks there.
//!
//! *A key at rest is no key.* A claimer takes the time after it holds the slot, so nobody who is
//! late brings an older time to a key whose state was dropped at a later one.

mod batch;

pub(crate) use batch::{BATCH, Batch};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Anchor, Decision, Limit, Machine, Phase, Retry, Tick, Word};

use crate::clock::Clock;
use crate::counters::Pressure;
use crate::key::KeyHash;
use crate::loan::{self, Borrower, Spending};
use crate::sketch::{Sketch, Spent};
use crate::sync::pause;
use crate::table::{
    Attempt, Found, Line, OftenSpend, Place, SLOTS, Spend, Stepping, Table, UsualSpend, Vacancy,
};

/// Where a decision that puts a key into a slot gets a fresh time from.
pub(crate) type Refresh<'a> = &'a dyn Fn() -> Tick;

/// The counters of one limit, whose states fit a word, in a table shared with others.
pub(crate) struct Counter {
    table: Arc<Table>,
    machine: Machine,
    /// Keeps the keys of different limits apart.
    salt: u64,
    sketch: Sketch,
    borrower: Borrower,
    overflowed: AtomicU64,
    promoted: AtomicU64,
}

impl Counter {
    /// `None` if the limit's state does not fit a word.
    pub(crate) fn new(
        table: &Arc<Table>,
        limit: &Limit,
        anchor: Anchor,
        salt: u64,
    ) -> Option<Self> {
        let machine = limit.machine(anchor)?;
        let slots = table.memory() / size_of::<Line>() * SLOTS;
        let cells = (slots / Self::SLOTS_PER_CELL).max(Self::MIN_CELLS);
        Some(Self {
            table: Arc::clone(table),
            machine,
            salt,
            sketch: Sketch::with_cells(if cfg!(loom) { 1 } else { cells }),
            borrower: Borrower::new(),
            overflowed: AtomicU64::new(0),
            promoted: AtomicU64::new(0),
        })
    }

    const SLOTS_PER_CELL: usize = 128;
    const MIN_CELLS: usize = 64;

    /// Starts to load what the next decision on this key will need.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        self.table.place(hash.salted(self.salt)).prefetch();
    }

    #[inline(always)]
    pub(crate) fn check(&self, hash: KeyHash, cost: u64, clock: &impl Clock) -> Decision {
        let hash = hash.salted(self.salt);
        let place = self.table.place(hash);
        place.prefetch();
        // The clock is read while the memory is under way.
        self.check_place(place, hash, cost, &mut clock.now(), &|| clock.now())
    }

    #[inline(always)]
    pub(crate) fn check_at(
        &self,
        hash: KeyHash,
        cost: u64,
        now: &mut Tick,
        refresh: Refresh<'_>,
    ) -> Decision {
        let hash = hash.salted(self.salt);
        self.check_place(self.table.place(hash), hash, cost, now, refresh)
    }

    /// The usual machine is inlined into the caller, where what nobody asks for is not even
    /// computed; the others share a function.
    #[inline(always)]
    fn check_place(
        &self,
        place: Place<'_>,
        hash: KeyHash,
        cost: u64,
        now: &mut Tick,
        refresh: Refresh<'_>,
    ) -> Decision {
        let Some(usual) = self.machine.usual() else {
            return self.check_unusual(place, hash, cost, now, refresh);
        };
        let mut answer = Decision::unlimited();
        let spend = UsualSpend { usual, now: *now, cost };
        match self.check_first(place, hash, (cost, *now), &spend, &mut answer) {
            Attempt::Done => answer,
            failed => self.check_late(hash, cost, failed, now, refresh),
        }
    }

    #[inline(never)]
    fn check_unusual(
        &self,
        place: Place<'_>,
        hash: KeyHash,
        cost: u64,
        now: &mut Tick,
        refresh: Refresh<'_>,
    ) -> Decision {
        let mut answer = Decision::unlimited();
        let spend = OftenSpend(self.spend(hash, cost, *now));
        match self.check_first(place, hash, (cost, *now), &spend, &mut answer) {
            Attempt::Done => answer,
            failed => self.check_late(hash, cost, failed, now, refresh),
        }
    }

    /// What [`check`](Self::check) would answer.
    pub(crate) fn would(&self, hash: KeyHash, cost: u64, now: Tick) -> Decision {
        let hash = hash.salted(self.salt);
        self.spend(hash, cost, now).step(self.read(hash, now)).decision
    }

    /// The same, with what is left now in place of what would be left afterwards.
    pub(crate) fn peek(&self, hash: KeyHash, cost: u64, now: Tick) -> Decision {
        let hash = hash.salted(self.salt);
        let word = self.read(hash, now);
        let would = self.spend(hash, cost, now).step(word).decision;
        match would.is_allowed() {
            true => self.spend(hash, 0, now).step(word).decision,
            false => would,
        }
    }

    /// Gives back `cost`. Nothing happens to a key that is counted in the sketch: what it shares
    /// there with others cannot be told apart.
    pub(crate) fn refund(&self, hash: KeyHash, cost: u64, now: Tick) {
        let hash = hash.salted(self.salt);
        let phase = phase(hash);
        self.rewrite(hash, |word| self.machine.refund(word, now, cost, phase));
    }

    /// Takes back `cost` that was spent at `then`, as if it had never been.
    pub(crate) fn undo(&self, hash: KeyHash, cost: u64, then: Tick, now: Tick) {
        let hash = hash.salted(self.salt);
        let undone = |word| self.machine.undo(word, then, now, cost, phase(hash));
        if !self.rewrite(hash, undone) {
            self.sketch.update(hash, undone);
        }
    }

    /// Gives the key its whole budget back. `false` if it is counted in the sketch, together with
    /// others, and cannot be reset alone.
    pub(crate) fn reset(&self, hash: KeyHash, now: Tick) -> bool {
        let hash = hash.salted(self.salt);
        let done = self.rewrite(hash, |_| Word::REST);
        // What was borrowed before is spent before, or not at all.
        self.borrower.recall();
        done || self.sketch.read(hash, now) == Word::REST
    }

    pub(crate) fn pressure(&self) -> Pressure {
        Pressure {
            overflowed: self.overflowed.load(Ordering::Relaxed),
            promoted: self.promoted.load(Ordering::Relaxed),
            memory: self.sketch.memory(),
        }
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        self.machine.is_unlimited()
    }

    #[inline(always)]
    fn spend(&self, hash: KeyHash, cost: u64, now: Tick) -> Spend<'_> {
        Spend { machine: &self.machine, now, cost, phase: phase(hash) }
    }

    fn read(&self, hash: KeyHash, now: Tick) -> Word {
        self.table.place(hash).read().unwrap_or_else(|| self.sketch.read(hash, now))
    }

    /// Changes the state of the key in its slot. `false` if it has none.
    fn rewrite(&self, hash: KeyHash, change: impl Fn(Word) -> Word) -> bool {
        let place = self.table.place(hash);
        // A claimed slot is about to get its state from the sketch.
        while let Some(Found::Owned(spot)) = place.look(None) {
            let change = |word| Some(change(word));
            if place.line(spot).attempt_at(spot.slot, place.tag, change) == Attempt::Done {
                return true;
            }
        }
        false
    }

    /// Decides with what this thread holds, or at the first line.
    #[inline(always)]
    fn check_first(
        &self,
        place: Place<'_>,
        hash: KeyHash,
        (cost, now): (u64, Tick),
        spend: &impl Stepping,
        answer: &mut Decision,
    ) -> Attempt {
        match loan::spend(&self.borrower, hash, cost, now, answer) {
            Spending::Done => return Attempt::Done,
            Spending::UsedUp => return Attempt::Contended,
            Spending::NothingHeld => {}
        }
        place.first().attempt(place.tag, spend, answer)
    }

    /// Decides where the first line could not.
    #[inline(never)]
    fn check_late(
        &self,
        hash: KeyHash,
        cost: u64,
        failed: Attempt,
        now: &mut Tick,
        refresh: Refresh<'_>,
    ) -> Decision {
        let mut spend = self.spend(hash, cost, *now);
        let place = self.table.place(hash);
        let mut answer = Decision::unlimited();
        let mut attempt = failed;
        let mut patience = Patience::default();
        loop {
            if attempt == Attempt::Contended
                && let Some(decision) = self.borrow(place, hash, &spend)
            {
                return decision;
            }
            attempt = place.second().attempt(place.tag, &spend, &mut answer);
            if attempt == Attempt::Absent {
                if let Some(decision) = self.settle(place, hash, &mut spend, &mut patience, refresh)
                {
                    *now = spend.now;
                    return decision;
                }
                attempt = place.first().attempt(place.tag, &spend, &mut answer);
            }
            if attempt == Attempt::Done {
                return answer;
            }
        }
    }

    /// Somebody else spends from the same key at the same time. If there is plenty, this thread
    /// borrows, and leaves the line alone for a while. `None` if the key is not there any more.
    #[cold]
    fn borrow(&self, place: Place<'_>, hash: KeyHash, spend: &Spend<'_>) -> Option<Decision> {
        let mut lines = [place.first(), place.second()].into_iter().peekable();
        let mut answer = Decision::unlimited();
        while let Some(line) = lines.peek() {
            let epoch = self.borrower.epoch();
            let mut borrowed = None;
            let attempt = line.attempt_with(place.tag, |word| {
                let loan = self.machine.lend(word, spend.now, loan::WANT, spend.phase)?;
                let left = loan.tokens.checked_sub(spend.cost).filter(|_| spend.cost > 0)?;
                borrowed = Some((loan, left));
                Some(loan.word)
            });
            if let (Attempt::Done, Some((loan, left))) = (attempt, borrowed) {
                loan::keep(&self.borrower, epoch, hash, loan, left);
                return Some(loan.decision_with(left));
            }
            match line.attempt(place.tag, spend, &mut answer) {
                Attempt::Done => return Some(answer),
                Attempt::Contended => {}
                Attempt::Absent => _ = lines.next(),
            }
        }
        None
    }

    /// Finds a place for a key that is in neither line, and decides there. `None` if it is worth
    /// another look at the lines.
    fn settle(
        &self,
        place: Place<'_>,
        hash: KeyHash,
        spend: &mut Spend<'_>,
        patience: &mut Patience,
        refresh: Refresh<'_>,
    ) -> Option<Decision> {
        match place.look(None) {
            Some(Found::Owned(..)) => return None,
            Some(Found::Claimed(..)) if patience.wait() => return None,
            Some(Found::Claimed(..)) => return self.in_sketch(place, hash, spend),
            None => {}
        }
        // Nothing to remember: a peek, or a cost that never fits.
        let unseen = spend.step(self.sketch.read(hash, spend.now)).decision;
        if spend.cost == 0 || unseen.retry() == Some(Retry::Never) {
            return Some(unseen);
        }
        let Some((spot, vacancy)) = place.vacancy(spend.now) else {
            return self.in_sketch(place, hash, spend);
        };
        let line = place.line(spot);
        if !line.claim(vacancy, place.tag) {
            return None;
        }
        while let Some(found) = place.look(Some(spot)) {
            match found {
                // The later of two spots gives way, so this one has only to wait for it.
                Found::Claimed(other, _) if spot < other && patience.wait() => {}
                _ => {
                    line.abandon(vacancy);
                    return None;
                }
            }
        }
        spend.now = spend.now.max(refresh());
        Some(self.publish(line, vacancy, place, hash, spend))
    }

    fn publish(
        &self,
        line: &Line,
        vacancy: Vacancy,
        place: Place<'_>,
        hash: KeyHash,
        spend: &Spend<'_>,
    ) -> Decision {
        let mut known = Word::REST;
        let decision = line.publish(vacancy.slot, place.tag, || {
            known = self.sketch.read(hash, spend.now);
            spend.step(known)
        });
        if known != Word::REST {
            self.promoted.fetch_add(1, Ordering::Relaxed);
        }
        decision
    }

    /// Decides in the sketch, and makes sure that whoever is claiming a slot for the key knows of
    /// it. `None` if the key has got a slot by then: that decides.
    #[cold]
    fn in_sketch(&self, place: Place<'_>, hash: KeyHash, spend: &Spend<'_>) -> Option<Decision> {
        let (decision, spent) = self.sketch.spend(hash, spend);
        if spent == Spent::Something {
            while let Some(found) = place.look(None) {
                match found {
                    Found::Claimed(spot, claim) if place.line(spot).nudge(spot.slot, claim) => {
                        break;
                    }
                    Found::Claimed(..) => {}
                    Found::Owned(_) => {
                        self.sketch.update(hash, |word| spend.undone(word));
                        return None;
                    }
                }
            }
        }
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        Some(decision)
    }
}

/// How long a thread waits for another one that is putting the same key into a slot: a moment, as
/// that takes no more, but not for one that was suspended in the middle of it.
struct Patience(u32);

impl Default for Patience {
    fn default() -> Self {
        Self(if cfg!(loom) { 3 } else { 100 })
    }
}

impl Patience {
    /// Waits for a moment; `false` if there were enough of them.
    fn wait(&mut self) -> bool {
        let Some(left) = self.0.checked_sub(1) else { return false };
        self.0 = left;
        pause();
        true
    }
}

/// Where the windows of a key begin, if they are jittered. The low bits choose slots, so the high
/// ones, turned around, serve here.
#[inline(always)]
fn phase(hash: KeyHash) -> Phase {
    Phase(hash.0.rotate_left(17))
}

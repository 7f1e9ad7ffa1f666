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
//!                    for the same key in the meantime
//! ```
//!
//! # Why nothing is under-counted
//!
//! *A key never has two slots.* Whoever claims a slot for a key looks afterwards whether there is
//! another one, owned or claimed, and backs out if so. Claims and looks are sequentially
//! consistent: of two claimers at least one sees the other.
//!
//! *What was spent in the sketch is not forgotten when the key gets a slot.* The claimer reads
//! the sketch after its claim; whoever spends in the sketch looks for a claim afterwards. At
//! least one sees the other: either the claimer has read the spending, or the spender nudges the
//! claim, so that the claimer reads again, or charges the published slot as well.
//!
//! *A key at rest is no key.* A claimer takes the time after it holds the slot, so nobody who is
//! late brings an older time to a key whose state was dropped at a later one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Anchor, Decision, Limit, Machine, Phase, Retry, Step, Tick, Word};

use crate::counters::Pressure;
use crate::key::KeyHash;
use crate::loan::{self, Borrower, Spending};
use crate::sketch::{Sketch, Spent};
use crate::sync::fence;
use crate::table::{Attempt, Found, Line, Place, SLOTS, Spend, Table, Vacancy};

/// Where a decision that has to start anew gets a fresh time from.
pub(crate) type Refresh<'a> = &'a dyn Fn() -> Tick;

/// The most keys of one [`Counter::check_batch`].
pub(crate) const BATCH: usize = 32;

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

    #[inline]
    pub(crate) fn check(
        &self,
        hash: KeyHash,
        cost: u64,
        now: Tick,
        refresh: Refresh<'_>,
    ) -> Decision {
        let hash = hash.salted(self.salt);
        let spend = self.spend(hash, cost, now);
        match self.check_first(hash, &spend) {
            Ok(decision) => decision,
            Err(try_borrowing) => self.check_late(hash, spend, try_borrowing, refresh),
        }
    }

    /// Decides up to [`BATCH`] keys at one time; the answers go to `decisions`. The second lines
    /// of keys that need one are loaded while the others are decided.
    pub(crate) fn check_batch(
        &self,
        hashes: &[KeyHash],
        cost: u64,
        now: Tick,
        refresh: Refresh<'_>,
        decisions: &mut Vec<Decision>,
    ) {
        let begin = decisions.len();
        let mut late = [(0, false); BATCH];
        let mut count = 0;
        for (index, hash) in hashes.iter().enumerate() {
            let hash = hash.salted(self.salt);
            let decision = self.check_first(hash, &self.spend(hash, cost, now));
            decisions.push(decision.unwrap_or(Decision::unlimited()));
            if let (Err(try_borrowing), Some(slot)) = (decision, late.get_mut(count)) {
                self.table.place(hash).prefetch_second();
                *slot = (index, try_borrowing);
                count += 1;
            }
        }
        for (index, try_borrowing) in late.into_iter().take(count) {
            let hash = hashes[index].salted(self.salt);
            let spend = self.spend(hash, cost, now);
            decisions[begin + index] = self.check_late(hash, spend, try_borrowing, refresh);
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
        let step = |word| Some(Step { word: change(word), decision: Decision::unlimited() });
        while let Some((line, found)) = place.look(None) {
            let slot = match found {
                Found::Owned(slot) => slot,
                // It is about to get its state from the sketch.
                Found::Claimed(..) => return false,
            };
            if let Attempt::Done(_) = line.attempt_at(slot, place.tag, step) {
                return true;
            }
        }
        false
    }

    /// Decides with what this thread holds, or at the first line. Failing that, tells whether
    /// borrowing is worth a try.
    #[inline(always)]
    fn check_first(&self, hash: KeyHash, spend: &Spend<'_>) -> Result<Decision, bool> {
        match loan::spend(&self.borrower, hash, spend.cost, spend.now) {
            Spending::Done(decision) => return Ok(decision),
            Spending::UsedUp => return Err(true),
            Spending::NothingHeld => {}
        }
        let place = self.table.place(hash);
        match place.first().attempt(place.tag, spend) {
            Attempt::Done(decision) => Ok(decision),
            Attempt::Absent => Err(false),
            Attempt::Contended => Err(true),
        }
    }

    #[inline(never)]
    fn check_late(
        &self,
        hash: KeyHash,
        mut spend: Spend<'_>,
        try_borrowing: bool,
        refresh: Refresh<'_>,
    ) -> Decision {
        let place = self.table.place(hash);
        if try_borrowing && let Some(decision) = self.borrow(place, hash, &spend) {
            return decision;
        }
        loop {
            match place.second().attempt(place.tag, &spend) {
                Attempt::Done(decision) => return decision,
                Attempt::Absent => {}
                Attempt::Contended => {
                    if let Some(decision) = self.borrow(place, hash, &spend) {
                        return decision;
                    }
                }
            }
            if let Some(decision) = self.settle(place, hash, &mut spend, refresh) {
                return decision;
            }
            if let Attempt::Done(decision) = place.first().attempt(place.tag, &spend) {
                return decision;
            }
        }
    }

    /// Somebody else spends from the same key at the same time. If there is plenty, this thread
    /// borrows, and leaves the line alone for a while. `None` if the key is not there any more.
    #[cold]
    fn borrow(&self, place: Place<'_>, hash: KeyHash, spend: &Spend<'_>) -> Option<Decision> {
        let mut lines = [place.first(), place.second()].into_iter().peekable();
        while let Some(line) = lines.peek() {
            let epoch = self.borrower.epoch();
            let mut borrowed = None;
            let attempt = line.attempt_with(place.tag, |word| {
                let loan = self.machine.lend(word, spend.now, loan::WANT, spend.phase)?;
                let left = loan.tokens.checked_sub(spend.cost).filter(|_| spend.cost > 0)?;
                borrowed = Some((loan, left));
                Some(Step { word: loan.word, decision: loan.decision_with(left) })
            });
            if let (Attempt::Done(decision), Some((loan, left))) = (attempt, borrowed) {
                loan::keep(&self.borrower, epoch, hash, loan, left);
                return Some(decision);
            }
            match line.attempt(place.tag, spend) {
                Attempt::Done(decision) => return Some(decision),
                Attempt::Contended => {}
                Attempt::Absent => _ = lines.next(),
            }
        }
        None
    }

    /// Finds a place for a key that is in neither line, and decides there. `None` if it appeared
    /// in a line in the meantime.
    fn settle(
        &self,
        place: Place<'_>,
        hash: KeyHash,
        spend: &mut Spend<'_>,
        refresh: Refresh<'_>,
    ) -> Option<Decision> {
        match place.look(None) {
            Some((_, Found::Owned(_))) => return None,
            Some((_, Found::Claimed(..))) => return Some(self.in_sketch(place, hash, spend)),
            None => {}
        }
        // Nothing to remember: a peek, or a cost that never fits.
        let unseen = spend.step(self.sketch.read(hash, spend.now)).decision;
        if spend.cost == 0 || unseen.retry() == Some(Retry::Never) {
            return Some(unseen);
        }
        let Some((line, vacancy)) = place.vacancy(spend.now) else {
            return Some(self.in_sketch(place, hash, spend));
        };
        if !line.claim(vacancy, place.tag) {
            return None;
        }
        if place.look(Some((line, vacancy.slot))).is_some() {
            line.abandon(vacancy);
            // Nobody waits for the other one: the sketch decides this time.
            return Some(self.in_sketch(place, hash, spend));
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

    /// Decides in the sketch, and makes sure that a slot the key may be getting knows of it.
    #[cold]
    fn in_sketch(&self, place: Place<'_>, hash: KeyHash, spend: &Spend<'_>) -> Decision {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        let (decision, spent) = self.sketch.spend(hash, spend);
        if spent == Spent::Nothing {
            return decision;
        }
        fence(Ordering::SeqCst);
        while let Some((line, found)) = place.look(None) {
            match found {
                Found::Claimed(slot, claim) if line.nudge(slot, claim) => break,
                Found::Claimed(..) => {}
                Found::Owned(slot) => {
                    let charge = |word| Some(Step { word: spend.charge(word), decision });
                    if let Attempt::Done(_) = line.attempt_at(slot, place.tag, charge) {
                        break;
                    }
                }
            }
        }
        decision
    }
}

/// Where the windows of a key begin, if they are jittered. The low bits choose slots, so the high
/// ones, turned around, serve here.
#[inline(always)]
fn phase(hash: KeyHash) -> Phase {
    Phase(hash.0.rotate_left(17))
}

//! What a thread holds of hot keys: tokens borrowed from a shared line, spent without touching it.
//!
//! Threads that spend from one key at the same time fight for its cache line, and each decision
//! costs as much as a trip to the other core. A thread that notices borrows: it takes many tokens
//! at once, in one step that the limit allows, and spends them by itself. Whatever it does not use
//! before the loan runs out is lost, never used later: see [`Machine::lend`] for why the limit
//! holds all the same.
//!
//! So that little is lost, a first loan is small, and the next one twice as large only if the last
//! was used up in time: what is lost is never more than what was used. What a thread gives back
//! goes to its own loan first.
//!
//! [`Machine::lend`]: tollgate_core::Machine::lend

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Decision, Loan, Tick};

use crate::key::KeyHash;

/// The most tokens that a thread asks for at once.
const MOST: u64 = 1024;

/// The counters on whose behalf threads borrow.
pub(crate) struct Borrower {
    id: u64,
    /// Raised to make all loans worthless.
    epoch: AtomicU64,
    /// How many are giving back to a bucket just now: until they are done, nobody borrows.
    givers: AtomicU64,
}

/// While this lives there are no loans: a bucket that is given something back may be lacking less
/// than it has lent, which is all that makes a loan safe.
#[must_use]
pub(crate) struct Recall<'a>(&'a Borrower);

impl Borrower {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id, epoch: AtomicU64::new(0), givers: AtomicU64::new(0) }
    }

    /// The epoch of a loan that is given now; `None` if none may be.
    pub(crate) fn epoch(&self) -> Option<u64> {
        let epoch = self.epoch.load(Ordering::Acquire);
        // In this order: whoever begins to give back after this raises the epoch.
        (self.givers.load(Ordering::Acquire) == 0).then_some(epoch)
    }

    /// Makes all loans worthless, and prevents new ones for as long as the answer lives.
    pub(crate) fn recall(&self) -> Recall<'_> {
        self.givers.fetch_add(1, Ordering::AcqRel);
        self.epoch.fetch_add(1, Ordering::AcqRel);
        Recall(self)
    }
}

impl Drop for Recall<'_> {
    fn drop(&mut self) {
        self.0.givers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A loan that this thread has.
struct Held {
    borrower: u64,
    epoch: u64,
    left: u64,
    loan: Loan,
}

/// A thread holds one loan for each of so many keys, by the low bits of their hashes.
const PLACES: usize = 8;

thread_local! {
    /// The hashes of the keys of which this thread holds something: all that a decision about
    /// another key has to look at.
    static HASHES: [Cell<u64>; PLACES] = const { [const { Cell::new(0) }; PLACES] };
    /// Whether this thread has ever borrowed.
    static BORROWS: Cell<bool> = const { Cell::new(false) };
    static HELD: RefCell<[Option<Held>; PLACES]> = const { RefCell::new([const { None }; PLACES]) };
}

/// Whether this thread may hold something of the key: all that a decision about another key pays.
#[inline(always)]
pub(crate) fn may_hold(hash: KeyHash) -> bool {
    // Loom's threads are one thread to the standard library.
    !cfg!(loom) && BORROWS.get() && HASHES.with(|hashes| hashes[place(hash)].get() == hash.0)
}

/// Whether this thread may hold something of any key: asked once for many decisions.
pub(crate) fn may_hold_any() -> bool {
    BORROWS.get()
}

/// Spends `cost` from what this thread holds.
pub(crate) fn spend(borrower: &Borrower, hash: KeyHash, cost: u64, now: Tick) -> Spending {
    HELD.with_borrow_mut(|held| match &mut held[place(hash)] {
        Some(own) => own.spend(borrower, cost, now),
        None => Spending::NothingHeld,
    })
}

/// How many tokens of the key this thread should ask for, to spend `cost` of them at once.
pub(crate) fn want(borrower: &Borrower, hash: KeyHash, cost: u64) -> u64 {
    let last = HELD.with_borrow(|held| match &held[place(hash)] {
        Some(own) if may_hold(hash) && own.is_of(borrower) && own.left <= own.loan.tokens / 2 => {
            own.loan.tokens
        }
        _ => 0,
    });
    last.max(cost).saturating_mul(2).min(MOST)
}

/// Gives `cost` back to the loan that this thread holds. `false` if it holds none that has been
/// used for so much.
pub(crate) fn give_back(borrower: &Borrower, hash: KeyHash, cost: u64, now: Tick) -> bool {
    may_hold(hash)
        && HELD.with_borrow_mut(|held| match &mut held[place(hash)] {
            Some(own) => own.give_back(borrower, cost, now),
            None => false,
        })
}

/// What came of spending what this thread holds.
pub(crate) enum Spending {
    Done(Decision),
    /// The loan was used up in time: another one is worth having.
    UsedUp,
    NothingHeld,
}

impl Held {
    /// Whether it was given by these counters, and not recalled.
    fn is_of(&self, borrower: &Borrower) -> bool {
        self.borrower == borrower.id && self.epoch == borrower.epoch.load(Ordering::Acquire)
    }

    fn give_back(&mut self, borrower: &Borrower, cost: u64, now: Tick) -> bool {
        let used = self.loan.tokens - self.left;
        let fits = self.is_of(borrower) && now <= self.loan.until && cost <= used;
        if fits {
            self.left += cost;
        }
        fits
    }

    fn spend(&mut self, borrower: &Borrower, cost: u64, now: Tick) -> Spending {
        let current = self.is_of(borrower) && now <= self.loan.until;
        match self.left.checked_sub(cost) {
            Some(left) if current => {
                self.left = left;
                Spending::Done(self.loan.decision_with(left))
            }
            None if current => Spending::UsedUp,
            _ => Spending::NothingHeld,
        }
    }
}

/// Keeps a loan that was given in `epoch` and of which `left` tokens are not spent yet.
pub(crate) fn keep(borrower: &Borrower, epoch: u64, hash: KeyHash, loan: Loan, left: u64) {
    let own = Held { borrower: borrower.id, epoch, left, loan };
    HELD.with_borrow_mut(|held| held[place(hash)] = Some(own));
    HASHES.with(|hashes| hashes[place(hash)].set(hash.0));
    BORROWS.set(true);
}

const fn place(hash: KeyHash) -> usize {
    hash.0 as usize % PLACES
}

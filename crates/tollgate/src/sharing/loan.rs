//! What is lent for a key, and what comes of asking for more.

use std::sync::Arc;

use tokio::sync::Notify;
use tollgate_core::Tick;
use tollgate_core::lease::{Exchange, Grant, Node};
use tollgate_local::{Lent, Place};

use crate::sharing::{About, Call, Sharing};

/// What belongs to the purse of a key.
#[derive(Debug)]
pub(crate) struct Loan {
    pub(super) about: About,
    /// Who its borrower is to the store: answers to a former one of the same key are not for it.
    pub(super) node: Node,
    /// What of the lease was already noted as spent by this node.
    pub(super) noted: u64,
    /// When somebody last asked the borrower.
    pub(super) asked: Tick,
    /// Somebody waits for an answer to the borrower.
    pub(super) answered: Arc<Notify>,
}

impl Loan {
    pub(super) fn new(about: About, node: Node) -> Self {
        Self { about, node, noted: 0, asked: Tick::ZERO, answered: Arc::default() }
    }
}

impl Sharing {
    /// An answer to a borrower, if it is still there.
    pub(super) fn answer(&self, place: Place, to: Node, grant: &Grant, now: Tick) {
        let Some(mut lent) = self.purses.lock(place, now) else { return };
        if lent.beside().node != to {
            return;
        }
        lent.borrower().answer(now, grant);
        let answered = Arc::clone(&lent.beside().answered);
        drop(lent);
        answered.notify_waiters();
        self.call(Call::Look(place));
    }

    /// Takes note of what this node has let pass, from what a borrower tells the store.
    pub(super) fn note(&self, lent: &mut Lent<'_, Loan>, told: &Exchange, now: Tick) {
        let loan = lent.beside_mut();
        // Another lease counts from nothing.
        let spent = told.used.checked_sub(loan.noted).unwrap_or(told.used);
        loan.noted = told.used;
        let about = loan.about.clone();
        about.limit.note(&about, spent, now);
    }
}

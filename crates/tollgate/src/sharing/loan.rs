//! What is lent for a key, and who waits for more of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::timeout;
use tollgate_core::Tick;
use tollgate_core::lease::{Exchange, Grant, Node};
use tollgate_local::{Lent, Place};
use tollgate_store::StoreError;

use crate::sharing::{About, Call, Sharing};

/// What belongs to the purse of a key.
#[derive(Debug)]
pub(crate) struct Loan {
    pub(super) about: About,
    /// Who its borrower is to the store: answers to a former one of the same key are not for it.
    pub(super) node: Node,
    /// The number of what the borrower has asked last, and when that was sent for the first time.
    pub(super) sent: u64,
    asked: Tick,
    /// What of the lease was already noted as spent by this node.
    pub(super) noted: u64,
    /// Where those wait who need what the borrower has asked for: until they may look again, or until
    /// they know that no answer comes.
    pub(super) answered: Arc<Notify>,
    pub(super) unanswered: Arc<Notify>,
    /// Why there was no answer the last time that there was none.
    pub(super) failure: Option<Arc<StoreError>>,
}

impl Loan {
    pub(super) fn new(about: About, node: Node) -> Self {
        let (answered, unanswered, failure) = Default::default();
        let (sent, asked, noted) = (0, Tick::ZERO, 0);
        Self { about, node, sent, asked, noted, answered, unanswered, failure }
    }

    /// The answer to what the borrower has asked. It is made while nobody else has the purse, so that
    /// nothing is missed that comes after.
    pub(super) fn awaited(&self) -> Awaited {
        let [answered, unanswered] =
            [&self.answered, &self.unanswered].map(|notify| Arc::clone(notify).notified_owned());
        Awaited { answered, unanswered, asked: self.asked }
    }
}

/// An answer to the question of a borrower.
pub(super) struct Awaited {
    /// When the question was sent.
    pub(super) asked: Tick,
    answered: OwnedNotified,
    unanswered: OwnedNotified,
}

impl Awaited {
    /// Whether it comes in that time, or may come to somebody else's question.
    pub(super) async fn within(self, time: Duration) -> bool {
        let Self { answered, unanswered, .. } = self;
        let comes = async {
            tokio::select! {
                biased;
                () = answered => true,
                () = unanswered => false,
            }
        };
        timeout(time, comes).await.unwrap_or(false)
    }
}

impl Sharing {
    /// The borrower that is this to the store, if it is still there.
    pub(super) fn asker(&self, place: Place, node: Node, now: Tick) -> Option<Lent<'_, Loan>> {
        let lent = self.purses.lock(place, now)?;
        (lent.beside().node == node).then_some(lent)
    }

    /// An answer to a borrower, if it is still there.
    pub(super) fn answer(&self, place: Place, node: Node, grant: &Grant, now: Tick) {
        let Some(mut lent) = self.asker(place, node, now) else { return };
        lent.borrower().answer(now, grant);
        let answered = Arc::clone(&lent.beside().answered);
        drop(lent);
        answered.notify_waiters();
        self.call(Call::Look(place));
    }

    /// No answer comes to what a borrower has asked under that number: who waits for one need not do so
    /// until the timeout. They are told while the purse is in our hands, because who comes after that waits
    /// for another question. If it was only whoever asked who had no time, they come again, and one of them
    /// asks.
    pub(super) fn unanswered(
        &self,
        lent: &mut Lent<'_, Loan>,
        asked: u64,
        error: &Arc<StoreError>,
    ) {
        let loan = lent.beside_mut();
        if loan.sent != asked {
            return;
        }
        match self.is_in_haste(error) {
            true => loan.answered.notify_waiters(),
            false => {
                loan.failure = Some(Arc::clone(error));
                loan.unanswered.notify_waiters();
            }
        }
    }

    /// Takes note of what a borrower tells the store: what this node has let pass.
    pub(super) fn note(&self, lent: &mut Lent<'_, Loan>, told: &Exchange, now: Tick) {
        let loan = lent.beside_mut();
        if loan.sent != told.sequence {
            (loan.sent, loan.asked) = (told.sequence, now);
        }
        // Another lease counts from nothing.
        let spent = told.used.checked_sub(loan.noted).unwrap_or(told.used);
        loan.noted = told.used;
        let about = loan.about.clone();
        about.limit.note(&about, spent, now);
    }
}

//! Whether a store that fails is well again, and what it is told then.

use std::sync::{Arc, Weak};
use std::time::Duration;
use std::vec::IntoIter;

use tokio::time::timeout;
use tollgate_core::lease::Exchange;
use tollgate_core::{Limit, Wall};
use tollgate_store::{Ask, Budget, Store as _, StoreError};

use crate::sharing::breaker::Change;
use crate::sharing::exchange::is_answered;
use crate::sharing::health::{Health, add};
use crate::sharing::{About, Sharing};

/// Tries a store that fails until it is well, and tells it first what passed meanwhile.
///
/// To be there is not enough. A store without memory says what time it is and reads what it has, and one
/// server of a Cluster answers while another is gone: callers would be sent there, fail, and be called
/// back, several times a second. So it is asked what it has not answered, about the same key; or if no
/// rule asks that any more, what somebody would ask now. Only if nobody does is it enough to be there.
pub(super) async fn heal(sharing: Weak<Sharing>, unanswered: Ask) {
    let mut unanswered = Some(unanswered);
    loop {
        let Some(pause) = sharing.upgrade().map(|sharing| sharing.clock.sleep(PAUSE)) else {
            return;
        };
        pause.await;
        let Some(sharing) = sharing.upgrade() else { return };
        unanswered = sharing.still_asked(unanswered);
        let is_answered = match &unanswered {
            Some(unanswered) => sharing.answers_again(unanswered).await,
            None => sharing.is_there().await,
        };
        if sharing.breaker.tried(is_answered) != Change::Well {
            continue;
        }
        match pay(&sharing).await {
            Some(ask) => unanswered = Some(ask),
            None => {
                sharing.in_force.done();
                // Before anybody can fail again, and say so.
                sharing.health.send_replace(Health::Well);
                sharing.breaker.close();
                // What passed since the last debt was taken.
                pay(&sharing).await;
                return;
            }
        }
    }
}

/// Tells the store what keys have spent without it, as far as they have so much left. What it did not
/// answer to, if so, and if a rule asks about it.
pub(super) async fn pay(sharing: &Sharing) -> Option<Ask> {
    // Those that are added meanwhile are left for later, or there would be no end.
    let mut most = sharing.debts.len();
    let mut unanswered = None;
    while most > 0 && unanswered.is_none() {
        let mut debts = Paying::new(sharing, sharing.debts.take(most.min(AT_ONCE)));
        most = most.saturating_sub(AT_ONCE);
        let looks = debts.asks(|_| 0);
        let left = sharing.store.exchange(&looks).await;
        let mut costs = Vec::with_capacity(left.len());
        for (left, (about, debt)) in left.into_iter().zip(debts.left.by_ref()) {
            match left {
                Ok(grant) => costs.push((about, debt.min(grant.decision.remaining()))),
                Err(error) => unanswered = sharing.owe_still(&about, debt, &error).or(unanswered),
            }
        }
        let mut costs = Paying::new(sharing, costs);
        let paid = sharing.store.exchange(&costs.asks(|cost| cost)).await;
        for (paid, (about, cost)) in paid.into_iter().zip(costs.left.by_ref()) {
            match paid {
                Ok(grant) if grant.decision.is_allowed() => sharing.is_paid(about, cost, grant.at),
                // Somebody was faster: there is less to pay with, and it is looked at again.
                Ok(_) => sharing.owe_again(&about, cost),
                Err(error) => unanswered = sharing.owe_still(&about, cost, &error).or(unanswered),
            }
        }
    }
    unanswered
}

/// Debts that are being paid. Those of which nobody hears how that went, because whoever pays panics or goes, are
/// owed again.
struct Paying<'a> {
    sharing: &'a Sharing,
    left: IntoIter<(About, u64)>,
}

impl<'a> Paying<'a> {
    fn new(sharing: &'a Sharing, debts: Vec<(About, u64)>) -> Self {
        Self { sharing, left: debts.into_iter() }
    }

    /// Questions about all of them, each of which costs as much as its debt says.
    fn asks(&self, cost: impl Fn(u64) -> u64) -> Vec<Ask> {
        let ask = |(about, debt): &(About, u64)| about.ask(Exchange::once(cost(*debt)));
        self.left.as_slice().iter().map(ask).collect()
    }
}

impl Drop for Paying<'_> {
    fn drop(&mut self) {
        self.left.by_ref().for_each(|(about, debt)| self.sharing.owe_again(&about, debt));
    }
}

impl Sharing {
    /// The question, as long as a rule asks it; otherwise one that somebody has.
    fn still_asked(&self, unanswered: Option<Ask>) -> Option<Ask> {
        let is_asked = |ask: &Ask| self.in_force.has(ask.budget());
        unanswered.filter(is_asked).or_else(|| {
            let about = self.in_force.question()?;
            Some(about.ask(Exchange::once(0)))
        })
    }

    /// Whether the store says what time it is, in time.
    async fn is_there(&self) -> bool {
        let most = self.config.timeout / 2;
        let sent = self.now();
        let pulse = timeout(most, self.store.ping()).await;
        matches!(pulse, Ok(Ok(_))) && self.now().since(sent) <= most
    }

    /// Whether the store answers a question like one that it did not answer, in time.
    async fn answers_again(&self, unanswered: &Ask) -> bool {
        let trial = self.trial(unanswered);
        let most = self.config.timeout / 2 * self.store.round_trips(&trial);
        let sent = self.now();
        let Ok(answers) = timeout(most, self.store.exchange(&trial)).await else { return false };
        answers.iter().all(is_answered) && self.now().since(sent) <= most
    }

    /// Questions that are answered only by a store that can answer this one: it has to write, and
    /// nothing is spent. A [look](Exchange::is_look) would be answered by one that can but read.
    fn trial(&self, unanswered: &Ask) -> Vec<Ask> {
        let remembered = Exchange::strict(self.newborn(), 0);
        let mut trial = vec![unanswered.clone().asking(remembered)];
        // A log remembers nobody, and is written only if something is spent of it. So something else is
        // written beside it, which lies where it does, and is gone in a moment. No rule is called so.
        if unanswered.budget().terms().is_none()
            && let Ok(limit) = Limit::token_bucket("1/s")
        {
            let name = format!("{}+trial", unanswered.budget().rule());
            let beside = Budget::new(&name, &limit, self.config.round_trip, self.wall());
            trial.push(Ask::new(Arc::new(beside), unanswered.key(), remembered));
        }
        trial
    }

    /// A debt that could not be paid because of this. It stays one, unless it never can be; what the
    /// store did not answer to, if it is the store that fails, and callers would ask there.
    fn owe_still(&self, about: &About, debt: u64, error: &StoreError) -> Option<Ask> {
        if error.is_about_key() {
            add(&self.counts.unpaid, debt);
            self.is_paid(about.clone(), 0, self.wall());
            return None;
        }
        self.owe_again(about, debt);
        self.in_force.has(&about.limit.budget).then(|| about.ask(Exchange::once(0)))
    }

    fn owe_again(&self, about: &About, debt: u64) {
        if !self.debts.take_back(about, debt, self.now().after(self.remembered())) {
            add(&self.counts.unpaid, debt);
        }
    }

    /// The store has spent so much for what was owed, then. If some of that has come back meanwhile, it goes
    /// back to the store.
    fn is_paid(&self, about: About, cost: u64, at: Wall) {
        let too_much = self.debts.paid(about.owner, cost, self.now().after(self.remembered()));
        self.undo_since(about, too_much, at);
    }

    /// For so long what could not be paid is made up for by what comes back: answers to those who wait no
    /// longer, and what waits to be undone.
    pub(super) fn remembered(&self) -> Duration {
        self.config.timeout * 2 + REMEMBERED
    }
}

/// How often a store that fails is tried, and places are looked at whose exchanges wait for it.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// What was to be undone while the store was left alone is undone within less than this.
const REMEMBERED: Duration = Duration::from_secs(2);

/// So many debts are paid in one go.
const AT_ONCE: usize = 512;

//! What operators want to know of single keys, and to do about them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::lease::Exchange;
use tollgate_core::{Decision, Retry};
use tollgate_store::{Ask, Store as _, StoreError};

use crate::sharing::spend::seen_for;
use crate::sharing::{About, Shared, Sharing};

/// A key of a shared limit that somebody looks at, or gives a new start.
#[derive(Debug)]
pub(crate) struct Glance {
    about: About,
    cost: u64,
}

/// What the store says of it.
#[derive(Debug)]
pub(crate) struct Seen {
    /// What it would say to a request, with what is left; what it has lent is not.
    pub(crate) decision: Decision,
    /// What of that lies here.
    pub(crate) lent_here: u64,
    /// Whether nobody has spent anything, or holds anything.
    pub(crate) is_at_rest: bool,
}

/// So many are looked at in one go.
const AT_ONCE: usize = 512;

impl Glance {
    /// `name` is what the key is called in the store.
    pub(crate) fn new(shared: &Shared<'_>, name: Arc<[u8]>) -> Self {
        Self { about: shared.about(name), cost: shared.cost }
    }

    /// How long nodes may hold what is lent of it.
    pub(crate) fn hold(&self) -> Duration {
        match self.about.limit.is_strict {
            true => Duration::ZERO,
            false => self.about.limit.hold(),
        }
    }
}

impl Sharing {
    /// What the store says of these keys, or why it says nothing. It is not asked while it is left
    /// alone.
    pub(crate) async fn glance(&self, keys: &[Glance]) -> Vec<Result<Seen, String>> {
        let mut seen = Vec::with_capacity(keys.len());
        for some in keys.chunks(AT_ONCE) {
            if self.breaker.is_open() {
                let left_alone =
                    || Err("the store fails, and is left alone until it is well".into());
                seen.extend(some.iter().map(|_| left_alone()));
                continue;
            }
            let look = |key: &Glance| key.about.ask(Exchange::once(0));
            let asks: Vec<Ask> = some.iter().map(look).collect();
            let answers = self.exchange(&asks, self.now()).await;
            for (key, answer) in some.iter().zip(answers) {
                let answer = answer.map(|grant| self.seen(key, grant.decision));
                seen.push(answer.map_err(|error| error.to_string()));
            }
        }
        seen
    }

    fn seen(&self, key: &Glance, left: Decision) -> Seen {
        let (now, cost) = (self.now(), key.cost);
        let lent = self.purses.known(key.about.owner, now);
        let lent_here = lent.map_or(0, |mut lent| lent.borrower().tokens(now));
        let (limit, remaining, reset) = (left.limit(), left.remaining(), left.reset_after());
        let is_permit = key.about.limit.own.is_none();
        let decision = match seen_for(left, cost) {
            denial if !denial.is_allowed() && lent_here >= cost => {
                Decision::allow(limit, remaining, reset)
            }
            denial if !denial.is_allowed() && is_permit => {
                Decision::deny(limit, remaining, reset, Retry::OnReturn)
            }
            said => said,
        };
        let is_at_rest = remaining >= limit && reset.is_zero();
        Seen { decision, lent_here, is_at_rest }
    }

    /// Has the store forget these keys, and forgets what is lent of them here and what they owe. How
    /// many of them it knew.
    pub(crate) async fn forget(&self, keys: &[Glance]) -> Result<usize, StoreError> {
        let mut known = 0;
        let after = self.config.timeout;
        for Glance { about, .. } in keys {
            // What it was counted by before goes first, or it would bring that along.
            let mut budgets = about.before().map_or_else(Vec::new, |before| before.budgets);
            budgets.push(Arc::clone(&about.limit.budget));
            let mut was_known = false;
            for budget in budgets {
                let forgotten = self.store.forget(&budget, &about.name);
                let late = |_| StoreError::Timeout { after };
                was_known |= timeout(after, forgotten).await.map_err(late)??;
            }
            known += usize::from(was_known);
            // Not before: it would be lent again from what is to be forgotten.
            self.debts.forgive(about.owner);
            if let Some(lent) = self.purses.known(about.owner, self.now()) {
                let answered = Arc::clone(&lent.beside().answered);
                lent.close();
                // Who waits for its answer need not wait for the timeout.
                answered.notify_waiters();
            }
        }
        Ok(known)
    }
}

//! What operators want to know of single keys, and to do about them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::lease::Exchange;
use tollgate_core::{Decision, Retry, Tick, Wall};
use tollgate_rules::OnStoreFailure;
use tollgate_store::{Ask, Store as _, StoreError};

use crate::sharing::spend::{ALONE, seen_for};
use crate::sharing::{About, Health, Shared, Sharing};

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
    /// How long ago the store lost its memory, if it may count something as spent because of that.
    pub(crate) lost_ago: Option<Duration>,
}

/// What this node does with it while the store says nothing.
#[derive(Debug)]
pub(crate) struct Alone {
    /// What a request would be told now, in numbers of what this node lets pass.
    pub(crate) decision: Decision,
    /// What the store has lent before, and is not spent yet: that comes first.
    pub(crate) lent_here: u64,
    /// What the rule does then.
    pub(crate) policy: OnStoreFailure,
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
                let reason = self.left_alone_because();
                seen.extend(some.iter().map(|_| Err(reason.clone())));
                continue;
            }
            let look = |key: &Glance| key.about.ask(Exchange::once(0));
            let asks: Vec<Ask> = some.iter().map(look).collect();
            let now = self.now();
            let answers = self.exchange(&asks, now, now).await;
            for (key, answer) in some.iter().zip(answers) {
                let answer = answer.map(|grant| self.seen(key, grant.decision));
                seen.push(answer.map_err(|error| error.to_string()));
            }
        }
        seen
    }

    fn left_alone_because(&self) -> String {
        let why = match &*self.health.borrow() {
            Health::Degraded { reason } => format!(": {reason}"),
            Health::Well => String::new(),
        };
        format!("it fails, and is left alone until it is well{why}")
    }

    /// What lies here of that which the store has lent.
    fn lent_here(&self, key: &Glance, now: Tick) -> u64 {
        let lent = self.purses.known(key.about.owner, now);
        lent.map_or(0, |mut lent| lent.borrower().tokens(now))
    }

    /// What is said to a request of this key if the store says nothing. `here` is what this node knows of
    /// the key for itself.
    pub(crate) fn alone(&self, key: &Glance, here: Decision) -> Alone {
        let (now, limit) = (self.now(), &key.about.limit);
        let lent_here = self.lent_here(key, now);
        let decision = match (limit.policy, &limit.own) {
            _ if limit.is_unlimited() => here,
            (OnStoreFailure::Deny, _) => Decision::deny(0, 0, Duration::ZERO, Retry::After(ALONE)),
            (OnStoreFailure::Allow, Some(_)) => Decision::unlimited(),
            // A node has no more slots than all of them together.
            (OnStoreFailure::Allow, None) => here,
            (OnStoreFailure::Local { .. }, Some(own)) => {
                limit.in_shares(own.peek(key.about.key, limit.cost_here(key.cost), now))
            }
            (OnStoreFailure::Local { .. }, None) => {
                let (most, out) = (limit.own_permits, here.limit() - here.remaining());
                match most.saturating_sub(out) {
                    0 => Decision::deny(most, 0, Duration::ZERO, Retry::OnReturn),
                    free => Decision::allow(most, free, Duration::ZERO),
                }
            }
        };
        let (most, left, reset) = (decision.limit(), decision.remaining(), decision.reset_after());
        let decision = match !decision.is_allowed() && lent_here >= key.cost {
            true => Decision::allow(most, left, reset),
            false => decision,
        };
        Alone { decision, lent_here, policy: limit.policy_with(self.config.share) }
    }

    fn seen(&self, key: &Glance, left: Decision) -> Seen {
        let (now, cost) = (self.now(), key.cost);
        let lent_here = self.lent_here(key, now);
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
        let lost_ago = self.lost_ago(key).filter(|_| remaining < limit);
        Seen { decision, lent_here, is_at_rest, lost_ago }
    }

    /// How long ago the store lost its memory, if that weighs on the key.
    fn lost_ago(&self, key: &Glance) -> Option<Duration> {
        let (losses, now) = (self.losses()?, self.wall());
        let losses = losses.borrow();
        let loss = losses.latest.as_ref()?;
        let ago = now.as_unix_nanos().saturating_sub(loss.at.as_unix_nanos());
        loss.weighs_on(&key.about.limit.budget, now).then_some(Duration::from_nanos(ago))
    }

    /// Has the store forget these keys, and forgets what is lent of them here and what they owe. How
    /// many of them it knew.
    pub(crate) async fn forget(&self, keys: &[Glance]) -> Result<usize, StoreError> {
        let mut known = 0;
        for Glance { about, .. } in keys {
            // What was spent before is not to come back to what it has then.
            let until = self.now().after(self.remembered());
            self.debts.begin_anew(about.owner, until);
            let forgotten = self.forget_one(about).await;
            if forgotten.as_ref().is_err_and(|error| !matches!(error, StoreError::Timeout { .. })) {
                self.debts.go_on(about.owner);
            }
            known += usize::from(forgotten?);
            // Not before: it would be lent again from what is to be forgotten.
            self.debts.forgive(about.owner);
            self.denials.forget(about.owner, self.now());
            if let Some(lent) = self.purses.known(about.owner, self.now()) {
                let answered = Arc::clone(&lent.beside().answered);
                lent.close();
                // Who waits for its answer need not wait for the timeout.
                answered.notify_waiters();
            }
            self.date_new_start(about, until);
        }
        Ok(known)
    }

    /// Whether the store knew the key.
    async fn forget_one(&self, about: &About) -> Result<bool, StoreError> {
        let after = self.config.timeout;
        // What it was counted by before goes first, or it would bring that along.
        let mut budgets = about.before().map_or_else(Vec::new, |before| before.budgets);
        budgets.push(Arc::clone(&about.limit.budget));
        let mut was_known = false;
        for budget in budgets {
            let forgotten = self.store.forget(&budget, &about.name);
            let late = |_| StoreError::Timeout { after };
            was_known |= timeout(after, forgotten).await.map_err(late)??;
        }
        Ok(was_known)
    }

    /// Finds out when a key has begun anew, by the clock of the server that has it. What comes back waits for that. If
    /// it does not say so, what comes back in the next moments stays spent.
    fn date_new_start(&self, about: &About, until: Tick) {
        let (Some(sharing), about) = (self.this.upgrade(), about.clone()) else { return };
        self.runtime.spawn(async move {
            let look = [about.ask(Exchange::once(0))];
            let seen = timeout(sharing.config.timeout, sharing.store.exchange(&look)).await;
            let at = match seen.as_deref() {
                Ok([Ok(grant)]) => grant.at,
                _ => LATER,
            };
            sharing.debts.date(about.owner, at, until);
        });
    }
}

/// After all that any store has spent.
const LATER: Wall = Wall::from_unix_nanos(u64::MAX);

//! What a shared limit says to a request, without waiting.

use std::cell::LazyCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate_core::lease::{Borrower, Grant};
use tollgate_core::{Decision, Retry, Tick};
use tollgate_local::{Clock, KeyHash, Place, Taken};
use tollgate_rules::OnStoreFailure;
use tollgate_store::StoreError;

use crate::sharing::back::Back;
use crate::sharing::health::add;
use crate::sharing::limit::SharedLimit;
use crate::sharing::reserve::KeptWhat;
use crate::sharing::told::{Said, Told};
use crate::sharing::{About, Call, Sharing};

/// A key of a shared limit that a request meets.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) limit: &'a Arc<SharedLimit>,
    /// Under which the key is known here.
    pub(crate) owner: KeyHash,
    /// Under which it is known to the counters of this node alone.
    pub(crate) key: KeyHash,
    pub(crate) cost: u64,
}

impl Shared<'_> {
    pub(super) fn about(&self, name: Arc<[u8]>) -> About {
        About { limit: Arc::clone(self.limit), owner: self.owner, key: self.key, name }
    }
}

/// Whether a request can wait for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// It says what it lacks, and comes again.
    Wait,
    /// It was fetched for, since then. If others were faster, it says once more what it lacks, as long
    /// as there is time.
    Again { since: Tick },
    /// It is decided with what is here.
    Now,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// One request is decided, by the store or with what it lends.
    Spend,
    /// The store decides one request, whatever is lent.
    Decide,
    /// Several requests need so much in all. It is lent or not.
    Borrow,
    Look,
    /// As many permits as are needed in all.
    Permit,
}

/// What came of asking what is lent to a key. The decision is written elsewhere.
#[derive(Clone, Copy)]
pub(crate) enum Lent {
    Spent(Place, u32),
    /// There is too little here, and was too little in the store a moment ago.
    Short,
    /// Somebody else has to be asked.
    Not,
}

impl Lent {
    /// What is said, and how to give back what was spent; `None` if somebody else says it.
    fn saying(self, said: Decision) -> Option<(Decision, Back)> {
        match self {
            Self::Spent(place, filling) => Some((said, Back::Purse(place, filling))),
            Self::Short => Some((said, Back::Nothing)),
            Self::Not => None,
        }
    }
}

/// What a request lacks: something that only the store can say.
#[derive(Clone, Debug)]
pub(crate) struct Lack {
    pub(super) about: About,
    pub(super) cost: u64,
    pub(super) purpose: Purpose,
}

/// What one request lacks, or several. That of one rule takes no allocation.
pub(crate) type Lacks = SmallVec<[Lack; 1]>;

impl Lack {
    /// Whether somebody only wants to know.
    pub(crate) fn is_look(&self) -> bool {
        self.purpose == Purpose::Look
    }

    pub(crate) fn new(shared: &Shared<'_>, name: Arc<[u8]>, purpose: Purpose) -> Self {
        Self { about: shared.about(name), cost: shared.cost, purpose }
    }

    /// What an answer says to whoever lacked it.
    pub(super) fn said(&self, grant: &Grant) -> Said {
        match self.purpose {
            Purpose::Look => Said::Seen(grant.decision),
            _ => Said::Decided(grant.decision, Some(grant.at)),
        }
    }
}

impl Sharing {
    /// Starts to load what is lent to a key.
    #[inline]
    pub(crate) fn prefetch(&self, owner: KeyHash) {
        self.purses.prefetch(owner);
    }

    /// Spends from what is lent to the key, if it is enough, and no answer waits for it.
    #[inline]
    pub(crate) fn take(
        &self,
        shared: &Shared<'_>,
        now: Tick,
        asking: Asking,
        said: &mut Decision,
    ) -> Lent {
        // What the store has spent for a request is not left lying, also if there is more here now.
        // Answers are for those who have waited.
        match asking != Asking::Wait && self.told.may_have(shared.owner) {
            true => Lent::Not,
            false => self.take_lent(shared, now, said),
        }
    }

    /// The same, whatever waits.
    #[inline]
    fn take_lent(&self, shared: &Shared<'_>, now: Tick, said: &mut Decision) -> Lent {
        if shared.limit.is_strict {
            return match shared.limit.keeps_denials {
                true => self.deny_again(shared, now, said),
                false => Lent::Not,
            };
        }
        match self.purses.take_to(shared.owner, now, shared.cost, said) {
            Taken::Spent { is_low, place, filling, .. } => {
                if is_low {
                    self.call(Call::Look(place));
                }
                Lent::Spent(place, filling)
            }
            Taken::Short(()) => Lent::Short,
            Taken::Locked(_) | Taken::Unknown => Lent::Not,
        }
    }

    /// Of what is not lent only a denial can be known here.
    #[inline(never)]
    fn deny_again(&self, shared: &Shared<'_>, now: Tick, said: &mut Decision) -> Lent {
        let Some(denial) = self.denials.find(shared.owner, shared.cost, now) else {
            return Lent::Not;
        };
        add(&self.counts.short, 1);
        *said = denial;
        Lent::Short
    }

    /// One that was denied with what is here is decided once more, and counts then.
    pub(crate) fn uncount_short(&self, shared: &Shared<'_>) {
        match shared.limit.is_strict {
            // Nothing else is published with it.
            true => _ = self.counts.short.fetch_sub(1, Ordering::Relaxed),
            false => self.purses.uncount_denied(shared.owner),
        }
    }

    /// Spends what is here, whatever waits, for whoever has no place for the decision yet.
    fn spend_lent(&self, shared: &Shared<'_>, now: Tick) -> Option<(Decision, Back)> {
        let mut said = Decision::unlimited();
        self.take_lent(shared, now, &mut said).saying(said)
    }

    /// Puts back what was just taken.
    pub(crate) fn put_back(&self, place: Place, filling: u32, cost: u64) {
        self.purses.put_back(place, filling, cost);
    }

    /// Spends, if that can be decided here. `None` if the store has to be asked first. `name` is what
    /// the key is called in the store.
    #[inline]
    pub(crate) fn spend(
        &self,
        shared: &Shared<'_>,
        now: Tick,
        asking: Asking,
        clock: &impl Clock,
        name: impl FnOnce() -> Arc<[u8]>,
    ) -> Option<(Decision, Back)> {
        let mut said = Decision::unlimited();
        let lent = self.take(shared, now, asking, &mut said);
        lent.saying(said).or_else(|| self.spend_told(shared, now, asking, clock, name))
    }

    #[inline(never)]
    fn spend_told(
        &self,
        shared: &Shared<'_>,
        now: Tick,
        asking: Asking,
        clock: &impl Clock,
        name: impl FnOnce() -> Arc<[u8]>,
    ) -> Option<(Decision, Back)> {
        if shared.cost == 0 {
            return self.look(shared, now, asking).map(|seen| (seen, Back::Nothing));
        }
        if let Some(told) = self.told_to((shared.owner, shared.cost), false, now, asking) {
            return Some(self.heed(shared, told, now, clock, name));
        }
        // Somebody else's answer may have been in the way.
        if let Some(said) = self.spend_lent(shared, now) {
            return Some(said);
        }
        if self.is_alone(asking) {
            return Some(self.spend_alone(shared, None, now, clock, name));
        }
        // Or more has come in since the purse was filled, or the steward had it in his hands: then it is full
        // again when he is done.
        if !shared.limit.is_strict
            && let Some(lent) = self.purses.known(shared.owner, now)
        {
            lent.refilled();
            if let Some(said) = self.spend_lent(shared, now) {
                return Some(said);
            }
        }
        if asking != Asking::Now {
            return None;
        }
        add(&self.counts.short, 1);
        let denial = Decision::deny(shared.limit.capacity, 0, SOON, Retry::After(SOON));
        Some((denial, Back::Nothing))
    }

    /// What the store has said to a request, or what its rule says if the store said nothing.
    fn heed(
        &self,
        shared: &Shared<'_>,
        told: Box<Told<About>>,
        now: Tick,
        clock: &impl Clock,
        name: impl FnOnce() -> Arc<[u8]>,
    ) -> (Decision, Back) {
        let (decision, at) = match &told.said {
            Said::Decided(decision, at) => (*decision, *at),
            Said::Failed(why) => return self.spend_alone(shared, Some(why), now, clock, name),
            Said::Seen(_) => return self.spend_alone(shared, None, now, clock, name),
        };
        // What is not left in the store may lie here. It is looked for first, because whoever takes
        // and finds too little counts as denied.
        if !decision.is_allowed()
            && self.is_here(shared, now)
            && let Some((here, back @ Back::Purse(..))) = self.spend_lent(shared, now)
        {
            return (here, back);
        }
        match (at, decision.is_allowed()) {
            (Some(_), _) => add(&self.counts.asked, 1),
            // The borrower could say it by itself.
            (None, true) => add(&self.counts.lent, 1),
            (None, false) => add(&self.counts.short, 1),
        }
        match decision.is_allowed() {
            true => (decision, Back::Told(told)),
            false => (decision, Back::Nothing),
        }
    }

    /// Spends what was kept for the request.
    pub(crate) fn spend_kept(
        &self,
        shared: &Shared<'_>,
        kept: KeptWhat,
        now: Tick,
        clock: &impl Clock,
        name: impl FnOnce() -> Arc<[u8]>,
    ) -> (Decision, Back) {
        match kept {
            KeptWhat::Taken(decision, place, filling) => (decision, Back::Purse(place, filling)),
            KeptWhat::Short(denial) => (denial, Back::Nothing),
            KeptWhat::Told(told) => self.heed(shared, told, now, clock, name),
            KeptWhat::Alone => self.spend_alone(shared, None, now, clock, name),
        }
    }

    /// Whether somebody has waited for as long as the store may take.
    fn is_over(&self, asking: Asking) -> bool {
        matches!(asking, Asking::Again { since } if self.time_left(since).is_zero())
    }

    /// What the rule does while the store is gone, or has not answered because of this.
    fn spend_alone(
        &self,
        shared: &Shared<'_>,
        why: Option<&Arc<StoreError>>,
        now: Tick,
        clock: &impl Clock,
        name: impl FnOnce() -> Arc<[u8]>,
    ) -> (Decision, Back) {
        let Shared { limit, key, cost, .. } = *shared;
        self.count_alone(limit, why.map(|why| &**why));
        let about = LazyCell::new(|| shared.about(name()));
        self.in_force.offer(|| about.clone());
        let (decision, back) = match (limit.policy, &limit.own) {
            (OnStoreFailure::Deny, _) => return (limit.denial_alone(), Back::Nothing),
            (OnStoreFailure::Local { .. }, Some(own)) => {
                let mut now = now;
                let decision = own.check_with(key, limit.cost_here(cost), clock, &mut now);
                if !decision.is_allowed() {
                    return (limit.said_alone(decision), Back::Nothing);
                }
                (limit.said_alone(decision), Back::Own(now))
            }
            (OnStoreFailure::Allow | OnStoreFailure::Local { .. }, _) => {
                (Decision::allow(limit.capacity, limit.capacity, Duration::ZERO), Back::Uncounted)
            }
        };
        self.owe(shared, || about.clone());
        (decision, back)
    }

    /// What would be said, if that is known here.
    pub(crate) fn look(&self, shared: &Shared<'_>, now: Tick, asking: Asking) -> Option<Decision> {
        let Shared { limit, owner, key, cost } = *shared;
        if !limit.is_strict {
            match self.purses.look(owner, now, cost) {
                Taken::Spent { decision, .. } | Taken::Short(decision) => return Some(decision),
                Taken::Locked(_) | Taken::Unknown => {}
            }
        }
        match self.told_to((owner, cost), true, now, asking).map(|told| told.said) {
            Some(Said::Seen(seen) | Said::Decided(seen, _)) => return Some(seen_for(seen, cost)),
            Some(Said::Failed(_)) => {}
            None if self.is_alone(asking) => {}
            None => {
                let whole = Decision::allow(limit.capacity, limit.capacity, Duration::ZERO);
                return (asking == Asking::Now).then_some(whole);
            }
        }
        Some(match (limit.policy, &limit.own) {
            (OnStoreFailure::Deny, _) => limit.denial_alone(),
            (OnStoreFailure::Local { .. }, Some(own)) => {
                limit.said_alone(own.peek(key, limit.cost_here(cost), now))
            }
            _ => Decision::allow(limit.capacity, limit.capacity, Duration::ZERO),
        })
    }

    /// An answer that waits for a request of that key and cost. Those who have not waited take none.
    pub(super) fn told_to(
        &self,
        (owner, cost): (KeyHash, u64),
        looks: bool,
        now: Tick,
        asking: Asking,
    ) -> Option<Box<Told<About>>> {
        match asking {
            Asking::Wait => None,
            Asking::Again { .. } | Asking::Now => self.told.take(owner, cost, looks, now),
        }
    }

    /// Whether requests that cost so much in all can be decided without asking the store. If it was
    /// asked for that, a denial counts only if there is nothing left in it either.
    pub(super) fn is_decided_here(
        &self,
        shared: &Shared<'_>,
        now: Tick,
        asking: Asking,
        is_used_up: bool,
    ) -> bool {
        let taken = match shared.limit.is_strict {
            true => Taken::Unknown,
            false => self.purses.look(shared.owner, now, shared.cost),
        };
        let is_decided = match taken {
            Taken::Spent { .. } => true,
            Taken::Short(_) => asking == Asking::Wait || is_used_up,
            Taken::Locked(_) | Taken::Unknown => false,
        };
        is_decided || self.is_alone(asking)
    }

    /// Whether a request that finds nothing here is its rule's alone to decide.
    pub(super) fn is_alone(&self, asking: Asking) -> bool {
        self.breaker.is_open() || self.is_over(asking)
    }

    /// Whether so much is lent. Where none is found the borrower is asked: somebody may have the purse
    /// in his hands, or something has come in.
    fn is_here(&self, shared: &Shared<'_>, now: Tick) -> bool {
        let Shared { limit, owner, cost, .. } = *shared;
        if limit.is_strict {
            return false;
        }
        match self.purses.look(owner, now, cost) {
            Taken::Spent { .. } => true,
            Taken::Unknown => false,
            Taken::Short(_) | Taken::Locked(_) => {
                let known = self.purses.known(owner, now);
                known.is_some_and(|mut lent| lent.borrower().tokens(now) >= cost)
            }
        }
    }

    /// Whether the store had nothing left a moment ago.
    pub(super) fn is_used_up(&self, owner: KeyHash, now: Tick) -> bool {
        let known = self.purses.known(owner, now);
        known.is_some_and(|mut lent| is_used_up(lent.borrower(), now))
    }
}

impl SharedLimit {
    pub(super) fn denial_alone(&self) -> Decision {
        Decision::deny(self.capacity, 0, ALONE, Retry::After(ALONE))
    }

    /// What the counters of this node say, in terms of the limit.
    fn said_alone(&self, decision: Decision) -> Decision {
        let remaining = decision.remaining() / (self.own_cost / 100).max(1);
        let reset = decision.reset_after();
        match decision.retry() {
            _ if self.own.as_ref().is_some_and(|own| own.shapes()) => decision,
            None => Decision::allow(decision.limit(), remaining, reset),
            Some(retry) => Decision::deny(decision.limit(), remaining, reset, retry),
        }
    }

    /// What the counters of this node say, in terms of the share of the limit that it has.
    pub(super) fn in_shares(&self, decision: Decision) -> Decision {
        if self.own.as_ref().is_some_and(|own| own.shapes()) {
            return decision;
        }
        let said = self.said_alone(decision);
        let whole = (said.limit() / (self.own_cost / 100).max(1)).max(1);
        let (left, reset) = (said.remaining().min(whole), said.reset_after());
        match said.retry() {
            None => Decision::allow(whole, left, reset),
            Some(retry) => Decision::deny(whole, left, reset, retry),
        }
    }
}

/// What a look at what is left says to a request of that cost.
pub(super) fn seen_for(seen: Decision, cost: u64) -> Decision {
    let (limit, remaining, reset) = (seen.limit(), seen.remaining(), seen.reset_after());
    match (cost <= remaining, cost <= limit) {
        (true, _) => seen,
        // No later than when everything is back.
        (false, true) => Decision::deny(limit, remaining, reset, Retry::After(reset)),
        (false, false) => Decision::deny(limit, remaining, reset, Retry::Never),
    }
}

/// Whether the store had nothing left when it last answered, which is a moment ago.
pub(super) fn is_used_up(borrower: &Borrower, now: Tick) -> bool {
    now < borrower.short_until() && borrower.seen().is_some_and(|seen| seen.remaining() == 0)
}

/// When to come again for those who cannot wait for the store.
const SOON: Duration = Duration::from_millis(25);

/// When to come again while the store is gone.
pub(super) const ALONE: Duration = Duration::from_secs(1);

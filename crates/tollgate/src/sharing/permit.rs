//! Permits of those that are lent to this node.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::lease::{Receipt, Spend};
use tollgate_core::{Decision, Retry, Tick};
use tollgate_local::{KeyHash, Lent};
use tollgate_rules::OnStoreFailure;

use crate::sharing::health::add;
use crate::sharing::limit::SharedLimit;
use crate::sharing::spend::{Asking, Shared};
use crate::sharing::told::Said;
use crate::sharing::{Call, Loan, Sharing};

impl Sharing {
    /// Takes a permit of those that are lent here. `None` if the store has to be asked first.
    pub(crate) fn permit(
        self: &Arc<Self>,
        shared: &Shared<'_>,
        out_here: u64,
        asking: Asking,
        name: impl FnOnce() -> Arc<[u8]>,
    ) -> Option<Result<Option<LentPermit>, Decision>> {
        let (now, limit) = (self.now(), shared.limit);
        let denial = limit.no_permit();
        if let Some(mut lent) = self.purses.known(shared.owner, now) {
            match lent.borrower().spend(now, 1) {
                Spend::Taken(receipt) => {
                    add(&self.counts.lent, 1);
                    return Some(Ok(Some(self.permit_of(lent, shared.owner, receipt))));
                }
                Spend::Short(_) => {
                    add(&self.counts.short, 1);
                    return Some(Err(denial));
                }
                Spend::Ask => {}
            }
        }
        let told = self.told_to((shared.owner, shared.cost), false, now, asking);
        let said = told.map(|told| told.said);
        let why = match &said {
            Some(Said::Failed(why)) => Some(&**why),
            _ => None,
        };
        if why.is_none() && !self.is_alone(asking) {
            // Those who have waited, and know by now that there is none, do not wait for nothing.
            let is_said =
                said.is_some() || asking != Asking::Wait && self.is_used_up(shared.owner, now);
            return (asking == Asking::Now || is_said).then_some(Err(denial));
        }
        self.count_alone(limit, why);
        self.in_force.offer(|| shared.about(name()));
        let is_allowed = match limit.policy {
            OnStoreFailure::Allow => true,
            OnStoreFailure::Deny => false,
            OnStoreFailure::Local { .. } => out_here < limit.own_permits,
        };
        Some(if is_allowed { Ok(None) } else { Err(limit.denial_alone()) })
    }

    /// Whether so many permits are here, or nobody has to be asked to know that there are none, or what
    /// the rule does without.
    pub(super) fn knows_of_permits(
        &self,
        owner: KeyHash,
        permits: u64,
        now: Tick,
        asking: Asking,
    ) -> bool {
        let known = self.purses.known(owner, now);
        let has = known.is_some_and(|mut lent| lent.borrower().tokens(now) >= permits);
        let is_said = || asking != Asking::Wait && !self.told.costs(owner, now).is_empty();
        has || self.is_used_up(owner, now) || self.is_alone(asking) || is_said()
    }

    /// Takes a permit of those that are lent here, for a request that is decided in a moment.
    pub(super) fn take_permit(self: &Arc<Self>, owner: KeyHash, now: Tick) -> Option<LentPermit> {
        let mut lent = self.purses.known(owner, now)?;
        if lent.borrower().tokens(now) == 0 {
            return None;
        }
        match lent.borrower().spend(now, 1) {
            Spend::Taken(receipt) => Some(self.permit_of(lent, owner, receipt)),
            Spend::Short(_) | Spend::Ask => None,
        }
    }

    /// Counts a permit that was kept for a request, and is its own from now on.
    pub(crate) fn permit_kept(&self) {
        add(&self.counts.lent, 1);
    }

    fn permit_of(
        self: &Arc<Self>,
        lent: Lent<'_, Loan>,
        owner: KeyHash,
        receipt: Receipt,
    ) -> LentPermit {
        let place = lent.place();
        drop(lent);
        self.call(Call::Look(place));
        LentPermit { sharing: Arc::clone(self), owner, receipt }
    }
}

impl SharedLimit {
    /// What a request is told that gets no permit.
    pub(super) fn no_permit(&self) -> Decision {
        Decision::deny(self.capacity, 0, Duration::ZERO, Retry::OnReturn)
    }
}

/// A permit of those that the store has lent to this node. It comes back when this is dropped.
pub(crate) struct LentPermit {
    sharing: Arc<Sharing>,
    owner: KeyHash,
    receipt: Receipt,
}

impl Drop for LentPermit {
    fn drop(&mut self) {
        let now = self.sharing.now();
        if let Some(mut lent) = self.sharing.purses.known(self.owner, now) {
            lent.borrower().finish(now, self.receipt);
            let place = lent.place();
            drop(lent);
            self.sharing.call(Call::Look(place));
        }
    }
}

impl std::fmt::Debug for LentPermit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LentPermit").field("owner", &self.owner).finish_non_exhaustive()
    }
}

//! Permits of those that are lent to this node.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::lease::{Receipt, Spend};
use tollgate_core::{Decision, Retry};
use tollgate_local::KeyHash;
use tollgate_rules::OnStoreFailure;

use crate::sharing::health::add;
use crate::sharing::spend::{Asking, Shared};
use crate::sharing::told::Said;
use crate::sharing::{Call, Sharing};

impl Sharing {
    /// Takes a permit of those that are lent here. `None` if the store has to be asked first.
    pub(crate) fn permit(
        self: &Arc<Self>,
        shared: &Shared<'_>,
        out_here: u64,
        asking: Asking,
    ) -> Option<Result<Option<LentPermit>, Decision>> {
        let (now, limit) = (self.now(), shared.limit);
        if let Some(mut lent) = self.purses.known(shared.owner, now) {
            match lent.borrower().spend(now, 1) {
                Spend::Taken(receipt) => {
                    let place = lent.place();
                    drop(lent);
                    add(&self.counts.lent, 1);
                    self.call(Call::Look(place));
                    let owner = shared.owner;
                    return Some(Ok(Some(LentPermit {
                        sharing: Arc::clone(self),
                        owner,
                        receipt,
                    })));
                }
                Spend::Short(_) => {
                    add(&self.counts.short, 1);
                    let denial = Decision::deny(limit.capacity, 0, Duration::ZERO, Retry::OnReturn);
                    return Some(Err(denial));
                }
                Spend::Ask => {}
            }
        }
        let told = self.told_to(shared, false, now, asking);
        let has_failed = told.is_some_and(|told| matches!(told.said, Said::Failed));
        if !has_failed && !self.breaker.is_open() {
            let denial = Decision::deny(limit.capacity, 0, Duration::ZERO, Retry::OnReturn);
            return (asking == Asking::Now).then_some(Err(denial));
        }
        add(&self.counts.degraded, 1);
        let is_allowed = match limit.policy {
            OnStoreFailure::Allow => true,
            OnStoreFailure::Deny => false,
            OnStoreFailure::Local { .. } => out_here < limit.own_permits,
        };
        Some(if is_allowed { Ok(None) } else { Err(limit.denial_alone()) })
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

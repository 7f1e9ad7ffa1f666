//! The trait of all stores.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tollgate_core::Wall;
use tollgate_core::lease::Grant;

use crate::ask::Ask;
use crate::budget::Budget;
use crate::error::StoreError;
use crate::loss::Losses;

/// Who keeps the books of shared limits.
///
/// Time is the store's own. An answer counts from the store's clock, and what it lends from the
/// node's: see [`tollgate_core::lease`].
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use tollgate_core::{Limit, lease::Exchange};
/// use tollgate_local::{Clock, ManualClock};
/// use tollgate_store::{Ask, Budget, MemoryStore, Store};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let clock = ManualClock::new();
/// let limit = Limit::token_bucket("2/min")?;
/// let budget = Arc::new(Budget::new("api", &limit, Duration::from_millis(5), clock.wall()));
/// let store = MemoryStore::new(clock, 1_000);
/// let ask = Ask::new(budget, "alice", Exchange::once(1));
/// let answers = store.exchange(&[ask.clone(), ask.clone(), ask]).await;
/// let allowed = answers.iter().flatten().filter(|grant| grant.decision.is_allowed());
/// assert_eq!(allowed.count(), 2);
/// # Ok::<(), tollgate_core::LimitError>(())
/// # }).expect("the limit is fine");
/// ```
pub trait Store: Send + Sync + 'static {
    /// Settles, takes back, decides and lends, for each question by itself. The answers stand in the
    /// order of the questions; decided they may be in another. Each question is one atomic step.
    /// Several are not one: others may come in between. To look at a key
    /// ([`once(0)`](tollgate_core::lease::Exchange::once)) leaves nothing behind.
    ///
    /// An error says that nothing was decided. Whether anything was done is then unknown, except
    /// where the error says so. A numbered exchange can be sent again; one that is asked for
    /// [once](tollgate_core::lease::Exchange::once) would be spent again, and one that
    /// [undoes](tollgate_core::lease::Exchange::undo) would be given back again.
    fn exchange(&self, asks: &[Ask])
    -> impl Future<Output = Vec<Result<Grant, StoreError>>> + Send;

    /// The longest that an [exchange](Self::exchange) takes, if the store sees to that itself: what is not
    /// answered by then is a [timeout](StoreError::Timeout). Whoever has as much time need not look at the
    /// clock as well. `None` if it may take any time.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Forgets a key: it has its whole budget, as if nothing had ever been spent or lent. Whether
    /// anything was known of it, or it counted as used up because the store has lost its memory. For an
    /// operator who lets somebody begin anew.
    ///
    /// Nodes that hold a lease of the key keep it until it ends, so for so long they can pass what
    /// was lent to them beside the budget that the key has now.
    fn forget(
        &self,
        budget: &Arc<Budget>,
        key: &[u8],
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Whether the store answers, and what time it has.
    fn ping(&self) -> impl Future<Output = Result<Pulse, StoreError>> + Send;

    /// What it was found to have forgotten, now and whenever there is more: from then on keys count as
    /// used up for a while, as nobody knows what they had spent. `None` if it does not forget while it is
    /// there.
    fn losses(&self) -> Option<watch::Receiver<Losses>> {
        None
    }
}

/// What a store says of itself.
///
/// ```
/// use tollgate_store::{Pulse, Store};
/// async fn is_up(store: &impl Store) -> bool {
///     store.ping().await.is_ok()
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// What its clock said while it answered.
    pub wall: Wall,
    /// How long it took to ask.
    pub round_trip: Duration,
    /// The latest of its memories: another number after one was lost. 0 if it has none yet.
    pub epoch: u64,
}

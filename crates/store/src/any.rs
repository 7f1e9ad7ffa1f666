//! Any store, where no type is to say which.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tollgate_core::lease::Grant;

use crate::ask::Ask;
use crate::budget::Budget;
use crate::error::StoreError;
use crate::loss::Losses;
use crate::store::{Pulse, Store};

/// A store of some kind, chosen while the program runs. Clones are the same store.
///
/// ```
/// use tollgate_local::SystemClock;
/// use tollgate_store::{AnyStore, MemoryStore};
/// fn store_of(name: &str) -> Option<AnyStore> {
///     match name {
///         "memory" => Some(AnyStore::new(MemoryStore::new(SystemClock::new(), 100_000))),
///         _ => None,
///     }
/// }
/// assert!(store_of("memory").is_some());
/// ```
#[derive(Clone)]
pub struct AnyStore(Arc<dyn Boxed>);

impl AnyStore {
    /// Wraps a store.
    ///
    /// ```
    /// use tollgate_local::ManualClock;
    /// use tollgate_store::{AnyStore, MemoryStore};
    /// let store = AnyStore::new(MemoryStore::new(ManualClock::new(), 1_000));
    /// # let _ = store;
    /// ```
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }
}

impl Store for AnyStore {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        self.0.exchange(asks).await
    }

    fn patience(&self) -> Option<Duration> {
        self.0.patience()
    }

    async fn forget(&self, budget: &Arc<Budget>, key: &[u8]) -> Result<bool, StoreError> {
        self.0.forget(budget, key).await
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        self.0.ping().await
    }

    fn losses(&self) -> Option<watch::Receiver<Losses>> {
        self.0.losses()
    }
}

impl fmt::Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyStore").finish_non_exhaustive()
    }
}

/// [`Store`] with futures of one size.
trait Boxed: Send + Sync {
    fn exchange<'a>(&'a self, asks: &'a [Ask]) -> Answer<'a, Vec<Result<Grant, StoreError>>>;

    fn patience(&self) -> Option<Duration>;

    fn forget<'a>(
        &'a self,
        budget: &'a Arc<Budget>,
        key: &'a [u8],
    ) -> Answer<'a, Result<bool, StoreError>>;

    fn ping(&self) -> Answer<'_, Result<Pulse, StoreError>>;

    fn losses(&self) -> Option<watch::Receiver<Losses>>;
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl<S: Store> Boxed for S {
    fn exchange<'a>(&'a self, asks: &'a [Ask]) -> Answer<'a, Vec<Result<Grant, StoreError>>> {
        Box::pin(Store::exchange(self, asks))
    }

    fn patience(&self) -> Option<Duration> {
        Store::patience(self)
    }

    fn forget<'a>(
        &'a self,
        budget: &'a Arc<Budget>,
        key: &'a [u8],
    ) -> Answer<'a, Result<bool, StoreError>> {
        Box::pin(Store::forget(self, budget, key))
    }

    fn ping(&self) -> Answer<'_, Result<Pulse, StoreError>> {
        Box::pin(Store::ping(self))
    }

    fn losses(&self) -> Option<watch::Receiver<Losses>> {
        Store::losses(self)
    }
}

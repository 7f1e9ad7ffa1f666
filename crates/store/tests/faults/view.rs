//! A store as tests see it.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Limit;
use tollgate_core::lease::{Exchange, Grant};
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::{Ask, Budget, RedisConfig, RedisStore, Store as _, StoreError};

use crate::process::Redis;

pub(crate) struct View {
    pub(crate) store: RedisStore,
    clock: SystemClock,
}

impl View {
    /// With more patience than a busy machine needs.
    pub(crate) fn of(url: &str) -> Self {
        Self::with(url, RedisConfig { timeout: Duration::from_secs(20), ..RedisConfig::default() })
    }

    pub(crate) fn with(url: &str, config: RedisConfig) -> Self {
        let clock = SystemClock::new();
        let store = RedisStore::open(url, config, Arc::new(clock.clone())).unwrap();
        Self { store, clock }
    }

    pub(crate) fn budget(&self, rule: &str, limit: &Limit) -> Arc<Budget> {
        Arc::new(Budget::new(rule, limit, Duration::from_millis(5), self.clock.wall()))
    }

    pub(crate) fn bucket(&self, quota: &str) -> Arc<Budget> {
        self.budget("api", &Limit::token_bucket(quota).unwrap())
    }

    pub(crate) async fn ask(
        &self,
        budget: &Arc<Budget>,
        key: &str,
        exchange: Exchange,
    ) -> Result<Grant, StoreError> {
        let ask = Ask::new(Arc::clone(budget), key, exchange);
        self.store.exchange(&[ask]).await.remove(0)
    }

    pub(crate) async fn spend(&self, budget: &Arc<Budget>, key: &str) -> Result<bool, StoreError> {
        let grant = self.ask(budget, key, Exchange::once(1)).await?;
        Ok(grant.decision.is_allowed())
    }

    pub(crate) async fn left(&self, budget: &Arc<Budget>, key: &str) -> Result<u64, StoreError> {
        Ok(self.ask(budget, key, Exchange::once(0)).await?.decision.remaining())
    }

    /// Asks what is left until there is an answer.
    pub(crate) async fn left_at_last(&self, budget: &Arc<Budget>, key: &str) -> u64 {
        for _ in 0..3_000 {
            match self.left(budget, key).await {
                Ok(left) => return left,
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
            pause().await;
        }
        panic!("in vain")
    }
}

/// A moment, for others to get on.
pub(crate) async fn pause() {
    let _ = tokio::time::timeout(Duration::from_millis(10), std::future::pending::<()>()).await;
}

/// Waits for something as `until` does, while all that was begun here goes on.
pub(crate) async fn until_meanwhile<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(found) = look() {
            return found;
        }
        pause().await;
    }
    panic!("in vain: {what}")
}

/// Waits until so many clients know a server of a Cluster.
pub(crate) async fn until_linked(server: &Redis, count: usize) {
    // Some name what of a command it was, and others the command alone.
    let last = [" cmd=evalsha ", " cmd=script", " cmd=cluster", " cmd=time "];
    let is_ready = |client: &&str| last.iter().any(|last| client.contains(last));
    until_meanwhile("all are there", || {
        let clients = server.cli(&["CLIENT", "LIST"]);
        (clients.lines().filter(is_ready).count() >= count).then_some(())
    })
    .await;
}

/// The server's clock, in microseconds.
pub(crate) fn now(server: &Redis) -> u64 {
    let time = server.cli(&["TIME"]);
    let mut parts = time.lines().map(|part| part.parse::<u64>().unwrap());
    parts.next().unwrap() * 1_000_000 + parts.next().unwrap()
}

//! The store in a real Redis, in real time.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Wall;
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::{RedisConfig, RedisStore, Store as _};

use crate::bench::Bench;
use crate::process::Redis;
use crate::suite;

struct InRedis {
    redis: Redis,
    store: RedisStore,
}

impl InRedis {
    fn new() -> Self {
        let redis = Redis::start(&[]);
        Self { store: open(&redis.url()), redis }
    }
}

/// A store with more patience than a busy machine needs.
pub(crate) fn open(url: &str) -> RedisStore {
    let config = RedisConfig { timeout: Duration::from_secs(20), ..RedisConfig::default() };
    RedisStore::open(url, config, Arc::new(SystemClock::new())).unwrap()
}

/// Waits until the store's clock has gone on by so much.
pub(crate) async fn pass(store: &RedisStore, span: Duration) {
    let begin = store.ping().await.unwrap().wall.as_unix_nanos();
    let end = begin + u64::try_from(span.as_nanos()).unwrap();
    while store.ping().await.unwrap().wall.as_unix_nanos() <= end {
        let _ = tokio::time::timeout(Duration::from_millis(10), std::future::pending::<()>()).await;
    }
}

impl Bench for InRedis {
    type Store = RedisStore;

    fn store(&self) -> &RedisStore {
        &self.store
    }

    fn wall(&self) -> Wall {
        SystemClock::new().wall()
    }

    async fn pass(&self, span: Duration) {
        pass(&self.store, span).await;
    }

    async fn lose_memory(&self) {
        self.redis.cli(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn redis_conforms() {
    suite::run(&InRedis::new()).await;
}

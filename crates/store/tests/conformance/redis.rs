//! The store in a real Redis or Valkey, in real time.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::lease::Exchange;
use tollgate_core::{Limit, Wall};
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::{Ask, RedisConfig, RedisStore, Store as _};

use crate::bench::Bench;
use crate::process::{Kind, Redis, free_port, start_cluster};
use crate::suite;

struct InRedis {
    servers: Vec<Redis>,
    store: RedisStore,
}

impl InRedis {
    fn alone(kind: Kind) -> Self {
        let redis = Redis::start_as(kind, free_port(), &[]);
        Self { store: open(&redis.url()), servers: vec![redis] }
    }

    fn cluster(kind: Kind) -> Self {
        let servers = start_cluster(kind);
        let store = open(&format!("redis+cluster://127.0.0.1:{}", servers[1].port));
        Self { store, servers }
    }
}

/// A store with more patience than a busy machine needs.
fn open(url: &str) -> RedisStore {
    let config = RedisConfig { timeout: Duration::from_secs(20), ..RedisConfig::default() };
    RedisStore::open(url, config, Arc::new(SystemClock::new())).unwrap()
}

/// Waits until the store's clock has gone on by so much.
async fn pass(store: &RedisStore, span: Duration) {
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
        // Replicas refuse, and follow.
        for server in &self.servers {
            server.cli(&["FLUSHALL"]);
        }
    }

    fn knows_of_loss_everywhere(&self) -> bool {
        self.servers.len() == 1
    }
}

#[tokio::test]
async fn redis_conforms() {
    suite::run(&InRedis::alone(Kind::Redis)).await;
}

#[tokio::test]
async fn a_cluster_of_redis_conforms() {
    suite::run(&InRedis::cluster(Kind::Redis)).await;
}

#[tokio::test]
async fn a_former_redis_conforms() {
    let bench = InRedis::alone(Kind::Former);
    let says = bench.servers[0].cli(&["INFO", "server"]);
    assert!(says.contains("redis_version:6.2."), "{says}");
    suite::run(&bench).await;
}

#[tokio::test]
async fn a_cluster_of_former_redis_conforms() {
    suite::run(&InRedis::cluster(Kind::Former)).await;
}

#[tokio::test]
async fn valkey_conforms() {
    let bench = InRedis::alone(Kind::Valkey);
    let says = bench.servers[0].cli(&["INFO", "server"]);
    assert!(says.contains("valkey_version:"), "{says}");
    suite::run(&bench).await;
}

#[tokio::test]
async fn a_cluster_of_valkey_conforms() {
    suite::run(&InRedis::cluster(Kind::Valkey)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_ask_at_once_get_the_limit_and_no_more() {
    let bench = InRedis::alone(Kind::Redis);
    for (name, limit) in [
        ("bucket", Limit::token_bucket("100/day").unwrap()),
        ("window", Limit::fixed_window("100/month").unwrap()),
        ("sliding", Limit::sliding_window("100/month").unwrap()),
        ("log", Limit::sliding_log("100/day").unwrap()),
    ] {
        let budget = bench.budget(name, limit);
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (store, budget) = (open(&bench.servers[0].url()), budget.clone());
            for _ in 0..25 {
                let ask = Ask::new(budget.clone(), "k", Exchange::once(1));
                let store = store.clone();
                clients.spawn(async move { store.exchange(&[ask]).await.remove(0) });
            }
        }
        let grants = clients.join_all().await;
        let allowed = grants.iter().filter(|grant| grant.as_ref().unwrap().decision.is_allowed());
        assert_eq!(allowed.count(), 100, "{name}");
    }
}

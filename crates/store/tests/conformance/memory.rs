//! The store in memory, in simulated time.

use std::time::Duration;

use tollgate_core::Limit;
use tollgate_core::Wall;
use tollgate_core::lease::Exchange;
use tollgate_local::{Clock as _, ManualClock};
use tollgate_store::{AnyStore, MemoryStore, Store as _, StoreError};

use crate::bench::Bench;
use crate::suite;

struct InMemory {
    clock: ManualClock,
    store: MemoryStore<ManualClock>,
}

impl InMemory {
    fn new(max_keys: usize) -> Self {
        let clock = ManualClock::starting_at(Wall::from_unix_nanos(1_800_000_000_123_456_000));
        Self { store: MemoryStore::new(clock.clone(), max_keys), clock }
    }
}

impl Bench for InMemory {
    type Store = MemoryStore<ManualClock>;

    fn store(&self) -> &Self::Store {
        &self.store
    }

    fn wall(&self) -> Wall {
        self.clock.wall()
    }

    async fn pass(&self, span: Duration) {
        self.clock.advance(span);
    }

    async fn lose_memory(&self) {
        self.store.lose_memory();
    }
}

#[tokio::test]
async fn memory_conforms() {
    suite::run(&InMemory::new(1_000)).await;
}

#[tokio::test]
async fn a_full_store_forgets_keys_at_rest_and_nothing_else() {
    let bench = InMemory::new(3);
    let limit = bench.budget("api", Limit::token_bucket("1/s").unwrap());
    for key in ["a", "b", "c"] {
        assert_eq!(bench.allowed(&limit, key, 2).await, 1);
    }
    let full = bench.ask(&limit, "d", Exchange::once(1)).await;
    assert!(matches!(full, Err(StoreError::OutOfMemory { .. })), "{full:?}");
    assert_eq!(bench.left(&limit, "a").await, 0, "those it knows it answers");
    bench.pass(Duration::from_secs(1)).await;
    // Room is made in the shard of the new key alone, so one of many finds some.
    let mut answered = 0;
    for key in 0..500 {
        answered += u32::from(bench.ask(&limit, &key.to_string(), Exchange::once(1)).await.is_ok());
    }
    assert!(answered > 0);
    assert!(bench.store().keys() <= 3);
}

#[tokio::test]
async fn a_pulse_tells_the_time_and_the_memory() {
    let bench = InMemory::new(10);
    let before = bench.store().ping().await.unwrap();
    bench.pass(Duration::from_secs(5)).await;
    bench.lose_memory().await;
    let after = bench.store().ping().await.unwrap();
    assert_eq!(after.wall.as_unix_nanos() - before.wall.as_unix_nanos(), 5_000_000_000);
    assert_ne!(after.epoch, before.epoch);
}

/// A node that was started later, or has read its rules again, counts time from another origin.
#[tokio::test]
async fn budgets_made_at_different_times_share_their_keys() {
    let bench = InMemory::new(10);
    for (name, limit) in [
        ("bucket", Limit::token_bucket("24/day").unwrap()),
        ("log", Limit::sliding_log("24/day").unwrap()),
    ] {
        let early = bench.budget(name, limit.clone());
        let spent = bench.ask(&early, "k", Exchange::once(24)).await.unwrap();
        bench.pass(Duration::from_secs(3_600)).await;
        let late = bench.budget(name, limit);
        assert_eq!(bench.left(&late, "k").await, bench.left(&early, "k").await, "{name}");
        bench.ask(&late, "k", Exchange::undo(24, spent.at)).await.unwrap();
        assert_eq!(bench.left(&late, "k").await, 24, "{name}");
    }
}

#[tokio::test]
async fn any_store_is_the_store_that_it_holds() {
    let clock = ManualClock::starting_at(Wall::from_unix_nanos(1_800_000_000_123_456_000));
    let store = AnyStore::new(MemoryStore::new(clock.clone(), 1_000));
    suite::run_without_loss(&Any { clock, store }).await;
}

struct Any {
    clock: ManualClock,
    store: AnyStore,
}

impl Bench for Any {
    type Store = AnyStore;

    fn store(&self) -> &AnyStore {
        &self.store
    }

    fn wall(&self) -> Wall {
        self.clock.wall()
    }

    async fn pass(&self, span: Duration) {
        self.clock.advance(span);
    }

    async fn lose_memory(&self) {
        panic!("it is held by somebody else");
    }
}

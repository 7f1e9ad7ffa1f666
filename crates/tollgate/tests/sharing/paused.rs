//! Time that stands still between milliseconds, for tests of how long somebody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, advance};
use tollgate::store::{Ask, Budget, MemoryStore, Pulse, Store, StoreError};
use tollgate::{Engine, ManualClock, RuleSet, SharingConfig};
use tollgate_core::lease::Grant;

use crate::settle;

/// Timers end with the next millisecond.
pub(crate) const GRAIN: Duration = Duration::from_millis(1);

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(test)
}

/// Lets a millisecond pass, and everybody do what is due.
pub(crate) async fn step(clock: &ManualClock) {
    settle().await;
    clock.advance(GRAIN);
    advance(GRAIN).await;
    settle().await;
}

#[expect(clippy::disallowed_methods, reason = "it is the time that stands still")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "it is the time that stands still")]
pub(crate) async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// A store that hears at once, and whose answers take so many milliseconds.
#[derive(Clone)]
pub(crate) struct Far {
    store: Arc<MemoryStore<ManualClock>>,
    takes: u64,
    asked: Arc<AtomicU64>,
}

impl Far {
    /// How many messages it was sent.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Store for Far {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answers = self.store.exchange(asks).await;
        pause(self.takes).await;
        answers
    }

    async fn forget(&self, budget: &Arc<Budget>, key: &[u8]) -> Result<bool, StoreError> {
        self.store.forget(budget, key).await
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        pause(self.takes).await;
        self.store.ping().await
    }
}

/// A node with a store that is far away.
pub(crate) struct Remote {
    pub(crate) clock: ManualClock,
    pub(crate) far: Far,
    pub(crate) engine: Arc<Engine<ManualClock>>,
}

impl Remote {
    pub(crate) fn new(rules: &str, takes: u64, config: SharingConfig) -> Self {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(400 * 86_400));
        let store = Arc::new(MemoryStore::new(clock.clone(), 10_000));
        let far = Far { store, takes, asked: Arc::default() };
        let rules = RuleSet::parse(rules).unwrap_or_else(|error| panic!("{error}"));
        let builder = Engine::builder(rules).clock(clock.clone());
        let engine = builder.store(far.clone(), config).unwrap().build().unwrap();
        Self { clock, far, engine: Arc::new(engine) }
    }

    /// Lets so many milliseconds pass.
    pub(crate) async fn pass(&self, millis: u64) {
        for _ in 0..millis {
            step(&self.clock).await;
        }
    }
}

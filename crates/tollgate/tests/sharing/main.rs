//! Engines that share their limits through a store.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod batches;
mod change;
mod deadlines;
mod denials;
mod failure;
mod fleet;
mod healing;
mod lapses;
mod operators;
mod patience;
mod paused;
mod places;
#[path = "../../../store/tests/support/process.rs"]
mod process;
mod redis;
#[path = "../../../store/tests/support/relay.rs"]
mod relay;
mod together;
mod under_way;
mod waiting;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tollgate::store::{Ask, Budget, MemoryStore, Pulse, Store, StoreError};
use tollgate::{Engine, ManualClock, Request, RuleSet, Ruling, SharingConfig};
use tollgate_core::lease::Grant;

/// A store that is gone while somebody says so.
#[derive(Clone)]
struct Shop {
    store: Arc<MemoryStore<ManualClock>>,
    is_gone: Arc<AtomicBool>,
    /// What it refuses while it is there.
    refuses: Arc<Mutex<Refuses>>,
    /// Whether others can ask as well before it answers.
    is_far: Arc<AtomicBool>,
    /// Whether answers are on their way until they are handed over.
    is_slow: Arc<AtomicBool>,
    handed_over: Arc<Notify>,
    /// How many milliseconds every answer takes.
    takes: Arc<AtomicU64>,
    clock: ManualClock,
    /// How often it was asked.
    asked: Arc<AtomicUsize>,
}

/// Why a question is not answered, if it is not.
type Refuses = fn(&Ask) -> Option<StoreError>;

impl Shop {
    fn new(clock: &ManualClock) -> Self {
        let store = Arc::new(MemoryStore::new(clock.clone(), 10_000));
        Self {
            store,
            is_gone: Arc::default(),
            refuses: Arc::new(Mutex::new(|_| None)),
            is_far: Arc::default(),
            is_slow: Arc::default(),
            handed_over: Arc::default(),
            takes: Arc::default(),
            clock: clock.clone(),
            asked: Arc::default(),
        }
    }

    fn go(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    fn come_back(&self) {
        self.is_gone.store(false, Ordering::Relaxed);
    }

    /// From now on it is there, and refuses this.
    fn refuse(&self, refuses: Refuses) {
        *self.refuses.lock().unwrap() = refuses;
    }

    async fn answer(&self, ask: &Ask) -> Result<Grant, StoreError> {
        self.answers()?;
        let refuses = *self.refuses.lock().unwrap();
        match refuses(ask) {
            Some(error) => Err(error),
            None => self.store.exchange(std::slice::from_ref(ask)).await.remove(0),
        }
    }

    fn answers(&self) -> Result<(), StoreError> {
        match self.is_gone.load(Ordering::Relaxed) {
            true => Err(StoreError::Loading),
            false => Ok(()),
        }
    }
}

impl Store for Shop {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.clock.advance(Duration::from_millis(self.takes.load(Ordering::Relaxed)));
        if self.is_far.load(Ordering::Relaxed) {
            settle().await;
        }
        let mut answers = Vec::with_capacity(asks.len());
        for ask in asks {
            answers.push(self.answer(ask).await);
        }
        if self.is_slow.load(Ordering::Relaxed) {
            self.handed_over.notified().await;
        }
        answers
    }

    async fn forget(&self, budget: &Arc<Budget>, key: &[u8]) -> Result<bool, StoreError> {
        self.answers()?;
        self.store.forget(budget, key).await
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        self.answers()?;
        self.store.ping().await
    }
}

/// Nodes with the same rules, a store for all of them, and time that stands still.
struct Fleet {
    clock: ManualClock,
    shop: Shop,
    nodes: Vec<Engine<ManualClock>>,
}

impl Fleet {
    fn new(nodes: usize, rules: &str) -> Self {
        Self::with(nodes, rules, &SharingConfig::default())
    }

    fn with(nodes: usize, rules: &str, config: &SharingConfig) -> Self {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(400 * 86_400));
        let shop = Shop::new(&clock);
        let mut fleet = Self { clock, shop, nodes: Vec::new() };
        (0..nodes).for_each(|_| fleet.add(rules, config));
        fleet
    }

    /// One more node.
    fn add(&mut self, rules: &str, config: &SharingConfig) {
        let rules = RuleSet::parse(rules).unwrap_or_else(|error| panic!("{error}"));
        let builder = Engine::builder(rules).clock(self.clock.clone());
        self.nodes.push(builder.store(self.shop.clone(), config.clone()).unwrap().build().unwrap());
    }

    /// Lets time pass, and everybody do what is due.
    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
        settle().await;
    }

    /// Whether a request passes at a node.
    async fn passes(&self, node: usize, request: &Request<'_>) -> bool {
        self.nodes[node].decide_waiting(request).await.is_allowed()
    }

    /// How many of so many pass, at all nodes in turn.
    async fn passing(&self, request: &Request<'_>, times: usize) -> usize {
        let mut passing = 0;
        for at in 0..times {
            passing += usize::from(self.passes(at % self.nodes.len(), request).await);
        }
        passing
    }

    /// How many of these pass at a node that decides them at once.
    async fn passing_at_once(&self, node: usize, requests: &[Request<'_>]) -> usize {
        self.decided_at_once(node, requests).await.iter().filter(|it| it.is_allowed()).count()
    }

    async fn decided_at_once(&self, node: usize, requests: &[Request<'_>]) -> Vec<Ruling> {
        let engine = &self.nodes[node];
        let mut reserve = engine.reserve(requests, &[]);
        while let Err(wait) = reserve {
            let since = wait.since();
            wait.fetch().await;
            reserve = engine.reserve_again(requests, since);
        }
        let (mut reserve, mut rulings) = (reserve.unwrap(), Vec::new());
        engine.decide_batch_with(requests, &mut reserve, |_, ruling| rulings.push(ruling));
        rulings
    }

    /// What the store and the nodes say is left.
    async fn left(&self, node: usize, rule: &str, request: &Request<'_>) -> u64 {
        let engine = &self.nodes[node];
        let ruling = match engine.try_peek(request) {
            Ok(ruling) => ruling,
            Err(wait) => {
                wait.fetch().await;
                engine.peek(request)
            }
        };
        let each = ruling.each().find(|each| each.name() == rule).expect("it applies");
        each.decision().remaining()
    }
}

/// Lets all tasks run until they wait.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap().block_on(test);
}

fn root() -> Request<'static> {
    Request::new("GET", "/")
}

//! What stands before a store, and finds out what keys of changed limits had spent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate_core::lease::{Exchange, Grant};
use tollgate_core::{Limit, Tick, Wall};
use tollgate_local::{Clock as _, Key as _, ManualClock, Seed};
use tollgate_store::{Ask, Before, Budget, Carrying, MemoryStore, Pulse, Store, StoreError};

/// A store that takes note of how many questions it gets at once, and fails if it is told to.
#[derive(Clone)]
struct Noting {
    store: Arc<MemoryStore<ManualClock>>,
    asked: Arc<Mutex<Vec<usize>>>,
    fails: Arc<AtomicBool>,
}

impl Store for Noting {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        self.asked.lock().unwrap().push(asks.len());
        match self.fails.load(Ordering::Relaxed) {
            true => asks.iter().map(|_| Err(StoreError::Loading)).collect(),
            false => self.store.exchange(asks).await,
        }
    }

    fn patience(&self) -> Option<Duration> {
        Some(PATIENCE)
    }

    async fn forget(&self, budget: &Arc<Budget>, key: &[u8]) -> Result<bool, StoreError> {
        self.store.forget(budget, key).await
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        self.store.ping().await
    }
}

const PATIENCE: Duration = Duration::from_millis(50);

struct Changed {
    clock: ManualClock,
    noting: Noting,
    store: Carrying<Noting, ManualClock>,
    old: Vec<Arc<Budget>>,
    new: Arc<Budget>,
    since: Tick,
    of_known: bool,
    seed: Seed,
}

impl Changed {
    fn new(old: &[&str], new: &str) -> Self {
        let clock = ManualClock::starting_at(Wall::from_unix_nanos(1_800_000_000_123_456_000));
        clock.advance(Duration::from_secs(5));
        let store = Arc::new(MemoryStore::new(clock.clone(), 1_000));
        let noting = Noting { store, asked: Arc::default(), fails: Arc::default() };
        let budget = |quota: &str| {
            let limit = Limit::token_bucket(quota).unwrap();
            Arc::new(Budget::new("api", &limit, Duration::from_millis(5), clock.wall()))
        };
        Self {
            store: Carrying::new(noting.clone(), clock.clone(), 100),
            old: old.iter().copied().map(budget).collect(),
            new: budget(new),
            since: clock.now(),
            of_known: false,
            seed: Seed::random(),
            clock: {
                clock.advance(Duration::from_millis(2));
                clock
            },
            noting,
        }
    }

    fn ask(&self, key: &str, cost: u64) -> Ask {
        let (budgets, owner) = (self.old.clone(), key.hash(&self.seed));
        let before = Before { budgets, since: self.since, of_known: self.of_known, owner };
        Ask::new(Arc::clone(&self.new), key, Exchange::once(cost)).following(before)
    }

    /// What is left after this, and how many questions it took, one after the other.
    async fn left(&self, asks: &[Ask]) -> (Vec<Option<u64>>, Vec<usize>) {
        self.noting.asked.lock().unwrap().clear();
        let answers = self.store.exchange(asks).await;
        let left = |answer: Result<Grant, StoreError>| Some(answer.ok()?.decision.remaining());
        (answers.into_iter().map(left).collect(), self.noting.asked.lock().unwrap().clone())
    }

    async fn spend(&self, old: usize, key: &str, cost: u64) {
        let ask = Ask::new(Arc::clone(&self.old[old]), key, Exchange::once(cost));
        assert!(self.noting.exchange(&[ask]).await[0].as_ref().unwrap().decision.is_allowed());
    }
}

#[tokio::test]
async fn a_key_is_looked_at_once_and_those_beside_it_do_not_wait() {
    let changed = Changed::new(&["100/day", "10/day"], "60/day");
    changed.spend(0, "alice", 20).await;
    changed.spend(1, "alice", 5).await;
    let plain = Ask::new(changed.new.clone(), "carol", Exchange::once(1));
    let asks =
        [changed.ask("alice", 1), plain.clone(), changed.ask("bob", 1), changed.ask("alice", 1)];
    assert_eq!(changed.store.looks(&asks), 4);
    let (left, asked) = changed.left(&asks).await;
    assert_eq!(left, [Some(39), Some(59), Some(59), Some(38)]);
    assert_eq!(asked, [1 + 2 + 2, 3], "one plain question and two looks for each of two keys");
    let (left, asked) = changed.left(&asks).await;
    assert_eq!(left, [Some(37), Some(58), Some(58), Some(36)]);
    assert_eq!(asked, [4]);
    assert_eq!(changed.store.looks(&asks), 0);
}

/// Between the question whether it is known and the exchange it may be forgotten.
#[tokio::test]
async fn nobody_relies_on_the_store_to_keep_the_time_of_a_key_whose_limit_has_changed() {
    let changed = Changed::new(&["100/day"], "60/day");
    let (plain, most) = (Ask::new(changed.new.clone(), "carol", Exchange::once(1)), PATIENCE);
    let asks = [plain, changed.ask("alice", 1)];
    for is_known in [false, true] {
        assert_eq!(changed.store.looks(&asks) == 0, is_known);
        assert!(!changed.store.keeps_time(&asks, most));
        changed.left(&asks).await;
    }
    assert!(changed.store.keeps_time(&asks[..1], most));
    assert!(!changed.store.keeps_time(&asks[..1], most - Duration::from_nanos(1)));
    assert_eq!(changed.store.patience(), Some(most * 2), "if it looks first");
}

/// It was asked about already, and its limit changes once more, back to one that it had.
#[tokio::test]
async fn a_key_is_looked_at_once_after_each_change() {
    let mut changed = Changed::new(&["100/day"], "60/day");
    assert_eq!(changed.left(&[changed.ask("alice", 1)]).await, (vec![Some(59)], vec![1, 1]));
    changed.spend(0, "alice", 20).await;
    assert_eq!(changed.left(&[changed.ask("alice", 1)]).await, (vec![Some(58)], vec![1]));
    for wait in [0, 2] {
        changed.clock.advance(Duration::from_millis(wait));
        changed.since = changed.clock.now();
        changed.of_known = true;
        changed.clock.advance(Duration::from_millis(wait));
        assert_eq!(changed.left(&[changed.ask("alice", 0)]).await, (vec![Some(40)], vec![1, 1]));
    }
    assert_eq!(changed.left(&[changed.ask("alice", 1)]).await, (vec![Some(39)], vec![1, 1]));
    assert_eq!(changed.left(&[changed.ask("alice", 1)]).await, (vec![Some(38)], vec![1]));
}

#[tokio::test]
async fn to_look_brings_nothing_along_and_says_what_would_be_left() {
    let changed = Changed::new(&["100/day"], "60/day");
    changed.spend(0, "alice", 20).await;
    let look = [changed.ask("alice", 0)];
    for _ in 0..2 {
        assert_eq!(changed.left(&look).await, (vec![Some(40)], vec![1, 1]));
    }
    changed.spend(0, "alice", 10).await;
    assert_eq!(changed.left(&[changed.ask("alice", 1)]).await.0, [Some(29)]);
    assert_eq!(changed.left(&look).await, (vec![Some(29)], vec![1]));
}

#[tokio::test]
async fn what_came_back_by_the_new_limit_is_not_missing() {
    let changed = Changed::new(&["100/day"], "60/min");
    changed.spend(0, "alice", 90).await;
    changed.clock.advance(Duration::from_secs(15));
    assert_eq!(changed.left(&[changed.ask("alice", 1)]).await.0, [Some(14)]);
    changed.clock.advance(Duration::from_secs(30));
    assert_eq!(changed.left(&[changed.ask("alice", 1)]).await.0, [Some(43)]);
}

#[tokio::test]
async fn a_store_that_does_not_say_what_was_spent_is_not_asked_for_more() {
    let changed = Changed::new(&["100/day"], "60/day");
    changed.spend(0, "alice", 20).await;
    changed.noting.fails.store(true, Ordering::Relaxed);
    let ask = [changed.ask("alice", 1)];
    assert_eq!(changed.left(&ask).await, (vec![None], vec![1]));
    changed.noting.fails.store(false, Ordering::Relaxed);
    assert_eq!(changed.left(&ask).await, (vec![Some(39)], vec![1, 1]));
}

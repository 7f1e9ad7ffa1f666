//! Nobody waits for longer than the timeout, to the millisecond: in virtual time, in which no machine is busy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tokio::task::JoinSet;
use tollgate::store::{Ask, Budget, MemoryStore, Pulse, Store, StoreError};
use tollgate::{Engine, ManualClock, Request, RuleSet, SharingConfig};
use tollgate_core::lease::Grant;

use crate::paused::{GRAIN, now, pause, run, step};

/// What a store does for a while, times in milliseconds.
#[derive(Clone, Copy, Debug)]
enum Mood {
    /// It answers after so long.
    Takes(u64),
    /// It hears everything, and answers nothing.
    Silent,
    /// It hears nothing.
    Deaf,
    /// It fails after so long.
    Fails(u64),
    /// One answer in three takes so long, and others none.
    Varies(u64),
}

/// A store in whatever mood it is.
#[derive(Clone)]
struct Moody {
    store: Arc<MemoryStore<ManualClock>>,
    mood: Arc<Mutex<Mood>>,
    asked: Arc<AtomicU64>,
}

impl Moody {
    /// Does what it does at that moment, and says whether it fails.
    async fn wait(&self) -> Result<(), StoreError> {
        let mood = *self.mood.lock().unwrap();
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let takes = match mood {
            Mood::Takes(millis) | Mood::Fails(millis) => millis,
            Mood::Varies(millis) => millis * u64::from(number.is_multiple_of(3)),
            Mood::Silent | Mood::Deaf => return std::future::pending().await,
        };
        pause(takes).await;
        if matches!(mood, Mood::Fails(_)) { Err(StoreError::Loading) } else { Ok(()) }
    }

    fn hears(&self) -> bool {
        !matches!(*self.mood.lock().unwrap(), Mood::Deaf)
    }
}

impl Store for Moody {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        let answers = if self.hears() { self.store.exchange(asks).await } else { Vec::new() };
        match self.wait().await {
            Ok(()) => answers,
            Err(error) => asks.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn forget(&self, budget: &Arc<Budget>, key: &[u8]) -> Result<bool, StoreError> {
        self.wait().await?;
        self.store.forget(budget, key).await
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        self.wait().await?;
        self.store.ping().await
    }
}

/// Rules of every kind that waits: lent, strict, of slots, and several of them for one request.
const RULES: &str = "rules:
  - { name: lent, match: { path: /lent }, key: [user], limit: 500/s, on_store_failure: deny }
  - { name: strict, match: { path: [/strict, /all] }, key: [user], limit: 500/s, consistency: strict,
      on_store_failure: allow }
  - { name: log, match: { path: /all }, key: [user], limit: 500/s, algorithm: sliding_log }
  - { name: slots, match: { path: [/slots, /all] }, key: [user], concurrent: 20, on_store_failure: local }
  - { name: also, match: { path: /all }, key: [], limit: 10k/s }";

const TIMEOUT: Duration = Duration::from_millis(50);

/// How long each request waited, which come one after the other in so many milliseconds: one, or a batch.
async fn waits(moods: &[Mood], pauses: &[u64]) -> Vec<Duration> {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(400 * 86_400));
    let store = Arc::new(MemoryStore::new(clock.clone(), 10_000));
    let mood = Arc::new(Mutex::new(moods[0]));
    let moody = Moody { store, mood: Arc::clone(&mood), asked: Arc::default() };
    let config = SharingConfig { timeout: TIMEOUT, ..Default::default() };
    let builder = Engine::builder(RuleSet::parse(RULES).unwrap()).clock(clock.clone());
    let engine = Arc::new(builder.store(moody, config).unwrap().build().unwrap());
    let mut under_way = JoinSet::new();
    let mut millis = 0;
    let mut comes = pauses.iter().scan(0, |at, pause| {
        *at += pause;
        Some(*at)
    });
    let mut next = comes.next();
    let lasts = moods.len() as u64 * MOOD_LASTS;
    let mut number = 0;
    while millis < lasts + 200 {
        *mood.lock().unwrap() = moods[(millis / MOOD_LASTS).min(moods.len() as u64 - 1) as usize];
        while next.is_some_and(|at| at <= millis && at < lasts) {
            under_way.spawn(ask(Arc::clone(&engine), number));
            (next, number) = (comes.next(), number + 1);
        }
        step(&clock).await;
        millis += 1;
    }
    let mut waits = Vec::new();
    while let Some(wait) = under_way.try_join_next() {
        waits.push(wait.unwrap());
    }
    assert_eq!(under_way.len(), 0, "somebody still waits");
    waits
}

async fn ask(engine: Arc<Engine<ManualClock>>, number: usize) -> Duration {
    let path = ["/lent", "/strict", "/slots", "/all"][number % 4];
    let user: &[_] =
        [&[("user", "alice")], &[("user", "bob")]][usize::from(number.is_multiple_of(23))];
    let request = Request::new("GET", path).attributes(user);
    let begin = now();
    if number.is_multiple_of(5) {
        let requests = [request; 3];
        let mut reserve = engine.reserve(&requests, &[]);
        while let Err(wait) = reserve {
            let since = wait.since();
            wait.fetch().await;
            reserve = engine.reserve_again(&requests, since);
        }
        engine.decide_batch_with(&requests, &mut reserve.unwrap(), |_, _| {});
        return now() - begin;
    }
    let ruling = engine.decide_waiting(&request).await;
    let waited = now() - begin;
    // Its slots are taken for a moment.
    pause(number as u64 % 30).await;
    drop(ruling);
    waited
}

/// For so many milliseconds a store is in the same mood: long enough to be left alone, and to be tried again.
const MOOD_LASTS: u64 = 400;

fn mood() -> impl Strategy<Value = Mood> {
    prop_oneof![
        (0..5u64).prop_map(Mood::Takes),
        (20..120u64).prop_map(Mood::Takes),
        Just(Mood::Silent),
        Just(Mood::Deaf),
        (0..60u64).prop_map(Mood::Fails),
        (0..120u64).prop_map(Mood::Varies),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nobody_waits_longer_than_the_timeout_whatever_the_store_does(
        moods in prop::collection::vec(mood(), 1..6),
        pauses in prop::collection::vec(0..4u64, 200..600),
    ) {
        let waits = run(waits(&moods, &pauses));
        let longest = waits.iter().max().copied().unwrap_or_default();
        prop_assert!(longest <= TIMEOUT + GRAIN, "{longest:?}");
    }
}

#[test]
fn whoever_is_asked_for_and_not_answered_waits_for_all_of_the_timeout() {
    for mood in [Mood::Silent, Mood::Deaf, Mood::Takes(500)] {
        let waits = run(waits(&[mood], &[5; 60]));
        assert_eq!(waits.len(), 60);
        let in_vain = waits.iter().filter(|wait| **wait >= TIMEOUT).count();
        assert!((5..50).contains(&in_vain), "until it is left alone: {waits:?}");
    }
}

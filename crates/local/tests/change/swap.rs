//! One limit that takes the place of another.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Limit, Wall};
use tollgate_local::{
    Clock, Counters, CountersBuilder, Key, KeyHash, ManualClock, Past, Seed, Table,
};

/// In the middle of a day, an hour and a second.
const BEGIN: Wall = Wall::from_unix_nanos(1_718_366_401_234_567_890);

/// A table, and limits that follow each other there.
pub(crate) struct Scene {
    pub(crate) clock: ManualClock,
    pub(crate) table: Arc<Table>,
    pub(crate) seed: Seed,
    changes: u64,
}

impl Scene {
    pub(crate) fn new(table: Table) -> Self {
        let clock = ManualClock::starting_at(BEGIN);
        // Not at the first tick, which is at rest by nature.
        clock.advance(Duration::from_secs(3));
        Self { clock, table: Arc::new(table), seed: Seed::new(5), changes: 0 }
    }

    pub(crate) fn roomy() -> Self {
        Self::new(Table::with_keys(1_000).unwrap())
    }

    /// Of ten slots.
    pub(crate) fn tiny() -> Self {
        Self::new(Table::with_memory(128).unwrap())
    }

    pub(crate) fn builder<'a>(&'a mut self, limit: &'a Limit) -> CountersBuilder<'a> {
        self.changes += 1;
        let salt = self.seed.salt(self.changes);
        Counters::builder(&self.table, limit, self.clock.anchor(), salt)
    }

    pub(crate) fn first(&mut self, limit: &Limit) -> Arc<Counters> {
        Arc::new(self.builder(limit).build())
    }

    /// Counters that follow `past` now.
    pub(crate) fn then<P: Past + 'static>(
        &mut self,
        limit: &Limit,
        past: &Arc<P>,
    ) -> Arc<Counters> {
        let now = self.clock.now();
        let past = Arc::<P>::clone(past);
        Arc::new(self.builder(limit).following(past, now).build())
    }

    pub(crate) fn key(&self, number: usize) -> KeyHash {
        (number as u64).hash(&self.seed)
    }

    pub(crate) fn left(&self, counters: &Counters, key: usize) -> u64 {
        counters.peek(self.key(key), 0, self.clock.now()).remaining()
    }

    /// How many of so many requests pass.
    pub(crate) fn passes(&self, counters: &Counters, key: usize, times: u64) -> u64 {
        let check = |_: &u64| counters.check(self.key(key), 1, &self.clock).is_allowed();
        (0..times).filter(check).count() as u64
    }
}

pub(crate) fn bucket(quota: &str) -> Limit {
    Limit::token_bucket(quota).unwrap()
}

pub(crate) fn log(quota: &str) -> Limit {
    Limit::sliding_log(quota).unwrap()
}

/// Limits whose states fit a word, and whose windows end at the same time for all keys.
pub(crate) fn words() -> Vec<Limit> {
    vec![
        bucket("10/s"),
        bucket("100/min"),
        bucket("7/min burst 3"),
        bucket("20/s burst 40"),
        Limit::leaky_police("3/s burst 5").unwrap(),
        Limit::leaky_shape("10/s", 4).unwrap(),
        Limit::leaky_shape("2/s", 30).unwrap(),
        Limit::fixed_window("5/s").unwrap(),
        Limit::fixed_window("50/s").unwrap(),
        Limit::fixed_window("8/min").unwrap(),
        Limit::calendar("6/day", "Europe/Berlin").unwrap(),
        Limit::sliding_window("5/s").unwrap(),
        Limit::sliding_window("30/min").unwrap(),
        Limit::sliding_window("1M/min").unwrap(),
    ]
}

/// All kinds of limits.
pub(crate) fn limits() -> impl Strategy<Value = Limit> {
    let mut all = words();
    all.push(Limit::fixed_window("5/s").unwrap().jittered().unwrap());
    all.push(Limit::fixed_window("9/h").unwrap().jittered().unwrap());
    all.extend(["4/s", "30/s", "9/min"].map(log));
    all.push(bucket("unlimited"));
    prop::sample::select(all)
}

pub(crate) fn spans() -> impl Strategy<Value = Duration> {
    let nanos = prop_oneof![
        Just(0),
        0..1_000u64,
        0..400_000_000u64,
        0..3_000_000_000u64,
        0..90_000_000_000u64,
    ];
    nanos.prop_map(Duration::from_nanos)
}

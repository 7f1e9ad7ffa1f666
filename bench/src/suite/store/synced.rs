//! The usual way to share a limit, for real: nodes that count for themselves, and add what they have counted
//! to a counter in Redis ten times a second.
//!
//! It is as good as that can be. The nodes are [`Counting`], as those of the simulator: token buckets of the
//! whole limit, that pay back what all have spent too much. They take no time to answer, ask through the
//! same library as our store does, over a connection each, and take turns evenly, so that what one has
//! spent is heard of by others as soon as possible.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tollgate_sim::figures::Counting;

use super::by_hand::connect;
use super::course::{BURST, Course, Node, Nodes, RATE, Tally};
use crate::error::BenchError;
use crate::stopwatch::Stopwatch;

/// Has so many nodes run, which compare through this Redis.
pub(super) fn run(
    runtime: &Runtime,
    url: &str,
    (nodes, counter): (usize, &'static str),
    course: impl FnOnce(&mut Nodes<Synced>) -> Result<Course, BenchError>,
) -> Result<Course, BenchError> {
    let watch = Stopwatch::start();
    let mut syncing = JoinSet::new();
    let mut all = Nodes(Vec::new());
    for place in 0..nodes {
        let synced = Synced::new(watch);
        let (node, connection) = (synced.clone(), runtime.block_on(connect(url))?);
        let first = EVERY * place as u32 / nodes as u32;
        syncing.spawn_on(node.sync(connection, counter, first), runtime.handle());
        all.0.push(synced);
    }
    let course = course(&mut all)?;
    // They go on until they are told to end, unless something is wrong.
    match syncing.try_join_next() {
        Some(Ok(Err(error))) => Err(error),
        Some(_) => Err(BenchError::Child("a node does not compare any more".to_owned())),
        None => Ok(course),
    }
}

/// A node.
#[derive(Clone)]
pub(super) struct Synced {
    /// A lock that is held for moments, by whoever asks and whoever compares.
    counting: Arc<Mutex<Counting>>,
    watch: Stopwatch,
    tally: Tally,
}

impl Synced {
    fn new(watch: Stopwatch) -> Self {
        let counting = Arc::new(Mutex::new(Counting::new(BURST, RATE, 0)));
        Self { counting, watch, tally: Tally::default() }
    }

    /// Compares, first after some time and then for ever.
    async fn sync(
        self,
        mut connection: MultiplexedConnection,
        counter: &str,
        first: Duration,
    ) -> Result<(), BenchError> {
        let mut turns = turns(first);
        loop {
            turns.tick().await;
            let spent = self.counting().tells();
            let mut call = redis::cmd("INCRBY");
            let sum = call.arg(counter).arg(spent).query_async(&mut connection).await?;
            self.counting().hears(sum, self.now());
        }
    }

    fn counting(&self) -> MutexGuard<'_, Counting> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.watch.elapsed().as_nanos() as u64
    }
}

impl Node for Synced {
    fn ask(&mut self, times: u64) -> Result<(), BenchError> {
        let (mut counting, now) = (self.counting(), self.now());
        let passed = (0..times).filter(|_| counting.admits(now)).count() as u64;
        drop(counting);
        self.tally.asked += times;
        self.tally.answered += times;
        self.tally.passed += passed;
        Ok(())
    }

    fn hear(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured happens in real time")]
fn turns(first: Duration) -> Interval {
    let mut turns = interval_at(Instant::now() + first, EVERY);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    turns
}

/// How often counters are compared.
const EVERY: Duration = Duration::from_millis(100);

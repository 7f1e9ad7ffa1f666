//! Threads that start together, the limits they meet, and a seeded choice of what they ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tollgate_core::{Limit, Tick};
use tollgate_local::{Clock, Counters, Key, KeyHash, ManualClock, Seed, Table};

/// Numbers of threads: as many as the smallest machines have cores, and more than that.
pub(crate) const CROWDS: [usize; 3] = [2, 4, 8];

/// Counters with all it takes to ask them.
pub(crate) struct Subject {
    pub(crate) counters: Counters,
    pub(crate) clock: ManualClock,
    seed: Seed,
}

impl Subject {
    pub(crate) fn new(limit: &Limit, planned_keys: usize) -> Self {
        let (clock, seed) = (ManualClock::new(), Seed::new(11));
        let table = Arc::new(Table::with_keys(planned_keys).unwrap());
        let counters = Counters::new(&table, limit, clock.anchor(), seed.salt(0));
        Self { counters, clock, seed }
    }

    pub(crate) fn key(&self, number: usize) -> KeyHash {
        (number as u64).hash(&self.seed)
    }

    pub(crate) fn check(&self, number: usize) -> bool {
        self.counters.check(self.key(number), 1, &self.clock).is_allowed()
    }

    /// Whether no key was ever counted together with others, which costs tokens.
    pub(crate) fn is_exact(&self) -> bool {
        let pressure = self.counters.pressure();
        (pressure.overflowed, pressure.promoted) == (0, 0)
    }
}

/// Runs `work` in so many threads, which begin at the same time.
pub(crate) fn crowd<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Meeting::of(threads);
    let (start, work) = (&start, &work);
    thread::scope(|scope| {
        let run = |number| {
            scope.spawn(move || {
                start.wait();
                work(number)
            })
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Where threads meet: they leave closer together than those that were asleep at a barrier.
pub(crate) struct Meeting {
    size: usize,
    arrived: AtomicUsize,
}

impl Meeting {
    pub(crate) const fn of(size: usize) -> Self {
        Self { size, arrived: AtomicUsize::new(0) }
    }

    /// Returns when all have called it as often as this thread.
    pub(crate) fn wait(&self) {
        let round = self.arrived.fetch_add(1, Ordering::AcqRel) / self.size;
        while self.arrived.load(Ordering::Acquire) < (round + 1) * self.size {
            thread::yield_now();
        }
    }
}

/// A die that falls the same way in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: usize) -> Self {
        Self(seed as u64 + 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % end
    }
}

/// Limits of `count` per hour, which may all pass at once: one of each algorithm that counts in a
/// word and denies.
pub(crate) fn hourly(count: u64) -> [Limit; 4] {
    limits(count, "h")
}

/// The same for each second: these lend to threads that get into each other's way.
pub(crate) fn each_second(count: u64) -> [Limit; 4] {
    limits(count, "s")
}

fn limits(count: u64, period: &str) -> [Limit; 4] {
    [
        Limit::token_bucket(&*format!("{count}/{period}")).unwrap(),
        Limit::leaky_police(&*format!("{count}/{period} burst {count}")).unwrap(),
        Limit::fixed_window(&*format!("{count}/{period}")).unwrap(),
        Limit::sliding_window(&*format!("{count}/{period}")).unwrap(),
    ]
}

/// Adds up what the threads counted for each key.
pub(crate) fn sums(counts: Vec<Vec<u64>>) -> Vec<u64> {
    let keys = counts[0].len();
    (0..keys).map(|key| counts.iter().map(|count| count[key]).sum()).collect()
}

/// An allowed request: it was decided at a tick between these two.
#[derive(Clone, Copy)]
pub(crate) struct Pass {
    pub(crate) from: Tick,
    pub(crate) to: Tick,
}

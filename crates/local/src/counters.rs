//! The counters of one limit, whatever its algorithm.

mod builder;
mod change;

pub use builder::CountersBuilder;

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Anchor, Decision, Limit, Retry, Tick, Verdict};

use crate::clock::Clock;
use crate::counter::{Batch, Counter, Prepared};
use crate::key::KeyHash;
use crate::logs::Logs;
use crate::table::Table;

/// The counters of one limit: one for each key.
///
/// Keys come as hashes and time as ticks, so that a request that meets several limits hashes its
/// keys and reads the clock once. `Limiter` and `Gate` in the `tollgate` crate do both.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::Limit;
/// use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table};
///
/// let (clock, seed) = (ManualClock::new(), Seed::random());
/// let table = Arc::new(Table::with_keys(1000)?);
/// let limit = Limit::token_bucket("2/min").expect("a valid quota");
/// let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
///
/// let alice = "alice".hash(&seed);
/// assert!(counters.check(alice, 1, &clock).is_allowed());
/// assert!(counters.check(alice, 1, &clock).is_allowed());
/// assert!(!counters.check(alice, 1, &clock).is_allowed());
/// # Ok::<(), tollgate_local::TableError>(())
/// ```
#[derive(Debug)]
pub struct Counters {
    home: Home,
    shapes: bool,
}

enum Home {
    Unlimited,
    Table(Box<Counter>),
    Logs(Box<Logs>),
}

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Unlimited => "Unlimited",
            Self::Table(_) => "Table(..)",
            Self::Logs(_) => "Logs(..)",
        })
    }
}

/// When a request would pass.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::Limit;
/// use tollgate_local::{Clock, Counters, Due, Key, ManualClock, Seed, Table};
///
/// let (clock, seed) = (ManualClock::new(), Seed::random());
/// let table = Arc::new(Table::with_keys(1000)?);
/// let limit = Limit::token_bucket("2/min").expect("a valid quota");
/// let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
/// assert_eq!(counters.due("alice".hash(&seed), 1, clock.now()), Due::Now);
/// assert_eq!(counters.due("alice".hash(&seed), 3, clock.now()), Due::Never);
/// # Ok::<(), tollgate_local::TableError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At once.
    Now,
    /// After this time, if nobody else spends in between.
    After(Duration),
    /// Never: it costs too much.
    Never,
}

/// How the counters of a limit get along with their memory.
///
/// ```
/// use tollgate_local::Pressure;
/// assert_eq!(Pressure::default().overflowed, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Decisions that were made with a count shared between keys, and so too strictly, because
    /// there was no room for the key.
    pub overflowed: u64,
    /// Keys that came from a shared count to a counter of their own.
    pub promoted: u64,
    /// Memory of these counters beside the table, in bytes.
    pub memory: usize,
}

impl Counters {
    /// Counters for `limit`, their states in `table`. `salt` keeps the keys of different limits
    /// apart, and must be as secret as the seed that hashes the keys. Windows are aligned by
    /// `anchor`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit};
    /// # use tollgate_local::{Counters, Seed, Table};
    /// let table = Arc::new(Table::with_keys(1000)?);
    /// let limit = Limit::sliding_log("2/min").expect("a valid quota");
    /// let counters = Counters::new(&table, &limit, Anchor::default(), Seed::random().salt(0));
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn new(table: &Arc<Table>, limit: &Limit, anchor: Anchor, salt: KeyHash) -> Self {
        Self::builder(table, limit, anchor, salt).build()
    }

    /// Spends `cost` from the key's budget if the limit allows it. The time comes from `clock`,
    /// once the processor has been told which memory to bring.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::Limit;
    /// # use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table};
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
    /// assert_eq!(counters.check("bob".hash(&seed), 2, &clock).remaining(), 3);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    #[inline(always)]
    pub fn check(&self, key: KeyHash, cost: u64, clock: &impl Clock) -> Decision {
        match &self.home {
            Home::Table(counter) => counter.check(key, cost, clock),
            _ => self.check_elsewhere(key, cost, &mut clock.now(), || clock.now()),
        }
    }

    /// As [`check`](Self::check), but a limit that shapes gives no place in its queue: a request that
    /// may pass only after a delay is told so and has spent nothing.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::Limit;
    /// # use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table};
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::leaky_shape("5/s", 10).expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
    /// let bob = "bob".hash(&seed);
    /// assert!(counters.check_at_once(bob, 1, &clock).delay().is_zero());
    /// let wait = counters.check_at_once(bob, 1, &clock).delay();
    /// assert_eq!(counters.check_at_once(bob, 1, &clock).delay(), wait, "nobody stands in line");
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn check_at_once(&self, key: KeyHash, cost: u64, clock: &impl Clock) -> Decision {
        match &self.home {
            Home::Table(counter) if self.shapes => counter.check_at_once(key, cost, clock),
            _ => self.check(key, cost, clock),
        }
    }

    /// As [`check`](Self::check), at a time that was read from `clock` before, for several
    /// decisions. A decision about a key that is new looks at the clock once more, and moves `now`
    /// on to what it saw.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::Limit;
    /// # use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table};
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
    /// let mut now = clock.now();
    /// assert!(counters.check_with("bob".hash(&seed), 1, &clock, &mut now).is_allowed());
    /// assert!(counters.check_with("eve".hash(&seed), 1, &clock, &mut now).is_allowed());
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    #[inline(always)]
    pub fn check_with(
        &self,
        key: KeyHash,
        cost: u64,
        clock: &impl Clock,
        now: &mut Tick,
    ) -> Decision {
        self.check_by(key, cost, now, || clock.now())
    }

    #[inline(always)]
    fn check_by(
        &self,
        key: KeyHash,
        cost: u64,
        now: &mut Tick,
        refresh: impl Fn() -> Tick,
    ) -> Decision {
        match &self.home {
            Home::Table(counter) => counter.check_at(key, cost, now, refresh),
            _ => {
                let mut later = *now;
                let decision = self.check_elsewhere(key, cost, &mut later, refresh);
                *now = later;
                decision
            }
        }
    }

    /// Decides where there is no counter in the table. Not inlined into callers, and the time
    /// passed by reference here alone, so that nobody else needs it in memory.
    #[inline(never)]
    fn check_elsewhere(
        &self,
        key: KeyHash,
        cost: u64,
        now: &mut Tick,
        refresh: impl Fn() -> Tick,
    ) -> Decision {
        match &self.home {
            Home::Table(counter) => counter.check_at(key, cost, now, refresh),
            Home::Unlimited => Decision::unlimited(),
            Home::Logs(logs) => logs.check(key, cost, now, &refresh),
        }
    }

    /// Starts to bring the memory that a decision on this key will need.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let seed = Seed::random();
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// counters.prefetch("bob".hash(&seed));
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    #[inline]
    pub fn prefetch(&self, key: KeyHash) {
        if let Home::Table(counter) = &self.home {
            counter.prefetch(key);
        }
    }

    /// What [`check_at`](Self::check_at) would decide, ready to be [made](Prepared::commit): for
    /// whoever asks several limits, and spends from all or none. `None` if the key is new, or is
    /// decided about in another way, or the limit shapes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let seed = Seed::random();
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// assert!(counters.prepare("bob".hash(&seed), 1, Tick::ZERO).is_none(), "he is new");
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    #[inline(always)]
    pub fn prepare(&self, key: KeyHash, cost: u64, now: Tick) -> Option<(Decision, Prepared<'_>)> {
        match &self.home {
            Home::Table(counter) if !self.shapes => counter.prepare(key, cost, now),
            _ => None,
        }
    }

    /// As [`check`](Self::check), at a time the caller has read from the clock.
    ///
    /// Times must come from one clock, and a caller that brings an old one must expect it to be
    /// taken at its word.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let seed = Seed::random();
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// assert_eq!(counters.check_at("bob".hash(&seed), 2, Tick::ZERO).remaining(), 3);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    #[inline(always)]
    pub fn check_at(&self, key: KeyHash, cost: u64, now: Tick) -> Decision {
        self.check_by(key, cost, &mut { now }, || now)
    }

    /// Decides many keys at one reading of the clock. Their memory is brought side by side, which
    /// makes a batch several times faster than its decisions one by one. The answers are appended
    /// to `decisions` in the order of the keys.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::Limit;
    /// # use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table};
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
    /// let mut decisions = Vec::new();
    /// counters.check_batch((0..3u64).map(|n| n.hash(&seed)), 1, &clock, &mut decisions);
    /// assert_eq!(decisions.len(), 3);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    #[inline]
    pub fn check_batch(
        &self,
        keys: impl IntoIterator<Item = KeyHash>,
        cost: u64,
        clock: &impl Clock,
        decisions: &mut Vec<Decision>,
    ) {
        let Home::Table(counter) = &self.home else {
            let mut now = clock.now();
            let check = |key| self.check_with(key, cost, clock, &mut now);
            return decisions.extend(keys.into_iter().map(check));
        };
        let mut keys = keys.into_iter().fuse();
        let (mut batch, mut now) = (Batch::new(counter), None);
        while batch.fill(&mut keys) {
            let now = now.get_or_insert_with(|| clock.now());
            batch.check(cost, now, &|| clock.now(), decisions);
        }
    }

    /// What [`check`](Self::check) would answer, without spending. `remaining` is what is there.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let seed = Seed::random();
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// let bob = "bob".hash(&seed);
    /// assert_eq!(counters.peek(bob, 1, Tick::ZERO).remaining(), 5);
    /// assert!(!counters.peek(bob, 6, Tick::ZERO).is_allowed());
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn peek(&self, key: KeyHash, cost: u64, now: Tick) -> Decision {
        match &self.home {
            Home::Table(counter) => counter.peek(key, cost, now),
            Home::Unlimited => Decision::unlimited(),
            Home::Logs(logs) => logs.peek(key, cost, now),
        }
    }

    /// When a request of this cost would pass, and be let go at once.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Due, Key, Seed, Table};
    /// # let seed = Seed::random();
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// assert_eq!(counters.due("bob".hash(&seed), 1, Tick::ZERO), Due::Now);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn due(&self, key: KeyHash, cost: u64, now: Tick) -> Due {
        let decision = match &self.home {
            Home::Table(counter) => counter.would(key, cost, now),
            _ => self.peek(key, cost, now),
        };
        match decision.verdict() {
            Verdict::Allow => Due::Now,
            Verdict::AllowAfter(delay) | Verdict::Deny(Retry::After(delay)) => Due::After(delay),
            Verdict::Deny(Retry::OnReturn | Retry::Never) => Due::Never,
        }
    }

    /// Gives back `cost` of what the key has spent: its budget never becomes more than full. A
    /// place in a shaper's queue cannot be given back, nor can what was counted together with
    /// other keys for want of room. If the limit has changed lately, what is given back of what was
    /// spent before may be lost when the key has been at rest.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let seed = Seed::random();
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// let bob = "bob".hash(&seed);
    /// counters.check_at(bob, 4, Tick::ZERO);
    /// counters.refund(bob, 3, Tick::ZERO);
    /// assert_eq!(counters.peek(bob, 1, Tick::ZERO).remaining(), 4);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn refund(&self, key: KeyHash, cost: u64, now: Tick) {
        match &self.home {
            Home::Table(counter) => counter.refund(key, cost, now),
            Home::Unlimited => {}
            Home::Logs(logs) => logs.refund(key, cost, now),
        }
    }

    /// Takes back `cost` that was spent at `then`, as if it had never been, unless time has given
    /// it back in the meantime. For requests that turn out to be denied by another limit.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::Limit;
    /// # use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table};
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
    /// let bob = "bob".hash(&seed);
    /// counters.check(bob, 4, &clock);
    /// counters.undo(bob, 4, clock.now(), &clock);
    /// assert_eq!(counters.peek(bob, 1, clock.now()).remaining(), 5);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn undo(&self, key: KeyHash, cost: u64, then: Tick, clock: &impl Clock) {
        match &self.home {
            Home::Table(counter) => counter.undo(key, cost, then, &|| clock.now()),
            Home::Unlimited => {}
            Home::Logs(logs) => logs.undo(key, cost, then),
        }
    }

    /// Gives the key its whole budget back, whatever it spent before the limit was this one. `false`
    /// if it is counted together with other keys for want of room, and cannot be reset alone.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let seed = Seed::random();
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// let bob = "bob".hash(&seed);
    /// counters.check_at(bob, 4, Tick::ZERO);
    /// assert!(counters.reset(bob, Tick::ZERO));
    /// assert_eq!(counters.peek(bob, 1, Tick::ZERO).remaining(), 5);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn reset(&self, key: KeyHash, now: Tick) -> bool {
        match &self.home {
            Home::Table(counter) => counter.reset(key, now),
            Home::Unlimited => true,
            Home::Logs(logs) => logs.reset(key, now),
        }
    }

    /// Whether requests may be told to wait: then this limit is asked last of several, because a
    /// place in its queue cannot be given back.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit};
    /// # use tollgate_local::{Counters, Seed, Table};
    /// let table = Arc::new(Table::with_keys(1000)?);
    /// let limit = Limit::leaky_shape("2/s", 5).expect("a valid quota");
    /// let counters = Counters::new(&table, &limit, Anchor::default(), Seed::random().salt(0));
    /// assert!(counters.shapes());
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub const fn shapes(&self) -> bool {
        self.shapes
    }

    /// How these counters get along with their memory.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit};
    /// # use tollgate_local::{Counters, Seed, Table};
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("2/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), Seed::random().salt(0));
    /// assert_eq!(counters.pressure().overflowed, 0);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn pressure(&self) -> Pressure {
        match &self.home {
            Home::Table(counter) => counter.pressure(),
            Home::Unlimited => Pressure::default(),
            Home::Logs(logs) => logs.pressure(),
        }
    }
}

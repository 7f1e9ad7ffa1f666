//! Counters of token buckets that come with the requests.

use std::sync::Arc;

use tollgate_core::{CommonBucket, Decision, Tick};

use crate::clock::Clock;
use crate::counter::Counter;
use crate::counters::Pressure;
use crate::key::{KeyHash, Salt};
use crate::table::Table;

/// Keys whose limit is said anew by every request, as in Redis's `CL.THROTTLE`. What a key has
/// spent under one limit counts under the next: its state is the moment at which it has everything
/// back.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::CommonBucket;
/// use tollgate_local::{Buckets, Key, ManualClock, Seed, Table};
///
/// let (clock, seed) = (ManualClock::new(), Seed::random());
/// let buckets = Buckets::new(&Arc::new(Table::with_keys(1000)?), seed.salt(0));
/// let of = |quota: &str| CommonBucket::try_new(quota.parse().expect("a quota"));
/// let (slow, fast) = (of("1/min")?.expect("a limit"), of("60/min")?.expect("a limit"));
/// let alice = "alice".hash(&seed);
/// assert!(buckets.check(alice, &slow, 1, &clock).is_allowed());
/// assert!(!buckets.check(alice, &slow, 1, &clock).is_allowed());
/// assert!(!buckets.check(alice, &fast, 1, &clock).is_allowed(), "it owes a minute");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Buckets {
    counter: Box<Counter>,
}

/// One request of a [batch](Buckets::check_batch).
///
/// ```
/// use tollgate_core::CommonBucket;
/// use tollgate_local::{Draw, Key, Seed};
/// let bucket = CommonBucket::try_new("5/s".parse()?)?.expect("a limit");
/// let draw = Draw { key: "alice".hash(&Seed::random()), bucket, cost: 1 };
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Whose bucket.
    pub key: KeyHash,
    /// Which limit it has now.
    pub bucket: CommonBucket,
    /// How many tokens; 0 only looks.
    pub cost: u64,
}

impl Buckets {
    /// How many keys ahead of the one that is decided memory is asked for.
    ///
    /// ```
    /// assert_eq!(tollgate_local::Buckets::AHEAD, 16);
    /// ```
    pub const AHEAD: usize = 16;

    /// Buckets with their states in `table`; `salt` as for
    /// [`Counters::new`](crate::Counters::new).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_local::{Buckets, Seed, Table};
    /// let table = Arc::new(Table::with_keys(1000)?);
    /// let buckets = Buckets::new(&table, Seed::random().salt(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(table: &Arc<Table>, salt: KeyHash) -> Self {
        // Who has more of this left is the sooner at rest, under whatever limit.
        let longest = CommonBucket::LONGEST.machine();
        Self { counter: Box::new(Counter::new(table, longest, 1, Salt::new(salt), None)) }
    }

    /// Spends `cost` from the key's bucket, of the size and the rate that `bucket` says, if that
    /// has so much. A cost of 0 is always allowed, and tells what is there.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::CommonBucket;
    /// # use tollgate_local::{Buckets, Key, ManualClock, Seed, Table};
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let buckets = Buckets::new(&Arc::new(Table::with_keys(1000)?), seed.salt(0));
    /// let five = CommonBucket::try_new("5/s".parse()?)?.expect("a limit");
    /// assert_eq!(buckets.check("bob".hash(&seed), &five, 2, &clock).remaining(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn check(
        &self,
        key: KeyHash,
        bucket: &CommonBucket,
        cost: u64,
        clock: &impl Clock,
    ) -> Decision {
        self.counter.check_by(key, bucket, cost, clock)
    }

    /// Decides many requests in order, at one reading of the clock, and calls `each` with the
    /// place and the decision of each. Their memory is brought side by side.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::CommonBucket;
    /// # use tollgate_local::{Buckets, Draw, Key, ManualClock, Seed, Table};
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let buckets = Buckets::new(&Arc::new(Table::with_keys(1000)?), seed.salt(0));
    /// let bucket = CommonBucket::try_new("2/s".parse()?)?.expect("a limit");
    /// let draws = ["bob"; 3].map(|key| Draw { key: key.hash(&seed), bucket, cost: 1 });
    /// let mut allowed = Vec::new();
    /// buckets.check_batch(&draws, &clock, |_, decision| allowed.push(decision.is_allowed()));
    /// assert_eq!(allowed, [true, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn check_batch(
        &self,
        draws: &[Draw],
        clock: &impl Clock,
        mut each: impl FnMut(usize, Decision),
    ) {
        for draw in draws.iter().take(Self::AHEAD) {
            self.counter.prefetch(draw.key);
        }
        let mut now: Option<Tick> = None;
        for (index, draw) in draws.iter().enumerate() {
            if let Some(next) = draws.get(index + Self::AHEAD) {
                self.counter.prefetch(next.key);
            }
            let now = now.get_or_insert_with(|| clock.now());
            let Draw { key, bucket, cost } = draw;
            each(index, self.counter.check_by_at(*key, bucket, *cost, now, &|| clock.now()));
        }
    }

    /// Gives back `cost` that was spent from the key's bucket under this limit, but no more than it
    /// lacks. Nothing happens to a key that is counted together with others for want of room.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{CommonBucket, Tick};
    /// # use tollgate_local::{Buckets, Key, ManualClock, Seed, Table};
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let buckets = Buckets::new(&Arc::new(Table::with_keys(1000)?), seed.salt(0));
    /// let five = CommonBucket::try_new("5/h".parse()?)?.expect("a limit");
    /// let bob = "bob".hash(&seed);
    /// assert_eq!(buckets.check(bob, &five, 4, &clock).remaining(), 1);
    /// buckets.refund(bob, &five, 3, Tick::ZERO);
    /// assert_eq!(buckets.check(bob, &five, 0, &clock).remaining(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refund(&self, key: KeyHash, bucket: &CommonBucket, cost: u64, now: Tick) {
        self.counter.refund_by(key, bucket, cost, now);
    }

    /// Gives the key everything back. `false` if it is counted together with other keys for want of
    /// room, and cannot be reset alone.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{CommonBucket, Tick};
    /// # use tollgate_local::{Buckets, Key, ManualClock, Seed, Table};
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let buckets = Buckets::new(&Arc::new(Table::with_keys(1000)?), seed.salt(0));
    /// let one = CommonBucket::try_new("1/h".parse()?)?.expect("a limit");
    /// let bob = "bob".hash(&seed);
    /// assert!(buckets.check(bob, &one, 1, &clock).is_allowed());
    /// assert!(buckets.reset(bob, Tick::ZERO));
    /// assert!(buckets.check(bob, &one, 1, &clock).is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset(&self, key: KeyHash, now: Tick) -> bool {
        self.counter.reset(key, now)
    }

    /// How they get along with their memory.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_local::{Buckets, Seed, Table};
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// assert_eq!(Buckets::new(&table, Seed::random().salt(0)).pressure().overflowed, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pressure(&self) -> Pressure {
        self.counter.pressure()
    }
}

impl std::fmt::Debug for Buckets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad("Buckets(..)")
    }
}

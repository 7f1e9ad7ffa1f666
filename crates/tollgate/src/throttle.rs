//! Limits that come with the requests.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::{CommonBucket, Decision, Limit, LimitError, Quota};
use tollgate_local::{Buckets, Clock, Draw, HeavyKey, HeavyKeys, Key, Seed, SystemClock, Table};

use crate::error::Error;
use crate::size::Size;
use crate::stats::Stats;

/// Keeps a token bucket for any number of keys, whose size and rate every request says anew, as the
/// command `CL.THROTTLE` of redis-cell does.
///
/// The state of a key is the moment at which it has everything back, whatever the limit. So there
/// may be as many different limits as there are requests, and what a key has spent under one counts
/// under the next: a bucket of one token a minute that is empty owes a minute, which is sixty tokens
/// of one a second.
///
/// ```
/// use tollgate::{Quota, Throttle};
///
/// let throttle = Throttle::builder().keys(100_000).build()?;
/// let quota: Quota = "1/10s burst 3".parse()?;
/// let decision = throttle.check("alice", quota, 1)?;
/// assert!(decision.is_allowed());
/// assert_eq!((decision.limit(), decision.remaining()), (3, 2));
/// # Ok::<(), tollgate::Error>(())
/// ```
///
/// A token comes back after the period divided by the count, rounded up to 64ths of a nanosecond:
/// so rates that do not divide evenly are kept to one part in thousands of millions, and their times
/// can be a few nanoseconds too long. Whoever tells whole seconds rounds them up, and may tell one
/// more than redis-cell would.
#[derive(Debug)]
pub struct Throttle<C = SystemClock> {
    buckets: Buckets,
    table: Arc<Table>,
    seed: Seed,
    heavy: HeavyKeys,
    clock: C,
}

/// Makes a [`Throttle`].
///
/// ```
/// use tollgate::{ManualClock, Throttle};
/// let throttle = Throttle::builder().keys(1_000).clock(ManualClock::new()).build()?;
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ThrottleBuilder<C = SystemClock> {
    size: Size,
    seed: Option<Seed>,
    clock: C,
}

/// A request of a [batch](Throttle::check_batch).
///
/// ```
/// use tollgate::Ask;
/// let ask = Ask { key: "alice", quota: "5/s".parse()?, cost: 1 };
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ask<K> {
    /// Whose bucket.
    pub key: K,
    /// The limit that it has now.
    pub quota: Quota,
    /// How many tokens; 0 only looks.
    pub cost: u64,
}

impl Throttle {
    /// Starts to make one.
    ///
    /// ```
    /// let throttle = tollgate::Throttle::builder().build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn builder() -> ThrottleBuilder {
        ThrottleBuilder { size: Size::default(), seed: None, clock: SystemClock::new() }
    }
}

impl<C: Clock> ThrottleBuilder<C> {
    /// Room for this many live keys: see [`LimiterBuilder::keys`](crate::LimiterBuilder::keys).
    ///
    /// ```
    /// assert!(tollgate::Throttle::builder().keys(0).build().is_err());
    /// ```
    pub fn keys(self, keys: usize) -> Self {
        Self { size: Size::Keys(keys), ..self }
    }

    /// Room for as many live keys as fit into this many bytes: see
    /// [`LimiterBuilder::memory`](crate::LimiterBuilder::memory).
    ///
    /// ```
    /// let throttle = tollgate::Throttle::builder().memory(1 << 20).build()?;
    /// assert!(throttle.stats().memory <= 1 << 20);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn memory(self, bytes: usize) -> Self {
        Self { size: Size::Memory(bytes), ..self }
    }

    /// A fixed seed for the hash of keys, for tests: see
    /// [`LimiterBuilder::seed`](crate::LimiterBuilder::seed).
    ///
    /// ```
    /// # use tollgate::{Seed, Throttle};
    /// let throttle = Throttle::builder().seed(Seed::new(1)).build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn seed(self, seed: Seed) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Another clock.
    ///
    /// ```
    /// # use tollgate::{ManualClock, Throttle};
    /// let throttle = Throttle::builder().clock(ManualClock::new()).build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn clock<D: Clock>(self, clock: D) -> ThrottleBuilder<D> {
        let Self { size, seed, .. } = self;
        ThrottleBuilder { size, seed, clock }
    }

    /// Makes it, unless there is no memory for so many keys.
    ///
    /// ```
    /// let throttle = tollgate::Throttle::builder().build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn build(self) -> Result<Throttle<C>, Error> {
        let Self { size, seed, clock } = self;
        // Any limit that has a sketch: all have one together.
        let table = size.table([&Limit::token_bucket("1/s")?])?;
        let seed = seed.unwrap_or_else(Seed::random);
        let buckets = Buckets::new(&table, seed.salt(0));
        Ok(Throttle { buckets, table, seed, heavy: HeavyKeys::default(), clock })
    }
}

impl<C: Clock> Throttle<C> {
    /// Spends `cost` from the bucket of a key, if it has so much under this limit. A cost of 0 is
    /// always allowed and tells what is left; one above the limit is denied for good and changes
    /// nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Retry, Throttle};
    /// let throttle = Throttle::builder().build()?;
    /// let quota = "3/h".parse()?;
    /// assert_eq!(throttle.check("alice", quota, 3)?.remaining(), 0);
    /// let denied = throttle.check("alice", quota, 1)?;
    /// assert!(denied.retry_after() > Some(Duration::from_secs(1_199)));
    /// assert_eq!(throttle.check("bob", quota, 4)?.retry(), Some(Retry::Never));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there can be no such limit: more tokens than nanoseconds, or a bucket that takes more than
    /// 400 days to fill. Nothing is spent then.
    #[inline]
    pub fn check<K: Key + ?Sized>(
        &self,
        key: &K,
        quota: Quota,
        cost: u64,
    ) -> Result<Decision, LimitError> {
        let hash = key.hash(&self.seed);
        let Some(bucket) = CommonBucket::try_new(quota)? else { return Ok(Decision::unlimited()) };
        let decision = self.buckets.check(hash, &bucket, cost, &self.clock);
        self.heavy.count(!decision.is_allowed(), || (hash, key.label()));
        Ok(decision)
    }

    /// Decides many requests at one reading of the clock, faster than one by one, and in order:
    /// `each` is called with the place and the answer of each.
    ///
    /// ```
    /// use tollgate::{Ask, Throttle};
    /// let throttle = Throttle::builder().build()?;
    /// let ask = |key, quota: &str| Ok::<_, tollgate::Error>(Ask { key, quota: quota.parse()?, cost: 1 });
    /// let asks = [ask("alice", "1/h")?, ask("alice", "1/h")?, ask("bob", "1/day burst 500")?];
    /// let mut answers = Vec::new();
    /// throttle.check_batch(&asks, |_, answer| {
    ///     answers.push(answer.map(|decision| decision.is_allowed()).ok());
    /// });
    /// assert_eq!(answers, [Some(true), Some(false), None], "no bucket takes 500 days to fill");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn check_batch<K: Key>(
        &self,
        asks: &[Ask<K>],
        mut each: impl FnMut(usize, Result<Decision, LimitError>),
    ) {
        for (number, group) in asks.chunks(GROUP).enumerate() {
            self.check_group(group, number * GROUP, &mut each);
        }
    }

    fn check_group<K: Key>(
        &self,
        asks: &[Ask<K>],
        first: usize,
        each: &mut impl FnMut(usize, Result<Decision, LimitError>),
    ) {
        let mut draws: SmallVec<[Draw; GROUP]> = SmallVec::new();
        for Ask { key, quota, cost } in asks {
            match CommonBucket::try_new(*quota) {
                Ok(Some(bucket)) => {
                    draws.push(Draw { key: key.hash(&self.seed), bucket, cost: *cost });
                }
                // What has no bucket is rare: whatever is around it goes one by one.
                Ok(None) | Err(_) => return self.check_each(asks, first, each),
            }
        }
        self.buckets.check_batch(&draws, &self.clock, |at, decision| {
            self.heavy.count(!decision.is_allowed(), || (draws[at].key, asks[at].key.label()));
            each(first + at, Ok(decision));
        });
    }

    #[cold]
    fn check_each<K: Key>(
        &self,
        asks: &[Ask<K>],
        first: usize,
        each: &mut impl FnMut(usize, Result<Decision, LimitError>),
    ) {
        for (at, Ask { key, quota, cost }) in asks.iter().enumerate() {
            each(first + at, self.check(key, *quota, *cost));
        }
    }

    /// Gives back what a request of this limit has cost, or part of it: see
    /// [`Limiter::refund`](crate::Limiter::refund).
    ///
    /// ```
    /// # use tollgate::Throttle;
    /// let throttle = Throttle::builder().build()?;
    /// let quota = "5/h".parse()?;
    /// assert_eq!(throttle.check("alice", quota, 4)?.remaining(), 1);
    /// throttle.refund("alice", quota, 3)?;
    /// assert_eq!(throttle.check("alice", quota, 0)?.remaining(), 4);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there can be no such limit, as with [`check`](Self::check). Nothing changes then.
    pub fn refund<K: Key + ?Sized>(
        &self,
        key: &K,
        quota: Quota,
        cost: u64,
    ) -> Result<(), LimitError> {
        if let Some(bucket) = CommonBucket::try_new(quota)? {
            self.buckets.refund(key.hash(&self.seed), &bucket, cost, self.clock.now());
        }
        Ok(())
    }

    /// Gives a key everything back: see [`Limiter::reset`](crate::Limiter::reset).
    ///
    /// ```
    /// # use tollgate::Throttle;
    /// let throttle = Throttle::builder().build()?;
    /// assert!(throttle.check("alice", "1/h".parse()?, 1)?.is_allowed());
    /// assert!(throttle.reset("alice"));
    /// assert!(throttle.check("alice", "1/h".parse()?, 1)?.is_allowed());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn reset<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.buckets.reset(key.hash(&self.seed), self.clock.now())
    }

    /// The keys that come most often, by estimate, the heaviest first.
    ///
    /// ```
    /// # use tollgate::Throttle;
    /// let throttle = Throttle::builder().build()?;
    /// throttle.check("alice", "1/h".parse()?, 1)?;
    /// assert_eq!(throttle.top(1)[0].key, "alice");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn top(&self, n: usize) -> Vec<HeavyKey> {
        self.heavy.top(n)
    }

    /// The keys that are denied most often, by estimate, the heaviest first.
    ///
    /// ```
    /// assert!(tollgate::Throttle::builder().build()?.top_denied(1).is_empty());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn top_denied(&self, n: usize) -> Vec<HeavyKey> {
        self.heavy.top_denied(n)
    }

    /// How it is doing.
    ///
    /// ```
    /// assert_eq!(tollgate::Throttle::builder().build()?.stats().overflowed, 0);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        Stats::of(&self.table, [self.buckets.pressure()], 0, self.clock.now())
    }

    /// The clock.
    ///
    /// ```
    /// # use tollgate::{Clock, Throttle};
    /// let now = Throttle::builder().build()?.clock().now();
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

/// So many requests are decided at one reading of the clock.
const GROUP: usize = 32;

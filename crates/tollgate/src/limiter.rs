//! One limit, many keys.

use std::sync::Arc;

use tollgate_core::{Decision, Limit, Tick};
use tollgate_local::{
    Clock, Counters, HeavyKey, HeavyKeys, Key, Seed, SystemClock, Table, Timer, WaitError,
    WaitingRoom,
};

use crate::error::Error;
use crate::size::Size;
use crate::stats::Stats;

/// Keeps one limit for any number of keys.
///
/// A limiter is shared between threads as it is, behind an `Arc` or in a `static`: deciding takes
/// `&self` and waits for no lock. Sliding logs lock a part of their keys; all other algorithms
/// lock nothing, and allocate only for the decisions that are sampled for [`Limiter::top`].
///
/// ```
/// use tollgate::Limiter;
///
/// let limiter = Limiter::new("100/min")?;
/// let decision = limiter.check("alice");
/// assert!(decision.is_allowed());
/// assert_eq!(decision.remaining(), 99);
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Debug)]
pub struct Limiter<C = SystemClock> {
    limit: Limit,
    counters: Counters,
    table: Arc<Table>,
    seed: Seed,
    heavy: HeavyKeys,
    room: WaitingRoom,
    clock: C,
}

/// Makes a [`Limiter`] with other memory, clock or seed than the usual ones.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limit, Limiter, ManualClock};
///
/// let clock = ManualClock::new();
/// let limiter = Limiter::builder(Limit::sliding_window("1/s")?)
///     .keys(10_000)
///     .clock(clock.clone())
///     .build()?;
/// assert!(limiter.check("alice").is_allowed());
/// assert!(!limiter.check("alice").is_allowed());
/// clock.advance(Duration::from_secs(2));
/// assert!(limiter.check("alice").is_allowed());
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct LimiterBuilder<C = SystemClock> {
    /// A limit that is wrong is reported by `build`.
    limit: Result<Limit, Error>,
    size: Size,
    seed: Option<Seed>,
    waiting: Option<usize>,
    clock: C,
}

impl Limiter {
    /// A limiter for a limit, a quota or the text of one, which then means a token bucket. There
    /// is room for 100,000 live keys in 2.4 MB; for more, see [`Limiter::builder`].
    ///
    /// ```
    /// use tollgate::{Limit, Limiter};
    /// let per_minute = Limiter::new("100/min burst 20")?;
    /// let logins = Limiter::new(Limit::sliding_log("10/15min")?)?;
    /// let from_text = Limiter::new(format!("{}/min", 60 * 5))?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn new<L: TryInto<Limit>>(limit: L) -> Result<Self, Error>
    where
        Error: From<L::Error>,
    {
        Self::builder(limit).build()
    }

    /// Starts to make a limiter, for a limit, a quota or the text of one. If there is something
    /// wrong with it, [`build`](LimiterBuilder::build) says so.
    ///
    /// ```
    /// use tollgate::{Limit, Limiter};
    /// let limiter = Limiter::builder("5/s").keys(1_000_000).build()?;
    /// let logins = Limiter::builder(Limit::sliding_log("10/15min")?).keys(10_000).build()?;
    /// assert!(Limiter::builder("5/parsec").build().is_err());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn builder<L: TryInto<Limit>>(limit: L) -> LimiterBuilder
    where
        Error: From<L::Error>,
    {
        let limit = limit.try_into().map_err(Error::from);
        let clock = SystemClock::new();
        LimiterBuilder { limit, size: Size::default(), seed: None, waiting: None, clock }
    }
}

impl<C: Clock> LimiterBuilder<C> {
    /// Room for this many live keys, at under 24 bytes each. A limit with a sliding log takes up
    /// to four times as much beside that, as its keys come. If more keys are live at once, the
    /// excess is counted together, too high and never too low.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// assert!(Limiter::builder("5/s").keys(0).build().is_err());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn keys(self, keys: usize) -> Self {
        Self { size: Size::Keys(keys), ..self }
    }

    /// Room for as many live keys as fit into this many bytes, with all that belongs to them:
    /// [`Stats::memory`] never says more. The least there can be is 128 bytes and, beside them,
    /// 4 KiB, or 64 KiB for a limit with a sliding log: so much is taken if less is given, but
    /// less than 128 bytes are refused.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::builder("5/s").memory(64 << 20).build()?;
    /// assert!(limiter.stats().keys > 2_800_000);
    /// assert!(limiter.stats().memory <= 64 << 20);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn memory(self, bytes: usize) -> Self {
        Self { size: Size::Memory(bytes), ..self }
    }

    /// A fixed seed for the hash of keys, in place of a secret one. Whoever knows it can make
    /// keys collide: for tests, or with keys that nobody can choose.
    ///
    /// ```
    /// use tollgate::{Limiter, Seed};
    /// let limiter = Limiter::builder("5/s").seed(Seed::new(1)).build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn seed(self, seed: Seed) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// How many requests of one key may wait at once in [`Limiter::wait`]: unless said otherwise,
    /// the queue of a limit that shapes, and 1024 for others.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::builder("5/s").waiting(10).build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn waiting(self, max: usize) -> Self {
        Self { waiting: Some(max), ..self }
    }

    /// Another clock.
    ///
    /// ```
    /// use tollgate::{Limiter, ManualClock};
    /// let limiter = Limiter::builder("5/s").clock(ManualClock::new()).build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn clock<D: Clock>(self, clock: D) -> LimiterBuilder<D> {
        let Self { limit, size, seed, waiting, .. } = self;
        LimiterBuilder { limit, size, seed, waiting, clock }
    }

    /// Makes the limiter, unless the limit is wrong or there is no memory for so many keys.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::builder("5/s").build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn build(self) -> Result<Limiter<C>, Error> {
        let Self { limit, size, seed, waiting, clock } = self;
        let limit = limit?;
        let table = size.table([&limit])?;
        let seed = seed.unwrap_or_else(Seed::random);
        let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
        let queue = limit.queue().and_then(|queue| usize::try_from(queue).ok());
        let room = WaitingRoom::new(waiting.or(queue).unwrap_or(1024));
        Ok(Limiter { limit, counters, table, seed, heavy: HeavyKeys::default(), room, clock })
    }
}

impl<C: Clock> Limiter<C> {
    /// Lets a request of cost 1 pass, or not.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::new("1/h")?;
    /// assert!(limiter.check(&7u64).is_allowed());
    /// let denied = limiter.check(&7u64);
    /// assert!(!denied.is_allowed());
    /// assert!(denied.retry_after().is_some());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[must_use = "only the decision says whether the request may pass"]
    #[inline(always)]
    pub fn check<K: Key + ?Sized>(&self, key: &K) -> Decision {
        self.check_n(key, 1)
    }

    /// Lets a request pass that costs `cost`. A cost of 0 is always allowed and tells what is
    /// left; one that is more than the limit can ever hold is denied for good:
    /// [`Retry::Never`](crate::Retry::Never).
    ///
    /// ```
    /// use tollgate::{Limiter, Retry};
    /// let limiter = Limiter::new("100/h")?;
    /// assert_eq!(limiter.check_n("alice", 60).remaining(), 40);
    /// assert!(!limiter.check_n("alice", 60).is_allowed());
    /// assert_eq!(limiter.check_n("alice", 101).retry(), Some(Retry::Never));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[must_use = "only the decision says whether the request may pass"]
    #[inline(always)]
    pub fn check_n<K: Key + ?Sized>(&self, key: &K, cost: u64) -> Decision {
        let hash = key.hash(&self.seed);
        let decision = self.counters.check(hash, cost, &self.clock);
        if self.heavy.is_turn() {
            self.sample(key, decision.is_allowed());
        }
        decision
    }

    /// As [`check`](Self::check), at a time that the caller has read from
    /// [`clock`](Self::clock), once for many decisions. Only for a key that is new the clock is
    /// looked at once more.
    ///
    /// ```
    /// use tollgate::{Clock, Limiter};
    /// let limiter = Limiter::new("1/h")?;
    /// let now = limiter.clock().now();
    /// assert!(limiter.check_at("alice", now).is_allowed());
    /// assert!(limiter.check_at("bob", now).is_allowed());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[must_use = "only the decision says whether the request may pass"]
    #[inline(always)]
    pub fn check_at<K: Key + ?Sized>(&self, key: &K, now: Tick) -> Decision {
        let hash = key.hash(&self.seed);
        let decision = self.counters.check_with(hash, 1, &self.clock, &mut { now });
        if self.heavy.is_turn() {
            self.sample(key, decision.is_allowed());
        }
        decision
    }

    #[cold]
    #[inline(never)]
    fn sample<K: Key + ?Sized>(&self, key: &K, is_allowed: bool) {
        self.heavy.sample(|| [(key.hash(&self.seed), !is_allowed, key.label())]);
    }

    /// Decides many requests of cost 1 at one reading of the clock, several times faster than one
    /// by one. The answers are appended to `decisions` in the order of the keys.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::new("2/h")?;
    /// let mut decisions = Vec::new();
    /// limiter.check_batch(&["alice", "alice", "bob", "alice"], &mut decisions);
    /// let allowed: Vec<bool> = decisions.iter().map(|decision| decision.is_allowed()).collect();
    /// assert_eq!(allowed, [true, true, true, false]);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[inline]
    pub fn check_batch<K: Key>(&self, keys: &[K], decisions: &mut Vec<Decision>) {
        let begin = decisions.len();
        let hashes = keys.iter().map(|key| key.hash(&self.seed));
        self.counters.check_batch(hashes, 1, &self.clock, decisions);
        self.heavy.count_batch(keys.len(), |at| {
            let denied = !decisions[begin + at].is_allowed();
            (keys[at].hash(&self.seed), denied, keys[at].label())
        });
    }

    /// What [`check`](Self::check) would answer, without spending;
    /// [`remaining`](Decision::remaining) is what is there now.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::new("100/h")?;
    /// assert_eq!(limiter.peek("alice").remaining(), 100);
    /// assert_eq!(limiter.peek("alice").remaining(), 100);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[must_use = "it changes nothing; use what it tells"]
    pub fn peek<K: Key + ?Sized>(&self, key: &K) -> Decision {
        self.counters.peek(key.hash(&self.seed), 1, self.clock.now())
    }

    /// Gives back what a request has cost, or part of it: it failed, or was cheaper than thought.
    /// The budget never becomes more than full. A place in a shaper's queue is not given back, nor
    /// is what was counted together with other keys for want of room.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::new("100/h")?;
    /// assert!(limiter.check_n("alice", 60).is_allowed());
    /// limiter.refund("alice", 20);
    /// assert_eq!(limiter.peek("alice").remaining(), 60);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn refund<K: Key + ?Sized>(&self, key: &K, cost: u64) {
        self.counters.refund(key.hash(&self.seed), cost, self.clock.now());
    }

    /// Gives a key its whole budget back. `false` if the key is counted together with others
    /// because there are more live keys than planned, and so cannot be reset alone.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::new("1/h")?;
    /// assert!(limiter.check("alice").is_allowed());
    /// assert!(limiter.reset("alice"));
    /// assert!(limiter.check("alice").is_allowed());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn reset<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.counters.reset(key.hash(&self.seed), self.clock.now())
    }

    /// The keys that come most often, by estimate, the heaviest first.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::new("100/h")?;
    /// for key in ["alice", "bob", "alice"] {
    ///     let _ = limiter.check(key);
    /// }
    /// assert_eq!(limiter.top(1)[0].key, "alice");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn top(&self, n: usize) -> Vec<HeavyKey> {
        self.heavy.top(n)
    }

    /// The keys that are denied most often, by estimate, the heaviest first.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let limiter = Limiter::new("1/h")?;
    /// for key in ["alice", "bob", "bob"] {
    ///     let _ = limiter.check(key);
    /// }
    /// assert_eq!(limiter.top_denied(5)[0].key, "bob");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn top_denied(&self, n: usize) -> Vec<HeavyKey> {
        self.heavy.top_denied(n)
    }

    /// How the limiter is doing.
    ///
    /// ```
    /// use tollgate::Limiter;
    /// let stats = Limiter::new("1/h")?.stats();
    /// assert_eq!((stats.overflowed, stats.waiting), (0, 0));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        Stats::new(&self.table, [&self.counters], self.room.waiting(), self.clock.now())
    }

    /// The limit.
    ///
    /// ```
    /// assert_eq!(tollgate::Limiter::new("1/h")?.limit().to_string(), "token bucket of 1/h");
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// The clock.
    ///
    /// ```
    /// use tollgate::{Clock, Limiter};
    /// let limiter = Limiter::new("1/h")?;
    /// assert!(limiter.clock().now() <= limiter.clock().now());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

impl<C: Timer> Limiter<C> {
    /// Waits until the request may pass: first come, first served among those who wait for the
    /// same key. A plain [`check`](Self::check) does not look at who waits, and may overtake them.
    /// A future that is dropped before it ends has spent nothing.
    ///
    /// Tokio's timer, which wakes those who wait with [`SystemClock`], has a resolution of one
    /// millisecond. A limit that shapes lets them pass one by one, so at most about 1000 a second
    /// of one key, however high its rate. Other limits let all pass whose tokens have come back
    /// meanwhile, and keep their rate if their burst covers a millisecond of it.
    ///
    /// # Panics
    ///
    /// With [`SystemClock`], if it has to wait outside of a tokio runtime with time enabled.
    ///
    /// ```
    /// use tollgate::{Limit, Limiter};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let limiter = Limiter::new(Limit::leaky_shape("1000/s", 50)?)?;
    /// for _ in 0..3 {
    ///     limiter.wait("legacy").await.expect("the queue is short");
    ///     // One request per millisecond gets here.
    /// }
    /// # Ok::<(), tollgate::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn wait<K: Key + ?Sized>(&self, key: &K) -> Result<Decision, WaitError> {
        self.wait_n(key, 1).await
    }

    /// As [`wait`](Self::wait), for a request that costs `cost`.
    ///
    /// ```
    /// use tollgate::{Limiter, WaitError};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let limiter = Limiter::new("100/s")?;
    /// assert!(limiter.wait_n("alice", 60).await.is_ok());
    /// assert!(limiter.wait_n("alice", 60).await.is_ok(), "after 200 ms");
    /// assert_eq!(limiter.wait_n("alice", 101).await, Err(WaitError::NeverFits));
    /// # Ok::<(), tollgate::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn wait_n<K: Key + ?Sized>(&self, key: &K, cost: u64) -> Result<Decision, WaitError> {
        let hash = key.hash(&self.seed);
        self.room.wait(&self.counters, hash, cost, &self.clock).await
    }
}

//! The home of permits: so many of each key at once.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tollgate_core::{Decision, LimitError, Permit, Permits, Retry, Tick};

use crate::key::KeyHash;
use crate::shards::{ByHash, Shards};

/// Limits how many requests of one key are under way at once. Clones give out the same permits.
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_local::{Concurrency, Key, Seed};
///
/// let seed = Seed::random();
/// let slots = Concurrency::new(1, 1000)?;
/// let export = "acme".hash(&seed);
/// let held = slots.acquire(export, Tick::ZERO).expect("one is free");
/// assert!(slots.acquire(export, Tick::ZERO).is_err(), "it is out");
/// drop(held);
/// assert!(slots.acquire(export, Tick::ZERO).is_ok());
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Concurrency {
    home: Arc<Home>,
    max: NonZeroU32,
    /// The time after which a permit comes back by itself.
    expires: Option<Duration>,
}

#[derive(Debug)]
struct Home {
    /// Permits that may be out over all keys, and those that are.
    room: usize,
    out: AtomicUsize,
    shards: Shards<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    keys: ByHash<Permits>,
    /// Permits are numbered per shard: a key that was forgotten and comes back must not repeat
    /// the number of a permit whose holder is late.
    given: u64,
    /// When somebody has last looked for expired permits of all keys.
    swept: Option<Tick>,
    turned_away: u64,
}

/// A permit that is out. It comes back when this is dropped.
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_local::{Concurrency, Key, Seed};
/// let slots = Concurrency::new(2, 1000)?;
/// let key = "acme".hash(&Seed::random());
/// let held = slots.acquire(key, Tick::ZERO).expect("one is free");
/// assert_eq!(slots.out(key, Tick::ZERO), 1);
/// drop(held);
/// assert_eq!(slots.out(key, Tick::ZERO), 0);
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Debug)]
#[must_use = "a permit comes back as soon as it is dropped"]
pub struct Held {
    home: Arc<Home>,
    key: KeyHash,
    permit: Permit,
}

const SHARDS: usize = 64;

impl Concurrency {
    /// At most `max` permits of each key are out at once, and at most `room` permits in all: that
    /// bounds the memory. Where the room is used up, everybody is denied.
    ///
    /// ```
    /// use tollgate_local::Concurrency;
    /// assert!(Concurrency::new(0, 100).is_err());
    /// assert!(Concurrency::new(5, 0).is_err());
    /// ```
    pub fn new(max: u32, room: usize) -> Result<Self, LimitError> {
        Self::try_new(max, room, None)
    }

    /// The same, with permits that come back by themselves after this time, for holders that die
    /// without dropping them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::Tick;
    /// use tollgate_local::{Concurrency, Key, Seed};
    /// let slots = Concurrency::expiring(1, 1000, Duration::from_secs(600))?;
    /// let key = "acme".hash(&Seed::random());
    /// std::mem::forget(slots.acquire(key, Tick::ZERO));
    /// assert!(slots.acquire(key, Tick::ZERO).is_err());
    /// assert!(slots.acquire(key, Tick::ZERO.after(Duration::from_secs(600))).is_ok());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn expiring(max: u32, room: usize, after: Duration) -> Result<Self, LimitError> {
        Self::try_new(max, room, Some(after))
    }

    /// Another number of permits, and another time after which they come back by themselves, with
    /// what is out: a permit that one of both gave out counts for the other as well, from when it was
    /// given out. Where more are out than there are now, nobody gets one until enough are back.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// use tollgate_local::{Concurrency, Key, Seed};
    /// let (key, now) = ("acme".hash(&Seed::random()), Tick::ZERO);
    /// let three = Concurrency::new(3, 1000)?;
    /// let mut held: Vec<_> = (0..3).map(|_| three.acquire(key, now)).collect();
    /// let two = three.resized(2, None)?;
    /// held.pop();
    /// assert!(two.acquire(key, now).is_err(), "two are still out");
    /// held.pop();
    /// assert!(two.acquire(key, now).is_ok());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn resized(&self, max: u32, expires: Option<Duration>) -> Result<Self, LimitError> {
        Self::at_home(&self.home, max, expires)
    }

    fn try_new(max: u32, room: usize, expires: Option<Duration>) -> Result<Self, LimitError> {
        if room == 0 {
            return Err(too_few("the room for permits", u64::MAX));
        }
        let shards = Shards::new(SHARDS, Shard::default);
        let out = AtomicUsize::new(0);
        Self::at_home(&Arc::new(Home { room, out, shards }), max, expires)
    }

    fn at_home(home: &Arc<Home>, max: u32, expires: Option<Duration>) -> Result<Self, LimitError> {
        let Some(max) = NonZeroU32::new(max) else {
            return Err(too_few("the number of permits of a key", u32::MAX.into()));
        };
        if expires.is_some_and(|after| after.is_zero()) {
            let what = "the time after which permits expire, in nanoseconds,";
            return Err(too_few(what, u64::MAX));
        }
        Ok(Self { home: Arc::clone(home), max, expires })
    }

    /// Takes a permit, or says why there is none.
    ///
    /// ```
    /// use tollgate_core::{Retry, Tick};
    /// use tollgate_local::{Concurrency, Key, Seed};
    /// let slots = Concurrency::new(1, 1000)?;
    /// let key = "acme".hash(&Seed::random());
    /// let held = slots.acquire(key, Tick::ZERO);
    /// let denied = slots.acquire(key, Tick::ZERO).expect_err("it is out");
    /// assert_eq!((denied.limit(), denied.retry()), (1, Some(Retry::OnReturn)));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn acquire(&self, key: KeyHash, now: Tick) -> Result<Held, Decision> {
        let home = &self.home;
        let mut shard = home.shards.of(key);
        if home.out.load(Ordering::Relaxed) >= home.room
            && let Some(expires) = self.expires
            && shard.swept.is_none_or(|then| now >= then.after(expires / 16))
        {
            home.give_back(shard.forget(expires, now));
            shard.swept = Some(now);
        }
        if home.out.fetch_add(1, Ordering::Relaxed) >= home.room {
            home.give_back(1);
            shard.turned_away += 1;
            return Err(Decision::deny(self.max.get().into(), 0, Duration::ZERO, Retry::OnReturn));
        }
        let given = shard.given;
        let permits = shard.keys.entry(key).or_insert_with(|| Permits::numbered_from(given));
        let before = permits.held();
        let permit = permits.acquire(self.max, self.expires, now);
        let (after, next) = (permits.held(), permits.next_number());
        shard.given = given.max(next);
        // One was counted above; those that had expired, and this one if it was denied, are not
        // out.
        home.give_back(before + 1 - after);
        Ok(Held { home: Arc::clone(home), key, permit: permit? })
    }

    /// How many permits of the key are out.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// use tollgate_local::{Concurrency, Key, Seed};
    /// assert_eq!(Concurrency::new(1, 10)?.out("acme".hash(&Seed::random()), Tick::ZERO), 0);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn out(&self, key: KeyHash, now: Tick) -> usize {
        let mut shard = self.home.shards.of(key);
        let Some(permits) = shard.keys.get_mut(&key) else { return 0 };
        let before = permits.held();
        let left = permits.out(self.expires, now);
        self.home.give_back(before - left);
        left
    }

    /// How often a request was denied because the room for all permits was used up.
    ///
    /// ```
    /// assert_eq!(tollgate_local::Concurrency::new(1, 10)?.turned_away(), 0);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn turned_away(&self) -> u64 {
        self.home.shards.iter().map(|shard| shard.turned_away).sum()
    }
}

const fn too_few(what: &'static str, max: u64) -> LimitError {
    LimitError::OutOfRange { what, given: 0, min: 1, max }
}

impl Home {
    fn give_back(&self, permits: usize) {
        self.out.fetch_sub(permits, Ordering::Relaxed);
    }
}

impl Shard {
    /// Takes back what has expired, and says how many permits that were.
    fn forget(&mut self, expires: Duration, now: Tick) -> usize {
        let mut expired = 0;
        self.keys.retain(|_, permits| {
            let before = permits.held();
            let left = permits.out(Some(expires), now);
            expired += before - left;
            left > 0
        });
        expired
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut shard = self.home.shards.of(self.key);
        let Some(permits) = shard.keys.get_mut(&self.key) else { return };
        let back = permits.give_back(self.permit);
        if permits.held() == 0 {
            shard.keys.remove(&self.key);
        }
        self.home.give_back(usize::from(back));
    }
}

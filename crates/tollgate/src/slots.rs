//! So many at once.

use std::time::Duration;

use tollgate_core::Decision;
use tollgate_local::{Clock, Concurrency, Held, Key, Seed, SystemClock};

use crate::error::Error;

/// Limits how many requests of one key are under way at once.
///
/// ```
/// use tollgate::Slots;
///
/// let exports = Slots::new(5)?;
/// let permits: Vec<_> = (0..5).map(|_| exports.acquire("acme").expect("five are free")).collect();
/// assert!(exports.acquire("acme").is_err(), "all five are out");
/// drop(permits);
/// assert!(exports.acquire("acme").is_ok(), "they came back by themselves");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Debug)]
pub struct Slots<C = SystemClock> {
    concurrency: Concurrency,
    seed: Seed,
    clock: C,
}

impl Slots {
    /// At most `max` permits of one key are out at once, and at most a million of all keys.
    ///
    /// ```
    /// use tollgate::Slots;
    /// assert!(Slots::new(0).is_err(), "with no slot nothing would ever pass");
    /// ```
    pub fn new(max: u32) -> Result<Self, Error> {
        Self::with_clock(max, SystemClock::new())
    }
}

impl<C: Clock> Slots<C> {
    const ROOM: usize = 1_000_000;

    /// The same with another clock.
    ///
    /// ```
    /// use tollgate::{ManualClock, Slots};
    /// let slots = Slots::with_clock(5, ManualClock::new())?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn with_clock(max: u32, clock: C) -> Result<Self, Error> {
        Ok(Self { concurrency: Concurrency::new(max, Self::ROOM)?, seed: Seed::random(), clock })
    }

    /// The same with permits that come back by themselves after this time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Slots};
    /// let clock = ManualClock::new();
    /// let slots = Slots::with_clock(1, clock.clone())?.expiring(Duration::from_secs(600))?;
    /// std::mem::forget(slots.acquire("acme"));
    /// clock.advance(Duration::from_secs(600));
    /// assert!(slots.acquire("acme").is_ok());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn expiring(self, after: Duration) -> Result<Self, Error> {
        Ok(Self { concurrency: self.concurrency.expiring(after)?, ..self })
    }

    /// Takes a permit, which comes back when it is dropped.
    ///
    /// ```
    /// use tollgate::{Retry, Slots};
    /// let slots = Slots::new(1)?;
    /// let permit = slots.acquire("acme");
    /// let denied = slots.acquire("acme").expect_err("it is out");
    /// assert_eq!(denied.retry(), Some(Retry::OnReturn));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    #[must_use = "a permit comes back as soon as it is dropped"]
    pub fn acquire<K: Key + ?Sized>(&self, key: &K) -> Result<Held, Decision> {
        self.concurrency.acquire(key.hash(&self.seed), self.clock.now())
    }

    /// How often a request was denied because a million permits of all keys were out.
    ///
    /// ```
    /// assert_eq!(tollgate::Slots::new(3)?.turned_away(), 0);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn turned_away(&self) -> u64 {
        self.concurrency.turned_away()
    }

    /// How many permits of the key are out.
    ///
    /// ```
    /// let slots = tollgate::Slots::new(3)?;
    /// let permit = slots.acquire("acme");
    /// assert_eq!(slots.out("acme"), 1);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn out<K: Key + ?Sized>(&self, key: &K) -> usize {
        self.concurrency.out(key.hash(&self.seed), self.clock.now())
    }
}

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

/// Makes [`Slots`] with another clock than the usual one, or with permits that expire.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{ManualClock, Slots};
///
/// let clock = ManualClock::new();
/// let hour = Duration::from_secs(3600);
/// let slots = Slots::builder(5).expiring(hour).clock(clock.clone()).build()?;
/// let permit = slots.acquire("acme");
/// clock.advance(hour);
/// assert_eq!(slots.out("acme"), 0, "whoever holds it took too long");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct SlotsBuilder<C = SystemClock> {
    max: u32,
    expires: Option<Duration>,
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
        Self::builder(max).build()
    }

    /// Starts to make slots of which at most `max` permits of one key are out at once. If that is
    /// none at all, [`build`](SlotsBuilder::build) says so.
    ///
    /// ```
    /// use tollgate::Slots;
    /// let slots = Slots::builder(5).build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn builder(max: u32) -> SlotsBuilder {
        SlotsBuilder { max, expires: None, clock: SystemClock::new() }
    }
}

impl<C: Clock> SlotsBuilder<C> {
    /// Permits come back by themselves after this time, for holders that die without dropping
    /// them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ManualClock, Slots};
    /// let (clock, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let slots = Slots::builder(1).clock(clock.clone()).expiring(minute).build()?;
    /// std::mem::forget(slots.acquire("acme"));
    /// clock.advance(minute);
    /// assert!(slots.acquire("acme").is_ok());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn expiring(self, after: Duration) -> Self {
        Self { expires: Some(after), ..self }
    }

    /// Another clock.
    ///
    /// ```
    /// use tollgate::{ManualClock, Slots};
    /// let slots = Slots::builder(5).clock(ManualClock::new()).build()?;
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn clock<D: Clock>(self, clock: D) -> SlotsBuilder<D> {
        let Self { max, expires, .. } = self;
        SlotsBuilder { max, expires, clock }
    }

    /// Makes the slots, unless there are none, or permits would expire at once.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::Slots;
    /// assert!(Slots::builder(5).expiring(Duration::ZERO).build().is_err());
    /// ```
    pub fn build(self) -> Result<Slots<C>, Error> {
        let Self { max, expires, clock } = self;
        let concurrency = match expires {
            Some(after) => Concurrency::expiring(max, Self::ROOM, after)?,
            None => Concurrency::new(max, Self::ROOM)?,
        };
        Ok(Slots { concurrency, seed: Seed::random(), clock })
    }

    /// Permits that may be out over all keys.
    const ROOM: usize = 1_000_000;
}

impl<C: Clock> Slots<C> {
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

//! Keys that came a short while ago.

use std::time::Duration;

use tollgate_core::Tick;

use crate::key::KeyHash;
use crate::sync::{AtomicU64, Ordering};

/// Remembers of many keys when they last came, roughly and in little room: each has one place, which
/// the next one takes over.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::Tick;
/// use tollgate_local::{Key, Lately, Seed};
/// let (lately, alice) = (Lately::new(1_000), "alice".hash(&Seed::random()));
/// let later = Tick::ZERO.after(Duration::from_secs(3));
/// assert!(!lately.came(alice, Tick::ZERO, Duration::from_secs(5)), "never before");
/// assert!(lately.came(alice, later, Duration::from_secs(5)));
/// assert!(!lately.came(alice, later.after(Duration::from_secs(9)), Duration::from_secs(5)));
/// ```
#[derive(Debug)]
pub struct Lately {
    /// The upper half of a key's hash, and when it came in milliseconds, of which 32 bits are enough.
    places: Box<[AtomicU64]>,
}

impl Lately {
    /// Room for at least so many keys, up to a million.
    ///
    /// ```
    /// let lately = tollgate_local::Lately::new(65_536);
    /// # drop(lately);
    /// ```
    pub fn new(keys: usize) -> Self {
        let places = keys.clamp(1, 1 << 20).next_power_of_two();
        Self { places: (0..places).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Whether the key came within the last `span`. It has come now.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate_core::Tick;
    /// # use tollgate_local::{Key, Lately, Seed};
    /// let (lately, key) = (Lately::new(1), 7u64.hash(&Seed::random()));
    /// assert!(!lately.came(key, Tick::ZERO, Duration::MAX));
    /// ```
    pub fn came(&self, key: KeyHash, now: Tick, span: Duration) -> bool {
        let (tag, millis) = (tag(key), millis(now));
        let before = self.place(key).swap(tag << 32 | u64::from(millis), Ordering::Relaxed);
        is_within(before, key, now, span)
    }

    /// Whether the key came within the last `span`, if it does not come now.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate_core::Tick;
    /// # use tollgate_local::{Key, Lately, Seed};
    /// let (lately, key) = (Lately::new(1), 7u64.hash(&Seed::random()));
    /// assert!(!lately.has(key, Tick::ZERO, Duration::MAX));
    /// assert!(!lately.has(key, Tick::ZERO, Duration::MAX));
    /// lately.came(key, Tick::ZERO, Duration::MAX);
    /// assert!(lately.has(key, Tick::ZERO, Duration::MAX));
    /// ```
    pub fn has(&self, key: KeyHash, now: Tick, span: Duration) -> bool {
        is_within(self.place(key).load(Ordering::Relaxed), key, now, span)
    }

    fn place(&self, key: KeyHash) -> &AtomicU64 {
        &self.places[key.0 as usize & (self.places.len() - 1)]
    }
}

/// Never zero, which is a place that nobody had.
const fn tag(key: KeyHash) -> u64 {
    (key.0 >> 32) | 1
}

const fn millis(now: Tick) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Whether what stands at its place is of the key, and no older than that.
fn is_within(place: u64, key: KeyHash, now: Tick, span: Duration) -> bool {
    let passed = u64::from(millis(now).wrapping_sub(place as u32));
    place >> 32 == tag(key) && u128::from(passed) <= span.as_millis()
}

//! Keys that came a short while ago.

use std::time::Duration;

use tollgate_core::Tick;

use crate::key::KeyHash;
use crate::sync::{AtomicU64, Ordering};

/// Remembers of many keys when they last came, roughly and in little room: each has one of the eight
/// places of a cache line, which it takes over from the one that came longest ago.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::Tick;
/// use tollgate_local::{Key, Lately, Seed};
/// let (lately, alice) = (Lately::new(1_000), "alice".hash(&Seed::random()));
/// let later = Tick::ZERO.after(Duration::from_secs(3));
/// assert_eq!(lately.came(alice, Tick::ZERO), None, "never before");
/// assert_eq!(lately.came(alice, later), Some(Duration::from_secs(3)));
/// assert!(lately.has(alice, later.after(Duration::from_secs(4)), Duration::from_secs(5)));
/// ```
#[derive(Debug)]
pub struct Lately {
    sets: Box<[Set]>,
}

/// At each place the upper half of a key's hash, and when it came in milliseconds, of which 32 bits
/// are enough.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Set([AtomicU64; WAYS]);

const WAYS: usize = 8;

impl Lately {
    /// Room for at least so many keys, up to a million.
    ///
    /// ```
    /// let lately = tollgate_local::Lately::new(65_536);
    /// # drop(lately);
    /// ```
    pub fn new(keys: usize) -> Self {
        let sets = keys.div_ceil(WAYS).clamp(1, (1 << 20) / WAYS).next_power_of_two();
        Self { sets: (0..sets).map(|_| Set::default()).collect() }
    }

    /// How long ago the key came last, in whole milliseconds, as far as that is known. It has come now.
    ///
    /// ```
    /// # use tollgate_core::Tick;
    /// # use tollgate_local::{Key, Lately, Seed};
    /// let (lately, key) = (Lately::new(1), 7u64.hash(&Seed::random()));
    /// assert_eq!(lately.came(key, Tick::ZERO), None);
    /// ```
    pub fn came(&self, key: KeyHash, now: Tick) -> Option<Duration> {
        let places = &self.set(key).0;
        let place = self.find(key).or_else(|| places.iter().max_by_key(|place| age(place, now)))?;
        let before = place.swap(tag(key) << 32 | u64::from(millis(now)), Ordering::Relaxed);
        ago(before, key, now)
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
    /// lately.came(key, Tick::ZERO);
    /// assert!(lately.has(key, Tick::ZERO, Duration::MAX));
    /// ```
    pub fn has(&self, key: KeyHash, now: Tick, span: Duration) -> bool {
        let ago = self.find(key).and_then(|place| ago(place.load(Ordering::Relaxed), key, now));
        ago.is_some_and(|ago| ago <= span)
    }

    /// The place that the key has.
    fn find(&self, key: KeyHash) -> Option<&AtomicU64> {
        self.set(key).0.iter().find(|place| place.load(Ordering::Relaxed) >> 32 == tag(key))
    }

    fn set(&self, key: KeyHash) -> &Set {
        &self.sets[key.0 as usize & (self.sets.len() - 1)]
    }
}

/// How long ago somebody came to a place, in milliseconds; longest of all, if nobody ever did. Whoever
/// came after this time, which another thread may have read earlier, has just come.
fn age(place: &AtomicU64, now: Tick) -> u64 {
    match place.load(Ordering::Relaxed) {
        0 => u64::MAX,
        came => match passed(came, now) {
            passed if passed > u64::from(u32::MAX / 2) => 0,
            passed => passed,
        },
    }
}

/// Never zero, which is a place that nobody had.
const fn tag(key: KeyHash) -> u64 {
    (key.0 >> 32) | 1
}

const fn millis(now: Tick) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// The milliseconds since the time that stands at a place.
const fn passed(place: u64, now: Tick) -> u64 {
    millis(now).wrapping_sub(place as u32) as u64
}

/// How old what stands at a place is, if it is of the key.
fn ago(place: u64, key: KeyHash, now: Tick) -> Option<Duration> {
    (place >> 32 == tag(key)).then(|| Duration::from_millis(passed(place, now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one set.
    fn key(number: u64) -> KeyHash {
        KeyHash(number << 40)
    }

    fn at(seconds: u64) -> Tick {
        Tick::ZERO.after(Duration::from_secs(seconds))
    }

    #[test]
    fn keys_that_come_in_turns_do_not_make_each_other_forgotten() {
        let lately = Lately::new(1);
        for number in 1..=8 {
            assert_eq!(lately.came(key(number), at(1)), None, "{number} is new");
        }
        for second in 2..20 {
            for number in 1..=8 {
                let ago = lately.came(key(number), at(second));
                assert_eq!(ago, Some(Duration::from_secs(1)), "{number} at {second}");
            }
        }
    }

    #[test]
    fn a_key_too_many_takes_the_place_of_who_came_longest_ago() {
        let lately = Lately::new(8);
        for number in 1..=8 {
            lately.came(key(number), at(10 - number));
        }
        lately.came(key(9), at(10));
        let there: Vec<_> =
            (1..=9).filter(|number| lately.has(key(*number), at(10), Duration::MAX)).collect();
        assert_eq!(there, [1, 2, 3, 4, 5, 6, 7, 9]);
    }

    #[test]
    fn whoever_has_read_the_clock_earlier_takes_no_fresh_place() {
        let lately = Lately::new(8);
        for number in 1..=8 {
            lately.came(key(number), at(10 + number));
        }
        assert_eq!(lately.came(key(9), at(15)), None);
        assert!(lately.has(key(8), at(18), Duration::MAX), "it came after that time");
        assert!(!lately.has(key(1), at(11), Duration::from_secs(5)), "it came longest ago");
    }
}

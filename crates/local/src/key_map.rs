//! A map from keys to small numbers that never changes: one memory access for each question.

use std::sync::Arc;

use crate::key::KeyHash;
use crate::prefetch::prefetch;

/// Numbers by key, for millions of keys: limits of single customers, for instance. Clones share their
/// memory.
///
/// Keys are known by their hashes alone, under a seed that nobody knows: by 48 bits of them, and by
/// where they stand in the map. That one of a thousand million keys is taken for another happens in
/// one process of a hundred thousand.
///
/// ```
/// use tollgate_local::{Key, KeyMap, Seed};
/// let seed = Seed::random();
/// let map = KeyMap::new([("acme".hash(&seed), 7), ("bolt".hash(&seed), 9)]);
/// assert_eq!(map.get("acme".hash(&seed)), Some(7));
/// assert_eq!(map.get("zeta".hash(&seed)), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyMap {
    /// Two for each key at least, so that a question ends soon.
    slots: Arc<[Slot]>,
    /// Every key with all of its hash, for whoever goes through all of them.
    keys: Arc<[KeyHash]>,
}

/// The upper 48 bits of a hash, and the key's number and 1; 0 if nobody is here. Eight bytes, so
/// that many of them stay in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot(u64);

impl Slot {
    const EMPTY: Self = Self(0);

    const fn new(key: KeyHash, number: u16) -> Self {
        Self(key.0 & !Self::NUMBER | number as u64)
    }

    #[inline]
    const fn is_of(self, key: KeyHash) -> bool {
        (self.0 ^ key.0) & !Self::NUMBER == 0
    }

    #[inline]
    const fn number(self) -> u32 {
        (self.0 & Self::NUMBER) as u32
    }

    const NUMBER: u64 = 0xFFFF;
}

impl KeyMap {
    /// The largest number that is kept.
    ///
    /// ```
    /// # use tollgate_local::{Key, KeyMap, Seed};
    /// let key = "acme".hash(&Seed::random());
    /// assert_eq!(KeyMap::new([(key, KeyMap::MAX_NUMBER)]).get(key), Some(KeyMap::MAX_NUMBER));
    /// ```
    pub const MAX_NUMBER: u32 = u16::MAX as u32 - 1;

    /// A map of these. Of a key that comes twice the last number is kept, and of a number above
    /// [`MAX_NUMBER`](Self::MAX_NUMBER) nothing.
    ///
    /// ```
    /// assert_eq!(tollgate_local::KeyMap::new([]).memory(), 0);
    /// ```
    pub fn new(entries: impl IntoIterator<Item = (KeyHash, u32)>) -> Self {
        let entries: Vec<_> = entries.into_iter().collect();
        let slots = match entries.len() {
            0 => 0,
            keys => (keys * 2).next_power_of_two(),
        };
        let keys = entries.iter().map(|(key, _)| *key).collect();
        let mut slots = vec![Slot::EMPTY; slots];
        for (key, number) in entries {
            let Ok(number) = u16::try_from(u64::from(number) + 1) else { continue };
            let at = find(&slots, key);
            if let Some(slot) = slots.get_mut(at) {
                *slot = Slot::new(key, number);
            }
        }
        Self { slots: slots.into(), keys }
    }

    /// The number of a key.
    ///
    /// ```
    /// # use tollgate_local::{Key, KeyMap, Seed};
    /// assert_eq!(KeyMap::default().get("acme".hash(&Seed::random())), None);
    /// ```
    #[inline]
    pub fn get(&self, key: KeyHash) -> Option<u32> {
        self.slots.get(find(&self.slots, key))?.number().checked_sub(1)
    }

    /// All keys and their numbers, in the order in which they came.
    ///
    /// ```
    /// # use tollgate_local::{Key, KeyMap, Seed};
    /// let key = "acme".hash(&Seed::random());
    /// assert_eq!(KeyMap::new([(key, 7)]).iter().collect::<Vec<_>>(), [(key, 7)]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (KeyHash, u32)> {
        self.keys.iter().filter_map(|key| Some((*key, self.get(*key)?)))
    }

    /// Starts to bring the memory that [`get`](Self::get) will need.
    ///
    /// ```
    /// # use tollgate_local::{Key, KeyMap, Seed};
    /// KeyMap::default().prefetch("acme".hash(&Seed::random()));
    /// ```
    #[inline]
    pub fn prefetch(&self, key: KeyHash) {
        if let Some(slot) = self.slots.get(home(&self.slots, key)) {
            prefetch(slot);
        }
    }

    /// Whether there is nobody in it.
    ///
    /// ```
    /// assert!(tollgate_local::KeyMap::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Its memory, in bytes.
    ///
    /// ```
    /// # use tollgate_local::{Key, KeyMap, Seed};
    /// let seed = Seed::random();
    /// let map = KeyMap::new((0..1000u64).map(|key| (key.hash(&seed), 0)));
    /// assert!(map.memory() <= 40 * 1000);
    /// ```
    pub fn memory(&self) -> usize {
        size_of_val::<[Slot]>(&self.slots) + size_of_val::<[KeyHash]>(&self.keys)
    }
}

/// Where the key is, or where it would be.
#[inline]
fn find(slots: &[Slot], key: KeyHash) -> usize {
    let mut at = home(slots, key);
    while let Some(slot) = slots.get(at) {
        if *slot == Slot::EMPTY || slot.is_of(key) {
            break;
        }
        // At least half of all slots are empty.
        at = (at + 1) & (slots.len() - 1);
    }
    at
}

/// Where the key is if nobody else was there first.
#[inline]
const fn home(slots: &[Slot], key: KeyHash) -> usize {
    // The lower bits, which slots do not have, are as good as the upper ones.
    key.0 as usize & slots.len().wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Seed};

    #[test]
    fn all_keys_are_found_and_no_others() {
        let seed = Seed::new(7);
        for keys in [1u64, 2, 3, 1000, 65_536] {
            let number = |key: u64| key as u32 * 3 % 4096;
            let map = KeyMap::new((0..keys).map(|key| (key.hash(&seed), number(key))));
            for key in 0..keys {
                assert_eq!(map.get(key.hash(&seed)), Some(number(key)));
            }
            assert!((keys..2 * keys).all(|key| map.get(key.hash(&seed)).is_none()));
        }
    }

    #[test]
    fn keys_that_meet_at_one_slot_are_told_apart() {
        let map = KeyMap::new((0..8).map(|n| (KeyHash(n << 32 | 5), n as u32)));
        assert!((0..8).all(|n| map.get(KeyHash(n << 32 | 5)) == Some(n as u32)));
        assert_eq!(map.get(KeyHash(9 << 32 | 5)), None);
    }
}

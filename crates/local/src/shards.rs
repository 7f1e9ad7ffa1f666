//! State behind locks, in shards: threads that ask for different keys seldom meet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::key::KeyHash;

/// So many states, each behind a lock of its own. A key belongs to one of them.
#[derive(Debug)]
pub(crate) struct Shards<T>(Box<[Mutex<T>]>);

impl<T> Shards<T> {
    pub(crate) fn new(count: usize, shard: impl Fn() -> T) -> Self {
        Self((0..count).map(|_| Mutex::new(shard())).collect())
    }

    /// The memory of so many shards, without what they point to.
    pub(crate) const fn bytes(count: usize) -> usize {
        count * size_of::<Mutex<T>>()
    }

    /// The shard of a key. Maps inside a shard are free to use the other bits of the hash.
    pub(crate) fn of(&self, key: KeyHash) -> MutexGuard<'_, T> {
        lock(&self.0[(key.0 >> 32) as usize % self.0.len()])
    }

    /// One of the shards, unless somebody is there. Successive numbers lead to all of them.
    pub(crate) fn try_nth(&self, number: usize) -> Option<MutexGuard<'_, T>> {
        self.0[number % self.0.len()].try_lock().ok()
    }

    /// All shards, one after the other: while one is looked at, the others go on.
    pub(crate) fn iter(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(lock)
    }
}

/// What is locked here is a plain value: whoever panicked while it was locked left it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A map whose keys are hashes already.
///
/// ```
/// use tollgate_local::{ByHash, Key, Seed};
/// let mut seen: ByHash<u64> = ByHash::default();
/// *seen.entry("alice".hash(&Seed::random())).or_default() += 1;
/// ```
pub type ByHash<T> = HashMap<KeyHash, T, BuildHasherDefault<Hashed>>;

/// Passes on a key that is a hash already.
///
/// ```
/// use std::hash::Hasher;
/// let mut hashed = tollgate_local::Hashed::default();
/// hashed.write_u64(7);
/// assert_eq!(hashed.finish(), 7);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

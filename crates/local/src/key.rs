//! Keys: what is counted separately, and the seeded hash under which it is kept.

use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// A value that is counted by: a name, a number, an address, or several of them together.
///
/// A table keeps no keys, only hashes, made with a secret seed: nobody can aim two keys at one
/// counter, and by chance a given key shares one with another of ten million once in about 500
/// million cases.
///
/// ```
/// use tollgate_local::{Key, Seed};
///
/// let seed = Seed::random();
/// assert_eq!("alice".hash(&seed), "alice".to_owned().hash(&seed));
/// assert_ne!(("alice", 1u64).hash(&seed), ("alice", 2u64).hash(&seed));
/// assert_eq!(("alice", 1u64).label(), "alice 1");
/// ```
pub trait Key {
    /// The hash, under which the key is counted.
    ///
    /// ```
    /// use tollgate_local::{Key, Seed};
    /// let seed = Seed::random();
    /// assert_eq!("alice".hash(&seed), String::from("alice").hash(&seed));
    /// ```
    fn hash(&self, seed: &Seed) -> KeyHash;

    /// The key for people to read, in lists of heavy keys.
    ///
    /// ```
    /// use tollgate_local::Key;
    /// assert_eq!(("alice", 7u64).label(), "alice 7");
    /// ```
    fn label(&self) -> String;
}

/// The secret under which keys are hashed.
///
/// ```
/// use tollgate_local::{Key, Seed};
/// assert_eq!(7u64.hash(&Seed::new(1)), 7u64.hash(&Seed::new(1)));
/// assert_ne!(7u64.hash(&Seed::new(1)), 7u64.hash(&Seed::new(2)));
/// ```
#[derive(Clone)]
pub struct Seed(RapidSecrets);

impl std::fmt::Debug for Seed {
    /// It is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad("Seed(..)")
    }
}

impl Seed {
    /// A seed that is the same in every run: for tests and simulations, or for nodes that must
    /// agree. Whoever knows it can make keys collide.
    ///
    /// ```
    /// let seed = tollgate_local::Seed::new(42);
    /// # let _ = seed;
    /// ```
    pub const fn new(seed: u64) -> Self {
        Self(RapidSecrets::seed(seed))
    }

    /// A seed that nobody knows.
    ///
    /// ```
    /// let seed = tollgate_local::Seed::random();
    /// # let _ = seed;
    /// ```
    #[expect(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "the one place that asks for randomness"
    )]
    pub fn random() -> Self {
        // The standard library seeds its maps from the operating system's randomness.
        Self::new(std::hash::RandomState::new().hash_one(0x7011_6a7e_u64))
    }

    /// The hash of bytes.
    ///
    /// ```
    /// use tollgate_local::{Key, Seed};
    /// let seed = Seed::random();
    /// assert_eq!(seed.bytes(b"abc"), "abc".hash(&seed));
    /// ```
    #[inline]
    pub fn bytes(&self, bytes: &[u8]) -> KeyHash {
        KeyHash(rapidhash_v3_inline::<true, false, true>(bytes, &self.0))
    }

    /// The hash of a number.
    ///
    /// ```
    /// use tollgate_local::{Key, Seed};
    /// let seed = Seed::random();
    /// assert_eq!(seed.number(5), 5u64.hash(&seed));
    /// ```
    #[inline]
    pub fn number(&self, number: u64) -> KeyHash {
        // Every hash is mixed once more when a limit adds its salt.
        KeyHash(fold(number ^ self.0.secrets[0], self.0.secrets[1]))
    }

    /// What keeps the keys of one limit apart from those of others: different for each index, and
    /// different from the hash of any number.
    ///
    /// ```
    /// use tollgate_local::Seed;
    /// let seed = Seed::random();
    /// assert_ne!(seed.salt(1), seed.salt(2));
    /// assert_ne!(seed.salt(1), seed.number(1));
    /// ```
    #[inline]
    pub fn salt(&self, index: u64) -> KeyHash {
        let secrets = &self.0.secrets;
        KeyHash(fold(fold(index ^ secrets[2], secrets[3]) ^ secrets[6], secrets[5]))
    }

    /// The hash of two hashed values in this order.
    ///
    /// ```
    /// use tollgate_local::Seed;
    /// let seed = Seed::random();
    /// let (a, b) = (seed.number(1), seed.number(2));
    /// assert_ne!(seed.both(a, b), seed.both(b, a));
    /// ```
    #[inline]
    pub fn both(&self, first: KeyHash, second: KeyHash) -> KeyHash {
        self.half(first).and(second)
    }

    /// The same for one first value and many second ones.
    ///
    /// ```
    /// use tollgate_local::{Key, Seed};
    /// let seed = Seed::random();
    /// let (a, b) = ("a".hash(&seed), "b".hash(&seed));
    /// assert_eq!(seed.half(a).and(b), seed.both(a, b));
    /// ```
    #[inline]
    pub fn half(&self, first: KeyHash) -> Half {
        let secrets = &self.0.secrets;
        Half { first: fold(first.0 ^ secrets[4], secrets[5]), secret: secrets[6] }
    }
}

/// The first of two hashed values, as [`Seed::half`] makes it. It has a part of the seed in it, and is
/// not shown.
///
/// ```
/// use tollgate_local::{Half, Key, KeyHash, Seed};
/// let seed = Seed::random();
/// let of_alice: Half = seed.half("alice".hash(&seed));
/// assert_ne!(of_alice.and(seed.number(1)), of_alice.and(seed.number(2)));
/// ```
#[derive(Clone, Copy)]
pub struct Half {
    first: u64,
    secret: u64,
}

impl Half {
    /// The hash of both.
    ///
    /// ```
    /// # use tollgate_local::{Key, Seed};
    /// # let seed = Seed::random();
    /// let both = seed.half("a".hash(&seed)).and("b".hash(&seed));
    /// assert_ne!(both, seed.half("b".hash(&seed)).and("a".hash(&seed)));
    /// ```
    #[inline]
    pub const fn and(self, second: KeyHash) -> KeyHash {
        KeyHash(fold(self.first ^ second.0, self.secret))
    }
}

impl std::fmt::Debug for Half {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Half(..)")
    }
}

/// The hash of a key under a [`Seed`].
///
/// ```
/// use tollgate_local::{Key, Seed};
/// let hash = "alice".hash(&Seed::new(1));
/// assert_eq!(hash, "alice".hash(&Seed::new(1)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyHash(pub(crate) u64);

impl KeyHash {
    /// One of so many parts, at least one: always the same, and of many keys about as many in each.
    ///
    /// ```
    /// use tollgate_local::{Key, Seed};
    /// assert!("alice".hash(&Seed::random()).part_of(64) < 64);
    /// ```
    pub const fn part_of(self, parts: usize) -> usize {
        (self.0 >> 32) as usize % parts
    }

    /// The same key under another limit: the two must not share a counter.
    #[inline]
    pub(crate) const fn salted(self, salt: Salt) -> Self {
        Self(fold(self.0 ^ salt.line, MULTIPLIER) ^ salt.tag)
    }
}

/// What keeps the keys of one limit apart from those of others.
#[derive(Clone, Copy)]
pub(crate) struct Salt {
    /// By other lines, and by other tags there.
    line: u64,
    /// By other tags alone: the upper half, which says where a line is, is empty.
    tag: u64,
}

impl Salt {
    pub(crate) const fn new(salt: KeyHash) -> Self {
        Self { line: salt.0, tag: 0 }
    }

    /// Keys are where they are under this one, with other tags, for each number below `2^31`
    /// different ones.
    pub(crate) const fn beside(self, number: u32) -> Self {
        // An odd factor makes no two numbers the same. Of the tag itself the lowest bit is always 1.
        let tag = number.wrapping_mul(MULTIPLIER as u32) << 1;
        Self { line: self.line, tag: tag as u64 }
    }
}

/// A key of one limit.
#[derive(Clone, Copy)]
pub(crate) struct Salted {
    /// The key by which other limits know it.
    pub(crate) key: KeyHash,
    /// The same with the limit's salt.
    pub(crate) hash: KeyHash,
}

impl Salted {
    #[inline(always)]
    pub(crate) const fn new(key: KeyHash, salt: Salt) -> Self {
        Self { key, hash: key.salted(salt) }
    }
}

/// Both halves of the product: every bit of the result depends on every bit of the factors.
#[inline]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// An odd number without a pattern: the fraction of the golden ratio.
pub(crate) const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

impl Key for str {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        seed.bytes(self.as_bytes())
    }

    fn label(&self) -> String {
        self.to_owned()
    }
}

impl Key for String {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        self.as_str().hash(seed)
    }

    fn label(&self) -> String {
        self.clone()
    }
}

impl Key for [u8] {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        seed.bytes(self)
    }

    fn label(&self) -> String {
        self.escape_ascii().to_string()
    }
}

/// One key for everybody.
impl Key for () {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        // No text, number or limit has this hash.
        seed.salt(u64::MAX)
    }

    fn label(&self) -> String {
        "all".to_owned()
    }
}

impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        (**self).hash(seed)
    }

    fn label(&self) -> String {
        (**self).label()
    }
}

macro_rules! keys_that_are_numbers {
    ($($number:ty)*) => {$(
        impl Key for $number {
            #[inline]
            fn hash(&self, seed: &Seed) -> KeyHash {
                seed.number(u64::from(*self))
            }

            fn label(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

keys_that_are_numbers!(u8 u16 u32 u64);

macro_rules! keys_by_their_bytes {
    ($($number:ty)*) => {$(
        impl Key for $number {
            #[inline]
            fn hash(&self, seed: &Seed) -> KeyHash {
                seed.bytes(&self.to_le_bytes())
            }

            fn label(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

keys_by_their_bytes!(i8 i16 i32 i64 i128 isize u128 usize);

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        seed.bytes(self)
    }

    fn label(&self) -> String {
        self.as_slice().label()
    }
}

macro_rules! keys_that_hold_keys {
    ($($holder:ty => $held:ty),*) => {$(
        impl Key for $holder {
            #[inline]
            fn hash(&self, seed: &Seed) -> KeyHash {
                <$held as Key>::hash(self, seed)
            }

            fn label(&self) -> String {
                <$held as Key>::label(self)
            }
        }
    )*};
}

keys_that_hold_keys!(
    Vec<u8> => [u8], Box<str> => str, std::sync::Arc<str> => str, std::borrow::Cow<'_, str> => str
);

impl Key for Ipv4Addr {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        self.to_ipv6_mapped().hash(seed)
    }

    fn label(&self) -> String {
        self.to_string()
    }
}

/// An IPv4 address and the same address mapped into IPv6 are one key.
impl Key for Ipv6Addr {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        seed.bytes(&self.octets())
    }

    fn label(&self) -> String {
        self.to_canonical().to_string()
    }
}

impl Key for IpAddr {
    #[inline]
    fn hash(&self, seed: &Seed) -> KeyHash {
        match self {
            Self::V4(v4) => v4.hash(seed),
            Self::V6(v6) => v6.hash(seed),
        }
    }

    fn label(&self) -> String {
        self.to_canonical().to_string()
    }
}

macro_rules! keys_of_several_parts {
    ($(($first:ident $(, $rest:ident)+))*) => {$(
        #[allow(non_snake_case, reason = "type parameters name the parts")]
        impl<$first: Key, $($rest: Key),+> Key for ($first, $($rest),+) {
            #[inline]
            fn hash(&self, seed: &Seed) -> KeyHash {
                let ($first, $($rest),+) = self;
                let hash = $first.hash(seed);
                $(let hash = seed.both(hash, $rest.hash(seed));)+
                hash
            }

            fn label(&self) -> String {
                let ($first, $($rest),+) = self;
                [$first.label(), $($rest.label()),+].join(" ")
            }
        }
    )*};
}

keys_of_several_parts!((A, B)(A, B, C)(A, B, C, D));

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let seed = Seed::new(1);
        assert_ne!(("ab", "c").hash(&seed), ("a", "bc").hash(&seed));
        assert_ne!(("a", "b", "c").hash(&seed), ("a", "b").hash(&seed));
    }

    #[test]
    fn the_key_of_a_number_is_not_the_salt_of_a_limit() {
        // If it were, key 0 of limit 0 and key 1 of limit 1 would share a counter.
        let seed = Seed::new(1);
        let salted = |key: u64, limit| key.hash(&seed).salted(Salt::new(seed.salt(limit)));
        let hashes: HashSet<_> = (0..100).flat_map(|key| (0..10).map(move |l| (key, l))).collect();
        let hashes: HashSet<_> =
            hashes.into_iter().map(|(key, limit)| salted(key, limit)).collect();
        assert_eq!(hashes.len(), 1_000);
    }

    #[test]
    fn keys_beside_others_differ_in_their_tags_alone() {
        let seed = Seed::new(1);
        let (salt, key) = (Salt::new(seed.salt(0)), 7u64.hash(&seed));
        let numbers = (0..1000).chain((1 << 31) - 1000..1 << 31);
        let hashes: HashSet<_> = numbers.map(|n| key.salted(salt.beside(n)).0 | 1).collect();
        assert_eq!(hashes.len(), 2000);
        assert!(hashes.iter().all(|hash| hash >> 32 == key.salted(salt).0 >> 32));
    }

    #[test]
    fn one_address_is_one_key_however_it_is_written() {
        let seed = Seed::new(1);
        let v4: IpAddr = "1.2.3.4".parse().unwrap();
        let mapped: IpAddr = "::ffff:1.2.3.4".parse().unwrap();
        assert_eq!(v4.hash(&seed), mapped.hash(&seed));
        assert_eq!(v4.label(), mapped.label());
    }

    #[test]
    fn a_million_small_numbers_do_not_collide() {
        let seed = Seed::new(1);
        let hashes: HashSet<_> = (0..1_000_000u64).map(|n| n.hash(&seed)).collect();
        assert_eq!(hashes.len(), 1_000_000);
        let salted: HashSet<_> =
            hashes.iter().map(|hash| hash.salted(Salt::new(KeyHash(99)))).collect();
        assert_eq!(salted.len(), 1_000_000);
    }
}

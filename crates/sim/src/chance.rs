//! Random numbers from a seed.

/// The SplitMix64 sequence of a seed.
///
/// ```
/// use tollgate_sim::Chance;
/// assert_eq!(Chance(7).next(), Chance(7).next());
/// assert_ne!(Chance(7).next(), Chance(8).next());
/// ```
#[derive(Clone, Debug)]
pub struct Chance(pub u64);

impl Chance {
    /// The next number.
    ///
    /// ```
    /// let mut chance = tollgate_sim::Chance(7);
    /// assert_ne!(chance.next(), chance.next());
    /// ```
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`; 0 if that is 0.
    ///
    /// ```
    /// assert!(tollgate_sim::Chance(7).below(3) < 3);
    /// ```
    pub const fn below(&mut self, end: u64) -> u64 {
        match self.next().checked_rem(end) {
            Some(number) => number,
            None => 0,
        }
    }

    /// Between both, inclusive.
    ///
    /// ```
    /// assert_eq!(tollgate_sim::Chance(7).between((5, 5)), 5);
    /// ```
    pub const fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True in so many of a thousand cases.
    ///
    /// ```
    /// assert!(tollgate_sim::Chance(7).per_mille(1_000));
    /// ```
    pub const fn per_mille(&mut self, part: u64) -> bool {
        self.below(1_000) < part
    }

    /// One in so many cases something, or nothing.
    pub(crate) fn sometimes<T>(&mut self, part: u64, of: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.per_mille(part).then(|| of(self))
    }

    /// How long until the next of events that come independently of each other, once in `mean`.
    ///
    /// ```
    /// let mut chance = tollgate_sim::Chance(7);
    /// let sum: u64 = (0..1_000).map(|_| chance.waiting(1_000_000)).sum();
    /// assert!((900_000_000..1_100_000_000).contains(&sum));
    /// ```
    pub fn waiting(&mut self, mean: u64) -> u64 {
        let part = ((self.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        (-part.ln() * mean as f64) as u64
    }
}

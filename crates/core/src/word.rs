//! A counter's whole state in one `u64`.

use crate::time::Tick;

/// The state of one key under one limit.
///
/// Every algorithm with a state of fixed size packs it into one word, in such a way that words
/// order by time: a word not above [`Word::at`]`(now)` is at rest, which is as good as absent,
/// whichever algorithm wrote it. So a table can tell what it may forget without knowing the
/// limits behind its slots, and a slot that passes from one key to another never shows an old
/// value again.
///
/// ```text
///   bits 63..6                        bits 5..0
///   nanoseconds of a tick             fraction of a nanosecond      buckets
///   end of the window, coarser the more bits the counts below need  windows
/// ```
///
/// ```
/// use tollgate_core::{Tick, Word};
/// assert!(Word::REST.is_at_rest(Tick::ZERO));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(u64);

impl Word {
    /// The state of a key that was never seen, or that has its whole budget back.
    ///
    /// ```
    /// use tollgate_core::{Tick, Word};
    /// assert!(Word::REST.is_at_rest(Tick::ZERO));
    /// ```
    pub const REST: Self = Self(0);

    /// Words stay below this, so that a table can use the values above for itself.
    ///
    /// ```
    /// use tollgate_core::Word;
    /// assert_eq!(Word::from_bits(Word::END), None);
    /// ```
    pub const END: u64 = 0xF << 60;

    /// The bits below a nanosecond.
    pub(crate) const FRACTION_BITS: u32 = 6;

    /// Units in a nanosecond.
    pub(crate) const PER_NANO: u64 = 1 << Self::FRACTION_BITS;

    #[inline]
    pub(crate) const fn new(bits: u64) -> Self {
        debug_assert!(bits < Self::END);
        Self(bits)
    }

    /// The word that [`Word::bits`] was taken from; `None` if no word has these bits.
    ///
    /// ```
    /// use tollgate_core::Word;
    /// assert_eq!(Word::from_bits(0), Some(Word::REST));
    /// assert_eq!(Word::from_bits(u64::MAX), None);
    /// ```
    #[inline]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits < Self::END { Some(Self(bits)) } else { None }
    }

    /// The bits, to be stored.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Word::REST.bits(), 0);
    /// ```
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The largest word that is at rest at `now`.
    ///
    /// ```
    /// use tollgate_core::{Tick, Word};
    /// let now = Tick::from_nanos(5);
    /// assert!(Word::at(now).is_at_rest(now));
    /// assert!(!Word::at(Tick::from_nanos(6)).is_at_rest(now));
    /// ```
    #[inline]
    pub const fn at(now: Tick) -> Self {
        Self(now.as_nanos() << Self::FRACTION_BITS)
    }

    /// Whether this state grants no less than no state at all would.
    ///
    /// ```
    /// use tollgate_core::{Tick, Word};
    /// assert!(Word::REST.is_at_rest(Tick::ZERO));
    /// ```
    #[inline]
    pub const fn is_at_rest(self, now: Tick) -> bool {
        self.0 <= Self::at(now).0
    }
}

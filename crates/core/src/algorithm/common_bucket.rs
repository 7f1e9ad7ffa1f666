//! Token buckets that all read each other's states.

use crate::algorithm::{Bucket, Kind, Machine, TokenBucket, Usual};
use crate::error::LimitError;
use crate::quota::Quota;

/// A token bucket whose states mean the same to every other one of its kind: the moment at which
/// the bucket is full again, in the units of [`Word`](crate::Word)s. So the limit of a key may be
/// another one for every request, and what was spent under one counts under all.
///
/// Tokens of any rate come back after a whole number of 64ths of a nanosecond, rounded up. A
/// [`Limit`](crate::Limit) is exact for most rates, and its states are its own for it.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{CommonBucket, Phase, Tick, Word};
///
/// let step = |quota: &str, word: Word, cost: u64| {
///     let bucket = CommonBucket::try_new(quota.parse()?)?.expect("a limit");
///     Ok::<_, tollgate_core::LimitError>(bucket.machine().step(word, Tick::ZERO, cost, Phase(0)))
/// };
/// let first = step("1/min burst 2", Word::REST, 1)?;
/// assert_eq!(first.decision.reset_after(), Duration::from_secs(60));
/// let second = step("1/s burst 90", first.word, 1)?;
/// assert_eq!(second.decision.remaining(), 29, "a minute is 60 of these tokens");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonBucket(Bucket);

impl CommonBucket {
    /// The one that takes longest to fill: 400 days, a token every millisecond. No state of
    /// another is beyond it.
    ///
    /// ```
    /// use tollgate_core::{CommonBucket, Phase, Tick, Word};
    /// let full = CommonBucket::LONGEST.machine().step(Word::REST, Tick::ZERO, 0, Phase(0));
    /// assert_eq!(full.decision.limit(), 400 * 86_400 * 1_000);
    /// ```
    pub const LONGEST: Self = Self(Bucket::LONGEST);

    /// The bucket of a quota; `None` if that is unlimited.
    ///
    /// ```
    /// use tollgate_core::{CommonBucket, Quota};
    /// assert_eq!(CommonBucket::try_new(Quota::unlimited())?, None);
    /// assert!(CommonBucket::try_new("1/day burst 401".parse()?).is_err(), "that takes too long");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline]
    pub fn try_new(quota: Quota) -> Result<Option<Self>, LimitError> {
        let Some(rate) = quota.rate() else { return Ok(None) };
        let tokens = rate.burst().unwrap_or_else(|| rate.count());
        Ok(Some(Self(Bucket::try_binary(quota, rate, tokens)?)))
    }

    /// The bucket ready for the most common decisions.
    ///
    /// ```
    /// # use tollgate_core::{CommonBucket, Tick};
    /// let bucket = CommonBucket::try_new("7/min".parse()?)?.expect("a limit");
    /// assert!(bucket.usual().at(Tick::ZERO, 7).is_some());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[inline(always)]
    pub const fn usual(&self) -> Usual {
        self.0.usual()
    }

    /// The bucket ready for all of them.
    ///
    /// ```
    /// # use tollgate_core::CommonBucket;
    /// let bucket = CommonBucket::try_new("7/min".parse()?)?.expect("a limit");
    /// assert!(!bucket.machine().is_unlimited());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn machine(&self) -> Machine {
        Machine(Kind::TokenBucket(TokenBucket(self.0)))
    }
}

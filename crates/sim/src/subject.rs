//! What a fleet shares.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use tollgate_core::lease::Lender;
use tollgate_core::{Anchor, Limit, LimitError};

use crate::plan::SECOND;

/// A limit that is lent, or permits; and what the simulator knows about it without asking.
///
/// ```
/// use tollgate_sim::Subject;
/// assert_eq!(Subject::bucket("1k/s burst 50")?.capacity(), 50);
/// assert_eq!(Subject::fixed("1k/s")?.to_string(), "fixed window of 1k/s");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    pub(crate) kind: Kind,
    limit: Option<Limit>,
    capacity: u64,
}

/// What an [`Audit`](crate::Audit) has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bucket,
    /// Passes in a queue, one after the other.
    Shape,
    /// Windows as wide as the period.
    Window,
    /// The same, but those of each key end at another time.
    Jittered,
    Sliding,
    Permits(NonZeroU32),
}

impl Subject {
    /// A token bucket.
    ///
    /// ```
    /// assert!(tollgate_sim::Subject::bucket("100/min").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// That of the limit, here as below.
    pub fn bucket(quota: &str) -> Result<Self, LimitError> {
        Ok(Self::of(Kind::Bucket, Limit::token_bucket(quota)?))
    }

    /// A leaky bucket that denies.
    ///
    /// ```
    /// assert!(tollgate_sim::Subject::police("100/min").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// That of the limit.
    pub fn police(quota: &str) -> Result<Self, LimitError> {
        Ok(Self::of(Kind::Bucket, Limit::leaky_police(quota)?))
    }

    /// A leaky bucket that delays. It is never lent.
    ///
    /// ```
    /// assert_eq!(tollgate_sim::Subject::shape("100/s", 9)?.capacity(), 10);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// That of the limit.
    pub fn shape(quota: &str, queue: u64) -> Result<Self, LimitError> {
        Ok(Self::of(Kind::Shape, Limit::leaky_shape(quota, queue)?))
    }

    /// A fixed window.
    ///
    /// ```
    /// assert!(tollgate_sim::Subject::fixed("100/min").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// That of the limit.
    pub fn fixed(quota: &str) -> Result<Self, LimitError> {
        Ok(Self::of(Kind::Window, Limit::fixed_window(quota)?))
    }

    /// A fixed window that ends at another time for each key.
    ///
    /// ```
    /// assert!(tollgate_sim::Subject::jittered("100/min").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// That of the limit.
    pub fn jittered(quota: &str) -> Result<Self, LimitError> {
        Ok(Self::of(Kind::Jittered, Limit::fixed_window(quota)?.jittered()?))
    }

    /// A quota for a day by the calendar, where days are as long as each other.
    ///
    /// ```
    /// assert!(tollgate_sim::Subject::daily("100/day").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// That of the limit.
    pub fn daily(quota: &str) -> Result<Self, LimitError> {
        Ok(Self::of(Kind::Window, Limit::calendar(quota, "UTC")?))
    }

    /// A sliding window counter.
    ///
    /// ```
    /// assert!(tollgate_sim::Subject::sliding("100/min").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// That of the limit.
    pub fn sliding(quota: &str) -> Result<Self, LimitError> {
        Ok(Self::of(Kind::Sliding, Limit::sliding_window(quota)?))
    }

    /// So many permits.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// assert_eq!(tollgate_sim::Subject::permits(NonZeroU32::MIN).capacity(), 1);
    /// ```
    pub fn permits(max: NonZeroU32) -> Self {
        Self { kind: Kind::Permits(max), limit: None, capacity: max.get().into() }
    }

    fn of(kind: Kind, limit: Limit) -> Self {
        let capacity = limit.capacity().unwrap_or(u64::MAX);
        Self { kind, limit: Some(limit), capacity }
    }

    /// The most that can be available at one instant.
    ///
    /// ```
    /// assert_eq!(tollgate_sim::Subject::fixed("7/s")?.capacity(), 7);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// So many in so many nanoseconds; `None` for permits.
    ///
    /// ```
    /// assert_eq!(tollgate_sim::Subject::fixed("7/s")?.rate(), Some((7, 1_000_000_000)));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn rate(&self) -> Option<(u64, u64)> {
        let rate = self.limit.as_ref()?.quota().rate()?;
        let period = u64::try_from(rate.period().as_duration().as_nanos()).ok()?;
        Some((rate.count(), period))
    }

    /// Who lends it to nodes that are so far away.
    ///
    /// ```
    /// use std::time::Duration;
    /// let subject = tollgate_sim::Subject::bucket("1k/s")?;
    /// assert!(subject.lender(Duration::ZERO).is_some_and(|lender| lender.terms().is_some()));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn lender(&self, round_trip: Duration) -> Option<Lender> {
        match (self.kind, &self.limit) {
            (Kind::Permits(max), _) => Some(Lender::of_permits(max, round_trip)),
            (_, Some(limit)) => Lender::new(limit, Anchor::default(), round_trip),
            (_, None) => None,
        }
    }

    /// Whether it is a window of which a replica that takes over believes what it knows.
    pub(crate) fn is_long_window(&self) -> bool {
        let is_window = matches!(self.kind, Kind::Window | Kind::Jittered | Kind::Sliding);
        is_window && self.rate().is_some_and(|(_, length)| length > 60 * SECOND)
    }

    pub(crate) const fn is_permits(&self) -> bool {
        matches!(self.kind, Kind::Permits(_))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.limit {
            Some(limit) => write!(f, "{limit}"),
            None => write!(f, "{} permits", self.capacity),
        }
    }
}

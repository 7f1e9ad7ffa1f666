//! A limit: an algorithm and a quota that fit together.

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;

use crate::algorithm::{
    Bucket, CalendarStart, FixedWindow, Grid, Kind, LogRule, Machine, Shape, SlidingCounter,
    TokenBucket,
};
use crate::error::LimitError;
use crate::quota::{Quota, Rate, Unit};
use crate::time::{Anchor, Tick};

/// An algorithm with its quota, checked.
///
/// Every constructor takes a [`Quota`] or the text of one.
///
/// ```
/// use tollgate_core::Limit;
///
/// let limit = Limit::token_bucket("100/min burst 20")?;
/// assert_eq!(limit.to_string(), "token bucket of 100/min burst 20");
/// let billed = Limit::billing_month("5M/month", "Europe/Berlin", 15)?;
/// assert_eq!(billed.to_string(), "calendar window of 5M/month from day 15 in Europe/Berlin");
/// assert!(Limit::fixed_window("100/min burst 20").is_err(), "a window has no burst");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    quota: Quota,
    algorithm: Algorithm,
}

#[derive(Clone, Debug, PartialEq)]
enum Algorithm {
    Unlimited,
    TokenBucket(Bucket),
    Shape(Bucket),
    Police(Bucket),
    FixedWindow { rate: Rate, jittered: bool },
    Calendar { rate: Rate, start: CalendarStart, zone: TimeZone },
    SlidingWindow(Rate),
    SlidingLog(LogRule),
}

impl Limit {
    /// The longest queue of a shaper.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::leaky_shape("1k/s", Limit::MAX_QUEUE + 1).is_err());
    /// ```
    pub const MAX_QUEUE: u64 = 1_000_000;

    /// Tokens come at a steady rate into a bucket that holds the burst, or the whole count if the
    /// quota names none; a request takes as many as it costs. The default choice.
    ///
    /// ```
    /// use tollgate_core::{Limit, Quota};
    /// let quota: Quota = "100/min".parse()?;
    /// assert_eq!(Limit::token_bucket(quota)?, Limit::token_bucket("100/min")?);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn token_bucket<Q: TryInto<Quota>>(quota: Q) -> Result<Self, LimitError>
    where
        LimitError: From<Q::Error>,
    {
        Self::try_new(quota.try_into()?, |quota, rate| {
            let tokens = rate.burst().unwrap_or_else(|| rate.count());
            Ok(Algorithm::TokenBucket(Bucket::try_new(quota, rate, tokens)?))
        })
    }

    /// Requests leave one by one at the quota's pace; up to `queue` of them wait for their turn,
    /// and are told how long. Further ones are denied.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::leaky_shape("50/s", 200).is_ok());
    /// assert!(Limit::leaky_shape("50/s", 0).is_err(), "without a queue nothing can be shaped");
    /// ```
    pub fn leaky_shape<Q: TryInto<Quota>>(quota: Q, queue: u64) -> Result<Self, LimitError>
    where
        LimitError: From<Q::Error>,
    {
        Self::try_new(quota.try_into()?, |quota, rate| {
            refuse_burst(quota, rate, "a shaping leaky bucket")?;
            if !(1..=Self::MAX_QUEUE).contains(&queue) {
                let (what, max) = ("the queue of a leaky bucket", Self::MAX_QUEUE);
                return Err(LimitError::OutOfRange { what, given: queue, min: 1, max });
            }
            Bucket::try_new(quota, rate, queue + 1).map(Algorithm::Shape).map_err(|error| {
                match error {
                    // The bucket holds the queue and one request that goes at once.
                    LimitError::BurstTooLarge { takes, max, largest, .. } => {
                        LimitError::QueueTooLong { quota, queue, takes, max, longest: largest - 1 }
                    }
                    error => error,
                }
            })
        })
    }

    /// Requests pass one by one at the quota's pace; those that come too early are denied. A
    /// burst in the quota lets so many pass early.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::leaky_police("50/s").is_ok());
    /// ```
    pub fn leaky_police<Q: TryInto<Quota>>(quota: Q) -> Result<Self, LimitError>
    where
        LimitError: From<Q::Error>,
    {
        Self::try_new(quota.try_into()?, |quota, rate| {
            Ok(Algorithm::Police(Bucket::try_new(quota, rate, rate.burst().unwrap_or(1))?))
        })
    }

    /// So many in every window; windows end when the clock on the wall, in UTC, shows a multiple
    /// of the period. Simple and cheap, and twice the limit can pass around the end of a window.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::fixed_window("1000/h").is_ok());
    /// ```
    pub fn fixed_window<Q: TryInto<Quota>>(quota: Q) -> Result<Self, LimitError>
    where
        LimitError: From<Q::Error>,
    {
        Self::try_new(quota.try_into()?, |quota, rate| {
            refuse_burst(quota, rate, FIXED_WINDOW)?;
            let max = FixedWindow::max_limit(rate.period().nanos());
            refuse_above(max, quota, rate, FIXED_WINDOW)?;
            Ok(Algorithm::FixedWindow { rate, jittered: false })
        })
    }

    /// The same fixed window, except that the windows of different keys end at different moments,
    /// so that not all clients come back at once.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::fixed_window("1000/h")?.jittered().is_ok());
    /// assert!(Limit::token_bucket("1000/h")?.jittered().is_err());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn jittered(mut self) -> Result<Self, LimitError> {
        match &mut self.algorithm {
            Algorithm::FixedWindow { jittered, .. } => *jittered = true,
            Algorithm::Unlimited => {}
            Algorithm::Calendar { .. } => return Err(LimitError::CalendarJitter),
            _ => return Err(LimitError::NothingToJitter { algorithm: self.algorithm_name() }),
        }
        Ok(self)
    }

    /// So many in every day, week (from Monday) or month of a time zone, whatever their length:
    /// leap days and daylight saving time are respected.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::calendar("10k/month", "Europe/Berlin").is_ok());
    /// assert!(Limit::calendar("10k/h", "Europe/Berlin").is_err(), "hours need no calendar");
    /// assert!(Limit::calendar("10k/day", "Europe/Atlantis").is_err());
    /// ```
    pub fn calendar<Q: TryInto<Quota>>(quota: Q, zone: &str) -> Result<Self, LimitError>
    where
        LimitError: From<Q::Error>,
    {
        Self::on_calendar(quota.try_into()?, zone, 1)
    }

    /// So many in every month that starts on the given day, or on the last day of a month that
    /// has no such day: a billing month.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::billing_month("5M/month", "UTC", 31).is_ok());
    /// assert!(Limit::billing_month("5M/month", "UTC", 32).is_err());
    /// ```
    pub fn billing_month<Q: TryInto<Quota>>(
        quota: Q,
        zone: &str,
        day: u8,
    ) -> Result<Self, LimitError>
    where
        LimitError: From<Q::Error>,
    {
        let quota = quota.try_into()?;
        match quota.rate().map(|rate| rate.period().unit()) {
            None | Some(Unit::Month) => Self::on_calendar(quota, zone, day),
            Some(_) => Err(LimitError::NotOnCalendar { quota }),
        }
    }

    /// So many in this window and the part of the last one that is less than a window ago, taken
    /// as if it had been even. Smooth, and never far from the truth.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::sliding_window("1000/h").is_ok());
    /// ```
    pub fn sliding_window<Q: TryInto<Quota>>(quota: Q) -> Result<Self, LimitError>
    where
        LimitError: From<Q::Error>,
    {
        Self::try_new(quota.try_into()?, |quota, rate| {
            refuse_burst(quota, rate, SLIDING_WINDOW)?;
            let max = SlidingCounter::max_limit(rate.period().nanos());
            refuse_above(max, quota, rate, SLIDING_WINDOW)?;
            Ok(Algorithm::SlidingWindow(rate))
        })
    }

    /// So many in any window whatsoever, exactly. Every request of the last window is remembered,
    /// which costs memory: for logins, payments and the like.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::sliding_log("10/15min").is_ok());
    /// ```
    pub fn sliding_log<Q: TryInto<Quota>>(quota: Q) -> Result<Self, LimitError>
    where
        LimitError: From<Q::Error>,
    {
        Self::try_new(quota.try_into()?, |quota, rate| {
            refuse_burst(quota, rate, SLIDING_LOG)?;
            if rate.count() > LogRule::MAX_LIMIT {
                return Err(LimitError::LogTooLong { quota, max: LogRule::MAX_LIMIT });
            }
            let (limit, window) = (rate.count(), rate.period().nanos());
            Ok(Algorithm::SlidingLog(LogRule { limit, window }))
        })
    }

    /// The quota.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert_eq!(Limit::sliding_window("5/s")?.quota().to_string(), "5/s");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// Whether requests are given a delay instead of a denial: their order then matters.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::leaky_shape("5/s", 10)?.shapes());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn shapes(&self) -> bool {
        matches!(self.algorithm, Algorithm::Shape(_))
    }

    /// How many requests may wait for their turn, if this limit shapes.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert_eq!(Limit::leaky_shape("5/s", 10)?.queue(), Some(10));
    /// assert_eq!(Limit::token_bucket("5/s")?.queue(), None);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn queue(&self) -> Option<u64> {
        match &self.algorithm {
            Algorithm::Shape(bucket) => Some(bucket.tokens() - 1),
            _ => None,
        }
    }

    /// The most that can be available at one instant, which decisions call their
    /// [`limit`](crate::Decision::limit). `None` without a limit.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert_eq!(Limit::token_bucket("100/min burst 20")?.capacity(), Some(20));
    /// assert_eq!(Limit::fixed_window("100/min")?.capacity(), Some(100));
    /// assert_eq!(Limit::token_bucket("unlimited")?.capacity(), None);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn capacity(&self) -> Option<u64> {
        match &self.algorithm {
            Algorithm::Unlimited => None,
            Algorithm::TokenBucket(bucket)
            | Algorithm::Shape(bucket)
            | Algorithm::Police(bucket) => Some(bucket.tokens()),
            Algorithm::FixedWindow { rate, .. }
            | Algorithm::Calendar { rate, .. }
            | Algorithm::SlidingWindow(rate) => Some(rate.count()),
            Algorithm::SlidingLog(rule) => Some(rule.limit),
        }
    }

    /// Whether its windows are those of the calendar, and so not all of the same length.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::calendar("10k/month", "Europe/Berlin")?.follows_calendar());
    /// assert!(!Limit::fixed_window("10k/month")?.follows_calendar());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn follows_calendar(&self) -> bool {
        matches!(self.algorithm, Algorithm::Calendar { .. })
    }

    /// The machine that keeps this limit with one [`Word`](crate::Word) per key, its windows
    /// aligned to the clock on the wall by `anchor`. `None` for a sliding log, whose state does
    /// not fit: see [`log_rule`](Self::log_rule).
    ///
    /// ```
    /// use tollgate_core::{Anchor, Limit};
    /// assert!(Limit::token_bucket("5/s")?.machine(Anchor::default()).is_some());
    /// assert!(Limit::sliding_log("5/s")?.machine(Anchor::default()).is_none());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn machine(&self, anchor: Anchor) -> Option<Machine> {
        Some(Machine(match &self.algorithm {
            Algorithm::Unlimited => Kind::Unlimited,
            Algorithm::TokenBucket(bucket) | Algorithm::Police(bucket) => {
                Kind::TokenBucket(TokenBucket(*bucket))
            }
            Algorithm::Shape(bucket) => Kind::Shape(Shape(*bucket)),
            Algorithm::FixedWindow { rate, jittered } => {
                let grid = Grid::regular(rate.period().nanos(), anchor, *jittered);
                Kind::FixedWindow(FixedWindow::new(grid, rate.count()))
            }
            Algorithm::Calendar { rate, start, zone } => {
                let grid = Grid::calendar(*start, zone, anchor);
                Kind::FixedWindow(FixedWindow::new(grid, rate.count()))
            }
            Algorithm::SlidingWindow(rate) => {
                let length = rate.period().nanos();
                let grid = Grid::regular(length, anchor, false);
                Kind::SlidingCounter(SlidingCounter::new(grid, length, rate.count()))
            }
            Algorithm::SlidingLog(_) => return None,
        }))
    }

    /// What a [`Log`](crate::Log) is held to, if this limit is a sliding log.
    ///
    /// ```
    /// use tollgate_core::Limit;
    /// assert!(Limit::sliding_log("5/s")?.log_rule().is_some());
    /// assert!(Limit::token_bucket("5/s")?.log_rule().is_none());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn log_rule(&self) -> Option<LogRule> {
        match self.algorithm {
            Algorithm::SlidingLog(rule) => Some(rule),
            _ => None,
        }
    }

    /// How long it takes until all of the limit has come back; `None` for those that are not lent.
    pub(crate) fn refill_time(&self) -> Option<Duration> {
        Some(Duration::from_nanos(match &self.algorithm {
            Algorithm::TokenBucket(bucket) | Algorithm::Police(bucket) => {
                bucket.rested_by(Tick::ZERO).as_nanos()
            }
            Algorithm::FixedWindow { rate, .. }
            | Algorithm::Calendar { rate, .. }
            | Algorithm::SlidingWindow(rate) => rate.period().nanos(),
            Algorithm::Unlimited | Algorithm::Shape(_) | Algorithm::SlidingLog(_) => return None,
        }))
    }

    fn try_new(
        quota: Quota,
        algorithm: impl FnOnce(Quota, Rate) -> Result<Algorithm, LimitError>,
    ) -> Result<Self, LimitError> {
        let algorithm = match quota.rate() {
            Some(rate) => algorithm(quota, rate)?,
            None => Algorithm::Unlimited,
        };
        Ok(Self { quota, algorithm })
    }

    fn on_calendar(quota: Quota, zone: &str, day: u8) -> Result<Self, LimitError> {
        if !(1..=31).contains(&day) {
            return Err(LimitError::NoSuchDay { day });
        }
        let unknown = |_| LimitError::UnknownTimeZone { name: zone.into() };
        let zone = TimeZone::get(zone).map_err(unknown)?;
        Self::try_new(quota, |quota, rate| {
            refuse_burst(quota, rate, "a calendar window")?;
            let start = match (rate.period().times(), rate.period().unit()) {
                (1, Unit::Day) => CalendarStart::Day,
                (1, Unit::Week) => CalendarStart::Week,
                (1, Unit::Month) => CalendarStart::Month { day },
                _ => return Err(LimitError::NotOnCalendar { quota }),
            };
            Ok(Algorithm::Calendar { rate, start, zone })
        })
    }

    const fn algorithm_name(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Unlimited => "no limit",
            Algorithm::TokenBucket(_) => "token bucket",
            Algorithm::Shape(_) => "shaping leaky bucket",
            Algorithm::Police(_) => "policing leaky bucket",
            Algorithm::FixedWindow { jittered: false, .. } => "fixed window",
            Algorithm::FixedWindow { jittered: true, .. } => "jittered fixed window",
            Algorithm::Calendar { .. } => "calendar window",
            Algorithm::SlidingWindow(_) => "sliding window",
            Algorithm::SlidingLog(_) => "sliding log",
        }
    }
}

/// All that makes the limit what it is: limits that differ read differently.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(self.algorithm, Algorithm::Unlimited) {
            return f.pad("unlimited");
        }
        write!(f, "{} of {}", self.algorithm_name(), self.quota)?;
        match &self.algorithm {
            Algorithm::Shape(bucket) => write!(f, " with a queue of {}", bucket.tokens() - 1),
            Algorithm::Calendar { start, zone, .. } => {
                if let CalendarStart::Month { day: day @ 2.. } = start {
                    write!(f, " from day {day}")?;
                }
                write!(f, " in {}", zone.iana_name().unwrap_or("UTC"))
            }
            _ => Ok(()),
        }
    }
}

macro_rules! limits_from_quotas {
    ($($quota:ty)*) => {$(
        /// A quota alone means a token bucket.
        impl TryFrom<$quota> for Limit {
            type Error = LimitError;

            fn try_from(quota: $quota) -> Result<Self, LimitError> {
                Self::token_bucket(quota)
            }
        }
    )*};
}

limits_from_quotas!(Quota &str String &String);

impl From<Infallible> for LimitError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

fn refuse_burst(quota: Quota, rate: Rate, algorithm: &'static str) -> Result<(), LimitError> {
    match rate.burst() {
        Some(_) => Err(LimitError::NoBurst { quota, algorithm }),
        None => Ok(()),
    }
}

fn refuse_above(
    max: u64,
    quota: Quota,
    rate: Rate,
    algorithm: &'static str,
) -> Result<(), LimitError> {
    match rate.count() <= max {
        true => Ok(()),
        false => Err(LimitError::WindowTooFull { quota, algorithm, period: rate.period(), max }),
    }
}

const FIXED_WINDOW: &str = "a fixed window";
const SLIDING_WINDOW: &str = "a sliding window";
const SLIDING_LOG: &str = "a sliding log";

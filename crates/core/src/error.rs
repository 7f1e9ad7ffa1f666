//! What can be wrong with a quota or a limit, each with what is allowed instead.

use std::time::Duration;

use crate::quota::{Period, Quota};

/// Why a text or a number is no quota. The caller is at fault; nothing was changed.
///
/// ```
/// use tollgate_core::{Quota, QuotaError};
/// let error = "100 per minute".parse::<Quota>().unwrap_err();
/// assert!(error.to_string().contains("100/min"), "it says what to write instead");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuotaError {
    /// There is no `/`.
    #[error(
        "`{text}` is not a quota; write a count and a period such as `100/min`, `5k/day` or \
         `10/15min`, or `unlimited`"
    )]
    NotAQuota {
        /// What was given.
        text: String,
    },
    /// The count or the burst is not a whole number.
    #[error(
        "`{text}` is not a count; write a whole number, with `k`, `M` or `G` for thousands, \
         millions or billions if you like"
    )]
    NotACount {
        /// What was given.
        text: String,
    },
    /// The count is 0.
    #[error("a quota allows at least 1; to let nothing pass, deny in front of the limiter")]
    ZeroCount,
    /// The count or the burst is larger than [`Quota::MAX_COUNT`].
    #[error("a count or burst is at most {max}; for no limit, write `unlimited`")]
    CountTooLarge {
        /// The largest count.
        max: u64,
    },
    /// The unit of the period is unknown.
    #[error("`{text}` is not a unit of time; write one of ms, s, min, h, day, week, month")]
    UnknownUnit {
        /// What was given.
        text: String,
    },
    /// The period is too short or too long.
    #[error(
        "`{text}` is too short or too long; a period lasts from {min:?} to {} days",
        max.as_secs() / 86_400
    )]
    PeriodOutOfRange {
        /// What was given.
        text: String,
        /// The shortest period.
        min: Duration,
        /// The longest period.
        max: Duration,
    },
    /// The burst is 0.
    #[error("a burst is at least 1, the number that may pass at one instant")]
    ZeroBurst,
    /// A burst was given to no limit.
    #[error("`unlimited` has no burst; drop one of the two")]
    UnlimitedBurst,
}

/// Why an algorithm cannot keep a quota. The caller is at fault; nothing was changed.
///
/// ```
/// use tollgate_core::{Limit, LimitError};
/// let error = Limit::sliding_log("1G/s").unwrap_err();
/// assert!(matches!(error, LimitError::LogTooLong { .. }));
/// assert!(error.to_string().contains("sliding window"), "it names the remedy");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The quota itself is wrong.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// More than one request per nanosecond.
    #[error("`{quota}` is more than one per nanosecond; the most is `1G/s`, or write `unlimited`")]
    TooFast {
        /// The quota.
        quota: Quota,
    },
    /// Filling the bucket would take too long.
    #[error(
        "the burst of `{quota}` would take {} days to refill, and the most is {} days; lower the \
         burst to {largest} or less",
        whole_days(*takes), whole_days(*max)
    )]
    BurstTooLarge {
        /// The quota.
        quota: Quota,
        /// How long the bucket takes to fill.
        takes: Duration,
        /// The longest it may take.
        max: Duration,
        /// The largest burst that this rate can refill in that time.
        largest: u64,
    },
    /// A shaper with so long a queue would take too long to come to rest.
    #[error(
        "`{quota}` with a queue of {queue} would take {} days to come to rest, and the most is {} \
         days: that is a queue of {longest}",
        whole_days(*takes), whole_days(*max)
    )]
    QueueTooLong {
        /// The quota.
        quota: Quota,
        /// The queue.
        queue: u64,
        /// How long it takes until a full queue is empty, and the next can go at once.
        takes: Duration,
        /// The longest it may take.
        max: Duration,
        /// The longest queue at this quota; 0 if even one that waits would wait for too long.
        longest: u64,
    },
    /// The algorithm has no bucket.
    #[error(
        "`{quota}` names a burst, but {algorithm} has no bucket; drop the burst or use a token \
         bucket"
    )]
    NoBurst {
        /// The quota.
        quota: Quota,
        /// The algorithm.
        algorithm: &'static str,
    },
    /// The window cannot hold so many.
    #[error(
        "{algorithm} counts to {max} per {period} at the most, and `{quota}` is more; lower the \
         count, or write `unlimited`"
    )]
    WindowTooFull {
        /// The quota.
        quota: Quota,
        /// The algorithm.
        algorithm: &'static str,
        /// The window.
        period: Period,
        /// The largest count.
        max: u64,
    },
    /// A sliding log of so many entries per key.
    #[error(
        "a sliding log keeps every request of `{quota}` in memory, {max} at the most; use a \
         sliding window counter"
    )]
    LogTooLong {
        /// The quota.
        quota: Quota,
        /// The longest log.
        max: u64,
    },
    /// The calendar knows one day, one week, one month.
    #[error("`{quota}` does not follow the calendar; write a count per day, week or month")]
    NotOnCalendar {
        /// The quota.
        quota: Quota,
    },
    /// No such day of the month.
    #[error("a month cannot start on day {day}; write 1 to 31")]
    NoSuchDay {
        /// The day.
        day: u8,
    },
    /// The database of time zones does not know the name.
    #[error("`{name}` is not a time zone; write a name such as `UTC` or `Europe/Berlin`")]
    UnknownTimeZone {
        /// What was given.
        name: String,
    },
    /// Windows of the calendar begin for everybody at once.
    #[error("a calendar window begins at the same moment for everybody: it cannot be jittered")]
    CalendarJitter,
    /// Only windows have a beginning to move.
    #[error("only a fixed window can be jittered; {algorithm} has no common beginning")]
    NothingToJitter {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// The queue or the number of permits is out of range.
    #[error("{what} is {given}; it must be from {min} to {max}")]
    OutOfRange {
        /// What is out of range.
        what: &'static str,
        /// What was given.
        given: u64,
        /// The smallest value.
        min: u64,
        /// The largest value.
        max: u64,
    },
}

/// Rounded up: whatever is above a limit of whole days looks so.
fn whole_days(span: Duration) -> u128 {
    span.as_nanos().div_ceil(86_400 * 1_000_000_000)
}

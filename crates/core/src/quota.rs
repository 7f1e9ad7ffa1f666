//! How much, per how long: numbers that were checked once and cannot be wrong afterwards.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use crate::error::QuotaError;

/// So many per so long, or no limit at all.
///
/// A quota that exists is valid: the count is between 1 and [`Quota::MAX_COUNT`], the period
/// between [`Period::MIN`] and [`Period::MAX`], a burst at least 1. It is written and read as
/// people say it.
///
/// ```
/// use tollgate_core::Quota;
///
/// for text in ["100/min", "10/15min", "5k/day", "10M/month", "unlimited", "100/min burst 20"] {
///     let quota: Quota = text.parse()?;
///     assert_eq!(quota.to_string(), text);
/// }
/// assert!("0/s".parse::<Quota>().is_err());
/// # Ok::<(), tollgate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota(Option<Rate>);

/// The numbers of a quota that does limit: see [`Quota::rate`].
///
/// ```
/// use tollgate_core::{Period, Quota};
/// let rate = Quota::new(100, Period::MINUTE)?.rate().expect("it limits");
/// assert_eq!((rate.count(), rate.period(), rate.burst()), (100, Period::MINUTE, None));
/// # Ok::<(), tollgate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    count: NonZeroU64,
    period: Period,
    burst: Option<NonZeroU64>,
}

impl Quota {
    /// The largest count a quota can have.
    ///
    /// ```
    /// use tollgate_core::{Period, Quota};
    /// assert!(Quota::new(Quota::MAX_COUNT + 1, Period::DAY).is_err());
    /// ```
    pub const MAX_COUNT: u64 = 1_000_000_000_000_000;

    /// `count` per `period`.
    ///
    /// ```
    /// use tollgate_core::{Period, Quota};
    /// assert_eq!(Quota::new(5, Period::SECOND)?.to_string(), "5/s");
    /// assert!(Quota::new(0, Period::SECOND).is_err());
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    pub fn new(count: u64, period: Period) -> Result<Self, QuotaError> {
        let count = checked_count(count)?;
        Ok(Self(Some(Rate { count, period, burst: None })))
    }

    /// No limit.
    ///
    /// ```
    /// use tollgate_core::Quota;
    /// assert_eq!(Quota::unlimited().to_string(), "unlimited");
    /// assert_eq!(Quota::unlimited().rate(), None);
    /// ```
    pub const fn unlimited() -> Self {
        Self(None)
    }

    /// The same quota with a bucket that holds `burst`: the most that may pass at one instant.
    /// Without it, a bucket holds the whole count.
    ///
    /// ```
    /// use tollgate_core::Quota;
    /// let quota = "100/min".parse::<Quota>()?.with_burst(20)?;
    /// assert_eq!(quota.to_string(), "100/min burst 20");
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    pub fn with_burst(self, burst: u64) -> Result<Self, QuotaError> {
        let Some(rate) = self.0 else { return Err(QuotaError::UnlimitedBurst) };
        let burst = NonZeroU64::new(burst).ok_or(QuotaError::ZeroBurst)?;
        if burst.get() > Self::MAX_COUNT {
            return Err(QuotaError::CountTooLarge { max: Self::MAX_COUNT });
        }
        Ok(Self(Some(Rate { burst: Some(burst), ..rate })))
    }

    /// Reads a count as quotas write it: a whole number, with `k`, `M` or `G` for thousands,
    /// millions or billions. It may be 0, or more than a quota takes.
    ///
    /// ```
    /// use tollgate_core::Quota;
    /// assert_eq!(Quota::parse_count("10k")?, 10_000);
    /// assert!(Quota::parse_count("1.5k").is_err());
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    pub fn parse_count(text: &str) -> Result<u64, QuotaError> {
        let (digits, factor) = SUFFIXES
            .iter()
            .find_map(|(suffix, factor)| Some((text.strip_suffix(*suffix)?, *factor)))
            .unwrap_or((text, 1));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(QuotaError::NotACount { text: text.into() });
        }
        let too_large = QuotaError::CountTooLarge { max: Self::MAX_COUNT };
        let Ok(number) = digits.parse::<u64>() else { return Err(too_large) };
        number.checked_mul(factor).ok_or(too_large)
    }

    /// The numbers, or `None` if there is no limit.
    ///
    /// ```
    /// use tollgate_core::Quota;
    /// let quota: Quota = "10k/h".parse()?;
    /// assert_eq!(quota.rate().map(|rate| rate.count()), Some(10_000));
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    pub const fn rate(&self) -> Option<Rate> {
        self.0
    }
}

impl Rate {
    /// How many.
    ///
    /// ```
    /// # use tollgate_core::Quota;
    /// assert_eq!("7/s".parse::<Quota>()?.rate().map(|r| r.count()), Some(7));
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    pub const fn count(&self) -> u64 {
        self.count.get()
    }

    /// Per how long.
    ///
    /// ```
    /// # use tollgate_core::{Period, Quota};
    /// assert_eq!("7/s".parse::<Quota>()?.rate().map(|r| r.period()), Some(Period::SECOND));
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    pub const fn period(&self) -> Period {
        self.period
    }

    /// What a bucket holds, if the quota says so.
    ///
    /// ```
    /// # use tollgate_core::Quota;
    /// assert_eq!("7/s burst 2".parse::<Quota>()?.rate().and_then(|r| r.burst()), Some(2));
    /// # Ok::<(), tollgate_core::QuotaError>(())
    /// ```
    pub fn burst(&self) -> Option<u64> {
        self.burst.map(NonZeroU64::get)
    }
}

/// A length of time as a quota names it: a number of units.
///
/// A month in a period lasts 30 days; a window that follows the calendar knows better.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Period, Unit};
/// let quarter = Period::new(15, Unit::Minute)?;
/// assert_eq!(quarter.as_duration(), Duration::from_secs(900));
/// assert_eq!(quarter.to_string(), "15min");
/// # Ok::<(), tollgate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Period {
    times: u32,
    unit: Unit,
}

impl Period {
    /// One second.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Period::SECOND.to_string(), "s");
    /// ```
    pub const SECOND: Self = Self { times: 1, unit: Unit::Second };
    /// One minute.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Period::MINUTE.to_string(), "min");
    /// ```
    pub const MINUTE: Self = Self { times: 1, unit: Unit::Minute };
    /// One hour.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Period::HOUR.to_string(), "h");
    /// ```
    pub const HOUR: Self = Self { times: 1, unit: Unit::Hour };
    /// One day of 24 hours.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Period::DAY.to_string(), "day");
    /// ```
    pub const DAY: Self = Self { times: 1, unit: Unit::Day };
    /// One week.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Period::WEEK.to_string(), "week");
    /// ```
    pub const WEEK: Self = Self { times: 1, unit: Unit::Week };
    /// One month, 30 days where no calendar is asked.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Period::MONTH.to_string(), "month");
    /// ```
    pub const MONTH: Self = Self { times: 1, unit: Unit::Month };

    /// The shortest period.
    ///
    /// ```
    /// use tollgate_core::{Period, Unit};
    /// assert_eq!(Period::new(1, Unit::Millisecond).map(Period::as_duration), Ok(Period::MIN));
    /// ```
    pub const MIN: Duration = Duration::from_millis(1);
    /// The longest period.
    ///
    /// ```
    /// use tollgate_core::{Period, Unit};
    /// assert_eq!(Period::new(366, Unit::Day).map(Period::as_duration), Ok(Period::MAX));
    /// ```
    pub const MAX: Duration = Duration::from_secs(366 * 86_400);

    /// `times` units, between [`Period::MIN`] and [`Period::MAX`].
    ///
    /// ```
    /// use tollgate_core::{Period, Unit};
    /// assert!(Period::new(0, Unit::Second).is_err());
    /// assert!(Period::new(13, Unit::Month).is_err());
    /// ```
    pub fn new(times: u32, unit: Unit) -> Result<Self, QuotaError> {
        let nanos = u64::from(times).saturating_mul(unit.nanos());
        let span = Duration::from_nanos(nanos);
        if span < Self::MIN || span > Self::MAX {
            return Err(Self::out_of_range(format!("{times}{unit}")));
        }
        Ok(Self { times, unit })
    }

    /// How many units.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Period::DAY.times(), 1);
    /// ```
    pub const fn times(self) -> u32 {
        self.times
    }

    /// Of which unit.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Period::DAY.unit(), tollgate_core::Unit::Day);
    /// ```
    pub const fn unit(self) -> Unit {
        self.unit
    }

    /// The length in time.
    ///
    /// ```
    /// use std::time::Duration;
    /// assert_eq!(tollgate_core::Period::MINUTE.as_duration(), Duration::from_secs(60));
    /// ```
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    fn out_of_range(text: String) -> QuotaError {
        QuotaError::PeriodOutOfRange { text, min: Self::MIN, max: Self::MAX }
    }

    pub(crate) const fn nanos(self) -> u64 {
        // At most 366 days, which fits: checked where periods are made.
        self.times as u64 * self.unit.nanos()
    }
}

/// The units periods are counted in.
///
/// ```
/// assert_eq!(tollgate_core::Unit::Minute.to_string(), "min");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// `ms`
    Millisecond,
    /// `s`
    Second,
    /// `min`
    Minute,
    /// `h`
    Hour,
    /// `day`
    Day,
    /// `week`
    Week,
    /// `month`, 30 days
    Month,
}

impl Unit {
    const fn nanos(self) -> u64 {
        const MILLISECOND: u64 = 1_000_000;
        const DAY: u64 = 86_400_000 * MILLISECOND;
        match self {
            Self::Millisecond => MILLISECOND,
            Self::Second => 1_000 * MILLISECOND,
            Self::Minute => 60_000 * MILLISECOND,
            Self::Hour => 3_600_000 * MILLISECOND,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 30 * DAY,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Millisecond => "ms",
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}

impl FromStr for Unit {
    type Err = QuotaError;

    fn from_str(text: &str) -> Result<Self, QuotaError> {
        Ok(match text {
            "ms" => Self::Millisecond,
            "s" | "sec" | "second" | "seconds" => Self::Second,
            "min" | "minute" | "minutes" => Self::Minute,
            "h" | "hour" | "hours" => Self::Hour,
            "d" | "day" | "days" => Self::Day,
            "week" | "weeks" => Self::Week,
            "month" | "months" => Self::Month,
            _ => return Err(QuotaError::UnknownUnit { text: text.into() }),
        })
    }
}

impl FromStr for Period {
    type Err = QuotaError;

    fn from_str(text: &str) -> Result<Self, QuotaError> {
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let times = match number {
            "" => 1,
            _ => number.parse().map_err(|_| Self::out_of_range(text.into()))?,
        };
        Self::new(times, unit.trim().parse()?)
    }
}

impl FromStr for Quota {
    type Err = QuotaError;

    fn from_str(text: &str) -> Result<Self, QuotaError> {
        let text = text.trim();
        if text == "unlimited" {
            return Ok(Self::unlimited());
        }
        let (quota, burst) = match text.split_once(" burst ") {
            Some((quota, burst)) => (quota, Some(burst)),
            None => (text, None),
        };
        let Some((count, period)) = quota.split_once('/') else {
            return Err(QuotaError::NotAQuota { text: text.into() });
        };
        let quota = Self::new(Self::parse_count(count.trim())?, period.parse()?)?;
        match burst {
            Some(burst) => quota.with_burst(Self::parse_count(burst.trim())?),
            None => Ok(quota),
        }
    }
}

impl TryFrom<&str> for Quota {
    type Error = QuotaError;

    fn try_from(text: &str) -> Result<Self, QuotaError> {
        text.parse()
    }
}

impl TryFrom<String> for Quota {
    type Error = QuotaError;

    fn try_from(text: String) -> Result<Self, QuotaError> {
        text.parse()
    }
}

impl TryFrom<&String> for Quota {
    type Error = QuotaError;

    fn try_from(text: &String) -> Result<Self, QuotaError> {
        text.parse()
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times {
            1 => write!(f, "{}", self.unit),
            times => write!(f, "{times}{}", self.unit),
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(rate) = self.0 else { return f.pad("unlimited") };
        write!(f, "{}/{}", Short(rate.count()), rate.period)?;
        match rate.burst() {
            Some(burst) => write!(f, " burst {}", Short(burst)),
            None => Ok(()),
        }
    }
}

/// A count as people write it: `5k` for 5,000.
struct Short(u64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SUFFIXES.iter().find(|(_, factor)| self.0.is_multiple_of(*factor)) {
            Some((suffix, factor)) => write!(f, "{}{suffix}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

fn checked_count(count: u64) -> Result<NonZeroU64, QuotaError> {
    let count = NonZeroU64::new(count).ok_or(QuotaError::ZeroCount)?;
    match count.get() <= Quota::MAX_COUNT {
        true => Ok(count),
        false => Err(QuotaError::CountTooLarge { max: Quota::MAX_COUNT }),
    }
}

/// Largest first, so that 5,000,000 prints as `5M` and not as `5000k`.
const SUFFIXES: [(char, u64); 3] = [('G', 1_000_000_000), ('M', 1_000_000), ('k', 1_000)];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        text.parse::<Quota>().expect_err(text).to_string()
    }

    #[test]
    fn refuses_what_is_not_a_quota_and_says_why() {
        assert!(error("0/s").contains("at least 1"));
        assert!(error("-5/s").contains("whole number"));
        assert!(error("1.5/s").contains("whole number"));
        assert!(error("NaN/s").contains("whole number"));
        assert!(error("inf/min").contains("whole number"));
        assert!(error("99999999999999999999/s").contains("at most"));
        assert!(error("18446744073709551615G/s").contains("at most"));
        assert!(error("100").contains("100/min"));
        assert!(error("").contains("100/min"));
        assert!(error("100/fortnight").contains("fortnight"));
        assert!(error("100/0s").contains("`0s`"));
        assert!(error("100/99999999999s").contains("`99999999999s`"));
        assert!(error("1/13month").contains("`13month` is too short or too long"));
        assert!(error("100/min burst 0").contains("burst"));
        assert!(error("100/min burst").contains("burst"));
        assert!(error("unlimited burst 5").contains("unlimited"));
    }

    #[test]
    fn reads_other_spellings_of_units() {
        for (text, printed) in [
            ("5/second", "5/s"),
            ("5/1d", "5/day"),
            ("5000/min", "5k/min"),
            (" 5 / 2hours ", "5/2h"),
        ] {
            assert_eq!(text.parse::<Quota>().unwrap().to_string(), printed, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            count in 1..=Quota::MAX_COUNT,
            times in 1u32..=400,
            unit in prop::sample::select(vec![
                Unit::Millisecond, Unit::Second, Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month,
            ]),
            burst in prop::option::of(1..=Quota::MAX_COUNT),
        ) {
            let Ok(period) = Period::new(times, unit) else { return Ok(()) };
            let mut quota = Quota::new(count, period).unwrap();
            if let Some(burst) = burst {
                quota = quota.with_burst(burst).unwrap();
            }
            prop_assert_eq!(quota.to_string().parse::<Quota>(), Ok(quota));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            let _ = text.parse::<Quota>();
        }
    }
}

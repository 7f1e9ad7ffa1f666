//! The only place that reads a clock: monotonic time for measuring, wall time for peers that ask
//! for it and for dating reports.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Measures the time since it was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "measuring time is what this program is for")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    #[inline]
    #[expect(clippy::disallowed_methods, reason = "measuring time is what this program is for")]
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Wall time, for limiters that want it passed in with every decision.
#[inline]
#[expect(clippy::disallowed_methods, reason = "throttlecrab's callers read this clock per call")]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// Today as `2026-01-31`, in UTC.
pub(crate) fn today() -> String {
    let seconds = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    civil_date(seconds / 86_400)
}

/// Turns days since 1970-01-01 into a date, counting years from March so that the leap day is the
/// last day of a year and needs no special case.
fn civil_date(days_since_epoch: u64) -> String {
    let days = days_since_epoch + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        assert_eq!(civil_date(0), "1970-01-01");
        assert_eq!(civil_date(11_016), "2000-02-29");
        assert_eq!(civil_date(20_819), "2027-01-01");
    }
}

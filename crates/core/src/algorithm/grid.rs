//! Where windows end: on a regular grid, or on the calendar of a time zone.

use std::sync::Arc;

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::algorithm::Phase;
use crate::time::{Anchor, Tick};

/// The ends of windows, in nanoseconds of a monotonic clock.
#[derive(Clone, Debug)]
pub(crate) enum Grid {
    /// A window every `length`, the same for all keys or moved by the key's phase.
    Regular {
        length: Divisor,
        /// How far into a window tick 0 is.
        offset: u64,
        jittered: bool,
    },
    /// The ends of all windows from tick 0 to beyond [`Tick::MAX`].
    Calendar { ends: Arc<[u64]> },
}

/// Which moments of a calendar begin a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CalendarStart {
    /// Midnight.
    Day,
    /// Midnight before Monday.
    Week,
    /// Midnight before this day of the month, or before the last day of a shorter month.
    Month { day: u8 },
}

impl Grid {
    /// Windows of `length` that end when the clock on the wall, in UTC, is a multiple of it.
    pub(crate) fn regular(length: u64, anchor: Anchor, jittered: bool) -> Self {
        // The remainder of a division by a u64 is one.
        let offset = anchor.origin().rem_euclid(i128::from(length)) as u64;
        Self::Regular { length: Divisor::new(length), offset, jittered }
    }

    /// The windows of a calendar. Days begin at midnight in the time zone, or, where the clocks
    /// are put forward over midnight, at the first moment of the day.
    pub(crate) fn calendar(start: CalendarStart, zone: &TimeZone, anchor: Anchor) -> Self {
        let origin = anchor.origin();
        let mut begin = start.on_or_before(date_at(origin, zone));
        let mut ends = Vec::new();
        while let Some(end) = start.after(begin).and_then(|next| {
            begin = next;
            midnight(next, zone)
        }) {
            // Ends are in ascending order, and one at or before tick 0 ends no window of ours.
            match u64::try_from(end - origin) {
                Ok(end) if end > 0 => ends.push(end),
                _ => continue,
            }
            if ends.last().is_some_and(|end| *end > Tick::MAX.as_nanos()) {
                break;
            }
        }
        Self::Calendar { ends: ends.into() }
    }

    /// The end of the window that `now` lies in: the first one after it.
    #[inline(always)]
    pub(crate) fn end(&self, now: u64, phase: Phase) -> u64 {
        match self {
            Self::Regular { length, .. } => now + (length.value - self.since_begin(now, phase)),
            Self::Calendar { ends } => end_after(ends, now),
        }
    }

    /// When the windows that `now` lies in are over for all keys.
    pub(crate) fn last_end(&self, now: u64) -> u64 {
        match self {
            Self::Regular { length, jittered: true, .. } => now + length.value,
            _ => self.end(now, Phase::default()),
        }
    }

    /// The last end of a window at or before `moment`.
    pub(crate) fn end_at_or_before(&self, moment: u64, phase: Phase) -> u64 {
        match self {
            Self::Regular { .. } => moment.saturating_sub(self.since_begin(moment, phase)),
            Self::Calendar { ends } => {
                let next = ends.partition_point(|end| *end <= moment);
                next.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0)
            }
        }
    }

    #[inline(always)]
    fn since_begin(&self, now: u64, phase: Phase) -> u64 {
        let Self::Regular { length, offset, jittered } = self else { return 0 };
        let moved = if *jittered { phase.0 % length.value } else { 0 };
        length.remainder(now + offset + (length.value - moved))
    }
}

/// The first end after `now`. Not inlined: a search takes its time anyway, and regular windows do
/// without its instructions.
#[inline(never)]
fn end_after(ends: &[u64], now: u64) -> u64 {
    let next = ends.partition_point(|end| *end <= now);
    ends.get(next).copied().unwrap_or(Tick::MAX.as_nanos() + 1)
}

/// A number to divide by again and again: a multiplication takes the place of the division.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    value: u64,
    /// 2 to the power of `BITS + log`, divided by `value`, rounded up.
    inverse: u64,
    /// The logarithm of `value`, rounded up.
    log: u32,
}

impl Divisor {
    /// Dividends are below 2 to this power: 292 years in nanoseconds.
    const BITS: u32 = 63;

    /// The inverse exceeds `2^(BITS + log) / value` by less than `2^log / value`, and so the
    /// quotient of a number below `2^BITS` by less than `1 / value`: never enough to reach the
    /// next whole number.
    pub(crate) fn new(value: u64) -> Self {
        let log = value.next_power_of_two().ilog2();
        // Less than 2^(BITS + 1), because the value is more than half of 2^log.
        let inverse = (1u128 << (Self::BITS + log)).div_ceil(u128::from(value)) as u64;
        Self { value, inverse, log }
    }

    /// The quotient of any number; of a large one, by a real division.
    #[inline]
    pub(crate) fn quotient(&self, number: u128) -> u64 {
        match u64::try_from(number) {
            Ok(number) if number < 1 << Self::BITS => self.small_quotient(number),
            Ok(number) => number / self.value,
            Err(_) => (number / u128::from(self.value)) as u64,
        }
    }

    #[inline(always)]
    fn remainder(&self, number: u64) -> u64 {
        debug_assert!(number < 1 << Self::BITS);
        number - self.small_quotient(number) * self.value
    }

    /// The quotient of a number below `2^BITS`.
    #[inline(always)]
    pub(super) fn small_quotient(&self, number: u64) -> u64 {
        // Moved up so that the whole part of the product is its upper half.
        let product = u128::from(number << (64 - Self::BITS)) * u128::from(self.inverse);
        (product >> 64) as u64 >> self.log
    }
}

/// A number to divide by with a shift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PowerOfTwo {
    log: u32,
    less_one: u64,
}

impl PowerOfTwo {
    pub(crate) const fn new(log: u32) -> Self {
        Self { log, less_one: (1 << log) - 1 }
    }

    /// The number in units of this power, rounded up.
    #[inline(always)]
    pub(crate) const fn in_units(self, number: u64) -> u64 {
        (number + self.less_one) >> self.log
    }

    #[inline]
    pub(crate) const fn times(self, number: u64) -> u64 {
        number << self.log
    }
}

impl CalendarStart {
    fn on_or_before(self, date: Date) -> Date {
        match self {
            Self::Day => date,
            Self::Week => {
                let back = i64::from(date.weekday().to_monday_zero_offset());
                date.checked_sub(back.days()).unwrap_or(date)
            }
            Self::Month { day } => {
                let this = month_start(date, day);
                match this <= date {
                    true => this,
                    false => month_start(last_month(date), day),
                }
            }
        }
    }

    fn after(self, begin: Date) -> Option<Date> {
        match self {
            Self::Day => begin.tomorrow().ok(),
            Self::Week => begin.checked_add(1.week()).ok(),
            Self::Month { day } => {
                Some(month_start(begin.first_of_month().checked_add(1.month()).ok()?, day))
            }
        }
    }
}

/// The given day of the month that `date` lies in, or its last day.
fn month_start(date: Date, day: u8) -> Date {
    let first = date.first_of_month();
    let day = i64::from(day).clamp(1, i64::from(date.days_in_month()));
    first.checked_add((day - 1).days()).unwrap_or(first)
}

fn last_month(date: Date) -> Date {
    date.first_of_month().yesterday().unwrap_or(date)
}

fn date_at(wall: i128, zone: &TimeZone) -> Date {
    // Wall time ends in 2262, well within the calendar.
    let moment = jiff::Timestamp::from_nanosecond(wall).unwrap_or_default();
    zone.to_datetime(moment).date()
}

fn midnight(date: Date, zone: &TimeZone) -> Option<i128> {
    Some(date.to_zoned(zone.clone()).ok()?.timestamp().as_nanosecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_divisor_leaves_what_division_leaves(
            value in 1..=366 * 86_400_000_000_000u64,
            number in 0..1u64 << Divisor::BITS,
            near in -1i64..=1,
        ) {
            // Beside random numbers, those next to multiples, where an error would show.
            let multiple = (number / value * value).saturating_add_signed(near);
            for number in [number, multiple.min((1 << Divisor::BITS) - 1)] {
                let divisor = Divisor::new(value);
                prop_assert_eq!(divisor.remainder(number), number % value);
                prop_assert_eq!(divisor.quotient(u128::from(number)), number / value);
            }
        }
    }
}

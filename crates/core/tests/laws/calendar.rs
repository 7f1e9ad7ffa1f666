//! Windows that follow the calendar: daylight saving time, leap days, months of all lengths, time
//! zones of all kinds. And windows that follow a key's phase.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use tollgate_core::{Anchor, Limit, Phase, Tick, Wall, Word};

use crate::model::{self, Starts};
use crate::subject::{Kind, Subject};
use crate::trace;

/// A limit, in a zone, at a moment that the clocks there show.
struct Moment {
    limit: Limit,
    zone: TimeZone,
    at: Timestamp,
}

impl Moment {
    fn new(quota: &str, zone: &str, civil: &str) -> Self {
        Self::of(Limit::calendar(quota, zone).unwrap(), zone, civil)
    }

    fn of(limit: Limit, zone: &str, civil: &str) -> Self {
        let zone = TimeZone::get(zone).unwrap();
        let at = civil.parse::<DateTime>().unwrap().to_zoned(zone.clone()).unwrap().timestamp();
        Self { limit, zone, at }
    }

    /// How long it takes until the window ends, by counters that were made `ago`.
    fn time_to_end(&self, ago: Duration) -> Duration {
        let made = self.at - SignedDuration::try_from(ago).unwrap();
        let wall = Wall::from_unix_nanos(u64::try_from(made.as_nanosecond()).unwrap());
        let tick = Tick::from_nanos(77);
        let machine = self.limit.machine(Anchor { tick, wall }).unwrap();
        let step = machine.step(Word::REST, tick.after(ago), 1, Phase(123));
        step.decision.reset_after()
    }

    /// What the clocks show when the window ends, whenever the counters were made.
    fn end(&self) -> String {
        let ends = [0, 1, 3_600, 40 * 86_400, 400 * 86_400].map(|ago| {
            let left = self.time_to_end(Duration::from_secs(ago));
            self.at + SignedDuration::try_from(left).unwrap()
        });
        assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
        self.zone.to_datetime(ends[0]).strftime("%Y-%m-%d %H:%M").to_string()
    }

    fn hours(&self) -> u64 {
        self.time_to_end(Duration::ZERO).as_secs() / 3_600
    }
}

#[test]
fn days_are_as_long_as_daylight_saving_time_makes_them() {
    for (zone, begin, hours) in [
        ("Europe/Berlin", "2026-03-28T00:00", 24),
        ("Europe/Berlin", "2026-03-29T00:00", 23),
        ("Europe/Berlin", "2026-10-25T00:00", 25),
        ("Europe/Berlin", "2026-10-26T00:00", 24),
        ("America/New_York", "2026-03-08T00:00", 23),
        ("Antarctica/Troll", "2026-03-29T00:00", 22),
        ("UTC", "2026-03-29T00:00", 24),
    ] {
        assert_eq!(Moment::new("5/day", zone, begin).hours(), hours, "{begin} in {zone}");
    }
}

/// The clocks go from 23:59 to 01:00: the day before ends there, and the next lasts 23 hours.
#[test]
fn a_day_without_midnight_begins_at_its_first_moment() {
    for (zone, before, day) in [
        ("Africa/Cairo", "2026-04-23T00:00", "2026-04-24"),
        ("Asia/Beirut", "2026-03-28T00:00", "2026-03-29"),
        ("America/Sao_Paulo", "2018-11-03T00:00", "2018-11-04"),
    ] {
        let moment = Moment::new("5/day", zone, before);
        assert_eq!((moment.hours(), moment.end()), (24, format!("{day} 01:00")), "{zone}");
        let moment = Moment::new("5/day", zone, &format!("{day}T01:00"));
        assert_eq!(moment.hours(), 23, "{zone}");
    }
}

/// The clocks go from 00:59 back to 00:00, or from 23:59 back to 23:00: the day that has an hour
/// twice is longer by it, and begins once.
#[test]
fn a_day_with_two_midnights_begins_at_the_first() {
    let moment = Moment::new("5/day", "America/Havana", "2026-10-31T12:00");
    assert_eq!((moment.hours(), moment.end()), (12, "2026-11-01 00:00".into()));
    assert_eq!(Moment::new("5/day", "America/Havana", "2026-11-01T00:00").hours(), 25);
    assert_eq!(Moment::new("5/day", "America/Sao_Paulo", "2018-02-17T00:00").hours(), 25);
}

#[test]
fn a_day_that_never_was_is_no_window() {
    let moment = Moment::new("5/day", "Pacific/Apia", "2011-12-29T12:00");
    assert_eq!((moment.hours(), moment.end()), (12, "2011-12-31 00:00".into()));
    let week = Moment::new("5/week", "Pacific/Apia", "2011-12-26T00:00");
    assert_eq!(week.hours(), 6 * 24);
}

#[test]
fn months_are_as_long_as_they_are() {
    for (at, end) in [
        ("2026-01-15T08:00", "2026-02-01 00:00"),
        ("2026-02-01T00:00", "2026-03-01 00:00"),
        ("2026-02-28T23:59", "2026-03-01 00:00"),
        ("2028-02-28T23:59", "2028-03-01 00:00"),
        ("2028-02-29T00:00", "2028-03-01 00:00"),
        ("2026-04-30T12:00", "2026-05-01 00:00"),
        ("2026-12-31T23:59:59.999999999", "2027-01-01 00:00"),
    ] {
        assert_eq!(Moment::new("5/month", "Europe/Berlin", at).end(), end, "{at}");
    }
    let month = |civil| Moment::new("5/month", "UTC", civil).hours() / 24;
    assert_eq!(
        ["2026-02-01", "2028-02-01", "2026-04-01", "2026-07-01"].map(month),
        [28, 29, 30, 31]
    );
}

#[test]
fn a_leap_day_is_a_day() {
    let day = |at| Moment::new("5/day", "UTC", at).end();
    assert_eq!(day("2028-02-28T10:00"), "2028-02-29 00:00");
    assert_eq!(day("2028-02-29T10:00"), "2028-03-01 00:00");
    assert_eq!(day("2026-02-28T10:00"), "2026-03-01 00:00");
}

#[test]
fn weeks_begin_on_monday() {
    let week = |at| Moment::new("5/week", "Europe/Berlin", at).end();
    assert_eq!(week("2026-11-15T23:59"), "2026-11-16 00:00", "a Sunday");
    assert_eq!(week("2026-11-16T00:00"), "2026-11-23 00:00", "a Monday");
    assert_eq!(week("2026-12-30T12:00"), "2027-01-04 00:00", "over the end of a year");
    assert_eq!(Moment::new("5/week", "Europe/Berlin", "2026-03-23").hours(), 7 * 24 - 1);
}

#[test]
fn a_billing_month_starts_on_its_day_or_the_last_of_a_shorter_month() {
    let end = |day, at| {
        let limit = Limit::billing_month("5/month", "Europe/Berlin", day).unwrap();
        Moment::of(limit, "Europe/Berlin", at).end()
    };
    assert_eq!(end(31, "2026-01-30T12:00"), "2026-01-31 00:00");
    assert_eq!(end(31, "2026-01-31T12:00"), "2026-02-28 00:00");
    assert_eq!(end(31, "2026-02-28T12:00"), "2026-03-31 00:00");
    assert_eq!(end(31, "2026-03-31T12:00"), "2026-04-30 00:00");
    assert_eq!(end(30, "2028-02-28T12:00"), "2028-02-29 00:00");
    assert_eq!(end(29, "2026-02-27T12:00"), "2026-02-28 00:00");
    assert_eq!(end(15, "2026-12-20T12:00"), "2027-01-15 00:00");
    assert_eq!(end(1, "2026-12-20T12:00"), "2027-01-01 00:00");
}

#[test]
fn zones_of_odd_offsets_have_their_own_midnight() {
    for (zone, utc) in [
        ("Asia/Kathmandu", "18:15"),
        ("Asia/Kolkata", "18:30"),
        ("Pacific/Chatham", "11:15"),
        ("Pacific/Kiritimati", "10:00"),
    ] {
        let moment = Moment::new("5/day", zone, "2026-07-01T12:00");
        assert_eq!(moment.end(), "2026-07-02 00:00");
        let left = SignedDuration::try_from(moment.time_to_end(Duration::ZERO)).unwrap();
        let end = TimeZone::UTC.to_datetime(moment.at + left);
        assert_eq!(end.strftime("%H:%M").to_string(), utc, "{zone}");
    }
}

#[test]
fn a_calendar_window_counts_and_begins_anew() {
    let limit = Limit::calendar("3/day", "Europe/Berlin").unwrap();
    let moment = Moment::of(limit, "Europe/Berlin", "2026-10-25T22:00");
    let wall = Wall::from_unix_nanos(u64::try_from(moment.at.as_nanosecond()).unwrap());
    let machine = moment.limit.machine(Anchor { tick: Tick::ZERO, wall }).unwrap();
    let hour = |hours: u64| Tick::ZERO.after(Duration::from_secs(hours * 3_600));
    let spent = machine.step(Word::REST, hour(0), 3, Phase(0));
    assert_eq!(spent.decision.remaining(), 0);
    let denied = machine.step(spent.word, hour(1), 1, Phase(0)).decision;
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(3_600)));
    assert_eq!(machine.step(spent.word, hour(2), 1, Phase(0)).decision.remaining(), 2);
}

#[test]
fn jitter_spreads_the_ends_of_windows() {
    let subject = Subject::plain(Kind::Fixed, "5/h");
    let limit = subject.limit.jittered().unwrap();
    let machine = limit.machine(Anchor::default()).unwrap();
    let end = |phase| {
        let step = machine.step(Word::REST, Tick::ZERO, 1, Phase(phase));
        step.decision.reset_after()
    };
    // Phases are hashes: these are spread as hashes are.
    let phases = (1..=1_000u64).map(|key| key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let ends: Vec<_> = phases.map(end).collect();
    assert!(ends.iter().all(|end| *end <= Duration::from_secs(3_600) && !end.is_zero()));
    assert!(ends.iter().collect::<BTreeSet<_>>().len() > 990, "hardly any two at once");
    for minute in 0..60 {
        let inside =
            ends.iter().filter(|end| (end.as_secs().saturating_sub(1)) / 60 == minute).count();
        assert!((1..60).contains(&inside), "{inside} end in minute {minute}");
    }
    assert_eq!(end(7), end(7 + 3_600_000_000_000), "a phase is a moment of the window");
}

#[test]
fn regular_windows_end_when_the_wall_clock_is_round() {
    let limit = Limit::fixed_window("5/15min").unwrap();
    let moment = Moment::of(limit, "UTC", "2026-11-15T06:20:55");
    assert_eq!(moment.end(), "2026-11-15 06:30");
    let limit = Limit::sliding_window("5/h").unwrap();
    // A sliding window forgets a window later.
    assert_eq!(Moment::of(limit, "UTC", "2026-11-15T06:20:55").end(), "2026-11-15 08:00");
}

proptest! {
    #![proptest_config(trace::cases(2))]

    /// In every zone of the database, at any time, as found by looking at the clock again and
    /// again.
    #[test]
    fn the_calendar_is_right_everywhere(
        zone in prop::sample::select(zones()),
        second in 0..4_102_444_800i64,
        starts in starts(),
        ago in 0..300 * 86_400i64,
    ) {
        window_ends_as_found(&zone, second, starts, ago)?;
    }

    /// Around the moments at which clocks are put forward or back.
    #[test]
    fn the_calendar_is_right_when_clocks_change(
        zone in prop::sample::select(zones()),
        after in 86_400 * 365..4_102_444_800i64,
        away in -40 * 3_600..40 * 3_600i64,
        starts in starts(),
        ago in 0..40 * 86_400i64,
    ) {
        let after = Timestamp::from_second(after).unwrap();
        let change = TimeZone::get(&zone).unwrap().preceding(after).next().map(|change| change.timestamp());
        if let Some(change) = change.filter(|change| change.as_second() > 86_400 * 100) {
            window_ends_as_found(&zone, change.as_second() + away, starts, ago)?;
        }
    }
}

fn window_ends_as_found(
    zone: &str,
    second: i64,
    starts: Starts,
    ago: i64,
) -> Result<(), TestCaseError> {
    let limit = match starts {
        Starts::Day => Limit::calendar("5/day", zone),
        Starts::Monday => Limit::calendar("5/week", zone),
        Starts::DayOfMonth(day) => Limit::billing_month("5/month", zone, day.cast_unsigned()),
    };
    let at = Timestamp::from_second(second).unwrap();
    let moment = Moment { limit: limit.unwrap(), zone: TimeZone::get(zone).unwrap(), at };
    let (_, end) = model::window_around(at.as_nanosecond(), starts, &moment.zone);
    let ago = Duration::from_secs(ago.min(second).unsigned_abs());
    let left = i128::try_from(moment.time_to_end(ago).as_nanos()).unwrap();
    prop_assert_eq!(at.as_nanosecond() + left, end);
    Ok(())
}

fn starts() -> impl Strategy<Value = Starts> {
    prop_oneof![
        3 => Just(Starts::Day),
        1 => Just(Starts::Monday),
        1 => (1..=31i8).prop_map(Starts::DayOfMonth),
    ]
}

fn zones() -> Vec<String> {
    jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect()
}

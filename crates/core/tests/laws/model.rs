//! What is right, said slowly: no packing, no shortcuts, all admissions kept.
//!
//! Models are asked in the order of time. They are not told what the machines do.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::fraction::Fraction;
use crate::subject::{Kind, Subject};

pub(crate) trait Model {
    /// How much would be allowed now.
    fn remaining(&mut self, now: u64) -> u64;

    fn spend(&mut self, now: u64, cost: u64);
}

pub(crate) fn of(subject: &Subject) -> Box<dyn Model> {
    if subject.is_bucket() {
        let rate = Fraction::kept(subject.rate());
        return Box::new(Bucket::new(rate, capacity(subject)));
    }
    let (origin, length) = (subject.origin(), i128::from(subject.period()));
    let shift = match subject.kind {
        Kind::Jittered => i128::from(subject.phase.0) % length,
        _ => 0,
    };
    let window: Box<dyn Fn(u64) -> i128> = match &subject.kind {
        Kind::Calendar { zone } => {
            let starts = match subject.rate().period().unit() {
                tollgate_core::Unit::Day => Starts::Day,
                tollgate_core::Unit::Week => Starts::Monday,
                _ => Starts::DayOfMonth(1),
            };
            calendar(starts, zone, origin)
        }
        Kind::Billing { zone, day } => {
            calendar(Starts::DayOfMonth(i8::try_from(*day).expect("1 to 31")), zone, origin)
        }
        Kind::Sliding => return Box::new(Sliding::new(origin, length, subject.rate().count())),
        _ => Box::new(move |tick| (i128::from(tick) + origin - shift).div_euclid(length)),
    };
    Box::new(Window { window, limit: subject.rate().count(), admitted: Vec::new() })
}

/// What the limit holds, from its text alone.
fn capacity(subject: &Subject) -> u64 {
    let rate = subject.rate();
    match subject.kind {
        Kind::Shape { queue } => queue + 1,
        Kind::Police => rate.burst().unwrap_or(1),
        _ => rate.burst().unwrap_or_else(|| rate.count()),
    }
}

/// Tokens drip into a bucket, and what does not fit is lost.
pub(crate) struct Bucket {
    rate: Fraction,
    /// Both in parts of a token, `rate.nanos` of which make one.
    tokens: u128,
    capacity: u128,
    at: u64,
}

impl Bucket {
    pub(crate) fn new(rate: Fraction, capacity: u64) -> Self {
        let capacity = u128::from(capacity) * rate.nanos;
        Self { rate, tokens: capacity, capacity, at: 0 }
    }
}

impl Model for Bucket {
    fn remaining(&mut self, now: u64) -> u64 {
        let dripped = u128::from(now - self.at) * self.rate.tokens;
        self.tokens = self.capacity.min(self.tokens + dripped);
        self.at = now;
        u64::try_from(self.tokens / self.rate.nanos).expect("at most the capacity")
    }

    fn spend(&mut self, now: u64, cost: u64) {
        assert!(cost <= self.remaining(now), "the bucket has no {cost} tokens");
        self.tokens -= u128::from(cost) * self.rate.nanos;
    }
}

/// So many per window, whatever a window is.
struct Window {
    /// Tells windows apart.
    window: Box<dyn Fn(u64) -> i128>,
    limit: u64,
    admitted: Vec<(i128, u64)>,
}

impl Model for Window {
    fn remaining(&mut self, now: u64) -> u64 {
        let window = (self.window)(now);
        self.limit - sum(&self.admitted, window)
    }

    fn spend(&mut self, now: u64, cost: u64) {
        assert!(cost <= self.remaining(now), "the window has no room for {cost}");
        self.admitted.push(((self.window)(now), cost));
    }
}

/// This window, and as much of the last as lies within a window's length.
struct Sliding {
    origin: i128,
    length: i128,
    limit: u64,
    admitted: Vec<(i128, u64)>,
}

impl Sliding {
    fn new(origin: i128, length: i128, limit: u64) -> Self {
        Self { origin, length, limit, admitted: Vec::new() }
    }
}

impl Model for Sliding {
    fn remaining(&mut self, now: u64) -> u64 {
        let wall = i128::from(now) + self.origin;
        let window = wall.div_euclid(self.length);
        let elapsed = wall - window * self.length;
        let last = i128::from(sum(&self.admitted, window - 1));
        let this = i128::from(sum(&self.admitted, window));
        // Tokens times the length, so that nothing is rounded.
        let estimate = last * (self.length - elapsed) + this * self.length;
        let free = (i128::from(self.limit) * self.length - estimate).max(0);
        u64::try_from(free / self.length).expect("at most the limit")
    }

    fn spend(&mut self, now: u64, cost: u64) {
        assert!(cost <= self.remaining(now), "the estimate leaves no room for {cost}");
        let window = (i128::from(now) + self.origin).div_euclid(self.length);
        self.admitted.push((window, cost));
    }
}

fn sum(admitted: &[(i128, u64)], window: i128) -> u64 {
    admitted.iter().filter(|(of, _)| *of == window).map(|(_, cost)| cost).sum()
}

/// Which days begin a window.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Starts {
    Day,
    Monday,
    DayOfMonth(i8),
}

fn calendar(starts: Starts, zone: &str, origin: i128) -> Box<dyn Fn(u64) -> i128> {
    let zone = TimeZone::get(zone).expect(zone);
    let known = std::cell::RefCell::new(Vec::<(i128, i128)>::new());
    Box::new(move |tick| {
        let wall = origin + i128::from(tick);
        let mut known = known.borrow_mut();
        if let Some((begin, _)) = known.iter().find(|(begin, end)| (*begin..*end).contains(&wall)) {
            return *begin;
        }
        let (begin, end) = window_around(wall, starts, &zone);
        known.push((begin, end));
        begin
    })
}

/// The window that a moment lies in, by trying the days around it.
pub(crate) fn window_around(wall: i128, starts: Starts, zone: &TimeZone) -> (i128, i128) {
    let moment = Timestamp::from_nanosecond(wall).expect("within the calendar");
    let date = zone.to_datetime(moment).date();
    let around = match starts {
        Starts::Day => 3,
        Starts::Monday => 10,
        Starts::DayOfMonth(_) => 40,
    };
    let days = (-around..=around).map(|days| date.checked_add(days.days()).expect("a date"));
    let begins = days.filter(|day| starts.begins_on(*day)).map(|day| first_moment(day, zone));
    let begins: Vec<_> = begins.collect();
    let begin = begins.iter().copied().filter(|begin| *begin <= wall).max();
    let end = begins.iter().copied().filter(|begin| *begin > wall).min();
    (begin.expect("some day before"), end.expect("some day after"))
}

impl Starts {
    fn begins_on(self, date: Date) -> bool {
        match self {
            Self::Day => true,
            Self::Monday => date.weekday() == Weekday::Monday,
            Self::DayOfMonth(day) => date.day() == day.min(date.days_in_month()),
        }
    }
}

/// The first second at which clocks in the zone show this date, or a later one if they never do:
/// found by looking at the clock again and again.
fn first_moment(date: Date, zone: &TimeZone) -> i128 {
    let shows = |moment: Timestamp| zone.to_datetime(moment).date() >= date;
    let utc = date.to_zoned(TimeZone::UTC).expect("a date").timestamp();
    let mut moment = utc - SignedDuration::from_hours(27);
    for stride in
        [SignedDuration::from_mins(30), SignedDuration::from_secs(60), SignedDuration::from_secs(1)]
    {
        while !shows(moment + stride) {
            moment += stride;
        }
    }
    (moment + SignedDuration::from_secs(1)).as_nanosecond()
}

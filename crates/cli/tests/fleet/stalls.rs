//! When a machine stood still: what was late only then says nothing about whoever was late.

use std::time::{Duration, Instant};

/// Times at which something did not happen that should have, one after the other.
#[derive(Default)]
pub(crate) struct Stalls(Vec<(Instant, Instant)>);

/// What is shorter than this is no stall.
const SHORTEST: Duration = Duration::from_millis(5);

impl Stalls {
    /// Takes note of one, if it is long enough to be one. It begins after those before.
    pub(crate) fn note(&mut self, begin: Instant, end: Instant) {
        if end.saturating_duration_since(begin) >= SHORTEST {
            self.0.push((begin, end));
        }
    }

    /// The longest of those that reach into the time between two moments.
    pub(crate) fn longest(&self, begin: Instant, end: Instant) -> Duration {
        let reaching = self.0.iter().filter(|stall| stall.0 <= end && stall.1 >= begin);
        reaching.map(|(begin, end)| *end - *begin).max().unwrap_or_default()
    }

    pub(crate) fn sum(&self) -> Duration {
        self.0.iter().map(|(begin, end)| *end - *begin).sum()
    }

    /// How much of the time between two moments is in them.
    pub(crate) fn within(&self, begin: Instant, end: Instant) -> Duration {
        let part = |stall: &(Instant, Instant)| {
            stall.1.min(end).saturating_duration_since(stall.0.max(begin))
        };
        self.0.iter().map(part).sum()
    }
}

#[test]
fn only_what_overlaps_counts() {
    let begin = crate::now();
    let at = |millis: u64| begin + Duration::from_millis(millis);
    let mut stalls = Stalls::default();
    for (from, until) in [(10, 30), (40, 44), (50, 90)] {
        stalls.note(at(from), at(until));
    }
    let within = |from: u64, until: u64| stalls.within(at(from), at(until)).as_millis() as u64;
    assert_eq!([within(0, 100), within(20, 60), within(30, 50), within(60, 70)], [60, 20, 0, 10]);
    let longest = |from: u64, until: u64| stalls.longest(at(from), at(until)).as_millis() as u64;
    assert_eq!([longest(0, 100), longest(0, 49), longest(31, 49), longest(91, 99)], [40, 20, 0, 0]);
    assert_eq!(stalls.sum(), Duration::from_millis(60));
}

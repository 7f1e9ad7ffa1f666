//! When whoever calls has given up, as gRPC says it.

use std::time::Duration;

use http::HeaderMap;
use tollgate::{Clock, Tick, Wait};

/// The header in which a caller says how long it waits.
pub(super) const TIMEOUT: &str = "grpc-timeout";

/// How long a caller waits for the answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    /// When the call came.
    since: Tick,
    time: Duration,
}

impl Deadline {
    /// That of a call that came then.
    pub(super) const fn new(since: Tick, time: Duration) -> Self {
        Self { since, time }
    }

    /// That of a call with these headers, if they name one.
    pub(crate) fn of(headers: &HeaderMap, clock: &impl Clock) -> Option<Self> {
        let time = timeout(headers.get(TIMEOUT)?.as_bytes())?;
        Some(Self::new(clock.now(), time))
    }

    /// Until when a store is waited for. The rest is for the way here and back: an answer that comes when
    /// the caller has given up is none.
    fn of_store(self) -> Tick {
        let kept = (self.time / 4).max(LEAST_KEPT);
        self.since.after(self.time.saturating_sub(kept))
    }

    /// What is left of it, as the header has it. No store is waited for as long as the most that is said.
    pub(super) fn left(self, now: Tick) -> String {
        let micros = self.time.saturating_sub(now.since(self.since)).as_micros();
        format!("{}u", micros.min(MOST.into()))
    }
}

/// The same wait, for no longer than such a caller has.
pub(crate) fn within(deadline: Option<Deadline>, wait: Wait) -> Wait {
    match deadline {
        Some(deadline) => wait.until(deadline.of_store()),
        None => wait,
    }
}

/// The time that such a header says; `None` if it says nothing that can be understood.
pub(super) fn timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > DIGITS {
        return None;
    }
    let number = digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// So much of the time is not for the store, however short it is: timers may be a millisecond late.
const LEAST_KEPT: Duration = Duration::from_millis(2);

/// So many digits there are at most, and the number that they can say.
const DIGITS: usize = 8;
const MOST: u32 = 99_999_999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_units_are_understood() {
        let cases = [
            ("2H", Duration::from_secs(7200)),
            ("3M", Duration::from_secs(180)),
            ("99999999S", Duration::from_secs(99_999_999)),
            ("20m", Duration::from_millis(20)),
            ("00000020m", Duration::from_millis(20)),
            ("250u", Duration::from_micros(250)),
            ("7n", Duration::from_nanos(7)),
            ("0n", Duration::ZERO),
        ];
        for (value, time) in cases {
            assert_eq!(timeout(value.as_bytes()), Some(time), "{value}");
        }
    }

    #[test]
    fn what_is_malformed_says_nothing() {
        let wrong = ["", "m", "20", "20 m", " 20m", "20m ", "-20m", "+20m", "2.5S", "20s", "20h"];
        for value in wrong.into_iter().chain(["100000000m", "0x10m", "٢m", "20mS"]) {
            assert_eq!(timeout(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn a_quarter_of_the_time_is_not_for_the_store() {
        let came = Tick::from_nanos(1_000_000_000);
        let deadline = Deadline::new(came, Duration::from_millis(20));
        assert_eq!(deadline.of_store(), came.after(Duration::from_millis(15)));
        let longest = Deadline::new(came, Duration::MAX);
        assert_eq!(longest.of_store(), Tick::MAX);
        for (time, of_store) in [(8, 6), (5, 3), (2, 0), (1, 0)] {
            let [time, of_store] = [time, of_store].map(Duration::from_millis);
            assert_eq!(Deadline::new(came, time).of_store(), came.after(of_store), "{time:?}");
        }
    }

    #[test]
    fn what_is_left_is_said_as_it_is_heard() {
        let came = Tick::from_nanos(1_000_000_000);
        let left = |time, passed| Deadline::new(came, time).left(came.after(passed));
        let (milli, hour) = (Duration::from_millis(1), Duration::from_secs(3600));
        assert_eq!(left(milli * 20, milli * 5), "15000u");
        assert_eq!(left(milli * 20, milli * 25), "0u");
        assert_eq!(left(hour, milli), "99999999u");
        let heard = |time| timeout(left(time, Duration::ZERO).as_bytes());
        assert_eq!(heard(milli * 20), Some(milli * 20));
    }
}

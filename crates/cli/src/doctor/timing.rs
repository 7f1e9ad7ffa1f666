//! How long a question takes, and whether both clocks agree.

use std::time::Duration;

use tollgate::{Clock as _, SharingConfig, SystemClock, Wall};
use tollgate_store::{RedisVisit, StoreError};

use super::diagnosis::{Diagnosis, millis, why};
use crate::flags::Doctor;

/// What the settings of nodes say about the way to the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// How long a node waits. Half of that is late to it.
    pub(super) timeout: Duration,
    pub(super) round_trip: Duration,
}

impl Expected {
    pub(super) fn of(flags: &Doctor) -> Self {
        let usual = SharingConfig::default();
        Self {
            timeout: flags.timeout.unwrap_or(usual.timeout),
            round_trip: flags.round_trip.unwrap_or(usual.round_trip),
        }
    }
}

/// One question for the time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    round_trip: Duration,
    /// Nanoseconds by which the server's clock is ahead, if the way back took as long as the way
    /// there.
    ahead: i64,
}

/// Asks for the time, as a PING that the store has to be allowed anyway.
pub(super) async fn ask(visit: &RedisVisit, expected: &Expected) -> Vec<Diagnosis> {
    match samples(visit).await {
        Ok(samples) => vec![round_trip(&samples, expected), clock(&samples)],
        Err(error) => {
            let message = format!("it does not tell the time ({})", why(&error));
            vec![Diagnosis::problem("round-trip", message, super::reach::NEEDED)]
        }
    }
}

async fn samples(visit: &RedisVisit) -> Result<Vec<Sample>, StoreError> {
    let clock = SystemClock::new();
    // The first one finds cold caches on both sides.
    visit.ask(&["TIME"]).await?;
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let (begin, ours) = (clock.now(), clock.wall());
        let answer = visit.ask(&["TIME"]).await?;
        let round_trip = clock.now().since(begin);
        let number = |at: usize| answer.get(at).and_then(|part| part.parse::<u64>().ok());
        let (Some(seconds), Some(micros)) = (number(0), number(1)) else {
            return Err(StoreError::Refused { reason: format!("TIME is {answer:?}") });
        };
        let nanos = seconds.saturating_mul(1_000_000_000).saturating_add(micros * 1_000);
        samples.push(Sample::new(ours, Wall::from_unix_nanos(nanos), round_trip));
    }
    Ok(samples)
}

impl Sample {
    fn new(ours: Wall, theirs: Wall, round_trip: Duration) -> Self {
        let nanos = |wall: Wall| i64::try_from(wall.as_unix_nanos()).unwrap_or(i64::MAX);
        let half = i64::try_from(round_trip.as_nanos() / 2).unwrap_or(i64::MAX);
        let ahead = nanos(theirs).saturating_sub(nanos(ours)).saturating_sub(half);
        Self { round_trip, ahead }
    }
}

/// By what nodes do: they leave a store alone of which more than one answer in three is late.
fn round_trip(samples: &[Sample], expected: &Expected) -> Diagnosis {
    const CODE: &str = "round-trip";
    let mut spans: Vec<_> = samples.iter().map(|sample| sample.round_trip).collect();
    spans.sort_unstable();
    let median = spans.get(spans.len() / 2).copied().unwrap_or_default();
    let worst = spans.last().copied().unwrap_or_default();
    let too_long = expected.timeout / 2;
    let late = spans.iter().filter(|span| **span > too_long).count();
    let figures = format!(
        "{} in the middle, {} at worst, of {}; longer than {} is late, half of `store.timeout`",
        millis(median),
        millis(worst),
        spans.len(),
        millis(too_long),
    );
    let is_far = median > expected.round_trip;
    let far = format!("`store.round_trip` ({})", millis(expected.round_trip));
    let and_far = if is_far { format!(" and {far}") } else { String::new() };
    let remedy = format!(
        "have the store nearer, or less busy (SLOWLOG GET, INFO commandstats), or raise \
         `store.timeout`{and_far} on all nodes: requests wait longer then. `--timeout` and \
         `--round-trip` say here what they are"
    );
    if late * 3 > spans.len() {
        let message =
            format!("{figures}: nodes leave it alone, and decide by the rule's policy instead");
        Diagnosis::problem(CODE, message, remedy)
    } else if late > 0 || median > too_long / 2 {
        let message = format!("{figures}: a little slower, and nodes leave it alone");
        Diagnosis::warning(CODE, message, remedy)
    } else if is_far {
        let message = format!(
            "{figures}; it is farther away than `store.round_trip` says, {}: limits hold, but what is \
             lent comes back later than it should, and less passes",
            millis(expected.round_trip),
        );
        let remedy = "set `store.round_trip` to as much, the same on all nodes, and name it here: \
                      `--round-trip`";
        Diagnosis::warning(CODE, message, remedy)
    } else {
        Diagnosis::ok(CODE, figures)
    }
}

/// By the fastest question: the less it took, the less can its ways have differed.
fn clock(samples: &[Sample]) -> Diagnosis {
    const CODE: &str = "clock";
    let Some(best) = samples.iter().min_by_key(|sample| sample.round_trip) else {
        return Diagnosis::unknown(CODE, "it does not tell the time", "");
    };
    let skew = Duration::from_nanos(best.ahead.unsigned_abs());
    let side = if best.ahead < 0 { "behind" } else { "ahead of" };
    let figures = format!(
        "the store's clock is {} {side} this machine's, give or take {}",
        millis(skew),
        millis(best.round_trip / 2),
    );
    if skew <= MOST_SKEW {
        return Diagnosis::ok(CODE, figures);
    }
    Diagnosis::warning(
        CODE,
        format!(
            "{figures}: the store counts by its own, so limits hold, and times told to clients, \
             windows of the calendar and what is lent end by so much too early or too late here"
        ),
        "set both clocks, by NTP: `chronyc tracking` or `timedatectl` tells which is wrong",
    )
}

/// So often it is asked.
const SAMPLES: usize = 20;

/// Clocks that are kept by NTP are nearer.
const MOST_SKEW: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Grade;

    fn took(millis: u64) -> Sample {
        Sample { round_trip: Duration::from_millis(millis), ahead: 0 }
    }

    #[test]
    fn slow_stores_are_warned_of_before_nodes_leave_them_alone() {
        let (timeout, near) = (Duration::from_millis(50), Duration::from_millis(15));
        let found = |samples: &[u64]| {
            let samples: Vec<_> = samples.iter().copied().map(took).collect();
            round_trip(&samples, &Expected { timeout, round_trip: near })
        };
        let grade = |samples: &[u64]| found(samples).grade;
        assert_eq!(grade(&[1, 12, 25]), Grade::Ok);
        assert_eq!(grade(&[1, 1, 26]), Grade::Warning, "one of three is what they bear");
        assert_eq!(grade(&[13, 13, 13]), Grade::Warning, "it is near to it");
        assert_eq!(grade(&[26, 26, 1]), Grade::Problem);
        assert_eq!(grade(&[1, 1, 1, 26, 26]), Grade::Problem, "two of five are too many");
        assert!(!found(&[13, 13, 13]).remedy.contains("store.round_trip"));
        assert!(found(&[16, 16, 16]).remedy.contains("and `store.round_trip` (15 ms)"));
    }

    #[test]
    fn stores_that_are_farther_away_than_nodes_think_are_warned_of() {
        let timeout = Duration::from_secs(1);
        let found = |millis: u64| {
            round_trip(&[took(millis)], &Expected { timeout, round_trip: Duration::from_millis(5) })
        };
        assert_eq!(found(5).grade, Grade::Ok);
        assert_eq!(found(6).grade, Grade::Warning);
        assert!(found(6).message.contains("farther away than `store.round_trip` says"));
    }

    #[test]
    fn half_the_round_trip_is_taken_off_the_skew() {
        let at = |millis: u64| Wall::from_unix_nanos(1_000_000_000 + millis * 1_000_000);
        let sample = Sample::new(at(0), at(300), Duration::from_millis(600));
        assert_eq!(sample.ahead, 0);
        let early = Sample::new(at(300), at(0), Duration::from_millis(10));
        let late = Sample::new(at(0), at(300), Duration::from_millis(10));
        let found = clock(&[sample, early]);
        assert_eq!(found.grade, Grade::Warning);
        assert!(found.message.contains("305 ms behind"), "{found:?}");
        assert!(clock(&[late]).message.contains("295 ms ahead of"));
        let near = Sample::new(at(0), at(100), Duration::ZERO);
        assert_eq!(clock(&[near]).grade, Grade::Ok);
        assert_eq!(clock(&[]).grade, Grade::Unknown);
    }
}

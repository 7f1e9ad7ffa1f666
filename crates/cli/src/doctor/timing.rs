//! How long a question takes, and whether both clocks agree.

use std::time::Duration;

use tollgate::{Clock as _, SystemClock, Wall};
use tollgate_store::{RedisVisit, StoreError};

use super::diagnosis::{Diagnosis, millis, why};

/// One question for the time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    round_trip: Duration,
    /// Nanoseconds by which the server's clock is ahead, if the way back took as long as the way
    /// there.
    ahead: i64,
}

/// Asks for the time, as a PING that the store has to be allowed anyway.
pub(super) async fn ask(visit: &RedisVisit, allowed: Duration) -> Vec<Diagnosis> {
    match samples(visit).await {
        Ok(samples) => vec![round_trip(&samples, allowed), clock(&samples)],
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

fn round_trip(samples: &[Sample], allowed: Duration) -> Diagnosis {
    const CODE: &str = "round-trip";
    let mut spans: Vec<_> = samples.iter().map(|sample| sample.round_trip).collect();
    spans.sort_unstable();
    let median = spans.get(spans.len() / 2).copied().unwrap_or_default();
    let worst = spans.last().copied().unwrap_or_default();
    let figures = format!(
        "{} in the middle, {} at worst, of {}; a decision may take {}",
        millis(median),
        millis(worst),
        spans.len(),
        millis(allowed),
    );
    let remedy = "have the store nearer, or less busy (SLOWLOG GET, INFO commandstats)";
    if median >= allowed {
        let message = format!("{figures}: most decisions would be left to the rule's policy");
        Diagnosis::problem(CODE, message, remedy)
    } else if worst >= allowed || median >= allowed / 2 {
        let message = format!("{figures}: some decisions would be left to the rule's policy");
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
    fn slow_stores_are_warned_of_before_they_are_a_problem() {
        let grade = |samples: &[Sample]| round_trip(samples, Duration::from_millis(50)).grade;
        assert_eq!(grade(&[took(1), took(1), took(49)]), Grade::Ok);
        assert_eq!(grade(&[took(1), took(1), took(50)]), Grade::Warning);
        assert_eq!(grade(&[took(25), took(25), took(25)]), Grade::Warning);
        assert_eq!(grade(&[took(50), took(50), took(1)]), Grade::Problem);
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

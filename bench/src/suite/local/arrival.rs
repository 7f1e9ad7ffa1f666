//! The longest anybody waits for a decision while new keys pour in. Tables that grow do so under a
//! lock, and somebody's request pays for it.

use std::time::Duration;

use super::GOVERNOR;
use crate::error::BenchError;
use crate::keys;
use crate::measure::median;
use crate::report::{Reach, Row, Unit, count_of};
use crate::stopwatch::Stopwatch;
use crate::subject::{Algorithm, Allowance, Governor, Ours, Subject};
use crate::suite::Session;

/// Measures the worst decision of every round, each with fresh limiters, and takes the median of
/// the rounds: a shared machine takes the processor away now and then, and this must not decide
/// the row.
pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let size = session.scale.large;
    let name = format!("{} new u64 keys arrive, worst single decision", count_of(size));
    if !session.wants(&name) {
        return Ok(());
    }
    let allowance = Allowance::ample(size);
    let order = keys::insertion_order(size);
    let rounds = session.scale.long_rounds;
    let (mut ours, mut governor) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        session.progress.say(&format!("{name}: round {round} of {rounds}"));
        ours.push(worst(Ours::new(Algorithm::TokenBucket, allowance, size)?, &order));
        governor.push(worst(Governor::<u64>::new(allowance)?, &order));
    }
    let millis = |worst: Vec<Duration>| median(worst.iter().map(|time| time.as_secs_f64() * 1e3));
    let row = Row::against(name, Unit::Milliseconds, millis(ours), (GOVERNOR, millis(governor)));
    session.add(row.promising(Reach::Times(5.0)));
    Ok(())
}

fn worst<S: Subject<u64>>(mut subject: S, order: &[u32]) -> Duration {
    let mut worst = Duration::ZERO;
    for &index in order {
        let key = keys::number(index as usize);
        let stopwatch = Stopwatch::start();
        subject.check(&key);
        worst = worst.max(stopwatch.elapsed());
    }
    worst
}

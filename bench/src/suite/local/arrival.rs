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

/// Measures the worst decision of every round, each with fresh limiters, and takes the least of the
/// rounds: what a limiter does it does in every round, and what the machine does to somebody in the
/// middle of a decision comes on top, in nearly every second that is measured on a shared one.
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
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let least = |worst: &[Duration]| millis(worst.iter().copied().min().unwrap_or_default());
    let half = |worst: &[Duration]| median(worst.iter().copied().map(millis));
    let note = format!(
        "in half of the rounds no more than {:.3} ms, and {:.3} ms with {GOVERNOR}",
        half(&ours),
        half(&governor),
    );
    let peer = (GOVERNOR, least(&governor));
    let row = Row::against(name, Unit::Milliseconds, least(&ours), peer);
    session.add(row.promising(Reach::Times(5.0)).noting(note));
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

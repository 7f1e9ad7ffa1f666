//! How often a node asks the store about what else is lent than token buckets, in virtual time.
//!
//! Windows and leaky buckets are lent as token buckets are, and what counts is the same. Slots of rules about
//! what is under way at once come back whenever a request ends, and are asked for whenever some are missing that
//! may be free. What counts of them is the average.

use std::num::NonZero;

use tollgate_sim::Subject;

use super::questions::{Counts, limits, row};
use super::real::NODES;
use crate::error::BenchError;
use crate::report::{Reach, Row, Unit, count_of};
use crate::suite::Session;

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    for rate in RATES {
        let name = name("a window or leaky bucket", rate);
        if !session.wants(&name) {
            continue;
        }
        session.progress.say(&name);
        let mut counts = Vec::new();
        for subject in windows_and_leaky_buckets(rate)? {
            counts.push((subject.to_string(), Counts::of(session, rate, subject)?));
        }
        session.add(row(name, &counts));
    }
    for rate in RATES {
        let name = name("slots", rate);
        if !session.wants(&name) {
            continue;
        }
        session.progress.say(&name);
        let mut counts = Vec::new();
        for slots in slots(rate) {
            let subject = Subject::permits(slots);
            counts.push((format!("{slots} slots"), Counts::of(session, rate, subject)?));
        }
        let mean = counts.iter().map(|(_, counts)| counts.mean).fold(0.0, f64::max);
        let row = Row { ours: mean, ..row(name, &counts) };
        session.add(row.promising(Reach::AtMost(12.0, Unit::PerSecond)));
    }
    Ok(())
}

fn name(what: &str, rate: u64) -> String {
    format!(
        "simulated, {NODES} nodes: questions of one about {what}, {}/s",
        count_of(rate as usize)
    )
}

/// With the limits that token buckets have.
fn windows_and_leaky_buckets(rate: u64) -> Result<Vec<Subject>, BenchError> {
    let mut subjects = Vec::new();
    for quota in limits(rate) {
        let burst = quota.split('/').next().unwrap_or_default();
        let police = Subject::police(&format!("{quota} burst {burst}"))?;
        subjects.extend([Subject::fixed(&quota)?, Subject::sliding(&quota)?, police]);
    }
    Ok(subjects)
}

/// Requests keep theirs for 150 ms on the average: twice as many as are under way then, half of them, and a
/// tenth.
fn slots(rate: u64) -> [NonZero<u32>; 3] {
    let under_way = rate * NODES as u64 * 150 / 1_000;
    [2 * under_way, under_way / 2, under_way / 10]
        .map(|slots| NonZero::new(slots as u32).unwrap_or(NonZero::<u32>::MIN))
}

/// Requests in a second to each node.
const RATES: [u64; 3] = [10, 100, 1_000];

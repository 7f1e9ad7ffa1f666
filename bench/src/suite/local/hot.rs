//! One key that everybody asks about: the worst case for whatever is shared.

use super::bed::count;
use super::{GOVERNOR, OURS};
use crate::error::BenchError;
use crate::measure::Contender;
use crate::report::{Reach, Row, Unit};
use crate::subject::{self, Algorithm, Allowance, Governor, Ours};
use crate::suite::Session;

/// Measures the hot key, denied and allowed, on one thread and on two.
pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let denied = Case { outcome: "denied", allowance: Allowance::SINGLE, share: 0.0 };
    let allowed = Case { outcome: "allowed", allowance: Allowance::ENDLESS, share: 1.0 };
    on_threads(session, denied, 1, 2.0)?;
    on_threads(session, denied, 2, 4.0)?;
    on_threads(session, allowed, 1, 1.3)?;
    on_threads(session, allowed, 2, 4.0)
}

#[derive(Clone, Copy)]
struct Case {
    outcome: &'static str,
    allowance: Allowance,
    share: f64,
}

fn on_threads(
    session: &mut Session,
    case: Case,
    threads: usize,
    least: f64,
) -> Result<(), BenchError> {
    let plural = if threads == 1 { "thread" } else { "threads" };
    let name = format!("one hot key {}, {threads} {plural}", case.outcome);
    if !session.wants(&name) {
        return Ok(());
    }
    let visits = vec![HOT_KEY; 4096];
    let mut ours = Ours::new(Algorithm::TokenBucket, case.allowance, PLANNED_KEYS)?;
    let mut governor = Governor::<u64>::new(case.allowance)?;
    if case.share == 0.0 {
        subject::drain(&mut ours, &HOT_KEY, case.allowance);
        subject::drain(&mut governor, &HOT_KEY, case.allowance);
    }
    let decide_ours = |chunk: &[u64]| count(chunk, |key: &u64| ours.check(key));
    let decide_governor = |chunk: &[u64]| count(chunk, |key: &u64| governor.check(key));
    let sides = [
        Contender::on_threads(OURS, threads, &visits, decide_ours).intending(case.share),
        Contender::on_threads(GOVERNOR, threads, &visits, decide_governor).intending(case.share),
    ];
    let [ours, peer] = session.measure(&name, sides)?;
    let row = if threads == 1 {
        Row::against(name, Unit::NanosPerDecision, ours.nanos, (GOVERNOR, peer.nanos))
    } else {
        let (ours, peer) = (ours.millions_per_second(), peer.millions_per_second());
        Row::against(name, Unit::MillionsPerSecond, ours, (GOVERNOR, peer))
    };
    session.add(row.promising(Reach::Times(least)));
    Ok(())
}

const HOT_KEY: u64 = 42;
/// A hot key lives in a table made for many.
const PLANNED_KEYS: usize = 100_000;

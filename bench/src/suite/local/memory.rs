//! Memory per key, and what becomes of keys that find no room.

use super::{GOVERNOR, THROTTLECRAB};
use crate::error::BenchError;
use crate::footprint::{self, Limiter};
use crate::keys;
use crate::report::{Reach, Row, Unit, count_of, figure};
use crate::subject::{Allowance, admissions};
use crate::suite::Session;

/// Measures resident memory, overflow, and whether limits hold in a crowded table.
pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    resident(session)?;
    crowded(session)
}

fn resident(session: &mut Session) -> Result<(), BenchError> {
    let size = session.scale.large;
    let bytes = format!("{} live u64 keys, resident memory", count_of(size));
    let overflow = format!("{} live u64 keys, kept in the sketch", count_of(size));
    if !session.wants_any([&bytes, &overflow]) {
        return Ok(());
    }
    session.progress.say(&bytes);
    let ours = footprint::in_child(Limiter::Tollgate, size)?;
    if session.wants(&bytes) {
        let governor = footprint::in_child(Limiter::Governor, size)?.per_key(size);
        let crab = footprint::in_child(Limiter::Throttlecrab, size)?.per_key(size);
        let row = Row::against(bytes, Unit::BytesPerKey, ours.per_key(size), (GOVERNOR, governor))
            .beside(THROTTLECRAB, crab)
            .promising(Reach::AtMost(24.0, Unit::BytesPerKey));
        session.add(row);
    }
    if session.wants(&overflow) {
        let share = ours.overflowed as f64 / size as f64 * 100.0;
        let row = Row::alone(overflow, Unit::PercentOfKeys, share);
        session.add(row.promising(Reach::AtMost(0.1, Unit::PercentOfKeys)));
    }
    Ok(())
}

/// Four times the planned keys, each asked about more often than its limit allows, while time
/// stands still. Whatever the table does with keys it has no room for, it must not forget what
/// they have spent.
fn crowded(session: &mut Session) -> Result<(), BenchError> {
    let size = session.scale.medium;
    let planned = size / 4;
    let (used, plan) = (count_of(size), count_of(planned));
    let name = format!("{used} u64 keys where {plan} were planned, most admitted to one key");
    if !session.wants(&name) {
        return Ok(());
    }
    session.progress.say(&name);
    let order: Vec<u32> = keys::shuffled(size * HITS_PER_KEY, 0xc0ffee)
        .into_iter()
        .map(|hit| hit % size as u32)
        .collect();
    let allowance = Allowance::per_day(LIMIT);
    let admitted = admissions(allowance, planned, size, &order)?;
    let most = admitted.iter().copied().max().unwrap_or_default();
    let limit = f64::from(LIMIT.get());
    let full = admitted.iter().filter(|count| f64::from(**count) >= limit).count();
    let share = figure(full as f64 / size as f64 * 100.0);
    let row = Row::alone(name, Unit::Admitted, f64::from(most))
        .promising(Reach::AtMost(limit, Unit::Admitted))
        .noting(format!("{share} % of keys were admitted all {LIMIT} times"));
    session.add(row);
    Ok(())
}

const LIMIT: std::num::NonZeroU32 = std::num::NonZeroU32::MIN.saturating_add(4);
const HITS_PER_KEY: usize = 8;

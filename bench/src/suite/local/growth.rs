//! How time and memory grow with the number of keys. These rows promise nothing; they are drawn.

use super::bed::{Bed, governor_single, ours_batches, ours_single};
use super::{GOVERNOR, OURS, THROTTLECRAB};
use crate::error::BenchError;
use crate::footprint::{self, Limiter};
use crate::measure::Contender;
use crate::report::{Across, Growth, Line, Panel, Row, Unit, count_of};
use crate::subject::{SHARE_ALLOWED, Subject, Throttlecrab};
use crate::suite::Session;

/// Measures all key counts if any of these rows was asked for.
pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let sizes = session.scale.growth;
    let names = sizes.map(|size| format!("growth, {} u64 keys", count_of(size)));
    if !session.wants_any(&names) {
        return Ok(());
    }
    let mut times = Vec::new();
    let mut bytes = Vec::new();
    for (size, name) in sizes.into_iter().zip(&names) {
        times.push(time(session, name, size)?);
        bytes.push(memory(session, name, size)?);
    }
    let subjects = [OURS, OURS_IN_BATCHES, GOVERNOR, THROTTLECRAB];
    let time = panel("Time per decision", Unit::NanosPerDecision, &sizes, subjects, &times);
    let subjects = [OURS, GOVERNOR, THROTTLECRAB];
    let memory = panel("Resident memory", Unit::BytesPerKey, &sizes, subjects, &bytes);
    session.draw(Growth {
        title: TITLE.to_owned(),
        about: String::new(),
        panels: vec![time, memory],
    });
    Ok(())
}

/// Nanoseconds per decision: ours one by one, ours in batches, governor, throttlecrab.
fn time(session: &mut Session, name: &str, size: usize) -> Result<[f64; 4], BenchError> {
    let bed = Bed::<u64>::new(session, size)?;
    session.progress.say("filling throttlecrab");
    let mut crab = bed.keys.fill(Throttlecrab::new(bed.keys.allowance, size));
    let visits = bed.keys.visits();
    let decide_crab =
        |chunk: &[u64]| chunk.iter().map(|key| u64::from(crab.check(key))).sum::<u64>();
    let sides = [
        ours_single::<u64, _>(&bed.ours, &visits),
        ours_batches::<u64>(&bed.ours, &visits),
        governor_single::<u64, _>(&bed.governor, &visits),
        Contender::new(THROTTLECRAB, &visits, decide_crab).intending(SHARE_ALLOWED),
    ];
    let values = session.measure(name, sides)?.map(|measured| measured.nanos);
    let [single, batches, governor, crab] = values;
    for (what, ours) in [("single decisions", single), ("batches of 32", batches)] {
        let unit = Unit::NanosPerDecision;
        let row = Row::against(format!("{name}, {what}"), unit, ours, (GOVERNOR, governor));
        session.add(row.beside(THROTTLECRAB, crab));
    }
    Ok(values)
}

/// Resident bytes per key: ours, governor, throttlecrab.
fn memory(session: &mut Session, name: &str, size: usize) -> Result<[f64; 3], BenchError> {
    let name = format!("{name}, resident memory");
    session.progress.say(&name);
    let ours = footprint::in_child(Limiter::Tollgate, size)?.per_key(size);
    let governor = footprint::in_child(Limiter::Governor, size)?.per_key(size);
    let crab = footprint::in_child(Limiter::Throttlecrab, size)?.per_key(size);
    let row = Row::against(name, Unit::BytesPerKey, ours, (GOVERNOR, governor));
    session.add(row.beside(THROTTLECRAB, crab));
    Ok([ours, governor, crab])
}

fn panel<const N: usize>(
    quantity: &'static str,
    unit: Unit,
    sizes: &[usize],
    subjects: [&'static str; N],
    values: &[[f64; N]],
) -> Panel {
    let lines = subjects.into_iter().enumerate().map(|(index, subject)| {
        Line::new(subject, values.iter().map(|values| values[index]).collect())
    });
    let (across, keys) = (Across::Keys, sizes.to_vec());
    Panel { quantity, unit, across, keys, lines: lines.collect() }
}

const TITLE: &str = "What a decision costs as keys become many";
const OURS_IN_BATCHES: &str = "tollgate, batches";

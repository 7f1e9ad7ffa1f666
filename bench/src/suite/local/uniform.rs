//! Many keys, all equally likely: one decision at a time, in batches, on two threads, and with the
//! time passed in.

use super::bed::{Bed, count, governor_single, ours_batches, ours_single};
use super::{GOVERNOR, OURS};
use crate::error::BenchError;
use crate::measure::{Contender, Keys, median};
use crate::report::{Reach, Row, Unit, count_of};
use crate::subject::{Floor, FrozenGovernor, OurKey, SHARE_ALLOWED};
use crate::suite::Session;

/// Measures the rows of both key types at both sizes.
pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let (medium, large) = (session.scale.medium, session.scale.large);
    let nothing = Promise { single: 0.0, threads: None, time_passed_in: None };
    on_bed::<String>(session, medium, Promise { single: 2.5, ..nothing })?;
    let promise = Promise { single: 3.5, threads: Some(3.5), ..nothing };
    on_bed::<String>(session, large, promise)?;
    on_bed::<u64>(session, medium, Promise { single: 2.0, ..nothing })?;
    let promise = Promise { single: 2.5, time_passed_in: Some(2.5), ..nothing };
    on_bed::<u64>(session, large, promise)
}

/// How many times faster than governor the rows of one bed must be; rows without a figure are not
/// measured. Batches promise the same on every bed.
#[derive(Clone, Copy)]
struct Promise {
    single: f64,
    threads: Option<f64>,
    time_passed_in: Option<f64>,
}

const BATCHES: f64 = 8.0;

/// How often what depends on its place in memory is measured anew.
const PLACES: usize = 3;
const FLOOR: f64 = 2.0;

fn on_bed<K: OurKey>(
    session: &mut Session,
    size: usize,
    promise: Promise,
) -> Result<(), BenchError> {
    let kind = match session.scale.effort.keys {
        Keys::AtHand => K::NAME,
        Keys::InMemory => K::COLD_NAME,
    };
    let name = |what: &str| format!("{} {kind} keys, {what}", count_of(size));
    let single = name("single decisions");
    let passed_in = name("single decisions, time passed in");
    let batches = name("batches of 32");
    let floor = name("batches of 32, over the memory floor");
    let threads = name("single decisions, 2 threads");
    let wants_passed_in = promise.time_passed_in.filter(|_| session.wants(&passed_in));
    let wants_threads = promise.threads.filter(|_| session.wants(&threads));
    let wants_others = session.wants_any([&single, &batches, &floor]);
    if !wants_others && wants_passed_in.is_none() && wants_threads.is_none() {
        return Ok(());
    }

    let bed = Bed::<K>::new(session, size)?;
    let visits = bed.keys.visits();
    if session.wants(&single) {
        single_decisions(session, single, &bed, &visits, promise.single)?;
    }
    if let Some(least) = wants_passed_in {
        time_passed_in(session, passed_in, &bed, &visits, least)?;
    }
    if session.wants(&batches) {
        in_batches(session, batches, &bed, &visits)?;
    }
    if session.wants(&floor) {
        over_the_floor(session, floor, &bed, &visits)?;
    }
    if let Some(least) = wants_threads {
        on_two_threads(session, threads, &bed, &visits, least)?;
    }
    Ok(())
}

fn single_decisions<K: OurKey>(
    session: &mut Session,
    name: String,
    bed: &Bed<K>,
    visits: &[K::Visit<'_>],
    least: f64,
) -> Result<(), BenchError> {
    let sides = [ours_single(&bed.ours, visits), governor_single(&bed.governor, visits)];
    let [ours, peer] = session.measure(&name, sides)?;
    let row = Row::against(name, Unit::NanosPerDecision, ours.nanos, (GOVERNOR, peer.nanos));
    session.add(row.promising(Reach::Times(least)));
    Ok(())
}

/// Neither side reads a clock. governor's time stands still in its own fake clock, ours in the
/// argument.
fn time_passed_in<K: OurKey>(
    session: &mut Session,
    name: String,
    bed: &Bed<K>,
    visits: &[K::Visit<'_>],
    least: f64,
) -> Result<(), BenchError> {
    session.progress.say("filling governor with a clock that stands still");
    let governor = bed.keys.fill(FrozenGovernor::<K>::new(bed.keys.allowance)?);
    let now = bed.ours.now();
    let decide_ours = |chunk: &[K::Visit<'_>]| count(chunk, |key: &K| bed.ours.check_at(key, now));
    let decide_governor = |chunk: &[K::Visit<'_>]| count(chunk, |key: &K| governor.check(key));
    let sides = [
        Contender::new(OURS, visits, decide_ours).intending(SHARE_ALLOWED),
        Contender::new(GOVERNOR, visits, decide_governor).intending(SHARE_ALLOWED),
    ];
    let [ours, peer] = session.measure(&name, sides)?;
    let row = Row::against(name, Unit::NanosPerDecision, ours.nanos, (GOVERNOR, peer.nanos));
    session.add(row.promising(Reach::Times(least)));
    Ok(())
}

/// Ours in batches, with one clock reading each; governor, which has no batches, one by one.
fn in_batches<K: OurKey>(
    session: &mut Session,
    name: String,
    bed: &Bed<K>,
    visits: &[K::Visit<'_>],
) -> Result<(), BenchError> {
    let sides = [ours_batches::<K>(&bed.ours, visits), governor_single(&bed.governor, visits)];
    let [ours, peer] = session.measure(&name, sides)?;
    let row = Row::against(name, Unit::NanosPerDecision, ours.nanos, (GOVERNOR, peer.nanos));
    session.add(row.promising(Reach::Times(BATCHES)));
    Ok(())
}

/// The promise is about the plain floor. The atomic one stands beside it, to show how much of the
/// distance is the price of being shared between threads.
///
/// Where in the machine's memory a table comes to lie is chance, and the same table takes up to
/// half as long again in one place as in another. So each side is measured in several places, and
/// the median of them counts.
fn over_the_floor<K: OurKey>(
    session: &mut Session,
    name: String,
    bed: &Bed<K>,
    visits: &[K::Visit<'_>],
) -> Result<(), BenchError> {
    let mut nanos = [const { Vec::new() }; 3];
    for place in 1..=PLACES {
        session.progress.say(&format!("{name}: place {place}"));
        let ours = bed.keys.fill(bed.keys.ours()?);
        let mut floor = Floor::new(ours.memory())?;
        let mut atomic = Floor::new(ours.memory())?;
        let sides = [
            ours_batches::<K>(&ours, visits),
            Contender::new("floor", visits, |chunk: &[K::Visit<'_>]| floor.visit(chunk)),
            Contender::new("floor", visits, |chunk: &[K::Visit<'_>]| {
                atomic.visit_atomically(chunk)
            }),
        ];
        for (nanos, measured) in nanos.iter_mut().zip(session.measure(&name, sides)?) {
            nanos.push(measured.nanos);
        }
    }
    let [ours, floor, atomic] = nanos.map(median);
    let row = Row::against(name, Unit::NanosPerDecision, ours, ("floor", floor))
        .beside("atomic floor", atomic);
    session.add(row.promising(Reach::Within(FLOOR)));
    Ok(())
}

fn on_two_threads<K: OurKey>(
    session: &mut Session,
    name: String,
    bed: &Bed<K>,
    visits: &[K::Visit<'_>],
    least: f64,
) -> Result<(), BenchError> {
    let decide_ours = |chunk: &[K::Visit<'_>]| count(chunk, |key: &K| bed.ours.check(key));
    let decide_governor = |chunk: &[K::Visit<'_>]| count(chunk, |key: &K| bed.governor.check(key));
    let sides = [
        Contender::on_threads(OURS, 2, visits, decide_ours).intending(SHARE_ALLOWED),
        Contender::on_threads(GOVERNOR, 2, visits, decide_governor).intending(SHARE_ALLOWED),
    ];
    let [ours, peer] = session.measure(&name, sides)?;
    let (ours, peer) = (ours.millions_per_second(), peer.millions_per_second());
    let row = Row::against(name, Unit::MillionsPerSecond, ours, (GOVERNOR, peer));
    session.add(row.promising(Reach::Times(least)));
    Ok(())
}

//! Loading rules, and exchanging them while requests are decided.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{fs, mem, thread};

use tollgate::{Engine, RuleSet};

use super::file::{self, Client};
use crate::error::BenchError;
use crate::measure::median;
use crate::report::{Reach, Row, Unit, count_of};
use crate::stopwatch::Stopwatch;
use crate::suite::Session;

const RULES: usize = 10_000;

pub(super) fn run(session: &mut Session) -> Result<(), BenchError> {
    let text = file::text(RULES, "");
    loading(session, &text)?;
    exchanging(session, &text)
}

fn loading(session: &mut Session, text: &str) -> Result<(), BenchError> {
    let name = format!("{} rules, loaded and checked", count_of(RULES));
    if !session.wants(&name) {
        return Ok(());
    }
    let mut times = Vec::new();
    for round in 1..=session.scale.long_rounds {
        session.progress.say(&format!("{name}: round {round}"));
        let stopwatch = Stopwatch::start();
        let rules = file::rules(text)?;
        times.push(stopwatch.elapsed().as_secs_f64() * 1e3);
        assert_eq!(rules.rules().len(), RULES);
    }
    let row = Row::alone(name, Unit::Milliseconds, median(times));
    session.add(row.promising(Reach::AtMost(1_000.0, Unit::Milliseconds)));
    Ok(())
}

/// How much longer anybody waits because rules are exchanged.
///
/// A shared machine takes the processor away from whoever computes, here several times a second and
/// for up to 15 ms, so the longest wait of all is the machine's and not the program's. What an
/// exchange can do to a decision is of two kinds, and each is told from that:
///
/// * The decision sleeps, before a lock or for memory. The kernel counts that apart from losing the
///   processor, so of these the longest in all rounds counts, with nothing taken off.
/// * The decision has more to do. It has that in every exchange, so it shows in the usual round:
///   the median of the rounds' longest waits, less that of as many rounds without an exchange.
fn exchanging(session: &mut Session, text: &str) -> Result<(), BenchError> {
    let name = format!("{} rules exchanged under load, longest wait added", count_of(RULES));
    if !session.wants(&name) {
        return Ok(());
    }
    // All limits change, also those that requests meet: their counters go on from the old ones.
    let changed = text.replace("100/min", "90/min").replace("1G/day", "500M/day");
    let (first, second) = (file::rules(text)?, file::rules(&changed)?);
    let clients = Client::all(session.scale.medium / 10);
    let engine = file::engine(first.clone(), &clients)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for round in 1..=EXCHANGES * session.scale.long_rounds {
        session.progress.say(&format!("{name}: round {round}"));
        let next = if round % 2 == 1 { &second } else { &first };
        let exchanged = longest_waits(&engine, &clients, Some(next), 2 * LEAD)?;
        // As long as that, so that the machine can disturb it as often.
        without.push(longest_waits(&engine, &clients, None, exchanged.decisions)?);
        with.push(exchanged);
    }
    let usual = |rounds: &[Waits]| median(rounds.iter().map(|waits| waits.awake));
    let asleep = with.iter().map(|waits| waits.asleep).fold(0.0, f64::max);
    let (usual_with, usual_without) = (usual(&with), usual(&without));
    let added = asleep.max(usual_with - usual_without);
    let row = Row::alone(name, Unit::Milliseconds, added).noting(format!(
        "of {} exchanges: longest sleep {asleep:.3} ms; longest wait otherwise, in the median \
         {usual_with:.3} ms, without an exchange {usual_without:.3} ms",
        with.len()
    ));
    session.add(row.promising(Reach::AtMost(1.0, Unit::Milliseconds)));
    Ok(())
}

/// So many times the usual number of rounds.
const EXCHANGES: usize = 8;

/// The longest that decisions of a round took, in milliseconds.
#[derive(Debug, Default)]
struct Waits {
    /// Of those in which the thread slept.
    asleep: f64,
    /// Of the others.
    awake: f64,
    decisions: u64,
}

/// Makes at least so many decisions on one thread, and exchanges the rules on another amid them.
/// Every request is answered: a decision that was lost would end the run.
fn longest_waits(
    engine: &Engine,
    clients: &[Client],
    next: Option<&RuleSet>,
    at_least: u64,
) -> Result<Waits, BenchError> {
    let (stop, decided) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let decider = scope.spawn(|| {
            let mut waits = Waits::default();
            let mut slept = times_slept()?;
            for client in clients.iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let stopwatch = Stopwatch::start();
                assert!(client.ask(engine), "nobody is near his limit");
                let wait = stopwatch.elapsed().as_secs_f64() * 1e3;
                if wait > NOTICED {
                    let before = mem::replace(&mut slept, times_slept()?);
                    let kind = if slept > before { &mut waits.asleep } else { &mut waits.awake };
                    *kind = kind.max(wait);
                }
                decided.fetch_add(1, Ordering::Relaxed);
            }
            waits.decisions = decided.load(Ordering::Relaxed);
            Ok(waits)
        });
        let until = |count: u64| {
            while decided.load(Ordering::Relaxed) < count && !decider.is_finished() {
                thread::yield_now();
            }
        };
        until(LEAD);
        let exchanged = next.map_or(Ok(()), |next| engine.exchange(next.clone()));
        until(at_least.max(decided.load(Ordering::Relaxed) + LEAD));
        stop.store(true, Ordering::Relaxed);
        let waits = decider.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        exchanged?;
        waits
    })
}

/// How often this thread has slept of its own accord.
fn times_slept() -> Result<u64, BenchError> {
    const FILE: &str = "/proc/thread-self/status";
    let text = fs::read_to_string(FILE)
        .map_err(|source| BenchError::File { path: FILE.into(), source })?;
    let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    // Without it every sleep would pass for none.
    let missing = || BenchError::Child(format!("{FILE} does not say voluntary_ctxt_switches"));
    count.and_then(|count| count.trim().parse().ok()).ok_or_else(missing)
}

/// Waits of so many milliseconds are looked into: the kernel is not asked after every decision.
const NOTICED: f64 = 0.02;

/// So many decisions are made before an exchange and after it.
const LEAD: u64 = 50_000;

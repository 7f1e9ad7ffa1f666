//! Loading rules, and exchanging them while requests are decided.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

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

/// The longest anybody waits while rules are exchanged, less what he waits while they are not: a
/// shared machine takes the processor away now and then.
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
    for round in 1..=session.scale.long_rounds {
        session.progress.say(&format!("{name}: round {round}"));
        let next = if round % 2 == 1 { &second } else { &first };
        without.push(longest_wait(&engine, &clients, None)?);
        with.push(longest_wait(&engine, &clients, Some(next))?);
    }
    // Nobody may wait longer, so it is not the usual round that counts but the worst.
    let worst = |waits: Vec<f64>| waits.into_iter().fold(0.0, f64::max);
    let (with, without) = (worst(with), worst(without));
    let row = Row::alone(name, Unit::Milliseconds, with - without)
        .noting(format!("{with:.3} ms with an exchange, {without:.3} ms without"));
    session.add(row.promising(Reach::AtMost(1.0, Unit::Milliseconds)));
    Ok(())
}

/// Decides for a while on one thread, and exchanges the rules on another. Every request is
/// answered: a decision that was lost would end the run.
fn longest_wait(
    engine: &Engine,
    clients: &[Client],
    next: Option<&RuleSet>,
) -> Result<f64, BenchError> {
    let (stop, decided) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let decider = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            for client in clients.iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let stopwatch = Stopwatch::start();
                assert!(client.ask(engine), "nobody is near his limit");
                longest = longest.max(stopwatch.elapsed());
                decided.fetch_add(1, Ordering::Relaxed);
            }
            longest
        });
        let until = |count: u64| {
            while decided.load(Ordering::Relaxed) < count && !decider.is_finished() {
                thread::yield_now();
            }
        };
        until(LEAD);
        let exchanged = next.map_or(Ok(()), |next| engine.exchange(next.clone()));
        until(decided.load(Ordering::Relaxed) + LEAD);
        stop.store(true, Ordering::Relaxed);
        let longest = decider.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        exchanged?;
        Ok(longest.as_secs_f64() * 1e3)
    })
}

/// So many decisions are made before and after.
const LEAD: u64 = 200_000;

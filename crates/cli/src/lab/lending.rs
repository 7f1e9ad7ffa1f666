//! Schedules of lending, as many as wanted, on all cores.

use std::io::{IsTerminal as _, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tollgate::Seed;
use tollgate_sim::{Failure, Loss, Outcome, schedule, trace};

use crate::error::{Ending, Error};
use crate::flags::{Lending, Output};
use crate::print;

pub(crate) fn run(flags: &Lending) -> Result<Ending, Error> {
    let seed = flags.seed.unwrap_or_else(any_seed);
    let loss = if flags.careless_store { Loss::Unnoticed } else { Loss::Known };
    let search = Search {
        seed,
        loss,
        schedules: flags.schedules,
        progress: Progress::new(flags),
        next: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        found: Mutex::default(),
    };
    thread::scope(|scope| {
        for _ in 0..threads(flags) {
            scope.spawn(|| search.work());
        }
    });
    search.progress.end();
    let found = search.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let report = Report::of(&found, flags, seed);
    match flags.output {
        Output::Text => print::text(&report.to_text())?,
        Output::Json => print::json(&report)?,
    }
    Ok(if found.failure.is_some() { Ending::Findings } else { Ending::Good })
}

/// What the threads have in common.
struct Search {
    seed: u64,
    loss: Loss,
    schedules: u64,
    progress: Progress,
    next: AtomicU64,
    is_over: AtomicBool,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    schedules: u64,
    sum: Outcome,
    /// The first, counted from the seed, of those that were run.
    failure: Option<Box<Failure>>,
}

impl Search {
    /// Takes one schedule after the other until there are no more, or one has failed.
    fn work(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.schedules {
                return;
            }
            let outcome = schedule(self.seed.wrapping_add(number), self.loss);
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.schedules += 1;
            match outcome {
                Ok(outcome) => found.sum += outcome,
                Err(failure) => {
                    self.is_over.store(true, Ordering::Relaxed);
                    let from_seed = |one: &Failure| one.seed.wrapping_sub(self.seed);
                    let last = found.failure.take();
                    let both = [last, Some(failure)].into_iter().flatten();
                    found.failure = both.min_by_key(|one| from_seed(one));
                }
            }
            self.progress.comes_to(found.schedules);
        }
    }
}

/// One that is short enough to be told to somebody.
fn any_seed() -> u64 {
    Seed::random().number(0).part_of(1_000_000_000) as u64
}

fn threads(flags: &Lending) -> usize {
    let cores = || thread::available_parallelism().map_or(1, std::num::NonZero::get);
    flags.threads.map_or_else(cores, usize::from)
}

/// Said on standard error: drawn on a terminal, told in tenths elsewhere, and not at all to
/// programs.
struct Progress {
    bar: Option<ProgressBar>,
    tenth: Option<u64>,
    all: u64,
}

impl Progress {
    fn new(flags: &Lending) -> Self {
        let all = flags.schedules;
        let is_for_people = flags.output == Output::Text;
        let is_drawn = is_for_people && stderr().is_terminal();
        let bar = is_drawn.then(|| {
            let bar = ProgressBar::new(all);
            let template = "{bar:30} {pos}/{len} schedules  {per_sec}  {eta} left";
            let style = ProgressStyle::with_template(template);
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let tenth = (is_for_people && !is_drawn && all >= 100).then_some(all / 10);
        Self { bar, tenth, all }
    }

    fn comes_to(&self, schedules: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(schedules);
        }
        if self.tenth.is_some_and(|tenth| schedules.is_multiple_of(tenth)) {
            print::note(&format!("{schedules} of {} schedules\n", self.all));
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    schedules: u64,
    requests: u64,
    decided_by_nodes: u64,
    exchanges: u64,
    deaths: u64,
    freezes: u64,
    cuts: u64,
    restarts: u64,
    losses: u64,
    takeovers: u64,
    /// Permits in use beyond those that there are, at most: of nodes that were out of touch, and after a
    /// store had forgotten.
    beyond: u64,
    failure: Option<Broken>,
}

/// A schedule that broke a promise.
#[derive(Debug, Serialize)]
struct Broken {
    seed: u64,
    what: String,
    plan: String,
    trace: Vec<String>,
    /// The command that runs it again.
    replay: String,
}

impl Report {
    fn of(found: &Found, flags: &Lending, seed: u64) -> Self {
        let sum = found.sum;
        Self {
            seed,
            schedules: found.schedules,
            requests: sum.requests,
            decided_by_nodes: sum.requests - sum.waited,
            exchanges: sum.exchanges,
            deaths: sum.deaths,
            freezes: sum.freezes,
            cuts: sum.cuts,
            restarts: sum.restarts,
            losses: sum.losses,
            takeovers: sum.takeovers,
            beyond: sum.beyond,
            failure: found.failure.as_ref().map(|failure| Broken::of(failure, flags)),
        }
    }

    fn to_text(&self) -> String {
        let Self { seed, schedules, requests, decided_by_nodes, exchanges, .. } = self;
        let Self { deaths, freezes, cuts, restarts, losses, takeovers, beyond, .. } = self;
        let sum = format!(
            "{schedules} schedules from seed {seed}: {requests} requests, {decided_by_nodes} decided by \
             nodes alone, {exchanges} exchanges\n{deaths} nodes died, {freezes} froze, {cuts} were cut \
             off; {restarts} stores started again, {losses} had forgotten everything; {takeovers} replicas \
             took over\nup to {beyond} permits more than there are were in use by nodes that were out of \
             touch, or when a store had forgotten\n"
        );
        let colours = print::colours();
        match &self.failure {
            None => format!("{sum}{}: no limit was passed\n", print::good("ok", colours)),
            Some(Broken { seed, what, plan, trace, replay }) => {
                let failed = print::bad("failed", colours);
                let events: String = trace.iter().map(|event| format!("  {event}\n")).collect();
                format!(
                    "{sum}\n{failed}: schedule {seed}: {what}\n\n{plan}\n\nthe last events:\n{events}\n\
                     again: {replay}\n"
                )
            }
        }
    }
}

impl Broken {
    fn of(failure: &Failure, flags: &Lending) -> Self {
        let seed = failure.seed;
        let loss = if flags.careless_store { Loss::Unnoticed } else { Loss::Known };
        let again = trace(seed, loss, flags.trace as usize).err();
        let careless = if flags.careless_store { " --careless-store" } else { "" };
        let events = flags.trace;
        Self {
            seed,
            what: failure.broken.to_string(),
            plan: failure.plan.clone(),
            trace: again.map(|failure| failure.trace).unwrap_or_default(),
            replay: format!(
                "tollgate lab lending --schedules 1 --seed {seed} --trace {events}{careless}"
            ),
        }
    }
}

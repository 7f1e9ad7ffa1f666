//! `tollgate bench`: what a decision costs on this machine.

mod measure;
mod report;

use std::io::Write as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tollgate::Limit;

use crate::bench::measure::{Mode, Plan};
use crate::flags::{Algorithm, Bench, Output};

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The limit or the memory; nothing was measured.
    #[error(transparent)]
    Tollgate(#[from] tollgate::Error),
    /// Nobody reads the figures.
    #[error("cannot print the figures: {0}")]
    Print(#[from] std::io::Error),
}

pub(crate) fn run(flags: &Bench) -> Result<(), Error> {
    let limit = match flags.algorithm {
        Algorithm::TokenBucket => Limit::token_bucket(flags.limit),
        Algorithm::FixedWindow => Limit::fixed_window(flags.limit),
        Algorithm::SlidingWindow => Limit::sliding_window(flags.limit),
    };
    let limit = limit.map_err(tollgate::Error::from)?;
    let time = Duration::from_millis(if flags.quick { 50 } else { 500 });
    let rounds = if flags.quick { 3 } else { 5 };
    let threads = thread_counts(flags);
    let bar = progress(flags.keys.len() * threads.len() * Mode::ALL.len());

    let mut rows = Vec::new();
    for keys in &flags.keys {
        bar.set_message(format!("filling a table of {keys} keys"));
        let plan = Plan::try_new(&limit, *keys, time, rounds)?;
        for threads in &threads {
            for mode in Mode::ALL {
                bar.set_message(format!("{keys} keys, {threads} threads, {mode}"));
                rows.push(plan.measure(*threads, mode));
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    let text = match flags.output {
        Output::Text => report::table(&limit, &rows, flags.quick),
        Output::Json => report::json(&rows),
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn thread_counts(flags: &Bench) -> Vec<u16> {
    if !flags.threads.is_empty() {
        return flags.threads.clone();
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = u16::try_from(cores).unwrap_or(u16::MAX);
    if cores > 1 { vec![1, cores] } else { vec![1] }
}

/// Drawn on standard error, and only if that is a terminal.
fn progress(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

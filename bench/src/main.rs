//! Measures Tollgate and its peers side by side, in one run.
//!
//! ```text
//! cargo run --release -p tollgate-bench -- local --quick
//! ```
//!
//! A row prepares both sides, lets them take turns for several rounds and compares medians, so
//! that a noisy moment hits both. Outcomes are used and counted: if the two sides did not allow
//! the same share of decisions, the run fails instead of comparing different work.
//!
//! Reading order: `suite/local` has the rows, `subject` what is measured, `measure` how.

#![deny(unsafe_code)]

mod arguments;
mod built;
mod error;
mod footprint;
mod keys;
mod measure;
mod progress;
mod report;
mod stopwatch;
mod subject;
mod suite;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Options, Suite};
use built::Built;
use error::BenchError;
use measure::Keys;
use progress::Progress;
use report::{Provenance, Report};
use suite::{Scale, Session};

fn main() -> ExitCode {
    let outcome = match Arguments::parse().suite {
        Suite::Local(options) => measure_and_tell(&options, suite::local::run),
        Suite::Rules(options) => measure_and_tell(&options, suite::rules::run),
        Suite::Doors(options) => measure_and_tell(&options, suite::doors::run),
        Suite::Store(options) => measure_and_tell(&options, suite::store::run),
        Suite::Footprint { limiter, keys } => print_footprint(limiter, keys),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(BROKEN)
    })
}

/// Runs a suite and reports in the forms that were asked for.
fn measure_and_tell(
    options: &Options,
    run: impl FnOnce(&mut Session) -> Result<(), BenchError>,
) -> Result<ExitCode, BenchError> {
    let mut scale = if options.quick { Scale::QUICK } else { Scale::FULL };
    if options.cold_keys {
        scale.effort.keys = Keys::InMemory;
    }
    let arguments = std::env::args().skip(1);
    let provenance = Provenance::gather(arguments, options.quick, &Built::here()?);
    let mut session = Session::new(scale, options.only.clone(), Progress::new());
    run(&mut session)?;
    session.progress.finish();
    let report = session.into_report()?;
    tell(&report, &provenance, options)?;
    let missed = options.strict && report.missed() > 0;
    Ok(if missed { ExitCode::from(MISSED) } else { ExitCode::SUCCESS })
}

fn tell(report: &Report, provenance: &Provenance, options: &Options) -> Result<(), BenchError> {
    let mut out = io::stdout().lock();
    if options.json {
        report::print_json(report, &mut out)?;
    } else {
        report::print_table(report, provenance, &mut out)?;
    }
    out.flush()?;
    if let Some(path) = &options.markdown {
        write(path, &report::render_markdown(report, provenance))?;
    }
    if let Some(path) = &options.svg {
        let growth = report.growth.as_ref().ok_or(BenchError::NothingToDraw)?;
        write(path, &report::render_svg(growth, provenance))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    fs::write(path, text).map_err(|source| BenchError::File { path: path.to_owned(), source })
}

fn print_footprint(limiter: footprint::Limiter, keys: usize) -> Result<ExitCode, BenchError> {
    let footprint = footprint::here(limiter, keys)?;
    println!("{}", serde_json::to_string(&footprint)?);
    Ok(ExitCode::SUCCESS)
}

/// Exit code when a row misses its reach and `--strict` was given.
const MISSED: u8 = 1;
/// Exit code when the run could not be finished or cannot be believed.
const BROKEN: u8 = 2;

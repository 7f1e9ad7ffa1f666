//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::footprint::Limiter;

/// Measures Tollgate and its peers side by side, in one run.
#[derive(Debug, Parser)]
#[command(name = "tollgate-bench")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) suite: Suite,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Suite {
    /// Decisions in one process: time, throughput and memory.
    Local(Options),
    /// Decisions by rules: matching, overrides, loading, exchanging rules under load.
    Rules(Options),
    /// The server: RESP and HTTP beside other servers, time inside, memory, start.
    Doors(Options),
    /// Limits shared through Redis: decisions by the store, beside scripts called by hand.
    Store(Options),
    /// Measures the memory of one limiter in this process; the runner calls itself with it.
    #[command(hide = true)]
    Footprint { limiter: Limiter, keys: usize },
}

/// How to measure, and how to report.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Ends within a minute: fewer keys, fewer and shorter rounds; figures are indicative.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measures only rows whose name contains this.
    #[arg(long, value_name = "SUBSTRING")]
    pub(crate) only: Option<String>,
    /// Leaves string keys in memory until they are decided about, so that fetching them is measured
    /// too. By default they are in a cache, as if just read from a request.
    #[arg(long)]
    pub(crate) cold_keys: bool,
    /// Prints one JSON object per row instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes the tables as Markdown.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Draws how cost grows with the number of keys, or what passes in the course of time.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Exits with 1 if a row misses its reach.
    #[arg(long)]
    pub(crate) strict: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}

//! What can go wrong in a run. A row that misses its reach is a result, not an error.

use std::path::PathBuf;

use tollgate_core::LimitError;

/// Why a run could not be finished, or must not be believed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// A subject allowed another share of decisions than the row is about, so the two sides did
    /// not do the work the row's name promises.
    #[error("{row}: {subject} allowed {got:.2} % of decisions, the row intends {intended:.2} %")]
    AllowRate { row: String, subject: &'static str, got: f64, intended: f64 },

    /// The two sides of a row decided differently, so their times cannot be compared.
    #[error("{row}: {one} allowed {one_share:.2} % and {other} {other_share:.2} % of decisions")]
    AllowRatesDiffer {
        row: String,
        one: &'static str,
        one_share: f64,
        other: &'static str,
        other_share: f64,
    },

    /// A quota that one of the subjects refuses; a mistake in the suite.
    #[error("{subject} refuses the quota: {reason}")]
    Quota { subject: &'static str, reason: String },

    /// A file of the report, or one under `/proc`, could not be read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },

    /// Our limiter could not be made; most likely there is no memory.
    #[error("tollgate: {0}")]
    Ours(#[from] tollgate::Error),

    /// A rule file of the suite is no good; a mistake in the suite.
    #[error("{0}")]
    Rules(String),

    /// The system gave no memory for the floor.
    #[error("mapping memory: {0}")]
    Memory(std::io::Error),

    /// The process that measures memory could not be started or did not answer.
    #[error("measuring memory in a child process: {0}")]
    Child(String),

    /// A program that takes part could not be installed or started, or failed.
    #[error("{name}: {why}")]
    Program { name: String, why: String },

    /// The store could not decide.
    #[error("{0}")]
    Store(#[from] tollgate_store::StoreError),

    /// A simulated fleet did what none may do.
    #[error("{0}")]
    Fleet(#[from] tollgate_sim::Broken),

    /// Redis did not answer somebody who asks it by hand.
    #[error("redis: {0}")]
    Redis(#[from] redis::RedisError),

    /// A server of this machine did not answer, or no port was to be had.
    #[error("a server that is measured: {0}")]
    Network(std::io::Error),

    /// The report could not be printed.
    #[error("printing the report: {0}")]
    Print(#[from] std::io::Error),

    /// A row or an answer of the child process could not be turned into JSON or back.
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),

    /// A picture was asked for and the rows it is drawn from were filtered away.
    #[error(
        "--svg has nothing to draw: let --only keep the rows that are drawn, in a suite that has some"
    )]
    NothingToDraw,

    /// `--only` matched no row.
    #[error("no row contains {0:?}")]
    NoSuchRow(String),
}

impl From<LimitError> for BenchError {
    fn from(error: LimitError) -> Self {
        Self::Quota { subject: "tollgate", reason: error.to_string() }
    }
}

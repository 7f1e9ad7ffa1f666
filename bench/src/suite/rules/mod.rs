//! Rules at work: matching, overrides, loading, and exchanging them under load.
//!
//! There is no peer that does the same work, so each row is held against ourselves: one bare
//! decision, fewer rules, no overrides, no denial, no exchange.

mod decide;
mod deny;
mod exchange;
mod file;

use super::Session;
use crate::error::BenchError;

/// Measures every row that was asked for.
pub(crate) fn run(session: &mut Session) -> Result<(), BenchError> {
    decide::run(session)?;
    deny::run(session)?;
    exchange::run(session)
}

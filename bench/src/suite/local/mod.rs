//! Decisions in one process, against governor and throttlecrab.
//!
//! Unless a row says otherwise, each side is used as its users use it by default: it reads its own
//! clock once per call, every key is known to it, keys come in random order, and nine decisions in
//! ten are allowed. A key is in a cache when it is decided about, as if it had just been read from
//! a request; what the limiter remembers of it is wherever the limiter keeps it.

mod arrival;
mod bed;
mod growth;
mod hot;
mod memory;
mod uniform;
mod windows;

use super::Session;
use crate::error::BenchError;

/// Measures every row that was asked for.
pub(crate) fn run(session: &mut Session) -> Result<(), BenchError> {
    uniform::run(session)?;
    hot::run(session)?;
    windows::run(session)?;
    memory::run(session)?;
    arrival::run(session)?;
    growth::run(session)
}

const GOVERNOR: &str = "governor";
const THROTTLECRAB: &str = "throttlecrab";
const OURS: &str = "tollgate";

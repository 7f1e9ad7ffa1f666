//! Limits that many nodes share through Redis.
//!
//! Decisions by the store alone are held against what somebody would write by hand: one script for
//! each request, called through the same client library, in the same runtime. A real Redis is started
//! for it, on a free port, and ends with the row. Decisions with what a store has lent are held against
//! the same rules without one.
//!
//! What whole fleets do is simulated, in virtual time: they borrow and lend by the code that is in use, and
//! the network, the clocks and what nodes do around it are the simulator's. Five real nodes, each a process
//! of its own, stand beside them.

mod arrivals;
mod asking;
mod by_hand;
mod client;
mod course;
mod crowd;
mod hot;
mod latency;
mod others;
mod questions;
mod real;
mod renewal;
mod server;
mod simulated;
mod strict;
mod synced;

use super::Session;
use crate::error::BenchError;

/// Measures every row that was asked for.
pub(crate) fn run(session: &mut Session) -> Result<(), BenchError> {
    hot::run(session)?;
    strict::run(session)?;
    latency::run(session)?;
    renewal::run(session)?;
    questions::run(session)?;
    others::run(session)?;
    crowd::run(session)?;
    let real = real::run(session)?;
    simulated::run(session, real)
}

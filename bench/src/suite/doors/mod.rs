//! The server's doors, beside servers that others run: the same load, on the same two cores, in
//! turns.
//!
//! What makes the load is what everybody has: redis-benchmark and wrk. Only gRPC, and the rows about
//! time inside the server, have loads of their own, in `http2` and `pace`.

mod envoy;
mod grpc;
mod http;
mod http2;
mod inside;
mod memory;
mod pace;
pub(super) mod peers;
pub(super) mod process;
mod resp;
pub(super) mod scrape;
mod start;
mod yes;

use std::io;
use std::process::Command;

use super::Session;
use crate::error::BenchError;
use peers::Programs;

/// Measures every row that was asked for.
pub(crate) fn run(session: &mut Session) -> Result<(), BenchError> {
    session.progress.say("building the server, installing what it is compared with");
    let programs = Programs::ready(session)?;
    resp::run(session, &programs)?;
    http::run(session, &programs)?;
    grpc::run(session, &programs)?;
    envoy::run(session, &programs)?;
    inside::run(session, &programs)?;
    memory::run(session, &programs)?;
    start::run(session, &programs)
}

/// Runs a program to its end, and returns what it printed.
fn output(command: &mut Command) -> Result<String, BenchError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |why: String| BenchError::Program { name: name.clone(), why };
    let output = command.output().map_err(|error: io::Error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(failed(format!("{text}{}", String::from_utf8_lossy(&output.stderr)))),
    }
}

/// The keys that every load is about.
const KEYS: usize = 100_000;

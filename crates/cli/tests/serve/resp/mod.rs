//! The door for clients of Redis.

mod allow;
mod cell;
mod client;
mod connect;
mod docs;
mod hostile;
mod libraries;
mod rules;
mod transactions;

pub(crate) use client::{Client, encode};

use crate::support::tool;

/// What a program writes that ends well.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = tool(program).args(arguments).output().unwrap_or_else(|error| {
        panic!("{program} cannot be started: {error}; scripts/test.sh installs what tests need")
    });
    let out = String::from_utf8(output.stdout).unwrap();
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{program} {arguments:?}\n{out}{notes}");
    out + &notes
}

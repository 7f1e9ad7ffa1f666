//! The `tollgate` binary: parse, run, report once.

#![forbid(unsafe_code)]

mod bench;
mod flags;

use std::process::ExitCode;

use clap::Parser as _;

use crate::flags::{Command, Flags};

fn main() -> ExitCode {
    let flags = Flags::parse();
    let outcome = match flags.command {
        Command::Bench(bench) => bench::run(&bench),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tollgate: {error}");
            ExitCode::FAILURE
        }
    }
}

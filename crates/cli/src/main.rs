//! The `tollgate` binary: parse, run, report once.

#![forbid(unsafe_code)]

mod admin;
mod answer;
mod bench;
mod certificates;
mod check;
mod completions;
mod doctor;
mod environment;
mod error;
mod files;
mod finding;
mod flags;
mod lab;
mod man;
mod print;
mod rules;
mod serve;
mod usage;

use std::process::ExitCode;

use clap::Parser as _;

use crate::error::{Ending, Error};
use crate::flags::{Command, Flags};

fn main() -> ExitCode {
    let command = match Flags::try_parse() {
        Ok(flags) => flags.command,
        Err(error) => return usage::report(&error, std::env::args_os()).into(),
    };
    let outcome = match &command {
        Command::Serve(flags) => serve::run(flags),
        Command::Init(flags) => serve::init(flags),
        Command::Bench(flags) => bench::run(flags).map(|()| Ending::Good).map_err(Error::from),
        Command::Check(flags) => check::run(flags),
        Command::Rules(flags) => rules::run(&flags.command),
        Command::Keys(flags) => admin::keys(&flags.command),
        Command::Kill(flags) => admin::kill(flags),
        Command::Unkill(flags) => admin::unkill(flags),
        Command::Drain(flags) => admin::drain(flags),
        Command::Ready(flags) => admin::ready(flags),
        Command::Doctor(flags) => doctor::run(flags),
        Command::Lab(flags) => lab::run(&flags.command),
        Command::LogLevel(flags) => admin::log_level(flags),
        Command::Completions(flags) => completions::run(flags),
        Command::Man(flags) => man::run(flags),
    };
    outcome.unwrap_or_else(|error| error.report(command.output())).into()
}

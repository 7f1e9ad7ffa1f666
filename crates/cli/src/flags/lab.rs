//! What can be said to `tollgate lab`.

use clap::{Args, Subcommand};
use tollgate::Quota;

use super::Output;

/// `tollgate lab`
#[derive(Args, Debug)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

/// What to try.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Run fleets that share limits through all kinds of trouble, and see that no limit is passed
    ///
    /// Each schedule is a fleet of up to twelve nodes and a store in virtual time: messages are lost,
    /// late, repeated and out of order, clocks drift, nodes die, freeze and are cut off, the store
    /// starts again and forgets. Every request that passes is held against the limit. Exits with 1
    /// at the first schedule that breaks a promise, and says how to run that one again.
    #[command(after_help = LENDING)]
    Lending(Lending),
}

impl LabCommand {
    pub(crate) const fn output(&self) -> Output {
        match self {
            Self::Lending(flags) => flags.output,
        }
    }
}

/// `tollgate lab lending`
#[derive(Args, Debug)]
pub(crate) struct Lending {
    /// How many schedules: `500`, `10k`, `5M`
    #[arg(long, value_parser = schedules, default_value = "10k", value_name = "COUNT")]
    pub(crate) schedules: u64,

    /// The first schedule; the others are the numbers after it [default: another one each time]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// How many run at once [default: one per core]
    #[arg(long, value_parser = super::threads)]
    pub(crate) threads: Option<u16>,

    /// How many events before a failure to print
    #[arg(long, default_value_t = 40, value_name = "EVENTS",
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) trace: u32,

    /// Let the store forget without knowing it: what a failure looks like
    #[arg(long)]
    pub(crate) careless_store: bool,

    /// For whom to print what came of it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// A number of schedules, from 1 to a billion.
fn schedules(text: &str) -> Result<u64, String> {
    match Quota::parse_count(text) {
        Ok(count @ 1..=1_000_000_000) => Ok(count),
        _ => Err("write a whole number from 1 to 1000M, such as 500, 10k or 5M".into()),
    }
}

pub(super) const LENDING: &str = "\
A schedule is a function of its seed alone: the same number is the same fleet in
the same trouble, on any machine.

Examples:
  tollgate lab lending
  tollgate lab lending --schedules 5M --seed 1
  tollgate lab lending --schedules 1 --seed 4711 --trace 200
  tollgate lab lending --careless-store";

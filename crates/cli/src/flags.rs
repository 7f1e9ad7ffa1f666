//! What can be said on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A rate limiter that decides in one memory access and never exceeds its limit.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure how fast this machine decides
    ///
    /// Runs decisions on random keys of tables of several sizes, one by one and in batches, and
    /// prints what each takes. Nothing is sent anywhere.
    Bench(Bench),
}

/// `tollgate bench`
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// How many keys: `1k`, `100k`, `10M`, several with commas
    #[arg(long, value_delimiter = ',', value_parser = count, default_value = "1k,100k,1M,10M")]
    pub(crate) keys: Vec<u64>,

    /// How many threads decide at once, several with commas [default: 1 and one per core]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Vec<u16>,

    /// The limit of every key
    #[arg(long, default_value = "1M/h", value_name = "QUOTA")]
    pub(crate) limit: tollgate::Quota,

    /// Which algorithm keeps the limit
    #[arg(long, value_enum, default_value_t = Algorithm::TokenBucket)]
    pub(crate) algorithm: Algorithm,

    /// A short run: figures are rough
    #[arg(long)]
    pub(crate) quick: bool,

    /// For whom to print the figures
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// For whom something is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Text,
    /// For programs: one JSON object a line
    Json,
}

/// The algorithms with a state of fixed size.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Algorithm {
    TokenBucket,
    FixedWindow,
    SlidingWindow,
}

/// A number of keys, from 1 to 100 million.
fn count(text: &str) -> Result<u64, String> {
    match tollgate::Quota::parse_count(text) {
        Ok(count @ 1..=MAX_KEYS) => Ok(count),
        _ => Err("write a whole number from 1 to 100M, such as 500, 1k or 10M".into()),
    }
}

/// Under 2.4 GB.
const MAX_KEYS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_flags_are_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn figures_are_for_people_unless_asked_otherwise() {
        let output = |arguments: &[&str]| {
            let Command::Bench(bench) = Flags::try_parse_from(arguments).unwrap().command;
            bench.output
        };
        assert_eq!(output(&["tollgate", "bench"]), Output::Text);
        assert_eq!(output(&["tollgate", "bench", "--output", "json"]), Output::Json);
    }

    #[test]
    fn keys_are_counted_as_people_write_them() {
        assert_eq!(count("1k"), Ok(1_000));
        assert_eq!(count("10M"), Ok(10_000_000));
        assert_eq!(count("7"), Ok(7));
        for bad in ["", "0", "-1", "k", "1.5k", "1G", "101M", "99999999999999999999M"] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }
}

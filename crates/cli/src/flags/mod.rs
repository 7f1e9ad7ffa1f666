//! What can be said on the command line.

mod admin;
mod doctor;
mod lab;
mod rules;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::admin::{
    Drain, Keys, KeysCommand, KeysInspect, KeysReset, KeysTop, Kill, KillMode, LogLevel, Ready,
    Remote, RulesPush, RulesShow, Server, TlsFlags, Unkill, Which,
};
pub(crate) use self::doctor::Doctor;
pub(crate) use self::lab::{Lab, LabCommand, Lending};
pub(crate) use self::rules::{
    ImportFrom, Rules, RulesCheck, RulesCommand, RulesDiff, RulesExplain, RulesFmt, RulesImport,
    RulesSchema, RulesTest,
};
pub(crate) use self::serve::{Init, Listen, Serve};

/// A rate limiter that decides in one memory access and never exceeds its limit.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer whether requests may pass, over HTTP, forward-auth, RESP and gRPC
    ///
    /// Starts with example rules and counters in memory if nothing is said, and says where it
    /// listens and what to try.
    #[command(after_help = serve::SERVING)]
    Serve(Box<Serve>),

    /// Write a rule file to start from, with comments
    Init(Init),

    /// Measure how fast this machine decides
    ///
    /// Runs decisions on random keys of tables of several sizes, one by one and in batches, and
    /// prints what each takes. Nothing is sent anywhere.
    #[command(after_help = BENCHES)]
    Bench(Bench),

    /// Decide about a request by the rules of a file
    ///
    /// Decides with empty counters, as if the request were the first one, and prints what is
    /// answered and why. With `--times`, the same request is made several times at one instant, and
    /// the last answer is printed. Exits with 1 if a request is denied.
    #[command(after_help = REQUESTS)]
    Check(Check),

    /// Check, test, explain, compare, format and import rule files; show and push those in force
    Rules(Rules),

    /// Look at keys of a server that runs, and reset them
    Keys(Keys),

    /// Take a rule of a server that runs out of force, or all of them, at once
    ///
    /// It stays so until `tollgate unkill`, also when the rules change.
    Kill(Kill),

    /// Put a rule back in force that was killed, or all of them
    Unkill(Unkill),

    /// Have a server end: first not ready, then with an answer for whoever has asked
    Drain(Drain),

    /// Ask a server whether requests should be sent to it
    ///
    /// Exits with 0 if so, with 1 if it is about to end, and with 2 if it does not answer.
    #[command(after_help = READY)]
    Ready(Ready),

    /// Look at a store of shared limits, and say what is wrong with it and what to do
    ///
    /// Reaches it as a server would, and looks at everything that makes it a good or a bad place
    /// for counters. What is there stays as it is: one key is written and removed at once. Exits with
    /// 1 if there is a problem; warnings alone are no problem.
    #[command(after_help = doctor::LOOKS)]
    Doctor(Doctor),

    /// Try out what takes longer than a test: for those who work on Tollgate
    Lab(Lab),

    /// Show or change the level of a server's log
    LogLevel(LogLevel),

    /// Print what a shell needs to complete the flags of this program
    ///
    /// For bash: `tollgate completions bash > /etc/bash_completion.d/tollgate`.
    Completions(Completions),

    /// Print the manual page of this program, or write those of all commands to a folder
    #[command(after_help = MAN)]
    Man(Man),
}

impl Command {
    /// For whom the command prints, and so also what goes wrong.
    pub(crate) const fn output(&self) -> Output {
        match self {
            Self::Bench(Bench { output, .. }) | Self::Check(Check { output, .. }) => *output,
            Self::Rules(Rules { command }) => command.output(),
            Self::Keys(Keys { command }) => command.output(),
            Self::Lab(Lab { command }) => command.output(),
            Self::Kill(Kill { remote, .. })
            | Self::Unkill(Unkill { remote, .. })
            | Self::Drain(Drain { remote })
            | Self::LogLevel(LogLevel { remote, .. }) => remote.output,
            Self::Ready(Ready { output, .. }) | Self::Doctor(Doctor { output, .. }) => *output,
            Self::Completions(_) | Self::Man(_) | Self::Serve(_) | Self::Init(_) => Output::Text,
        }
    }
}

/// `tollgate check`
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// The rule file; `-` reads standard input
    pub(crate) file: String,

    /// The request, in one line
    #[arg(long, value_name = "LINE")]
    pub(crate) request: String,

    /// How often it is made, up to 100k: `100`, `10k`
    #[arg(long, value_parser = times, default_value = "1")]
    pub(crate) times: u64,

    /// For whom to print the answer
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `tollgate completions`
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// `tollgate man`
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Where to write one page for each command [default: print the first one]
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

/// `tollgate bench`
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// How many keys: `1k`, `100k`, `10M`, several with commas
    #[arg(long, value_delimiter = ',', value_parser = count, default_value = "1k,100k,1M,10M")]
    pub(crate) keys: Vec<u64>,

    /// How many threads decide at once, several with commas [default: 1 and one per core]
    #[arg(long, value_delimiter = ',', value_parser = threads)]
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

/// A number of requests, from 1 to 100,000.
fn times(text: &str) -> Result<u64, String> {
    match tollgate::Quota::parse_count(text) {
        Ok(times @ 1..=MAX_TIMES) => Ok(times),
        _ => Err("write a whole number from 1 to 100k, such as 100 or 10k".into()),
    }
}

/// A number of threads, from 1 to 1024.
fn threads(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("write a whole number from 1 to 1024".into()),
    }
}

const EXIT_CODES: &str = "\
Exit codes: 0 all is well; 1 rules are wrong or differ, tests failed, requests
were denied, a store has a problem or a promise was broken; 2 the command line
is wrong, a file cannot be read or written, or a server cannot be reached or
refuses.
Colours are for terminals, and off if NO_COLOR is set.";

const REQUESTS: &str = "\
A request is written as its method, its path, and what else is known of it:
  GET /v1/items?page=2 user=u1 claims.plan=free ip=192.0.2.7
  POST /login host=api.example.com header.x-plan=a body.username=\"a b\"
`ip` is the other end of the connection, and `tier=pro` stands for whatever the
rules find tiers by. Values with blanks stand in double quotes.

Examples:
  tollgate check rules.yaml --request 'GET /v1/items user=u1' --times 101
  tollgate rules explain rules.yaml --request 'POST /login ip=192.0.2.7'";

const READY: &str = "\
Examples:
  tollgate ready
  tollgate ready --server unix:/run/tollgate/status.sock";

const MAN: &str = "\
Examples:
  tollgate man | man -l -
  tollgate man /usr/local/share/man/man1";

const BENCHES: &str = "\
Examples:
  tollgate bench --quick
  tollgate bench --keys 1M --threads 1,2,4 --output json";

/// As many answers are kept while they are under way.
const MAX_TIMES: u64 = 100_000;

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
        let output =
            |arguments: &[&str]| Flags::try_parse_from(arguments).unwrap().command.output();
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

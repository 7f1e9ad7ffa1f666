//! What can be said on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Measure how fast this machine decides
    ///
    /// Runs decisions on random keys of tables of several sizes, one by one and in batches, and
    /// prints what each takes. Nothing is sent anywhere.
    Bench(Bench),

    /// Decide about a request by the rules of a file
    ///
    /// Decides with empty counters, as if the request were the first one, and prints what is
    /// answered and why. With `--times`, the same request is made several times at one instant, and
    /// the last answer is printed. Exits with 1 if a request is denied.
    #[command(after_help = REQUESTS)]
    Check(Check),

    /// Check, test, explain and format rule files
    Rules(Rules),

    /// Print what a shell needs to complete the flags of this program
    ///
    /// For bash: `tollgate completions bash > /etc/bash_completion.d/tollgate`.
    Completions(Completions),
}

impl Command {
    /// For whom the command prints, and so also what goes wrong.
    pub(crate) const fn output(&self) -> Output {
        match self {
            Self::Bench(Bench { output, .. })
            | Self::Check(Check { output, .. })
            | Self::Rules(
                Rules { command: RulesCommand::Check(RulesCheck { output, .. }) }
                | Rules { command: RulesCommand::Explain(RulesExplain { output, .. }) }
                | Rules { command: RulesCommand::Test(RulesTest { output, .. }) }
                | Rules { command: RulesCommand::Fmt(RulesFmt { output, .. }) },
            ) => *output,
            Self::Completions(_) => Output::Text,
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

/// `tollgate rules`
#[derive(Args, Debug)]
pub(crate) struct Rules {
    #[command(subcommand)]
    pub(crate) command: RulesCommand,
}

/// What to do with rule files.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Say what is wrong with a rule file, or what its rules are
    ///
    /// Reports everything that is wrong in one go, each with its place and a remedy, and exits with
    /// 1. Of a good file it prints one line for each rule: read them, for people misread rates.
    Check(RulesCheck),

    /// Say which rules apply to a request, and what they would answer
    ///
    /// Nothing is counted: the answers are those to the first request of its kind.
    #[command(after_help = REQUESTS)]
    Explain(RulesExplain),

    /// Run the tests of rule files
    ///
    /// Tests stand under `tests` in a rule file, or in files that it names there. They run in
    /// simulated time, each with empty counters, and exit with 1 if one fails.
    #[command(after_help = TESTS)]
    Test(RulesTest),

    /// Write rule files in their canonical form
    ///
    /// Fields are put in the order of the reference, two spaces a level; comments stay where they
    /// belong. A file is replaced as a whole or not at all. Standard input is written to standard
    /// output.
    Fmt(RulesFmt),
}

/// `tollgate rules check`
#[derive(Args, Debug)]
pub(crate) struct RulesCheck {
    /// The rule file; `-` reads standard input
    pub(crate) file: String,

    /// Fail on warnings as well
    #[arg(long)]
    pub(crate) strict: bool,

    /// For whom to print what was found
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `tollgate rules explain`
#[derive(Args, Debug)]
pub(crate) struct RulesExplain {
    /// The rule file; `-` reads standard input
    pub(crate) file: String,

    /// The request, in one line
    #[arg(long, value_name = "LINE")]
    pub(crate) request: String,

    /// For whom to print the explanation
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `tollgate rules test`
#[derive(Args, Debug)]
pub(crate) struct RulesTest {
    /// The rule files; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,

    /// For whom to print the results
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `tollgate rules fmt`
#[derive(Args, Debug)]
pub(crate) struct RulesFmt {
    /// The rule files; `-` reads standard input and writes to standard output
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,

    /// Write nothing; exit with 1 if a file would change
    #[arg(long, conflicts_with = "stdout")]
    pub(crate) check: bool,

    /// Write to standard output, and leave the files as they are
    #[arg(long)]
    pub(crate) stdout: bool,

    /// For whom to print what was done
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
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

/// A number of requests, from 1 to 100,000.
fn times(text: &str) -> Result<u64, String> {
    match tollgate::Quota::parse_count(text) {
        Ok(times @ 1..=MAX_TIMES) => Ok(times),
        _ => Err("write a whole number from 1 to 100k, such as 100 or 10k".into()),
    }
}

const EXIT_CODES: &str = "\
Exit codes: 0 all is well; 1 rules are wrong, tests failed or requests were denied;
2 the command line is wrong or a file cannot be read or written.
Colours are for terminals, and off if NO_COLOR is set.";

const REQUESTS: &str = "\
A request is written as its method, its path, and what else is known of it:
  GET /v1/items?page=2 user=u1 claims.plan=free ip=192.0.2.7
  POST /login host=api.example.com header.x-plan=a body.username=\"a b\"
`ip` is the other end of the connection, and `tier=pro` stands for whatever the
rules find tiers by. Values with blanks stand in double quotes.";

const TESTS: &str = "\
A test in a rule file:
  tests:
    - name: a free user gets 100 a minute
      given: { request: GET /v1/items user=u1 claims.plan=free, times: 101 }
      expect: { allowed: 100, denied_by: per-user, retry_after: <= 1s }";

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

//! What can be said of rule files on the command line.

use clap::{Args, Subcommand, ValueEnum};
use tollgate_rules::ImportKind;

use super::{Output, REQUESTS, RulesPush, RulesShow};

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
    /// Reports everything that is wrong in one go, each with its place and a remedy, and then exits
    /// with 1. Of a good file it says every rule back in plain words: read them, for people misread
    /// rates.
    #[command(after_help = CHECKS)]
    Check(RulesCheck),

    /// Say why rules apply to a request or do not, and what they would answer
    ///
    /// Of every rule that applies: what it counts by, which limit it has for this request, what it
    /// costs, and the answer. Of every other rule: what is in its way. Nothing is counted: the
    /// answers are those to the first request of its kind.
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
    #[command(after_help = FORMATS)]
    Fmt(RulesFmt),

    /// Say what another version of the rules changes
    ///
    /// Compares what files mean, not how they are written: a file in TOML may be compared with one
    /// in YAML. Says of each rule whether it becomes stricter or looser, where that can be told.
    /// Exits with 1 if something changes.
    #[command(after_help = DIFFS)]
    Diff(RulesDiff),

    /// Print the JSON Schema of rule files
    ///
    /// Editors use it to complete fields and to mark mistakes.
    #[command(after_help = SCHEMAS)]
    Schema(RulesSchema),

    /// Make a rule file of the limits of other software
    ///
    /// The rule file is printed, and what was not carried over as it was is said on standard error,
    /// with its line. Rules that lost a condition only count (`mode: shadow`) until you have looked
    /// at them.
    #[command(after_help = IMPORTS)]
    Import(RulesImport),

    /// Show the rules of a server that runs, and which of them are killed
    Show(RulesShow),

    /// Put the rules of a file in force on a server that runs
    ///
    /// Checks the file first, and says what changes. What is counted goes on, and what is killed
    /// stays killed. The server keeps them until its own rule file changes, or until it ends.
    #[command(after_help = PUSHES)]
    Push(RulesPush),
}

impl RulesCommand {
    /// For whom the command prints.
    pub(super) const fn output(&self) -> Output {
        match self {
            Self::Check(RulesCheck { output, .. })
            | Self::Explain(RulesExplain { output, .. })
            | Self::Test(RulesTest { output, .. })
            | Self::Fmt(RulesFmt { output, .. })
            | Self::Diff(RulesDiff { output, .. })
            | Self::Schema(RulesSchema { output })
            | Self::Import(RulesImport { output, .. }) => *output,
            Self::Show(RulesShow { remote }) | Self::Push(RulesPush { remote, .. }) => {
                remote.output
            }
        }
    }
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

/// `tollgate rules diff`
#[derive(Args, Debug)]
pub(crate) struct RulesDiff {
    /// The rules as they are; `-` reads standard input
    pub(crate) old: String,

    /// The rules as they shall be; `-` reads standard input
    pub(crate) new: String,

    /// For whom to print the changes
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `tollgate rules schema`
#[derive(Args, Debug)]
pub(crate) struct RulesSchema {
    /// For whom to print it: for programs, it is one line
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `tollgate rules import`
#[derive(Args, Debug)]
pub(crate) struct RulesImport {
    /// Whose limits they are
    #[arg(value_enum)]
    pub(crate) from: ImportFrom,

    /// The file with the limits; `-` reads standard input
    pub(crate) file: String,

    /// Which of the namespaces in a file of Limitador
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Write the rules to this file, which must not be there
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<String>,

    /// Replace the file if it is there
    #[arg(long, requires = "out")]
    pub(crate) force: bool,

    /// Exit with 1 if something was not carried over as it was
    #[arg(long)]
    pub(crate) strict: bool,

    /// For whom to print the rules and the notes
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// Whose limits are imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFrom {
    /// A domain of envoyproxy/ratelimit, in YAML
    Envoy,
    /// The limits of Limitador, in YAML
    Limitador,
    /// The configuration of nginx, best what `nginx -T` prints
    Nginx,
}

impl ImportFrom {
    pub(crate) fn kind(self, namespace: Option<String>) -> ImportKind {
        match self {
            Self::Envoy => ImportKind::Envoy,
            Self::Limitador => ImportKind::Limitador { namespace },
            Self::Nginx => ImportKind::Nginx,
        }
    }
}

const PUSHES: &str = "\
Examples:
  tollgate rules push rules.yaml --dry-run
  tollgate rules push rules.yaml --server 10.0.0.7:4299 --token-file token";

const CHECKS: &str = "\
Examples:
  tollgate rules check rules.yaml
  tollgate rules check --strict --output json - < rules.yaml";

const TESTS: &str = "\
A test in a rule file:
  tests:
    - name: a free user gets 100 a minute
      given: { request: GET /v1/items user=u1 claims.plan=free, times: 101 }
      expect: { allowed: 100, denied_by: per-user, retry_after: <= 1s }

Examples:
  tollgate rules test rules.yaml
  tollgate rules test *.yaml --output json";

const FORMATS: &str = "\
Examples:
  tollgate rules fmt rules.yaml
  tollgate rules fmt --check *.yaml";

const DIFFS: &str = "\
Examples:
  tollgate rules diff rules.yaml new.yaml
  git show main:rules.yaml | tollgate rules diff - rules.yaml";

const SCHEMAS: &str = "\
Examples:
  tollgate rules schema > rules.schema.json
A rule file then names it in its first line, for editors:
  # yaml-language-server: $schema=rules.schema.json";

const IMPORTS: &str = "\
Examples:
  nginx -T | tollgate rules import nginx - --out rules.yaml
  tollgate rules import envoy shop.yaml --strict
  tollgate rules import limitador limits.yaml --namespace shop";

//! Why a command did not do what it was asked to, and how the program ends.

use std::io;
use std::process::ExitCode;

use tollgate_doors::LoadError;
use tollgate_rules::{ImportError, Report, RequestLineError, Source};
use tollgate_store::StoreError;

use crate::admin::AdminError;
use crate::bench;
use crate::finding::{self, Finding, Findings};
use crate::flags::Output;
use crate::print;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// All is well.
    Good,
    /// Rules are wrong or differ, tests failed, a request was denied, a store has a problem, or a
    /// promise was broken.
    Findings,
    /// The command line is wrong, or a file cannot be read or written.
    Failure,
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        Self::from(match ending {
            Ending::Good => 0,
            Ending::Findings => 1,
            Ending::Failure => 2,
        })
    }
}

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file cannot be read; nothing was done with it.
    #[error("{file} cannot be read: {error}")]
    Read {
        file: String,
        #[source]
        error: io::Error,
    },
    /// A file cannot be written, and is as it was.
    #[error("{file} cannot be written: {error}")]
    Write {
        file: String,
        #[source]
        error: io::Error,
    },
    /// A file that was to be written is there already, and stays as it is.
    #[error("{file} is there already")]
    Exists { file: String },
    /// A file is of no use to speak TLS with a store; nobody was asked.
    #[error("{file} {problem}")]
    Certificate { file: String, problem: String, remedy: &'static str },
    /// Flags that do not go together; nothing was done.
    #[error("{message}")]
    Usage { message: &'static str, remedy: &'static str },
    /// Nothing was imported.
    #[error("{error}")]
    Import {
        file: String,
        #[source]
        error: ImportError,
    },
    /// The rules in a file cannot be used.
    #[error("the rules in {} cannot be used", text.name())]
    Rules { text: Box<Source>, report: Report },
    /// The request on the command line is none.
    #[error("{error}")]
    Request {
        line: String,
        #[source]
        error: RequestLineError,
    },
    /// There can be no engine for these rules, here and now.
    #[error("these rules cannot be kept: {0}")]
    Engine(#[from] tollgate::Error),
    /// The configuration cannot be used; nothing was started.
    #[error("{}{error}", file.as_ref().map(|file| format!("{file}: ")).unwrap_or_default())]
    Config {
        file: Option<String>,
        #[source]
        error: tollgate_doors::ConfigError,
    },
    /// The rules to serve cannot be used; nothing was started.
    #[error("{error}")]
    Load {
        #[source]
        error: LoadError,
    },
    /// A door cannot be opened; nothing is served.
    #[error("{0}")]
    Start(#[from] tollgate_doors::StartError),
    /// These rules cannot be served.
    #[error("{0}")]
    Swap(#[from] tollgate_doors::SwapError),
    /// The operating system does not let us.
    #[error("cannot serve: {0}")]
    System(#[source] io::Error),
    /// A server did not do what it was asked to.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// That is no store; nobody was asked.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// There are no figures.
    #[error(transparent)]
    Bench(#[from] bench::Error),
    /// Nobody reads what is printed.
    #[error("cannot print: {0}")]
    Print(#[source] io::Error),
}

impl Error {
    /// How the program ends with this.
    pub(crate) fn ending(&self) -> Ending {
        match self {
            Self::Rules { .. }
            | Self::Load { error: LoadError::Rules { .. } }
            | Self::Import { error: ImportError::Unreadable { .. } | ImportError::Empty, .. } => {
                Ending::Findings
            }
            Self::Admin(error) => error.ending(),
            _ => Ending::Failure,
        }
    }

    /// A short name of what is wrong, for programs.
    const fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "unreadable-file",
            Self::Write { .. } => "unwritable-file",
            Self::Exists { .. } => "file-exists",
            Self::Certificate { .. } => "bad-certificate",
            Self::Usage { .. } => "bad-flags",
            Self::Import { error: ImportError::Namespace { .. }, .. } => "unknown-namespace",
            Self::Import { .. } => "no-limits",
            Self::Rules { .. } => "bad-rules",
            Self::Request { .. } => "bad-request",
            Self::Engine(_) => "no-engine",
            Self::Config { .. } => "bad-config",
            Self::Load { .. } => "bad-rules",
            Self::Start(_) => "no-door",
            Self::Swap(_) => "no-engine",
            Self::System(_) => "no-server",
            Self::Admin(error) => error.code(),
            Self::Store(_) => "bad-store",
            Self::Bench(_) => "no-figures",
            Self::Print(_) => "no-output",
        }
    }

    /// What it comes down to.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let alone = |file: Option<&str>, column: Option<usize>, remedy: &str| {
            vec![Finding::error(self.code(), file, column, &self.to_string(), remedy)]
        };
        match self {
            Self::Rules { text, report }
            | Self::Import { error: ImportError::Unreadable { report, file: text }, .. } => {
                finding::of_report(text, report)
            }
            Self::Import { file, error } => alone(Some(file), None, import_remedy(error)),
            Self::Exists { file } => alone(Some(file), None, "add `--force` to replace it"),
            Self::Certificate { file, remedy, .. } => alone(Some(file), None, remedy),
            Self::Usage { remedy, .. } => alone(None, None, remedy),
            Self::Read { file, .. } => {
                alone(Some(file), None, "name a file of text in UTF-8 that you may read")
            }
            Self::Write { file, .. } => {
                alone(Some(file), None, "see that you may write in its folder")
            }
            Self::Request { line, error } => {
                let column = line.get(..error.at()).map_or(1, |before| before.chars().count() + 1);
                alone(None, Some(column), &error.remedy())
            }
            Self::Engine(_) => alone(None, None, "count fewer keys, or with fewer limits"),
            Self::Config { .. } | Self::Load { .. } => alone(None, None, "mend the file"),
            Self::Start(_) => alone(None, None, "give the door another address, or `off`"),
            Self::Swap(_) => alone(None, None, "count fewer keys, or with fewer limits"),
            Self::System(_) => alone(None, None, "see what the system says"),
            Self::Admin(error) => alone(None, None, error.remedy()),
            Self::Store(error) => alone(None, None, store_remedy(error)),
            Self::Bench(_) => alone(None, None, "measure with other flags"),
            Self::Print(_) => alone(None, None, "see who reads the output"),
        }
    }

    /// How many more there are than anybody would read.
    const fn left_out(&self) -> usize {
        match self {
            Self::Rules { report, .. }
            | Self::Import { error: ImportError::Unreadable { report, .. }, .. }
            | Self::Load { error: LoadError::Rules { report, .. } } => report.left_out(),
            _ => 0,
        }
    }

    /// Reports it, once.
    pub(crate) fn report(&self, output: Output) -> Ending {
        if let Self::Print(error) | Self::Bench(bench::Error::Print(error)) = self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            // Whoever read us has seen enough, and not what came after.
            return self.ending();
        }
        match output {
            Output::Text => print::note(&self.to_text(print::note_colours())),
            Output::Json => {
                // If that cannot be printed either, the exit code has to do.
                let _ =
                    print::json(&Findings { findings: self.findings(), left_out: self.left_out() });
            }
        }
        self.ending()
    }

    /// For people.
    pub(crate) fn to_text(&self, colours: bool) -> String {
        match self {
            Self::Rules { text, report }
            | Self::Import { error: ImportError::Unreadable { report, file: text }, .. } => {
                match colours {
                    true => report.to_coloured_text(text),
                    false => report.to_text(text),
                }
            }
            Self::Import { file, error } => {
                format!("tollgate: {file}: {error}\nhelp: {}\n", import_remedy(error))
            }
            Self::Load { error: error @ LoadError::Rules { .. } } => {
                format!("{}\n", error.to_text().trim_end())
            }
            Self::Start(_) => {
                format!("tollgate: {self}\nhelp: give the door another address, or `off`\n")
            }
            Self::Admin(error) if !error.remedy().is_empty() => {
                format!("tollgate: {self}\nhelp: {}\n", error.remedy())
            }
            Self::Exists { .. } => format!("tollgate: {self}\nhelp: add `--force` to replace it\n"),
            Self::Usage { remedy, .. } | Self::Certificate { remedy, .. } => {
                format!("tollgate: {self}\nhelp: {remedy}\n")
            }
            Self::Store(error) => format!("tollgate: {self}\nhelp: {}\n", store_remedy(error)),
            Self::Request { line, error } => {
                let before = line.get(..error.at()).map_or(0, |before| before.chars().count());
                let (blank, remedy) = (" ".repeat(before), error.remedy());
                format!("tollgate: {self}\n\n  {line}\n  {blank}^\n\nhelp: {remedy}\n")
            }
            _ => format!("tollgate: {self}\n"),
        }
    }
}

const fn import_remedy(error: &ImportError) -> &'static str {
    match error {
        ImportError::Namespace { .. } => "name one of them: `--namespace NAME`",
        _ => "see that the file is of the kind that you named",
    }
}

const fn store_remedy(error: &StoreError) -> &'static str {
    match error {
        StoreError::NoTls { .. } => "write rediss:// in place of redis://, or name no certificates",
        _ => {
            "write redis://user:password@host:6379, or see `tollgate doctor --help` for other ways"
        }
    }
}

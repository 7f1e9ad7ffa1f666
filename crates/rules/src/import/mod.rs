//! Limits of other software as a rule file.
//!
//! An import never guesses in silence: what could not be carried over, or means something else
//! here, is an [`ImportNote`] with its line, and a comment in the rule file that comes out. A rule
//! whose condition got lost would deny those whom nobody wanted to deny, so it only counts
//! (`mode: shadow`) until somebody has looked at it. Regular expressions are such conditions: rules
//! have none. A limit of 0 is no limit but a refusal, which rules cannot say: it is left out, and
//! the head of the file says so. What comes out can always be loaded.

mod envoy;
mod limitador;
mod nginx;
mod rule_file;

use std::fmt;

use self::rule_file::RuleFile;
use crate::diagnostic::{Diagnostic, Report};
use crate::document::{Document, Node, Value};
use crate::read::{Fields, Reader};
use crate::source::{Source, Span};

/// Whose limits they are.
///
/// ```
/// use tollgate_rules::ImportKind;
/// assert_eq!(ImportKind::of("envoy"), Some(ImportKind::Envoy));
/// assert_eq!(ImportKind::of("limitador"), Some(ImportKind::Limitador { namespace: None }));
/// assert_eq!(ImportKind::of("apache"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportKind {
    /// A domain of envoyproxy/ratelimit, in YAML.
    Envoy,
    /// The list of limits of Limitador, in YAML.
    Limitador {
        /// Which of the file's namespaces: a rule file holds one. None: the only one.
        namespace: Option<String>,
    },
    /// The configuration of nginx.
    Nginx,
}

impl ImportKind {
    /// What commands call them.
    pub const NAMES: [&str; 3] = ["envoy", "limitador", "nginx"];

    /// The kind of this name.
    ///
    /// ```
    /// use tollgate_rules::ImportKind;
    /// assert!(ImportKind::NAMES.iter().all(|name| ImportKind::of(name).is_some()));
    /// ```
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "envoy" => Some(Self::Envoy),
            "limitador" => Some(Self::Limitador { namespace: None }),
            "nginx" => Some(Self::Nginx),
            _ => None,
        }
    }
}

/// A rule file, and what to know about how it came about.
///
/// ```
/// use tollgate_rules::{ImportKind, import};
/// let text = "domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: minute, requests_per_unit: 9 } }]";
/// let imported = import(ImportKind::Envoy, "shop.yaml", text)?;
/// assert!(imported.yaml.contains("limit: 9/min"));
/// assert!(imported.notes.is_empty());
/// # Ok::<(), tollgate_rules::ImportError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The rule file, in its canonical form.
    pub yaml: String,
    /// What was not carried over as it was, in the order of the text.
    pub notes: Vec<ImportNote>,
    /// How many directives had nothing to do with limits. Of nginx only: other files have nothing
    /// else in them.
    pub ignored: usize,
}

/// Something that was not carried over, or that means something else here.
///
/// ```
/// use tollgate_rules::{ImportKind, import};
/// let text = "limit_req_zone $cookie_id zone=a:1m rate=5r/s;\nlimit_req_status 429;\nlimit_req zone=a;";
/// let notes = import(ImportKind::Nginx, "nginx.conf", text)?.notes;
/// assert_eq!(notes[0].line, 1);
/// assert!(notes[0].to_string().starts_with("line 1: "));
/// # Ok::<(), tollgate_rules::ImportError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportNote {
    /// The line in the text that was imported, from 1.
    pub line: usize,
    /// What is different now.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.message, self.remedy)
    }
}

/// Why nothing was imported. The text is at fault, or what was asked of it.
///
/// ```
/// use tollgate_rules::{ImportError, ImportKind, import};
/// let error = import(ImportKind::Nginx, "nginx.conf", "http {\n  server {\n").unwrap_err();
/// assert!(matches!(error, ImportError::Unreadable { .. }));
/// assert!(error.to_string().contains("nginx.conf:2:3"), "{error}");
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text cannot be read, or lacks what it must have.
    #[error("{}", report.to_text(file))]
    Unreadable {
        /// What is wrong with it.
        report: Report,
        /// The text, for messages with its lines.
        file: Box<Source>,
    },
    /// There are several namespaces, or none of the name that was asked for.
    #[error("choose one of the namespaces in this file: {}", there.join(", "))]
    Namespace {
        /// Those that the file has.
        there: Vec<String>,
    },
    /// There are no limits in the text.
    #[error("there are no limits in this file: is it of another kind?")]
    Empty,
}

/// Makes a rule file of another software's limits. `name` is what messages call the text.
///
/// ```
/// use tollgate_rules::{ImportKind, import};
/// let text = "limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s;
/// limit_req_status 429;
/// server { location /api/ { limit_req zone=one burst=20 nodelay; } }";
/// let imported = import(ImportKind::Nginx, "nginx.conf", text)?;
/// assert_eq!(imported.yaml, "# Imported from nginx.conf.
/// version: 1
/// namespace: nginx
///
/// rules:
///   - name: one
///     match: { path: /api/** }
///     key: [ip]
///     limit: 10/s
///     burst: 21
///     algorithm: token_bucket
/// ");
/// # Ok::<(), tollgate_rules::ImportError>(())
/// ```
pub fn import(kind: ImportKind, name: &str, text: &str) -> Result<Imported, ImportError> {
    let source = Source::new(name, text);
    let imported = match kind {
        ImportKind::Envoy => envoy::import(&source),
        ImportKind::Limitador { namespace } => limitador::import(&source, namespace.as_deref()),
        ImportKind::Nginx => nginx::import(&source),
    };
    imported.map_err(|failure| match failure {
        Failure::Report(report) => {
            ImportError::Unreadable { report, file: Box::new(source.clone()) }
        }
        Failure::Namespace(there) => ImportError::Namespace { there },
        Failure::Empty => ImportError::Empty,
    })
}

/// Why an importer gave up.
#[derive(Debug)]
enum Failure {
    Report(Report),
    Namespace(Vec<String>),
    Empty,
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Self::Report(report)
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        let mut report = Report::default();
        report.add(diagnostic);
        Self::Report(report)
    }
}

/// The notes of an import, each said once.
struct Notes<'a> {
    source: &'a Source,
    /// Where lines begin: looking for the line of each note anew would take the square of the
    /// text's length.
    lines: Vec<usize>,
    notes: Vec<ImportNote>,
    left_out: usize,
}

impl<'a> Notes<'a> {
    /// The most notes of one import.
    const MAX: usize = 1000;

    fn new(source: &'a Source) -> Self {
        let breaks = source.text().bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = breaks.map(|(at, _)| at).collect();
        Self { source, lines, notes: Vec::new(), left_out: 0 }
    }

    fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|at| *at < offset) + 1
    }

    fn add(&mut self, offset: usize, message: impl Into<String>, remedy: impl Into<String>) {
        if self.notes.len() == Self::MAX {
            self.left_out += 1;
            return;
        }
        let line = self.line(offset);
        self.notes.push(ImportNote { line, message: message.into(), remedy: remedy.into() });
    }

    fn finish(mut self) -> Vec<ImportNote> {
        self.notes.sort();
        self.notes.dedup();
        if self.left_out > 0 {
            let line = self.line(self.source.text().len());
            let message = format!("there were {} more notes", self.left_out);
            let remedy = "import the file in parts".to_owned();
            self.notes.push(ImportNote { line, message, remedy });
        }
        self.notes
    }
}

/// A limit that lets nothing pass is left out.
fn zero(file: &mut RuleFile, notes: &mut Notes<'_>, name: &str, at: usize) {
    let message = format!("the limit `{name}` of 0 denied every request, and is left out");
    notes.add(at, message, "deny these requests in front of Tollgate");
    file.leave_out(name, "its limit was 0, and no rule denies every request");
}

/// The root of a text in YAML.
fn parsed(source: &Source) -> Result<Document, Failure> {
    // The name says how our own files are written; what is imported is YAML whatever its name.
    let yaml = Source::new("import.yaml", source.text());
    Ok(Document::parse(&yaml)?)
}

/// The fields of a map; those that are not known are noted, not refused.
fn fields<'n>(
    reader: &mut Reader<'_>,
    notes: &mut Notes<'_>,
    node: &'n Node,
    what: &str,
    known: &[&str],
) -> Option<Fields<'n>> {
    let mut all = known.to_vec();
    if let Value::Map(fields) = &node.value {
        for field in fields {
            if !known.contains(&field.name.as_str()) {
                let message = format!("`{}` of {what} is not known", field.name);
                notes.add(field.span.start, message, "look up what it does, and write it by hand");
            }
            all.push(&field.name);
        }
    }
    reader.fields(node, what, &all)
}

/// A whole number, and where it stands.
fn number(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<(u64, Span)> {
    let value = reader.parsed(node, what, "100", str::parse::<u64>)?;
    Some((value.value, value.span()))
}

#[cfg(test)]
mod tests;

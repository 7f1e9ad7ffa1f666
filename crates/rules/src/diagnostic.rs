//! What is wrong with a rule file: all of it, each with its place and a remedy.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::excerpt::Excerpt;
use crate::source::{Place, Source, Span};

/// One thing that is wrong, or probably not meant, in a rule file.
///
/// ```
/// use tollgate_rules::{Document, Source};
/// let source = Source::new("rules.yaml", "rules: [");
/// let report = Document::parse(&source).unwrap_err();
/// let [diagnostic] = report.diagnostics() else { panic!("one is enough") };
/// assert_eq!(diagnostic.code(), "syntax");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    severity: Severity,
    code: &'static str,
    message: String,
    span: Span,
    label: String,
    remedy: String,
}

/// Whether a file with this can be used.
///
/// ```
/// use tollgate_rules::Severity;
/// assert!(Severity::Error > Severity::Warning);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can, but it hardly says what was meant.
    Warning,
    /// It cannot.
    Error,
}

impl Diagnostic {
    /// The longest message, in characters: what a file says is repeated in part.
    const MAX_TEXT: usize = 1_000;

    /// An error at a place. `label` stands below the underlined text, `remedy` says what to do.
    pub(crate) fn error(
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (message, label) = (printable(message.into()), printable(label.into()));
        let remedy = printable(remedy.into());
        Self { severity: Severity::Error, code, message, span, label, remedy }
    }

    /// The same, as a warning.
    pub(crate) const fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// How bad it is.
    ///
    /// ```
    /// # use tollgate_rules::{Document, Severity, Source};
    /// # let report = Document::parse(&Source::new("rules.yaml", "a: 1\na: 2")).unwrap_err();
    /// assert_eq!(report.diagnostics()[0].severity(), Severity::Error);
    /// ```
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// A short name of what is wrong, the same in every version: for programs, and to look up.
    ///
    /// ```
    /// # use tollgate_rules::{Document, Source};
    /// # let report = Document::parse(&Source::new("rules.yaml", "a: 1\na: 2")).unwrap_err();
    /// assert_eq!(report.diagnostics()[0].code(), "duplicate-field");
    /// ```
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// What is wrong.
    ///
    /// ```
    /// # use tollgate_rules::{Document, Source};
    /// # let report = Document::parse(&Source::new("rules.yaml", "a: 1\na: 2")).unwrap_err();
    /// assert_eq!(report.diagnostics()[0].message(), "`a` is given twice");
    /// ```
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    ///
    /// ```
    /// # use tollgate_rules::{Document, Source};
    /// # let report = Document::parse(&Source::new("rules.yaml", "a: 1\na: 2")).unwrap_err();
    /// assert_eq!(report.diagnostics()[0].remedy(), "keep one of them");
    /// ```
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// Where it begins.
    ///
    /// ```
    /// # use tollgate_rules::{Document, Source};
    /// let source = Source::new("rules.yaml", "a: 1\na: 2");
    /// let report = Document::parse(&source).unwrap_err();
    /// assert_eq!(report.diagnostics()[0].place(&source).to_string(), "2:1");
    /// ```
    pub fn place(&self, source: &Source) -> Place {
        source.place(self.span.start)
    }

    fn render(&self, source: &Source, line: usize, renderer: &Renderer) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let excerpt = Excerpt::of(source.text(), &self.span);
        let label = AnnotationKind::Primary.span(excerpt.span).label(self.label.as_str());
        let snippet = Snippet::source(excerpt.text).line_start(line).annotation(label);
        let title = level.primary_title(self.message.as_str()).id(self.code);
        let title = match excerpt.column {
            None => title.element(snippet.path(source.name())),
            // The place is that in the file, not that in what is shown of it.
            Some(column) => {
                let origin = Origin::path(source.name()).line(line).char_column(column);
                title.element(origin).element(snippet)
            }
        };
        let remedy = Group::with_title(Level::HELP.secondary_title(self.remedy.as_str()));
        renderer.render(&[title, remedy])
    }
}

/// All that was found in one file, in the order of the text.
///
/// ```
/// use tollgate_rules::{Document, Source};
/// let source = Source::new("rules.yaml", "a: 1\na: 2\n");
/// let text = Document::parse(&source).unwrap_err().to_text(&source);
/// assert!(text.contains("rules.yaml:2:1"), "{text}");
/// assert!(text.contains("keep one of them"), "{text}");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    diagnostics: Vec<Diagnostic>,
    /// How many of them are errors.
    errors: usize,
    /// How many more there were.
    left_out: usize,
}

impl Report {
    /// The most that is reported of one file: whoever has mended these runs the check again.
    pub const MAX: usize = 100;

    /// What was found.
    ///
    /// ```
    /// assert!(tollgate_rules::Report::default().diagnostics().is_empty());
    /// ```
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// How many were found beyond [`Report::MAX`].
    ///
    /// ```
    /// assert_eq!(tollgate_rules::Report::default().left_out(), 0);
    /// ```
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether the file cannot be used.
    ///
    /// ```
    /// assert!(!tollgate_rules::Report::default().has_errors());
    /// ```
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Errors come before warnings where there is no room for both: a file with one of them is not
    /// to be used.
    pub(crate) fn add(&mut self, diagnostic: Diagnostic) {
        let is_error = diagnostic.severity == Severity::Error;
        let fits = self.diagnostics.len() < Self::MAX;
        if fits {
            self.diagnostics.push(diagnostic);
        } else {
            self.left_out += 1;
            let is_warning = |it: &Diagnostic| it.severity == Severity::Warning;
            let place = self.diagnostics.iter().rposition(is_warning).filter(|_| is_error);
            let Some(place) = place else { return };
            self.diagnostics[place] = diagnostic;
        }
        self.errors += usize::from(is_error);
    }

    /// An error that takes work to tell of: that is not done where nobody would be told.
    pub(crate) fn add_error(&mut self, make: impl FnOnce() -> Diagnostic) {
        match self.errors < Self::MAX {
            true => self.add(make()),
            false => self.left_out += 1,
        }
    }

    pub(crate) fn sort(&mut self) {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    }

    /// For a terminal without colours, or a log: every diagnostic with its line, underlined.
    ///
    /// ```
    /// # use tollgate_rules::{Report, Source};
    /// assert_eq!(Report::default().to_text(&Source::new("a", "")), "");
    /// ```
    pub fn to_text(&self, source: &Source) -> String {
        self.rendered(source, &Renderer::plain())
    }

    /// The same in colours.
    ///
    /// ```
    /// # use tollgate_rules::{Report, Source};
    /// assert_eq!(Report::default().to_coloured_text(&Source::new("a", "")), "");
    /// ```
    pub fn to_coloured_text(&self, source: &Source) -> String {
        self.rendered(source, &Renderer::styled())
    }

    fn rendered(&self, source: &Source, renderer: &Renderer) -> String {
        let mut text = String::new();
        let (mut at, mut line) = (0, 1);
        for diagnostic in &self.diagnostics {
            let start = diagnostic.span.start.min(source.text().len());
            // In the order of the text, each line of which is counted once.
            if start < at {
                (at, line) = (0, 1);
            }
            line += lines(&source.text().as_bytes()[at..start]);
            at = start;
            text.push_str(&diagnostic.render(source, line, renderer));
            text.push_str("\n\n");
        }
        if self.left_out > 0 {
            text.push_str(&format!("... and {} more\n", self.left_out));
        }
        text
    }
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// Text for a message. It may come from a file, whose author decides neither how long a message is
/// nor what it does to a terminal.
fn printable(text: String) -> String {
    let odd = |c: char| c.is_control() || is_direction(c);
    let cut = text.char_indices().nth(Diagnostic::MAX_TEXT).map(|(at, _)| at);
    if cut.is_none() && !text.contains(odd) {
        return text;
    }
    let mut printable = String::new();
    for c in text[..cut.unwrap_or(text.len())].chars() {
        match odd(c) {
            true => printable.extend(c.escape_unicode()),
            false => printable.push(c),
        }
    }
    printable.push_str(if cut.is_some() { "..." } else { "" });
    printable
}

/// Signs that turn the direction of what follows: it would then read as something else.
const fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

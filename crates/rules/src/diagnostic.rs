//! What is wrong with a rule file: all of it, each with its place and a remedy.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

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
    /// An error at a place. `label` stands below the underlined text, `remedy` says what to do.
    pub(crate) fn error(
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (message, label, remedy) = (message.into(), label.into(), remedy.into());
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

    fn render(&self, source: &Source, renderer: &Renderer) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        // A place within a text that is written with escapes may be within a letter of the file.
        let text = source.text();
        let start = text.floor_char_boundary(self.span.start);
        let span = start..text.ceil_char_boundary(self.span.end).max(start);
        let snippet = Snippet::source(text)
            .path(source.name())
            .annotation(AnnotationKind::Primary.span(span).label(self.label.as_str()));
        let title = level.primary_title(self.message.as_str()).id(self.code);
        let remedy = Group::with_title(Level::HELP.secondary_title(self.remedy.as_str()));
        renderer.render(&[title.element(snippet), remedy])
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
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    pub(crate) fn add(&mut self, diagnostic: Diagnostic) {
        match self.diagnostics.len() < Self::MAX {
            true => self.diagnostics.push(diagnostic),
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
        for diagnostic in &self.diagnostics {
            text.push_str(&diagnostic.render(source, renderer));
            text.push_str("\n\n");
        }
        if self.left_out > 0 {
            text.push_str(&format!("... and {} more\n", self.left_out));
        }
        text
    }
}

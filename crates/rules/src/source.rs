//! The text of a rule file, and places in it.

use std::ops::Range;

/// A file as it was read: its name for messages, and its text.
///
/// ```
/// use tollgate_rules::Source;
/// let source = Source::new("rules.yaml", "version: 1\nrules: []\n");
/// let place = source.place(11);
/// assert_eq!((place.line, place.column), (2, 1));
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    format: Format,
}

/// How a rule file is written. Both are read into the same tree; JSON is YAML that happens to have
/// braces.
///
/// ```
/// use tollgate_rules::Format;
/// assert_eq!(Format::of("limits/rules.toml"), Format::Toml);
/// assert_eq!(Format::of("rules.json"), Format::Yaml);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2, or JSON.
    Yaml,
    /// TOML 1.
    Toml,
}

impl Format {
    /// What the name of a file says about it.
    pub fn of(name: &str) -> Self {
        let toml = name.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("toml"));
        if toml { Self::Toml } else { Self::Yaml }
    }
}

/// A place for people: both count from 1, columns in characters.
///
/// ```
/// use tollgate_rules::Source;
/// assert_eq!(Source::new("a", "é: x").place(4).to_string(), "1:4");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A part of a source, in bytes.
pub(crate) type Span = Range<usize>;

impl Source {
    /// The longest file that is read, in bytes. Ten thousand rules take about 2 MB.
    pub const MAX_BYTES: usize = 64 << 20;

    /// A source of this name. The name says how it is written.
    ///
    /// ```
    /// let source = tollgate_rules::Source::new("rules.yaml", "version: 1");
    /// assert_eq!(source.name(), "rules.yaml");
    /// ```
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let name = name.into();
        Self { format: Format::of(&name), name, text: text.into() }
    }

    /// What messages call it.
    ///
    /// ```
    /// assert_eq!(tollgate_rules::Source::new("a.toml", "").name(), "a.toml");
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of it.
    ///
    /// ```
    /// assert_eq!(tollgate_rules::Source::new("a.yaml", "version: 1").text(), "version: 1");
    /// ```
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How it is written.
    ///
    /// ```
    /// use tollgate_rules::{Format, Source};
    /// assert_eq!(Source::new("a.toml", "").format(), Format::Toml);
    /// ```
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Where the byte at `offset` stands. Beyond the end, where the text ends.
    ///
    /// ```
    /// use tollgate_rules::Source;
    /// assert_eq!(Source::new("a", "x\ny").place(99).to_string(), "2:2");
    /// ```
    pub fn place(&self, offset: usize) -> Place {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // Every character but its first byte looks like this in UTF-8.
        let inner = |byte: &&u8| **byte & 0xC0 == 0x80;
        let column = before.len() - start - before[start..].iter().filter(inner).count() + 1;
        Place { line, column }
    }
}

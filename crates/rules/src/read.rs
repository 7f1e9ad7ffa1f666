//! Reading values out of a tree: what does not fit is reported, and the rest is read on.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_core::{Period, Quota};

use crate::attribute::{Attribute, AttributeError};
use crate::condition::ExpressionError;
use crate::diagnostic::{Diagnostic, Report};
use crate::document::{Field, Node, Value};
use crate::source::Span;

/// Reads values, and keeps what it has to say about them.
pub(crate) struct Reader<'r> {
    report: &'r mut Report,
}

/// A value that was read, and where it stands: for those who find later that it does not go with
/// another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    start: usize,
    end: usize,
}

impl<T> At<T> {
    pub(crate) const fn new(value: T, span: &Span) -> Self {
        Self { value, start: span.start, end: span.end }
    }

    pub(crate) const fn span(&self) -> Span {
        self.start..self.end
    }
}

/// The fields of a map, by name.
pub(crate) struct Fields<'n> {
    fields: BTreeMap<&'n str, &'n Field>,
    pub(crate) span: Span,
}

impl<'n> Fields<'n> {
    /// The value of a field that was given, and is not null.
    pub(crate) fn get(&self, name: &str) -> Option<&'n Node> {
        let node = &self.fields.get(name)?.value;
        (node.value != Value::Null).then_some(node)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Where the field's name stands; the whole map if it is missing.
    pub(crate) fn name_span(&self, name: &str) -> Span {
        self.fields.get(name).map_or_else(|| self.span.clone(), |field| field.span.clone())
    }
}

impl<'r> Reader<'r> {
    pub(crate) const fn new(report: &'r mut Report) -> Self {
        Self { report }
    }

    pub(crate) fn add(&mut self, diagnostic: Diagnostic) {
        self.report.add(diagnostic);
    }

    /// See [`Report::add_error`].
    pub(crate) fn add_error(&mut self, make: impl FnOnce() -> Diagnostic) {
        self.report.add_error(make);
    }

    /// The fields of `what`, all of which must be known.
    pub(crate) fn fields<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        known: &[&str],
    ) -> Option<Fields<'n>> {
        let Value::Map(fields) = &node.value else {
            self.wrong_type(node, what, &format!("a map of fields: {}", listed(known)));
            return None;
        };
        for field in fields {
            if !known.contains(&field.name.as_str()) {
                self.unknown_field(field, what, known);
            } else if field.value.value == Value::Null {
                self.empty_field(field);
            }
        }
        let fields = fields.iter().map(|field| (field.name.as_str(), field)).collect();
        Some(Fields { fields, span: node.span.clone() })
    }

    /// An empty `match` would match everything, an empty `block_for` block nobody: hardly what
    /// somebody meant who wrote the name down.
    pub(crate) fn empty_field(&mut self, field: &Field) {
        let message = format!("`{}` is empty", shortened(&field.name));
        let remedy = "give it a value, or take it out";
        let span = field.span.clone();
        self.add(Diagnostic::error("empty-field", span, message, "nothing follows", remedy));
    }

    fn unknown_field(&mut self, field: &Field, what: &str, known: &[&str]) {
        self.add_error(|| {
            let message = format!("{what} has no field `{}`", shortened(&field.name));
            let remedy = did_you_mean(&field.name, known)
                .unwrap_or_else(|| format!("the fields are {}", listed(known)));
            let span = field.span.clone();
            Diagnostic::error("unknown-field", span, message, "not a field", remedy)
        });
    }

    /// The text of a value; numbers are text as well.
    pub(crate) fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.value {
            Value::Text(text) | Value::Number(text) => Some(text),
            _ => {
                self.wrong_type(node, what, "text");
                None
            }
        }
    }

    /// Text that `parse` understands, or says what is wrong with.
    pub(crate) fn parsed<T, E: std::fmt::Display>(
        &mut self,
        node: &Node,
        what: &str,
        example: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<At<T>> {
        let text = self.text(node, what)?;
        match parse(text) {
            Ok(value) => Some(At::new(value, &node.span)),
            Err(error) => {
                let text = shortened(text);
                let message = format!("`{text}` is no good as {what}: {error}");
                let (span, remedy) =
                    (node.span.clone(), format!("write something like `{example}`"));
                self.add(Diagnostic::error("bad-value", span, message, "this value", remedy));
                None
            }
        }
    }

    /// The value of a field that must be there.
    pub(crate) fn required<'n>(
        &mut self,
        fields: &Fields<'n>,
        what: &str,
        name: &str,
        remedy: &str,
    ) -> Option<&'n Node> {
        let node = fields.get(name);
        if node.is_none() {
            self.missing(fields, what, name, remedy);
        }
        node
    }

    /// What a request can be counted by.
    pub(crate) fn attribute(&mut self, node: &Node) -> Option<Attribute> {
        let text = self.text(node, "an attribute")?;
        match text.parse() {
            Ok(attribute) => Some(attribute),
            Err(error) => {
                self.bad_attribute(&node.span, &error);
                None
            }
        }
    }

    pub(crate) fn bad_attribute(&mut self, span: &Span, error: &AttributeError) {
        let (message, remedy) = (error.to_string(), error.remedy());
        self.add(Diagnostic::error("unknown-attribute", span.clone(), message, "this", remedy));
    }

    /// A name that can be a metric label, a header value and a column of a page.
    pub(crate) fn name<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        let name = self.text(node, what)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        if !name.is_empty() && name.len() <= Self::MAX_NAME && name.chars().all(fits) {
            return Some(name);
        }
        let message = format!("`{}` cannot be the name of {what}", shortened(name));
        let remedy = "use 1 to 64 letters, digits, and `-_.:/`";
        let span = node.span.clone();
        self.add(Diagnostic::error("bad-name", span, message, "this name", remedy));
        None
    }

    /// The longest name, in bytes.
    pub(crate) const MAX_NAME: usize = 64;

    /// A length of time.
    pub(crate) fn duration(&mut self, node: &Node, what: &str) -> Option<Duration> {
        let parse = |text: &str| text.parse::<Period>();
        Some(self.parsed(node, what, "15min", parse)?.value.as_duration())
    }

    /// A whole number, with `k`, `M` and `G` for thousands, millions and milliards.
    pub(crate) fn count(&mut self, node: &Node, what: &str) -> Option<At<u64>> {
        self.parsed(node, what, "10k", Quota::parse_count)
    }

    /// An expression: what is wrong with it is shown where it is.
    pub(crate) fn expression<T>(
        &mut self,
        node: &Node,
        what: &str,
        parse: impl FnOnce(&str) -> Result<T, ExpressionError>,
    ) -> Option<T> {
        let text = self.text(node, what)?;
        match parse(text) {
            Ok(expression) => Some(expression),
            Err(error) => {
                // Quotes and escapes may stand before the place: then the whole text is meant.
                let plain = node.span.len() == text.len();
                let start = node.span.start + if plain { error.at().min(text.len()) } else { 0 };
                let message = format!("{what} cannot be evaluated: {error}");
                let (span, remedy) = (start..node.span.end, error.remedy());
                self.add(Diagnostic::error("bad-expression", span, message, "from here", remedy));
                None
            }
        }
    }

    /// True or false.
    pub(crate) fn boolean(&mut self, node: &Node, what: &str) -> Option<bool> {
        match node.value {
            Value::Bool(value) => Some(value),
            _ => {
                self.wrong_type(node, what, "`true` or `false`");
                None
            }
        }
    }

    /// One of several words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        node: &Node,
        what: &str,
        choices: &[(&str, T)],
    ) -> Option<At<T>> {
        let text = self.text(node, what)?;
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(At::new(*value, &node.span));
        }
        self.add_error(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            let message = format!("there is no {what} `{}`", shortened(text));
            let remedy = did_you_mean(text, &names)
                .unwrap_or_else(|| format!("choose one of {}", listed(&names)));
            let span = node.span.clone();
            Diagnostic::error("unknown-choice", span, message, "not a choice", remedy)
        });
        None
    }

    /// The items of a list. Whoever has only one may leave the brackets out.
    pub(crate) fn items<'n>(&self, node: &'n Node) -> &'n [Node] {
        match &node.value {
            Value::List(nodes) => nodes,
            _ => std::slice::from_ref(node),
        }
    }

    /// The items of something that must be a list.
    pub(crate) fn list<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(nodes) => Some(nodes),
            _ => {
                self.wrong_type(node, what, "a list");
                None
            }
        }
    }

    pub(crate) fn wrong_type(&mut self, node: &Node, what: &str, wanted: &str) {
        let kind = node.value.kind();
        let message = format!("{what} must be {wanted}, not {kind}");
        let remedy = format!("write {wanted}");
        let span = first_line(node);
        self.add(Diagnostic::error("wrong-type", span, message, format!("this is {kind}"), remedy));
    }

    /// A field that must be there is not.
    pub(crate) fn missing(&mut self, fields: &Fields<'_>, what: &str, name: &str, remedy: &str) {
        let message = format!("{what} has no `{name}`");
        let span = fields.span.start..fields.span.start;
        self.add(Diagnostic::error("missing-field", span, message, "in here", remedy));
    }
}

/// Maps and lists may be pages long; what is underlined is where they begin.
fn first_line(node: &Node) -> Span {
    match node.value {
        Value::List(_) | Value::Map(_) => node.span.start..node.span.start,
        _ => node.span.clone(),
    }
}

/// Words in backticks with commas.
pub(crate) fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// A question about the nearest of the known words, if any is near. Only the first few hundred
/// that can be are compared, which takes the product of the lengths.
pub(crate) fn did_you_mean(word: &str, known: &[&str]) -> Option<String> {
    const MAX_COMPARED: usize = 256;
    let most = |known: &str| 1 + known.len() / 4;
    let can_be =
        |known: &&str| known.len().abs_diff(word.len()) <= most(known) || known.starts_with(word);
    let distance = |known: &&str| strsim::osa_distance(word, known);
    let short = word.len() <= 2 * Reader::MAX_NAME;
    let known = known.iter().copied().filter(|known| short && can_be(known));
    let nearest = known.take(MAX_COMPARED).min_by_key(distance)?;
    let near = distance(&nearest) <= most(nearest) || nearest.starts_with(word);
    near.then(|| format!("did you mean `{nearest}`?"))
}

/// Text for a message: what is long loses its end.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

//! YAML, and with it JSON, into a tree. What makes YAML dangerous is refused: anchors, which can
//! be made to unfold without end, and tags, which say what a value is and not what it looks like.

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span as YamlSpan};

use super::{Document, Field, Node, Value, too_deep};
use crate::diagnostic::Diagnostic;
use crate::source::Span;

pub(super) fn parse(text: &str) -> Result<Node, Diagnostic> {
    let options = granit_parser::options! {
        flow_nesting_limit: LIMIT,
        block_nesting_limit: LIMIT,
        emit_unresolved_aliases: true,
    };
    let events = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder { text, open: Vec::new(), root: None, documents: 0 };
    for event in events {
        let (event, span) = event.map_err(|error| syntax(text, &error))?;
        builder.take(event, &span)?;
    }
    let end = text.len();
    Ok(builder.root.unwrap_or(Node { span: end..end, value: Value::Null }))
}

/// The parser's own bound stands behind ours, which knows where it was passed.
const LIMIT: usize = Document::MAX_DEPTH + 1;

/// Puts the events of a parser together.
struct Builder<'a> {
    text: &'a str,
    /// Lists and maps that have begun, the innermost last.
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
}

enum Open {
    List { start: usize, nodes: Vec<Node> },
    Map { start: usize, fields: Vec<Field>, name: Option<(String, Span)> },
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: &YamlSpan) -> Result<(), Diagnostic> {
        let span = self.bytes(span);
        match event {
            Event::DocumentStart(..) => self.begin_document(span),
            Event::SequenceStart(_, anchor, tag) => {
                refuse_properties(anchor, tag.is_some(), &span)?;
                self.open(Open::List { start: span.start, nodes: Vec::new() }, span)
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse_properties(anchor, tag.is_some(), &span)?;
                self.open(Open::Map { start: span.start, fields: Vec::new(), name: None }, span)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.place(open.close(span.end)),
                None => Ok(()),
            },
            Event::Scalar(text, style, anchor, tag) => {
                refuse_properties(anchor, tag.is_some(), &span)?;
                self.place(Node { span, value: scalar(&text, style) })
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(no_anchors(span)),
            _ => Ok(()),
        }
    }

    fn begin_document(&mut self, span: Span) -> Result<(), Diagnostic> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        let remedy = "put the rules of both into one list, or into two files";
        let message = "there is a second document in this file";
        Err(Diagnostic::error("one-document", span, message, "it begins here", remedy))
    }

    fn open(&mut self, open: Open, span: Span) -> Result<(), Diagnostic> {
        if self.open.len() == Document::MAX_DEPTH {
            return Err(too_deep(span));
        }
        self.open.push(open);
        Ok(())
    }

    /// A value is complete: it belongs into the innermost list or map.
    fn place(&mut self, node: Node) -> Result<(), Diagnostic> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { nodes, .. }) => nodes.push(node),
            Some(Open::Map { fields, name, .. }) => match name.take() {
                Some((name, span)) => fields.push(Field { name, span, value: node }),
                None => *name = Some((field_name(node.value, &node.span)?, node.span)),
            },
        }
        Ok(())
    }

    /// A span in bytes, within the text, its ends between characters.
    fn bytes(&self, span: &YamlSpan) -> Span {
        let range = span.byte_range().unwrap_or(0..0);
        let end = self.text.floor_char_boundary(range.end);
        self.text.floor_char_boundary(range.start).min(end)..end
    }
}

impl Open {
    fn close(self, end: usize) -> Node {
        let (start, value) = match self {
            Self::List { start, nodes } => (start, Value::List(nodes)),
            Self::Map { start, fields, .. } => (start, Value::Map(fields)),
        };
        Node { span: start..end.max(start), value }
    }
}

fn field_name(value: Value, span: &Span) -> Result<String, Diagnostic> {
    match value {
        Value::Text(text) | Value::Number(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        other => {
            let message = format!("{} stands where the name of a field belongs", other.kind());
            let remedy = "write `name: value`";
            Err(Diagnostic::error("field-name", span.clone(), message, "not a name", remedy))
        }
    }
}

/// What a scalar is, by the core schema of YAML 1.2 less its octal and hexadecimal numbers: `yes`
/// is a word, and `0x1f` is not a rate.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if is_number(text) => Value::Number(text.to_owned()),
        _ => Value::Text(text.to_owned()),
    }
}

/// Digits, with a sign, a fraction or an exponent.
fn is_number(text: &str) -> bool {
    let begins = text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit());
    begins && text.parse::<f64>().is_ok()
}

fn refuse_properties(anchor: usize, tagged: bool, span: &Span) -> Result<(), Diagnostic> {
    if anchor != 0 {
        return Err(no_anchors(span.clone()));
    }
    if tagged {
        let remedy = "leave the tag out: values are read by what they look like";
        let message = "tags are not allowed";
        return Err(Diagnostic::error("no-tags", span.clone(), message, "has a tag", remedy));
    }
    Ok(())
}

fn no_anchors(span: Span) -> Diagnostic {
    let remedy = "write the value out; what many rules share belongs into `defaults`";
    let message = "anchors and aliases are not allowed";
    Diagnostic::error("no-anchors", span, message, "anchor or alias", remedy)
}

fn syntax(text: &str, error: &ScanError) -> Diagnostic {
    use granit_parser::ErrorKind;
    let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
    let at = text.floor_char_boundary(at);
    let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => too_deep(at..end),
        _ => {
            let message = format!("this cannot be read as YAML: {}", error.info());
            let remedy = "mend the syntax; what follows it was not looked at";
            Diagnostic::error("syntax", at..end, message, "here", remedy)
        }
    }
}

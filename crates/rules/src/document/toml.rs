//! TOML into a tree.

use toml::de::{DeTable, DeValue};

use super::{Document, Field, Node, Value, too_deep};
use crate::diagnostic::Diagnostic;
use crate::source::Span;

pub(super) fn parse(text: &str) -> Result<Node, Diagnostic> {
    let table = DeTable::parse(text).map_err(|error| syntax(text, &error))?;
    Ok(Node { span: 0..text.len(), value: map(table.get_ref(), 1)? })
}

fn node(value: &toml::Spanned<DeValue<'_>>, depth: usize) -> Result<Node, Diagnostic> {
    let span = value.span();
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Number(number.to_string()),
        DeValue::Float(number) => Value::Number(number.to_string()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(_) => return Err(no_dates(span)),
        DeValue::Array(_) | DeValue::Table(_) if depth == Document::MAX_DEPTH => {
            return Err(too_deep(span));
        }
        DeValue::Array(values) => Value::List(
            values.iter().map(|value| node(value, depth + 1)).collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => map(table, depth + 1)?,
    };
    Ok(Node { span, value })
}

fn map(table: &DeTable<'_>, depth: usize) -> Result<Value, Diagnostic> {
    let field = |(name, value): (&toml::Spanned<_>, _)| -> Result<_, Diagnostic> {
        let name: &toml::Spanned<std::borrow::Cow<'_, str>> = name;
        let value = node(value, depth)?;
        Ok(Field { name: name.get_ref().to_string(), span: name.span(), value })
    };
    let mut fields = table.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    // The parser sorts them by name.
    fields.sort_by_key(|field| field.span.start);
    Ok(Value::Map(fields))
}

fn no_dates(span: Span) -> Diagnostic {
    let remedy = "put it in quotes if it is text";
    Diagnostic::error("no-dates", span, "no field takes a date", "a date", remedy)
}

fn syntax(text: &str, error: &toml::de::Error) -> Diagnostic {
    let span = error.span().unwrap_or(text.len()..text.len());
    let end = text.floor_char_boundary(span.end);
    let span = text.floor_char_boundary(span.start).min(end)..end;
    // The parser has its own bound, and two ways to say so.
    if error.message().contains("recurs") {
        return too_deep(span);
    }
    let reason = error.message().replace('\n', ", ");
    let message = format!("this cannot be read as TOML: {reason}");
    let remedy = "mend the syntax; what follows it was not looked at";
    Diagnostic::error("syntax", span, message, "here", remedy)
}

//! A layout as JSON.

use super::layout::{Entry, Group, Item, Layout};
use super::print::WIDTH;
use super::scalar;
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::source::{Source, Span};

/// Comments are not JSON, and neither are numbers such as `+1`: files that have them are refused.
pub(super) fn print(source: &Source, layout: &Layout<'_>) -> Result<String, Diagnostic> {
    let mut text = String::new();
    value(&mut text, &layout.root, 0, 0)?;
    text.push('\n');
    let comments = layout.header.iter().chain(&layout.footer).next().is_some()
        || matches!(&layout.root, Item::Group(group) if has_comments(group));
    match comments {
        true => Err(no_comments(source)),
        false => Ok(text),
    }
}

fn value(
    text: &mut String,
    item: &Item<'_>,
    indent: usize,
    column: usize,
) -> Result<(), Diagnostic> {
    let group = match item {
        Item::Scalar { value, span, .. } => {
            text.push_str(&scalar_text(value, span)?);
            return Ok(());
        }
        Item::Group(group) => group,
    };
    if let Some(inline) = inline(group)?
        && (column + inline.chars().count() < WIDTH || group.entries.is_empty())
    {
        text.push_str(&inline);
        return Ok(());
    }
    let (open, close) = if group.map { ('{', '}') } else { ('[', ']') };
    text.push(open);
    for (index, entry) in group.entries.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&" ".repeat(indent + 2));
        let name = name(entry);
        text.push_str(&name);
        value(text, &entry.item, indent + 2, indent + 2 + name.chars().count())?;
    }
    text.push('\n');
    text.push_str(&" ".repeat(indent));
    text.push(close);
    Ok(())
}

/// A list of scalars, or a map of what fits on one line.
fn inline(group: &Group<'_>) -> Result<Option<String>, Diagnostic> {
    let mut parts = Vec::new();
    for entry in &group.entries {
        let value = match &entry.item {
            _ if !(group.inline && group.one_line) => None,
            Item::Scalar { value, span, .. } => Some(scalar_text(value, span)?),
            Item::Group(inner) if group.map => inline(inner)?,
            Item::Group(_) => None,
        };
        match value {
            Some(value) => parts.push(name(entry) + &value),
            None => return Ok(None),
        }
    }
    let parts = parts.join(", ");
    Ok(Some(match (group.map, parts.is_empty()) {
        (true, true) => "{}".to_owned(),
        (true, false) => format!("{{ {parts} }}"),
        (false, _) => format!("[{parts}]"),
    }))
}

fn name(entry: &Entry<'_>) -> String {
    entry.name.map(|name| format!("{}: ", scalar::double_quoted(name))).unwrap_or_default()
}

fn scalar_text(value: &Value, span: &Span) -> Result<String, Diagnostic> {
    match value {
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) if is_json_number(number) => Ok(number.clone()),
        Value::Number(number) => {
            let message = format!("`{number}` is not how JSON writes a number");
            let remedy = "write it with digits first and last, without `+`";
            Err(Diagnostic::error("not-json", span.clone(), message, "this number", remedy))
        }
        Value::Text(text) => Ok(scalar::double_quoted(text)),
        _ => Ok("null".to_owned()),
    }
}

fn is_json_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let whole = text.split(['.', 'e', 'E']).next().unwrap_or_default();
    let fraction =
        text.split_once('.').is_none_or(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()));
    !whole.is_empty()
        && whole.bytes().all(|byte| byte.is_ascii_digit())
        && (whole == "0" || !whole.starts_with('0'))
        && fraction
}

fn has_comments(group: &Group<'_>) -> bool {
    use super::layout::Lead;
    let said = |leads: &[Lead<'_>]| leads.iter().any(|lead| *lead != Lead::Blank);
    said(&group.footer)
        || group.entries.iter().any(|entry| {
            let inner = matches!(&entry.item, Item::Group(group) if has_comments(group));
            inner || entry.trailing.is_some() || said(&entry.leading)
        })
}

fn no_comments(source: &Source) -> Diagnostic {
    let message = "JSON has no comments, and this file has some";
    let remedy = "name the file `.yaml`: all JSON is YAML, and YAML has comments";
    let at = source.text().find('#').unwrap_or(0);
    Diagnostic::error("json-comment", at..at, message, "", remedy)
}

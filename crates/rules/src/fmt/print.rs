//! A layout as YAML.

use super::layout::{Entry, Group, Item, Layout, Lead};
use super::order::is_rules;
use super::scalar::{self, Style};
use crate::document::Value;

/// What is longer does not stay on one line.
pub(super) const WIDTH: usize = 100;

/// Comments behind longer lines do not push those of their neighbours to the right.
const ALIGNED: usize = 60;

/// A line to be written.
enum Line {
    Blank,
    Text { indent: usize, text: String, comment: Option<String> },
}

pub(super) fn print(layout: Layout<'_>) -> String {
    let mut lines = Vec::new();
    leads(&mut lines, &layout.header, 0);
    match layout.root {
        Item::Group(group) if group.entries.is_empty() => {
            lines.push(Line::text(0, if group.map { "{}" } else { "[]" }));
        }
        Item::Group(group) => {
            let first = group.entries.first().and_then(|entry| entry.leading.first());
            // What was the first field may have an empty line above that it keeps.
            if !lines.is_empty() && first == Some(&Lead::Blank) {
                lines.push(Line::Blank);
            }
            entries(&mut lines, group, 0, false);
        }
        Item::Scalar { value: Value::Null, .. } => {}
        Item::Scalar { value, style, .. } => {
            lines.push(Line::text(0, inline_scalar(value, &style, false)));
        }
    }
    leads(&mut lines, &layout.footer, 0);
    joined(&lines)
}

fn leads(lines: &mut Vec<Line>, leads: &[Lead<'_>], indent: usize) {
    lines.extend(leads.iter().map(|lead| match lead {
        Lead::Blank => Line::Blank,
        Lead::Comment(text) => Line::text(indent, *text),
    }));
}

fn entries(lines: &mut Vec<Line>, group: Group<'_>, indent: usize, apart: bool) {
    for (index, mut entry) in group.entries.into_iter().enumerate() {
        hoist(&mut entry);
        let blanks = entry.leading.iter().take_while(|lead| **lead == Lead::Blank).count();
        if index == 0 {
            entry.leading.drain(..blanks);
        } else if apart {
            // One empty line between rules, above what is said about the next one.
            entry.leading.splice(..blanks, [Lead::Blank]);
            if entry.leading.len() > 1 && entry.leading.last() == Some(&Lead::Blank) {
                entry.leading.pop();
            }
        }
        leads(lines, &entry.leading, indent);
        print_entry(lines, entry, indent);
    }
    leads(lines, &group.footer, indent);
}

/// Comments about the first field of an item cannot stand between the dash and the field.
fn hoist(entry: &mut Entry<'_>) {
    if entry.name.is_some() {
        return;
    }
    let stays = fits(entry, 0);
    let Item::Group(group) = &mut entry.item else { return };
    if stays || group.entries.is_empty() {
        return;
    }
    entry.leading.extend(entry.trailing.take().map(Lead::Comment));
    if let Some(first) = group.entries.first_mut() {
        hoist(first);
        entry.leading.extend(first.leading.drain(..).filter(|lead| *lead != Lead::Blank));
    }
}

fn print_entry(lines: &mut Vec<Line>, entry: Entry<'_>, indent: usize) {
    let fits = fits(&entry, indent);
    let start = start(&entry);
    let comment = entry.trailing.map(str::to_owned);
    let apart = is_rules(&entry);
    match entry.item {
        Item::Scalar { value: Value::Text(text), style: Style::Literal, .. }
            if scalar::literal(text).is_some() =>
        {
            let (header, body) = scalar::literal(text).unwrap_or_default();
            lines.push(Line::Text { indent, text: format!("{start} {header}"), comment });
            block(lines, body.into_iter(), indent);
        }
        Item::Scalar { style: Style::Folded { header, lines: body }, .. } => {
            lines.push(Line::Text { indent, text: format!("{start} {header}"), comment });
            block(lines, body.iter().map(String::as_str), indent);
        }
        Item::Scalar { value, style, .. } => {
            let text = format!("{start} {}", inline_scalar(value, &style, false));
            lines.push(Line::Text { indent, text, comment });
        }
        Item::Group(group) if fits || group.entries.is_empty() => {
            let text = format!("{start} {}", inline_group(&group).unwrap_or_default());
            lines.push(Line::Text { indent, text, comment });
        }
        Item::Group(group) if entry.name.is_some() => {
            lines.push(Line::Text { indent, text: start, comment });
            entries(lines, group, indent + 2, apart);
        }
        Item::Group(group) => {
            let first = lines.len();
            entries(lines, group, indent + 2, false);
            if let Some(Line::Text { indent, text, .. }) = lines.get_mut(first) {
                *indent -= 2;
                text.insert_str(0, "- ");
            }
        }
    }
}

fn block<'l>(lines: &mut Vec<Line>, body: impl Iterator<Item = &'l str>, indent: usize) {
    // Empty lines here are part of the text, and stay however many there are.
    lines.extend(body.map(|line| match line {
        "" => Line::text(0, ""),
        line => Line::text(indent + 2, line),
    }));
}

fn start(entry: &Entry<'_>) -> String {
    entry.name.map_or_else(|| "-".to_owned(), |name| format!("{}:", scalar::name(name, false)))
}

/// Whether an entry stays on one line: it stood there, and is short.
fn fits(entry: &Entry<'_>, indent: usize) -> bool {
    let Item::Group(group) = &entry.item else { return false };
    let length = |text: String| indent + start(entry).chars().count() + 1 + text.chars().count();
    inline_group(group).is_some_and(|text| length(text) <= WIDTH)
}

/// A list or map on one line, unless there are comments in it or maps in a list.
fn inline_group(group: &Group<'_>) -> Option<String> {
    if !group.inline || !group.footer.is_empty() {
        return None;
    }
    let parts = group.entries.iter().map(|entry| inline_entry(entry, group.map));
    let parts = parts.collect::<Option<Vec<_>>>()?.join(", ");
    Some(match (group.map, parts.is_empty()) {
        (true, true) => "{}".to_owned(),
        (true, false) => format!("{{ {parts} }}"),
        (false, _) => format!("[{parts}]"),
    })
}

fn inline_entry(entry: &Entry<'_>, in_map: bool) -> Option<String> {
    let said = entry.leading.iter().any(|lead| *lead != Lead::Blank) || entry.trailing.is_some();
    let value = match &entry.item {
        _ if said => None,
        Item::Scalar { value, style, .. } => Some(inline_scalar(value, style, true)),
        Item::Group(group) if in_map => inline_group(group),
        Item::Group(_) => None,
    }?;
    let name = entry.name.map(|name| format!("{}: ", scalar::name(name, true)));
    Some(name.unwrap_or_default() + &value)
}

fn inline_scalar(value: &Value, style: &Style, flow: bool) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Number(text) => text.clone(),
        Value::Text(text) => scalar::text(text, flow, *style == Style::Quoted),
        _ => "null".to_owned(),
    }
}

impl Line {
    fn text(indent: usize, text: impl Into<String>) -> Self {
        Self::Text { indent, text: text.into(), comment: None }
    }

    /// How many columns stand before its comment, if it has one that is to be aligned.
    fn aligned(&self) -> Option<usize> {
        match self {
            Self::Text { indent, text, comment: Some(_) } => {
                Some(indent + text.chars().count()).filter(|width| *width <= ALIGNED)
            }
            _ => None,
        }
    }
}

fn joined(lines: &[Line]) -> String {
    let mut joined = String::new();
    let (mut column, mut run_end, mut blank) = (0, 0, true);
    for (number, line) in lines.iter().enumerate() {
        if number >= run_end {
            let run = lines[number..].iter().map_while(Line::aligned);
            (column, run_end) =
                run.fold((0, number), |(most, end), width| (most.max(width), end + 1));
        }
        let Line::Text { indent, text, comment } = line else {
            // No empty lines at the top, and one at most elsewhere.
            if !blank && lines[number..].iter().any(|line| !matches!(line, Line::Blank)) {
                joined.push('\n');
            }
            blank = true;
            continue;
        };
        blank = false;
        joined.push_str(&" ".repeat(*indent));
        joined.push_str(text);
        if let Some(comment) = comment {
            let spaces = column.saturating_sub(indent + text.chars().count()) + 2;
            joined.push_str(&" ".repeat(if number < run_end { spaces } else { 2 }));
            joined.push_str(comment);
        }
        joined.push('\n');
    }
    joined
}

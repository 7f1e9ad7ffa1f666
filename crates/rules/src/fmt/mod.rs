//! Rule files in their canonical form: what `rules fmt` writes.
//!
//! A file is read into its tree ([`Document`]), comments are found between the values and given to
//! the field that they speak of ([`layout`]), fields are put in order ([`order`]), and all of it is
//! written anew ([`mod@print`], [`json`]). What comes out is read again: if it said anything else than
//! before, the file would be left as it is.

mod comments;
mod json;
mod layout;
mod order;
mod print;
pub(crate) mod scalar;

use crate::diagnostic::{Diagnostic, Report};
use crate::document::{Document, Field, Node, Value};
use crate::source::{Format, Source};

/// The canonical form of a rule file: two spaces a level, fields in the order of the reference,
/// one empty line between rules, quotes only where YAML needs them. Comments stay with the field
/// that they stand above or behind. Maps and lists in braces stay there if they fit into 100
/// columns. JSON stays JSON; TOML is left to the tools that it has.
///
/// ```
/// use tollgate_rules::{Source, format};
/// let source = Source::new("rules.yaml", "rules:\n- limit: 5/s # slow\n  name: \"a\"\nversion: 1\n");
/// assert_eq!(
///     format(&source)?,
///     "version: 1\nrules:\n  - name: a\n    limit: 5/s  # slow\n",
/// );
/// # Ok::<(), tollgate_rules::Report>(())
/// ```
pub fn format(source: &Source) -> Result<String, Report> {
    if source.format() == Format::Toml {
        return Err(only(toml_is_not_formatted()));
    }
    let document = Document::parse(source)?;
    let mut layout = layout::Layout::of(source.text(), document.root());
    order::order(&mut layout);
    let text =
        if is_json(source) { json::print(source, &layout) } else { Ok(print::print(layout)) };
    let text = text.map_err(only)?;
    let again = Document::parse(&Source::new(source.name(), text.as_str()));
    match again {
        Ok(again) if same(document.root(), again.root()) => Ok(text),
        _ => Err(only(not_formatted())),
    }
}

fn is_json(source: &Source) -> bool {
    source.name().rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("json"))
}

/// Whether two trees say the same, in whatever order their fields stand.
fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Map(one), Value::Map(other)) => {
            let (one, other) = (by_name(one), by_name(other));
            let alike = |(one, other): (&&Field, &&Field)| {
                one.name == other.name && same(&one.value, &other.value)
            };
            one.len() == other.len() && one.iter().zip(&other).all(alike)
        }
        (one, other) => one == other,
    }
}

fn by_name(fields: &[Field]) -> Vec<&Field> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|field| field.name.as_str());
    fields
}

fn only(diagnostic: Diagnostic) -> Report {
    let mut report = Report::default();
    report.add(diagnostic);
    report
}

fn toml_is_not_formatted() -> Diagnostic {
    let message = "TOML files are not formatted";
    let remedy = "use a formatter for TOML, such as `taplo fmt`";
    Diagnostic::error("toml-not-formatted", 0..0, message, "", remedy)
}

/// The last line of defence: a file that would say something else afterwards is not touched.
fn not_formatted() -> Diagnostic {
    let message = "this file cannot be formatted without a change of what it says";
    let remedy = "shorten field names of more than 1000 characters; if there are none, report this";
    Diagnostic::error("not-formatted", 0..0, message, "", remedy)
}

#[cfg(test)]
mod tests;

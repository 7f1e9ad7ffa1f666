//! Where the windows of a rule lie.

use tollgate_core::Unit;

use crate::attribute::Attribute;
use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value};
use crate::read::Reader;

/// Where windows begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// At multiples of their length.
    Plain,
    /// At another moment for each key.
    Jittered,
    /// With the days, weeks or months of a time zone. Months begin on a day, or on one that an
    /// attribute of the request names.
    Calendar { unit: Unit, zone: Box<str>, day: u8, anchor: Option<Attribute> },
}

impl Window {
    pub(crate) const FIELDS: [&str; 4] = ["calendar", "timezone", "anchor", "jitter"];

    pub(crate) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Self> {
        let fields = reader.fields(node, "`window`", &Self::FIELDS)?;
        let jitter = match fields.get("jitter") {
            Some(node) => reader.boolean(node, "`jitter`")?,
            None => false,
        };
        let Some(unit) = fields.get("calendar") else {
            for other in ["timezone", "anchor"].into_iter().filter(|other| fields.has(other)) {
                let message = format!("`{other}` is about calendars, and this window has none");
                let span = fields.name_span(other);
                let remedy = "add `calendar: month`";
                reader.add(Diagnostic::error("no-calendar", span, message, "here", remedy));
            }
            return Some(if jitter { Self::Jittered } else { Self::Plain });
        };
        let units = [("day", Unit::Day), ("week", Unit::Week), ("month", Unit::Month)];
        let unit = reader.choice(unit, "calendar", &units)?.value;
        if jitter {
            let message = "a window of the calendar begins for all keys at once";
            let span = fields.name_span("jitter");
            let remedy = "leave `jitter` or `calendar` out";
            reader.add(Diagnostic::error("calendar-jitter", span, message, "here", remedy));
        }
        let zone = match fields.get("timezone") {
            Some(node) => reader.text(node, "a time zone")?.into(),
            None => "UTC".into(),
        };
        let (day, anchor) = match fields.get("anchor") {
            Some(node) if unit != Unit::Month => {
                let message = format!("only months can begin on another day, and this is a {unit}");
                let span = node.span.clone();
                let remedy = "leave `anchor` out, or write `calendar: month`";
                reader.add(Diagnostic::error("bad-anchor", span, message, "here", remedy));
                return None;
            }
            Some(node) => Self::read_anchor(reader, node)?,
            None => (1, None),
        };
        Some(Self::Calendar { unit, zone, day, anchor })
    }

    fn read_anchor(reader: &mut Reader<'_>, node: &Node) -> Option<(u8, Option<Attribute>)> {
        if !matches!(node.value, Value::Number(_)) {
            return Some((1, Some(reader.attribute(node)?)));
        }
        let parse = |text: &str| match text.parse() {
            Ok(day @ 1..=31) => Ok(day),
            _ => Err("a month begins on day 1 to 31"),
        };
        Some((reader.parsed(node, "a day of the month", "15", parse)?.value, None))
    }
}

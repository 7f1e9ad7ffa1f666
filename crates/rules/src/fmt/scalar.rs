//! Scalars as text: plain where YAML allows it, in quotes where it does not.

use crate::source::Span;

/// How a scalar was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Quoted,
    /// Lines below a `|`.
    Literal,
    /// Lines below a `>` with this header, as they can be written again.
    Folded {
        header: &'static str,
        lines: Vec<String>,
    },
}

impl Style {
    pub(crate) fn of(text: &str, span: &Span, header: Option<&str>) -> Self {
        match (header, text.as_bytes().get(span.start)) {
            (Some(">"), _) => Self::folded(text, span, ">").unwrap_or(Self::Literal),
            (Some(">-"), _) => Self::folded(text, span, ">-").unwrap_or(Self::Literal),
            (Some(_), _) => Self::Literal,
            (None, Some(b'"' | b'\'')) if !span.is_empty() => Self::Quoted,
            _ => Self::Plain,
        }
    }

    /// The lines of folded text less their indentation, if nothing about them is special.
    fn folded(text: &str, span: &Span, header: &'static str) -> Option<Self> {
        let before = &text[..span.start];
        let indent = before.len() - before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let gap = before[before.trim_end().len()..].replace("\r\n", "\n");
        // Text that begins with an empty line.
        if gap.matches(['\n', '\r']).count() > 1 {
            return None;
        }
        let lines = text[span.clone()].trim_end().lines().enumerate();
        let lines: Vec<_> = lines.map(|(number, line)| outdented(line, number, indent)).collect();
        let good = |line: &String| !line.starts_with(char::is_whitespace) && printable(line);
        (!lines.is_empty() && lines.iter().all(good)).then_some(Self::Folded { header, lines })
    }
}

fn outdented(line: &str, number: usize, indent: usize) -> String {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    let cut = if number == 0 { 0 } else { spaces.min(indent) };
    line[cut..].trim_end().to_owned()
}

/// The `|` or `>` with what follows it, if there is one in the text before a scalar.
pub(crate) fn block_header(gap: &str) -> Option<&str> {
    let mut rest = gap;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "-:?,[{".contains(c));
        match rest.chars().next()? {
            '#' => rest = &rest[rest.find(['\n', '\r'])?..],
            '|' | '>' => return rest.split(|c: char| c.is_whitespace() || c == '#').next(),
            _ => return None,
        }
    }
}

/// The lines of a `|` block with its header, if text can be written as one.
pub(crate) fn literal(text: &str) -> Option<(&'static str, Vec<&str>)> {
    let header = if text.ends_with('\n') { "|" } else { "|-" };
    let body = text.strip_suffix('\n').unwrap_or(text);
    let lines: Vec<_> = body.split('\n').collect();
    let good = |line: &&str| printable(line) && (line.is_empty() || !line.trim().is_empty());
    let first =
        lines.first().is_some_and(|line| !line.is_empty() && !line.starts_with([' ', '\t']));
    let last = lines.last().is_some_and(|line| !line.is_empty());
    (lines.len() > 1 && first && last && lines.iter().all(good)).then_some((header, lines))
}

/// Text as a value on one line. `flow`: within braces or brackets.
///
/// Words that other readers of YAML take for true or false keep the quotes that they had.
pub(crate) fn text(text: &str, flow: bool, quoted: bool) -> String {
    let word = || {
        let lower = text.to_ascii_lowercase();
        ["y", "n", "yes", "no", "on", "off"].contains(&lower.as_str())
    };
    match is_plain(text, flow) && !(quoted && word()) {
        true => text.to_owned(),
        false => quote(text),
    }
}

/// The name of a field. Numbers and `true` are names as well as any others.
pub(crate) fn name(name: &str, flow: bool) -> String {
    match is_plain(name, flow) || ["true", "false"].contains(&name) || is_simple_number(name) {
        true => name.to_owned(),
        false => quote(name),
    }
}

fn is_simple_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether text means itself without quotes.
fn is_plain(text: &str, flow: bool) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let second = text.chars().nth(1);
    let begins = match first {
        '-' => second.is_some_and(|second| second != '-' && !second.is_whitespace()),
        '.' => !text.starts_with("..."),
        _ => !"?:,[]{}#&*!|>'\"%@`=<".contains(first) || text.starts_with("<="),
    };
    let reserved = ["null", "true", "false"].contains(&text.to_ascii_lowercase().as_str())
        || text == "~"
        || (text.contains(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok());
    let flow_marks = flow && text.contains([',', '[', ']', '{', '}']);
    let ambiguous = text.contains(": ") || text.contains(" #") || text.ends_with(':') || flow_marks;
    begins
        && !reserved
        && !ambiguous
        && text.trim() == text
        && printable(text)
        && !text.contains('\t')
}

/// No line breaks and nothing that an editor would not show.
fn printable(text: &str) -> bool {
    text.chars().all(|c| c == '\t' || !needs_escape(c))
}

fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Text in single quotes if that spares escapes, else in double quotes.
fn quote(text: &str) -> String {
    let clean = !text.chars().any(needs_escape);
    if clean && text.contains(['"', '\\']) && !text.contains('\'') {
        return format!("'{text}'");
    }
    double_quoted(text)
}

/// Text in double quotes, as YAML and JSON both have it.
pub(crate) fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if needs_escape(c) => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

//! A line as words.

use std::borrow::Cow;

use crate::request_line::RequestLineError;

/// A word of a line: a value, or a name and its value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// Where it begins, in bytes.
    pub(super) at: usize,
    end: usize,
    pub(super) name: Option<&'a str>,
    pub(super) value: Cow<'a, str>,
    pub(super) quoted: bool,
}

impl Word<'_> {
    /// All of it, as it is written.
    pub(super) fn whole<'t>(&self, text: &'t str) -> &'t str {
        &text[self.at..self.end]
    }
}

/// The words of a line. A value that begins with a quote ends with one.
pub(super) fn words(text: &str) -> impl Iterator<Item = Result<Word<'_>, RequestLineError>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = &text[from..];
        let at = from + rest.len() - rest.trim_start().len();
        if at == text.len() {
            return None;
        }
        let word = word(text, at);
        // After a mistake nothing is read on: where the next word begins is not known.
        from = word.as_ref().map_or(text.len(), |word| word.end);
        Some(word)
    })
}

fn word(text: &str, at: usize) -> Result<Word<'_>, RequestLineError> {
    let rest = &text[at..];
    let blank = rest.find(char::is_whitespace).unwrap_or(rest.len());
    // A path may have a query, and that is no pair either.
    let name = match rest.starts_with(['"', '/']) {
        true => None,
        false => rest[..blank].split_once('=').map(|(name, _)| name),
    };
    let value_at = at + name.map_or(0, |name| name.len() + 1);
    let Some(inside) = text[value_at..].strip_prefix('"') else {
        let (end, value) = (at + blank, Cow::Borrowed(&text[value_at..at + blank]));
        return Ok(Word { at, end, name, value, quoted: false });
    };
    let (value, len) = unquoted(inside).ok_or(RequestLineError::OpenQuote { at: value_at })?;
    let end = value_at + 1 + len;
    if text[end..].starts_with(|next: char| !next.is_whitespace()) {
        return Err(RequestLineError::AfterQuote { at: end });
    }
    Ok(Word { at, end, name, value, quoted: true })
}

/// What stands before the closing quote, and how many bytes there are up to and with that.
fn unquoted(text: &str) -> Option<(Cow<'_, str>, usize)> {
    let mut value = Cow::Borrowed("");
    let mut from = 0;
    loop {
        let found = from + text[from..].find(['"', '\\'])?;
        match (&mut value, &text[from..found]) {
            (Cow::Borrowed(""), before) => value = Cow::Borrowed(before),
            (value, before) => value.to_mut().push_str(before),
        }
        if text[found..].starts_with('"') {
            return Some((value, found + 1));
        }
        let escaped = text[found + 1..].chars().next()?;
        value.to_mut().push(escaped);
        from = found + 1 + escaped.len_utf8();
    }
}

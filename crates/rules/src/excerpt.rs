//! The part of a file that a message shows.

use std::borrow::Cow;

use crate::source::Span;

/// The lines around a place, or a part of them if they are long.
pub(crate) struct Excerpt<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The place, within `text`.
    pub(crate) span: Span,
    /// Where the place is in its line, if `text` does not begin where the line does.
    pub(crate) column: Option<usize>,
}

impl<'a> Excerpt<'a> {
    /// The most that is shown, in bytes.
    const MAX: usize = 1_000;

    /// How much of a long line is shown before the place and from there.
    const BEFORE: usize = 60;
    const AFTER: usize = 120;

    pub(crate) fn of(text: &'a str, span: &Span) -> Self {
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end.max(start));
        let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
        // A span that ends a line includes its end.
        let last = end.saturating_sub(usize::from(end > start && text[..end].ends_with('\n')));
        let length = text.as_bytes()[last..].iter().take(Self::MAX).position(|it| *it == b'\n');
        let stop = length.map_or_else(|| text.len().min(last + Self::MAX), |length| last + length);
        if stop - line < Self::MAX {
            let shown = line..text.floor_char_boundary(stop);
            let span = start - line..end.min(shown.end) - line;
            return Self { text: visible(&text[shown]), span, column: None };
        }
        let from = text.floor_char_boundary(start.saturating_sub(Self::BEFORE).max(line));
        let rest = &text[start..text.floor_char_boundary(start + Self::AFTER)];
        let rest = rest.find('\n').map_or(rest, |at| &rest[..at]);
        let (to, column) = (start + rest.len(), text[line..start].chars().count() + 1);
        let span = start - from..end.min(to) - from;
        Self { text: visible(&text[from..to]), span, column: Some(column) }
    }
}

/// Terminals take some signs for orders. What stands for them is as long as they are.
fn visible(text: &str) -> Cow<'_, str> {
    let is_order = |c: char| matches!(c, '\u{80}'..='\u{9f}');
    match text.contains(is_order) {
        true => Cow::Owned(text.replace(is_order, "\u{b7}")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_shown_is_short_and_holds_the_place(
            text in "(a|\n|\u{e9}|\u{1f600}|\u{9b}|b{70}|c{800}){0,20}", at in 0..9_000_usize, len in 0..3_000_usize,
        ) {
            let start = text.floor_char_boundary(at);
            let end = text.floor_char_boundary(start + len);
            let excerpt = Excerpt::of(&text, &(start..end));
            prop_assert!(excerpt.text.len() <= Excerpt::MAX);
            let shown = &excerpt.text[excerpt.span.clone()];
            prop_assert!(visible(&text[start..end]).starts_with(shown), "{}", shown);
            let before = excerpt.text[..excerpt.span.start].chars().count();
            let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
            let column = text[line..start].chars().count();
            prop_assert_eq!(excerpt.column.unwrap_or(before + 1), column + 1);
        }
    }
}

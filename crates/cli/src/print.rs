//! Where text goes, and whether it has colours.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write as _};

use clap::builder::styling::{AnsiColor, Style};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;

use crate::environment;
use crate::error::Error;

/// Prints a result.
pub(crate) fn text(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Print)
}

/// Prints a result for a program: one object in one line.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Error> {
    let line = serde_json::to_string(value).map_err(|error| Error::Print(error.into()))?;
    text(&format!("{line}\n"))
}

/// Says something beside the result. If nobody hears it, the exit code has to do.
pub(crate) fn note(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Whether results have colours.
pub(crate) fn colours() -> bool {
    with_colours(io::stdout().is_terminal(), environment::variable)
}

/// Whether what is said beside them has.
pub(crate) fn note_colours() -> bool {
    with_colours(io::stderr().is_terminal(), environment::variable)
}

/// See <https://no-color.org>.
fn with_colours(terminal: bool, environment: impl Fn(&str) -> Option<OsString>) -> bool {
    let refused = environment("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = environment("TERM").is_some_and(|value| value == "dumb");
    terminal && !refused && !dumb
}

/// A word that is good news.
pub(crate) fn good(word: &str, colours: bool) -> String {
    painted(word, AnsiColor::Green, colours)
}

/// A word that is bad news.
pub(crate) fn bad(word: &str, colours: bool) -> String {
    painted(word, AnsiColor::Red, colours)
}

/// A word that is neither.
pub(crate) fn mixed(word: &str, colours: bool) -> String {
    painted(word, AnsiColor::Yellow, colours)
}

fn painted(word: &str, colour: AnsiColor, colours: bool) -> String {
    if !colours {
        return word.to_owned();
    }
    let style = Style::new().bold().fg_color(Some(colour.into()));
    format!("{style}{word}{style:#}")
}

/// What somebody else wrote, without what a terminal would take for more than text.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |char: char| match char.is_control() {
        true => char.escape_default().collect(),
        false => String::from(char),
    };
    text.chars().map(shown).collect()
}

/// Rows with their columns below each other, without frames.
pub(crate) fn columns<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(head);
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let with = |terminal, name: &'static str, value: &'static str| {
            with_colours(terminal, |asked| (asked == name).then(|| value.into()))
        };
        assert!(with(true, "TERM", "xterm"));
        assert!(with(true, "NO_COLOR", ""));
        assert!(!with(false, "TERM", "xterm"));
        assert!(!with(true, "NO_COLOR", "1"));
        assert!(!with(true, "TERM", "dumb"));
    }

    #[test]
    fn only_painted_words_have_codes() {
        assert_eq!(good("ok", false), "ok");
        assert!(bad("FAILED", true).starts_with("\u{1b}["));
    }

    #[test]
    fn what_others_wrote_moves_no_cursor() {
        assert_eq!(harmless("a\u{1b}[2J\nb é"), "a\\u{1b}[2J\\nb é");
    }

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [["a".to_owned(), "b".to_owned()], ["ccc".to_owned(), String::new()]];
        assert_eq!(columns(["x", "y"], &rows), "x    y\na    b\nccc\n");
    }
}

//! Changes to bytes, as an editor, a bad disk or an enemy makes them.

use proptest::prelude::*;
use proptest::sample::Index;

/// One of these, with one to six changes.
pub(crate) fn changed(good: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<Index>(), any::<Index>(), change()), 1..6);
    (prop::sample::select(good), changes).prop_map(|(text, changes)| {
        let mut bytes = text.as_bytes().to_vec();
        for (one, other, change) in changes {
            change.apply(&mut bytes, one, other);
        }
        bytes
    })
}

#[derive(Clone, Debug)]
enum Change {
    /// Takes out up to so many bytes.
    Delete(usize),
    Insert(Vec<u8>),
    /// Puts a word where another one is.
    Word(&'static str),
    DuplicateLine,
    DeleteLine,
    SwapLines,
    SwapWords,
    /// Says a line so many times.
    Repeat(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => (0..40_usize).prop_map(Change::Delete),
        1 => prop::collection::vec(any::<u8>(), 1..4).prop_map(Change::Insert),
        1 => "[ -~\n]{1,6}".prop_map(|text| Change::Insert(text.into_bytes())),
        4 => prop::sample::select(WORDS).prop_map(Change::Word),
        1 => Just(Change::DuplicateLine),
        1 => Just(Change::DeleteLine),
        1 => Just(Change::SwapLines),
        2 => Just(Change::SwapWords),
        1 => (1..300_usize).prop_map(Change::Repeat),
    ]
}

impl Change {
    fn apply(self, bytes: &mut Vec<u8>, one: Index, other: Index) {
        let at = one.index(bytes.len() + 1);
        match self {
            Self::Delete(len) => drop(bytes.drain(at..(at + len).min(bytes.len()))),
            Self::Insert(new) => drop(bytes.splice(at..at, new)),
            Self::Word(word) => {
                let mut words = pieces(bytes, b" ,:{}[]\n\"'");
                let place = one.index(words.len());
                words[place] = word.as_bytes().to_vec();
                *bytes = words.concat();
            }
            Self::SwapWords => {
                let mut words = pieces(bytes, b" ,:{}[]\n\"'");
                let (a, b) = (one.index(words.len()), other.index(words.len()));
                words.swap(a, b);
                *bytes = words.concat();
            }
            Self::DuplicateLine | Self::DeleteLine | Self::SwapLines | Self::Repeat(_) => {
                let mut lines = pieces(bytes, b"\n");
                let (a, b) = (one.index(lines.len()), other.index(lines.len()));
                match self {
                    Self::DuplicateLine => lines.insert(b, lines[a].clone()),
                    Self::DeleteLine => drop(lines.remove(a)),
                    Self::Repeat(times) => {
                        let most = MAX_LENGTH / lines[a].len().max(1);
                        lines[a] = lines[a].repeat(times.min(most).max(1));
                    }
                    _ => lines.swap(a, b),
                }
                *bytes = lines.concat();
            }
        }
    }
}

/// The bytes, cut before and behind each of these signs. There is one piece at least.
fn pieces(bytes: &[u8], signs: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = vec![Vec::new()];
    for byte in bytes {
        let is_sign = signs.contains(byte);
        if is_sign
            || pieces.last().is_some_and(|last| last.last().is_some_and(|it| signs.contains(it)))
        {
            pieces.push(Vec::new());
        }
        pieces.last_mut().expect("there is one").push(*byte);
    }
    pieces
}

/// The longest line that repeating makes: it may be repeated again.
const MAX_LENGTH: usize = 16 << 10;

const WORDS: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "1e400",
    "18446744073709551615",
    "5/s",
    "1/ms",
    "10k/month",
    "5M/day",
    "unlimited",
    "0/s",
    "5/0s",
    "100%",
    "0%",
    "null",
    "~",
    "true",
    "[]",
    "{}",
    "[",
    "{",
    "*",
    "**",
    "/**",
    "/{id}",
    "/{id}/{id}",
    "//",
    "&a",
    "*a",
    "!!str",
    "|",
    ">",
    "---",
    "...",
    "#",
    "\u{feff}",
    "\u{0}",
    "\r",
    "\t",
    "user",
    "ip",
    "ip/24",
    "ip/129",
    "asn",
    "country",
    "path.id",
    "header.x-a",
    "query.a",
    "claims.plan",
    "body.tokens",
    "tier",
    "method",
    "host",
    "path",
    "when",
    "name",
    "key",
    "limit",
    "burst",
    "match",
    "concurrent",
    "expires",
    "algorithm",
    "token_bucket",
    "leaky_bucket",
    "fixed_window",
    "sliding_window",
    "sliding_log",
    "queue",
    "window",
    "calendar",
    "month",
    "jitter",
    "anchor",
    "timezone",
    "Europe/Berlin",
    "cost",
    "expression",
    "graphql",
    "attribute",
    "missing",
    "count_if",
    "response.status == 401",
    "block_for",
    "overrides",
    "key_missing",
    "together",
    "first_match",
    "rules",
    "group",
    "mode",
    "shadow",
    "off",
    "deny",
    "status",
    "503",
    "warn_at",
    "tests",
    "steps",
    "given",
    "GET",
    "10.0.0.0/8",
    "::/0",
    "192.0.2.1",
    "a: b",
    "\\ud800",
    "'",
    "\"",
    "$binary_remote_addr",
    "zone=a:10m",
    "rate=5r/s",
    "burst=5",
    "nodelay",
    "unit",
    "second",
    "||",
    "&&",
    "?",
    "size(",
    "has(user)",
    "...on A",
    "@skip",
    "fragment F on A { ...F }",
    "$n",
    "first:",
];

//! The words of an expression.

use super::ExpressionError;

/// A word, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) at: usize,
    pub(super) is: Is<'t>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Is<'t> {
    Name(&'t str),
    Number(&'t str),
    String(String),
    Symbol(&'static str),
    End,
}

/// The words of a text, one after another.
pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The next word; [`Is::End`] for ever when there are no more.
    pub(super) fn next(&mut self) -> Result<Token<'t>, ExpressionError> {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\n', '\r']);
        let at = self.text.len() - rest.len();
        let token = |is| Ok(Token { at, is });
        self.at = at;
        match rest.as_bytes().first() {
            None => token(Is::End),
            Some(b'\'' | b'"') => token(Is::String(self.string(rest)?)),
            Some(b'0'..=b'9') => {
                let number = &rest[..number_length(rest.as_bytes())];
                self.at += number.len();
                token(Is::Number(number))
            }
            Some(byte) if is_name(*byte) => {
                let end = rest.bytes().position(|byte| !is_name(byte)).unwrap_or(rest.len());
                self.at += end;
                if rest[end..].starts_with(['\'', '"']) {
                    return Err(unsupported(at, "a letter before a string", "use a plain string"));
                }
                token(Is::Name(&rest[..end]))
            }
            Some(_) => {
                let symbol = symbol(rest, at)?;
                self.at += symbol.len();
                token(Is::Symbol(symbol))
            }
        }
    }

    /// What a string says. `rest` begins with its quote.
    fn string(&mut self, rest: &str) -> Result<String, ExpressionError> {
        let mut said = String::new();
        let mut letters = rest.char_indices();
        let quote = letters.next().map(|(_, quote)| quote);
        while let Some((at, letter)) = letters.next() {
            match letter {
                _ if Some(letter) == quote => {
                    let end = at + letter.len_utf8();
                    if rest[end..].starts_with(['\'', '"']) {
                        let remedy = "use one quote on each side, and `\\n` for a new line";
                        return Err(unsupported(self.at, "a string in three quotes", remedy));
                    }
                    self.at += end;
                    return Ok(said);
                }
                '\\' => {
                    let (letter, length) = escaped(&rest[at..])
                        .ok_or_else(|| syntax(self.at + at, "there is no such escape"))?;
                    said.push(letter);
                    // What is skipped is ASCII.
                    for _ in 1..length {
                        letters.next();
                    }
                }
                '\n' | '\r' => break,
                _ => said.push(letter),
            }
        }
        Err(syntax(self.at, "this string has no end"))
    }
}

/// What an escape stands for, and how long it is.
fn escaped(text: &str) -> Option<(char, usize)> {
    let hexadecimal = |range: std::ops::Range<usize>| {
        let digits = text.get(range.clone())?;
        let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| all)?;
        Some((char::from_u32(code)?, range.end))
    };
    let letter = match text.as_bytes().get(1)? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        quoted @ (b'\\' | b'\'' | b'"' | b'`' | b'?') => char::from(*quoted),
        b'x' => return hexadecimal(2..4),
        b'u' => return hexadecimal(2..6),
        b'U' => return hexadecimal(2..10),
        _ => return None,
    };
    Some((letter, 2))
}

/// How far a number reaches: digits and letters, a fraction, and a sign behind an `e`.
fn number_length(text: &[u8]) -> usize {
    let byte = |at: usize| text.get(at).copied().unwrap_or(b' ');
    let hexadecimal = matches!(byte(1), b'x' | b'X');
    let mut at = 1;
    loop {
        let before = byte(at - 1);
        at += match byte(at) {
            b'.' if byte(at + 1).is_ascii_digit() => 1,
            b'+' | b'-' if matches!(before, b'e' | b'E') && !hexadecimal => 1,
            other if is_name(other) => 1,
            _ => return at,
        };
    }
}

fn symbol(text: &str, at: usize) -> Result<&'static str, ExpressionError> {
    if text.starts_with("//") {
        let remedy = "comments go into the rule file, behind `#`";
        return Err(unsupported(at, "a comment", remedy));
    }
    if text.starts_with(['{', '}']) {
        return Err(unsupported(at, "a map or message", "write it without braces"));
    }
    let found = SYMBOLS.iter().find(|symbol| text.starts_with(**symbol));
    found.copied().ok_or_else(|| syntax(at, "this character has no meaning here"))
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn syntax(at: usize, message: &str) -> ExpressionError {
    ExpressionError::Syntax { at, message: message.to_owned() }
}

pub(super) fn unsupported(at: usize, what: &str, remedy: &str) -> ExpressionError {
    ExpressionError::Unsupported { at, what: what.to_owned(), remedy: remedy.to_owned() }
}

/// Longer ones first.
const SYMBOLS: [&str; 22] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ",", ".",
    "(", ")", "[", "]",
];

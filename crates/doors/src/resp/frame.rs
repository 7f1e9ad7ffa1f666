//! Bytes to commands.
//!
//! A command is an array of bulk strings, or a line of words for those who type. Nothing is copied:
//! arguments are parts of the bytes that were read. What is not complete yet says how many bytes it
//! needs at least, so that nobody looks at it again before they are there.

use smallvec::SmallVec;

/// The arguments of a command, the first being its name.
pub(crate) type Arguments<'a> = SmallVec<[&'a [u8]; 16]>;

/// What one command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// How many arguments it has, its name among them.
    pub(crate) arguments: usize,
    /// How long they are together, in bytes.
    pub(crate) bytes: usize,
    /// Whether these are the bounds of those who have not said the password yet.
    pub(crate) unauthenticated: bool,
}

/// What the first of some bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoded<'a> {
    /// A command of so many bytes, whose arguments were found.
    Command { length: usize },
    /// A line of words, in so many bytes with its end.
    Line { line: &'a [u8], length: usize },
    /// So many bytes that ask for nothing.
    Nothing { length: usize },
    /// The beginning of something that has so many bytes at least.
    Incomplete { needs: usize },
}

/// Bytes that are no command. Where the next one would begin cannot be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error("invalid multibulk length")]
    ArgumentCount,
    #[error("unauthenticated multibulk length")]
    UnauthenticatedArgumentCount,
    #[error("too big mbulk count string")]
    ArgumentCountTooLong,
    #[error("invalid bulk length")]
    ArgumentLength,
    #[error("unauthenticated bulk length")]
    UnauthenticatedArgumentLength,
    #[error("too big bulk count string")]
    ArgumentLengthTooLong,
    /// Something else stands where an argument begins.
    #[error("expected '$', got '{}'", .0.escape_ascii())]
    NoArgument(u8),
    #[error("expected a line end behind an argument")]
    NoLineEnd,
    #[error("too big inline request")]
    LineTooLong,
    #[error("unbalanced quotes in request")]
    OpenQuote,
}

/// Finds the first command in `bytes`. Its arguments replace those in `arguments`.
#[inline]
pub(crate) fn decode<'a>(
    bytes: &'a [u8],
    bounds: Bounds,
    arguments: &mut Arguments<'a>,
) -> Result<Decoded<'a>, ProtocolError> {
    arguments.clear();
    match bytes.first() {
        Some(b'*') => array(bytes, bounds, arguments),
        Some(_) => line(bytes, bounds),
        None => Ok(Decoded::Incomplete { needs: 1 }),
    }
}

#[inline]
fn array<'a>(
    bytes: &'a [u8],
    bounds: Bounds,
    arguments: &mut Arguments<'a>,
) -> Result<Decoded<'a>, ProtocolError> {
    use ProtocolError::{ArgumentCount, ArgumentCountTooLong, UnauthenticatedArgumentCount};
    let (count, mut at) = match number(bytes, 1) {
        Number::Is(number, end) => (number, end),
        Number::Incomplete => return Ok(Decoded::Incomplete { needs: bytes.len() + 1 }),
        Number::TooLong => return Err(ArgumentCountTooLong),
        Number::Not => return Err(ArgumentCount),
    };
    if count <= 0 {
        return Ok(Decoded::Nothing { length: at });
    }
    let count = usize::try_from(count).map_err(|_| ArgumentCount)?;
    if count > bounds.arguments {
        return Err(match bounds.unauthenticated {
            true => UnauthenticatedArgumentCount,
            false => ArgumentCount,
        });
    }
    let mut room = bounds.bytes;
    for _ in 0..count {
        match argument(bytes, at, &mut room, bounds)? {
            Argument::Is(argument, end) => {
                arguments.push(argument);
                at = end;
            }
            // Not more than that: what is wrong with it is to be found as soon as it is there.
            Argument::Incomplete { needs } => return Ok(Decoded::Incomplete { needs }),
        }
    }
    Ok(Decoded::Command { length: at })
}

enum Argument<'a> {
    Is(&'a [u8], usize),
    Incomplete { needs: usize },
}

/// The argument that begins here.
#[inline(always)]
fn argument<'a>(
    bytes: &'a [u8],
    at: usize,
    room: &mut usize,
    bounds: Bounds,
) -> Result<Argument<'a>, ProtocolError> {
    use ProtocolError::{ArgumentLength, ArgumentLengthTooLong, UnauthenticatedArgumentLength};
    match bytes.get(at) {
        Some(b'$') => {}
        Some(other) => return Err(ProtocolError::NoArgument(*other)),
        None => return Ok(Argument::Incomplete { needs: at + 1 }),
    }
    let (length, begin) = match number(bytes, at + 1) {
        Number::Is(number, end) => (number, end),
        Number::Incomplete => return Ok(Argument::Incomplete { needs: bytes.len() + 1 }),
        Number::TooLong => return Err(ArgumentLengthTooLong),
        Number::Not => return Err(ArgumentLength),
    };
    let length = usize::try_from(length).map_err(|_| ArgumentLength)?;
    *room = room.checked_sub(length).ok_or(match bounds.unauthenticated {
        true => UnauthenticatedArgumentLength,
        false => ArgumentLength,
    })?;
    let end = begin + length;
    match bytes.get(begin..end + 2) {
        Some([argument @ .., b'\r', b'\n']) => Ok(Argument::Is(argument, end + 2)),
        Some(_) => Err(ProtocolError::NoLineEnd),
        None => Ok(Argument::Incomplete { needs: end + 2 }),
    }
}

enum Number {
    /// The number, and where its line ends.
    Is(i64, usize),
    Incomplete,
    TooLong,
    Not,
}

/// The number that stands alone on the rest of a line.
#[inline(always)]
fn number(bytes: &[u8], at: usize) -> Number {
    // Most have one digit, or two.
    match bytes.get(at..) {
        Some([digit @ b'0'..=b'9', b'\r', b'\n', ..]) => {
            Number::Is(i64::from(digit - b'0'), at + 3)
        }
        Some([ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r', b'\n', ..]) => {
            Number::Is(i64::from(ten - b'0') * 10 + i64::from(one - b'0'), at + 4)
        }
        rest => long_number(rest.unwrap_or_default(), at),
    }
}

fn long_number(rest: &[u8], at: usize) -> Number {
    let line = &rest[..rest.len().min(LONGEST_NUMBER)];
    let Some(end) = memchr::memchr(b'\r', line) else {
        return if rest.len() >= LONGEST_NUMBER { Number::TooLong } else { Number::Incomplete };
    };
    let Some(number) = integer(&line[..end]) else { return Number::Not };
    match rest.get(end + 1) {
        Some(b'\n') => Number::Is(number, at + end + 2),
        Some(_) => Number::Not,
        None => Number::Incomplete,
    }
}

/// A number as Redis reads it: in decimal digits, without signs or noughts that it does not need.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] => return (!negative).then_some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    // Nineteen digits fit.
    let mut number = 0_u64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    match negative {
        false => i64::try_from(number).ok(),
        true => 0_i64.checked_sub_unsigned(number),
    }
}

#[cold]
fn line(bytes: &[u8], bounds: Bounds) -> Result<Decoded<'_>, ProtocolError> {
    let most = bounds.bytes.min(LONGEST_LINE);
    let Some(end) = memchr::memchr(b'\n', &bytes[..bytes.len().min(most)]) else {
        return match bytes.len() < most {
            true => Ok(Decoded::Incomplete { needs: bytes.len() + 1 }),
            false => Err(ProtocolError::LineTooLong),
        };
    };
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let length = end + 1;
    Ok(match line.iter().all(u8::is_ascii_whitespace) {
        true => Decoded::Nothing { length },
        false => Decoded::Line { line, length },
    })
}

/// The words of a line. Those with blanks stand in quotes: in double quotes `\n`, `\x0a` and the
/// like are what they are in C, in single quotes only `\'` is another sign.
pub(crate) fn words(line: &[u8], bounds: Bounds) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        if words.len() == bounds.arguments {
            return Err(ProtocolError::ArgumentCount);
        }
        let mut word = Vec::new();
        rest = take_word(rest, &mut word).ok_or(ProtocolError::OpenQuote)?.trim_ascii_start();
        words.push(word);
    }
    Ok(words)
}

/// Takes one word from the beginning, and returns what is behind it. `None` if a quote is not
/// closed, or something stands right behind a closing one.
fn take_word<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return Some(rest),
            [blank, ..] if blank.is_ascii_whitespace() => return Some(rest),
            [quote @ (b'"' | b'\''), quoted @ ..] => {
                let behind = take_quoted(quoted, *quote, word)?;
                let ends = behind.first().is_none_or(u8::is_ascii_whitespace);
                return ends.then_some(behind);
            }
            [byte, behind @ ..] => {
                word.push(*byte);
                behind
            }
        };
    }
}

/// Takes what stands before the closing quote, and returns what is behind that.
fn take_quoted<'a>(mut rest: &'a [u8], quote: u8, word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, behind) = match rest {
            [byte, behind @ ..] if *byte == quote => return Some(behind),
            [b'\\', b'\'', behind @ ..] if quote == b'\'' => (b'\'', behind),
            [b'\\', b'x', high, low, behind @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex(*high) << 4 | hex(*low), behind)
            }
            [b'\\', escaped, behind @ ..] if quote == b'"' => (unescaped(*escaped), behind),
            [byte, behind @ ..] => (*byte, behind),
            [] => return None,
        };
        word.push(byte);
        rest = behind;
    }
}

const fn unescaped(letter: u8) -> u8 {
    match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

const fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase() - b'a' + 10,
    }
}

/// More digits than any number has, with its line end.
const LONGEST_NUMBER: usize = 32;

/// What somebody types is not longer.
const LONGEST_LINE: usize = 64 << 10;

#[cfg(test)]
mod tests;

//! Bytes of protocol buffers, read where they stand and written where they go: for messages of which
//! there are so many at once that to make them first would be most of the work.

use crate::grpc::frame::Refusal;

/// The fields of a message, in order.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a>(&'a [u8]);

/// What stands behind the number of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a kind that is not asked for.
    Other,
}

impl<'a> Fields<'a> {
    pub(super) const fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// The next field, if there is one.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Malformed> {
        match self.0 {
            [] => Ok(None),
            // Most are short, and have a length.
            [tag @ 8..0x80, length @ ..0x80, rest @ ..] if tag & 7 == 2 => {
                let (bytes, rest) =
                    rest.split_at_checked((*length).into()).ok_or(Malformed::Message)?;
                self.0 = rest;
                Ok(Some((u32::from(tag >> 3), Value::Bytes(bytes))))
            }
            _ => self.any().map(Some),
        }
    }

    /// The next field, whatever it is.
    #[inline(never)]
    fn any(&mut self) -> Result<(u32, Value<'a>), Malformed> {
        // Numbers of fields have 29 bits, and their kinds three.
        let tag = u32::try_from(self.number()?).map_err(|_| Malformed::Message)?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.skip(8)?,
            2 => {
                let length = usize::try_from(self.number()?).map_err(|_| Malformed::Message)?;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed::Message)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => self.skip(4)?,
            _ => return Err(Malformed::Message),
        };
        match tag >> 3 {
            0 => Err(Malformed::Message),
            number => Ok((number, value)),
        }
    }

    fn skip(&mut self, bytes: usize) -> Result<Value<'a>, Malformed> {
        self.0 = self.0.get(bytes..).ok_or(Malformed::Message)?;
        Ok(Value::Other)
    }

    fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for place in 0..10 {
            let (byte, rest) = self.0.split_first().ok_or(Malformed::Message)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if *byte < 0x80 {
                // The tenth has room for one bit.
                return if place == 9 && *byte > 1 { Err(Malformed::Message) } else { Ok(number) };
            }
        }
        Err(Malformed::Message)
    }
}

/// Bytes that are no message. As small as it can be: it is in every answer of those who read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    Message,
    Text,
}

impl From<Malformed> for Refusal {
    #[cold]
    fn from(malformed: Malformed) -> Self {
        Self::invalid(match malformed {
            Malformed::Message => "the message cannot be read: it is none of protocol buffers",
            Malformed::Text => "a text is no UTF-8",
        })
    }
}

impl<'a> Value<'a> {
    #[inline]
    pub(super) fn text(self) -> Result<&'a str, Malformed> {
        text(self.bytes()?)
    }

    #[inline]
    pub(super) fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed::Message),
        }
    }

    #[inline]
    pub(super) fn number(self) -> Result<u64, Malformed> {
        match self {
            Self::Number(number) => Ok(number),
            _ => Err(Malformed::Message),
        }
    }
}

/// Bytes that are a text.
#[inline]
pub(super) fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    str::from_utf8(bytes).map_err(|_| Malformed::Text)
}

/// A name and its value: what a map consists of.
#[inline]
pub(super) fn pair(message: &[u8]) -> Result<(&str, &str), Malformed> {
    let (name, value) = named(message)?;
    Ok((text(name)?, value))
}

/// The same for whoever knows names by their bytes.
#[inline]
pub(super) fn named(message: &[u8]) -> Result<(&[u8], &str), Malformed> {
    let (mut pair, mut fields) = ((&[][..], ""), Fields::of(message));
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => pair.0 = value.bytes()?,
            2 => pair.1 = value.text()?,
            _ => {}
        }
    }
    Ok(pair)
}

/// Writes a number that is not there if it is 0.
#[inline]
pub(super) fn put_number(to: &mut Vec<u8>, field: u8, number: u64) {
    if number != 0 {
        put_some(to, field, Some(number));
    }
}

/// Writes a number that may not be there.
#[inline]
pub(super) fn put_some(to: &mut Vec<u8>, field: u8, number: Option<u64>) {
    if let Some(number) = number {
        to.push(field << 3);
        put_varint(to, number);
    }
}

/// Writes a text that is not there if it is empty.
#[inline]
pub(super) fn put_text(to: &mut Vec<u8>, field: u8, text: &str) {
    put_bytes(to, field, text.as_bytes());
}

/// The same for bytes that are no text.
#[inline]
pub(super) fn put_bytes(to: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    if !bytes.is_empty() {
        to.push(field << 3 | 2);
        put_varint(to, bytes.len() as u64);
        to.extend_from_slice(bytes);
    }
}

/// Writes a message within a message.
#[inline]
pub(super) fn put_message(to: &mut Vec<u8>, field: u8, write: impl FnOnce(&mut Vec<u8>)) {
    to.push(field << 3 | 2);
    let begin = to.len();
    // Mostly it is short, and its length is one byte.
    to.push(0);
    write(to);
    let length = to.len() - begin - 1;
    if length < 0x80 {
        to[begin] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(10);
    put_varint(&mut prefix, length as u64);
    to.splice(begin..=begin, prefix);
}

#[inline]
fn put_varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

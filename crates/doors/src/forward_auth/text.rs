//! Headers as text. They can be any bytes, and rules know only text.

use std::borrow::Cow;
use std::fmt::Write as _;

use http::HeaderValue;

/// A header as text. What is not UTF-8 is taken for ISO 8859-1, as it was of old: so nobody gets
/// around a rule by sending bytes that are no text, and different bytes stay different.
pub(super) fn of(value: &HeaderValue) -> Cow<'_, str> {
    match str::from_utf8(value.as_bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => value.as_bytes().iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// A target as text: what is not UTF-8 is escaped, which means the same.
pub(super) fn target(value: &HeaderValue) -> Cow<'_, str> {
    let bytes = value.as_bytes();
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        match byte.is_ascii() {
            true => text.push(char::from(*byte)),
            // Writing to a string cannot fail.
            false => _ = write!(text, "%{byte:02X}"),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: &[u8]) -> HeaderValue {
        HeaderValue::from_bytes(bytes).unwrap()
    }

    #[test]
    fn all_bytes_are_some_text() {
        assert_eq!(of(&value("café".as_bytes())), "café");
        assert_eq!(of(&value(b"caf\xE9")), "café");
        assert_ne!(of(&value(b"\xFE")), of(&value(b"\xFF")));
    }

    #[test]
    fn bytes_of_targets_are_escaped() {
        assert_eq!(target(&value(b"/caf\xE9?a=%20")), "/caf%E9?a=%20");
        assert_eq!(target(&value("/café".as_bytes())), "/café");
    }
}

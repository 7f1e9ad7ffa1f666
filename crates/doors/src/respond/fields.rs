//! The values of headers: structured fields, as RFC 9651 has them, and whole numbers.

use bytes::{BufMut as _, BytesMut};
use http::HeaderName;
use http::header::HeaderValue;

use crate::respond::policy::{Policy, Unit};

/// How an application limits, as the IETF drafts it.
pub(super) const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The same in the way of many years.
pub(super) const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub(super) const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub(super) const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
pub(super) const X_USED: HeaderName = HeaderName::from_static("x-ratelimit-used");

/// Where values are written one after the other: they share one allocation.
#[derive(Debug)]
pub(super) struct Values {
    room: BytesMut,
}

impl Values {
    pub(super) fn new() -> Self {
        Self { room: BytesMut::with_capacity(ROOM) }
    }

    /// A whole number.
    pub(super) fn number(&mut self, number: u64) -> HeaderValue {
        self.put_number(number);
        self.take()
    }

    /// Adds to a list what is left of a limit, and for how long that is so.
    pub(super) fn add_left(&mut self, name: &str, left: u64, seconds: Option<u64>) {
        self.add_item(name.as_bytes());
        self.put_parameter(b";r=", left);
        if let Some(seconds) = seconds {
            self.put_parameter(b";t=", seconds);
        }
    }

    /// Adds a policy to a list.
    pub(super) fn add_policy(&mut self, name: &str, policy: &Policy) {
        self.add_item(name.as_bytes());
        self.put_parameter(b";q=", policy.quota);
        if let Some(window) = policy.window {
            self.put_parameter(b";w=", window);
        }
        if policy.unit == Unit::Concurrent {
            self.room.put_slice(b";qu=\"concurrent-requests\"");
        }
    }

    /// Adds to a list what is in the form of its items already.
    pub(super) fn add_item(&mut self, item: &[u8]) {
        if !self.room.is_empty() {
            self.room.put_u8(b',');
        }
        self.room.put_slice(item);
    }

    /// What was written since the last time.
    pub(super) fn take(&mut self) -> HeaderValue {
        // Digits and quoted strings are always fit for a header.
        HeaderValue::from_maybe_shared(self.room.split().freeze())
            .unwrap_or(HeaderValue::from_static(""))
    }

    fn put_parameter(&mut self, name: &[u8], number: u64) {
        self.room.put_slice(name);
        self.put_number(number.min(LARGEST));
    }

    fn put_number(&mut self, number: u64) {
        self.room.put_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}

/// A string as structured fields have it. Whatever cannot be in one becomes a `?`.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

/// The largest integer of a structured field.
const LARGEST: u64 = 999_999_999_999_999;

/// Enough for the headers of two or three rules.
const ROOM: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sfv::{BareItem, Item, List, ListEntry, Parser};

    fn one_item(value: &HeaderValue) -> Item {
        let list: List = Parser::new(value.as_bytes()).parse().unwrap();
        let [ListEntry::Item(item)] = &*list else { panic!("not one item: {value:?}") };
        item.clone()
    }

    proptest! {
        #[test]
        fn any_name_and_number_is_read_as_it_was_written(name: String, left: u64, t: Option<u64>) {
            let mut values = Values::new();
            values.add_left(&quoted(&name), left, t);
            let item = one_item(&values.take());
            let printable = |c: char| if (' '..='~').contains(&c) { c } else { '?' };
            let expected: String = name.chars().map(printable).collect();
            prop_assert_eq!(item.bare_item.as_string().map(|it| it.as_str()), Some(&*expected));
            let number = |name: &str| match item.params.get(name) {
                Some(BareItem::Integer(number)) => Some(i64::from(*number) as u64),
                _ => None,
            };
            prop_assert_eq!(number("r"), Some(left.min(LARGEST)));
            prop_assert_eq!(number("t"), t.map(|t| t.min(LARGEST)));
        }
    }

    #[test]
    fn policies_are_read_as_they_were_written() {
        let mut values = Values::new();
        values.add_policy("\"a\"", &Policy { window: Some(60), ..Policy::bare(5) });
        values.add_policy("\"b\"", &Policy { unit: Unit::Concurrent, ..Policy::bare(3) });
        let value = values.take();
        assert_eq!(value, "\"a\";q=5;w=60,\"b\";q=3;qu=\"concurrent-requests\"");
        assert_eq!(Parser::new(value.as_bytes()).parse::<List>().unwrap().len(), 2);
    }
}

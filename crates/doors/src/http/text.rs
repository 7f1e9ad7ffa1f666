//! Texts of JSON, borrowed wherever they stand as they are.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The name of a field.
pub(super) struct Name;

/// A value that is a text, or can be written as one; `None` is null. The rest is refused, by the
/// name of its field.
pub(super) struct Scalar<'n>(pub(super) &'n str);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

impl<'de> DeserializeSeed<'de> for Scalar<'_> {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scalar<'_> {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text for `{}`", self.0)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number.to_string().into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(number.to_string().into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        // Beyond that, different numbers would become the same text, and share a budget.
        if number.abs() < EXACT {
            return Ok(Some(number.to_string().into()));
        }
        let name = self.0;
        Err(E::custom(format_args!("the number of `{name}` is too large: write it as a text")))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(if value { "true" } else { "false" })))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        let name = self.0;
        Err(A::Error::custom(format_args!("`{name}` is a list: write one text, number or boolean")))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        let name = self.0;
        Err(A::Error::custom(format_args!("`{name}` is an object: write a text")))
    }
}

/// From here on, floating-point numbers leave some whole numbers out.
const EXACT: f64 = 9_007_199_254_740_992.0;

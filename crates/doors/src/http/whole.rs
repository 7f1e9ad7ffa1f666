//! Whole numbers of JSON within bounds.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{DeserializeSeed, Deserializer, Error, Visitor};

/// A whole number in this range under this name; `None` is null. `3.0` is whole, `"3"` no number.
pub(super) struct Whole {
    pub(super) name: &'static str,
    pub(super) range: RangeInclusive<u64>,
}

impl Whole {
    fn within<E: Error>(self, number: u64) -> Result<Option<u64>, E> {
        match self.range.contains(&number) {
            true => Ok(Some(number)),
            false => Err(self.refused(number)),
        }
    }

    fn refused<E: Error>(self, given: impl fmt::Display) -> E {
        let (name, least, most) = (self.name, self.range.start(), self.range.end());
        E::custom(format_args!(
            "`{name}` is {given}: write a whole number from {least} to {most}, or leave it out"
        ))
    }
}

impl<'de> DeserializeSeed<'de> for Whole {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for Whole {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, least, most) = (self.name, self.range.start(), self.range.end());
        write!(f, "a whole number from {least} to {most} for `{name}`")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        self.within(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        match u64::try_from(number) {
            Ok(number) => self.within(number),
            Err(_) => Err(self.refused(number)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        // Whatever is not in that range of numbers was checked to be none of ours.
        match number.fract() == 0.0 && (0.0..9.0e15).contains(&number) {
            true => self.within(number as u64),
            false => Err(self.refused(number)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

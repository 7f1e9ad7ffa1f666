//! Bodies of requests: one thing, or several of its kind.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::asked::Asked;
use super::fields::{Fields, Headers, twice};
use super::text::{Name, Scalar};
use super::whole::Whole;

/// One, or several in order.
#[derive(Debug)]
pub(super) enum Body<T> {
    One(T),
    Many(Vec<T>),
}

/// A body that says nothing that we understand.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    /// Whether it is no JSON at all.
    pub(super) is_syntax: bool,
    /// What is wrong, where, and what would be right.
    pub(super) detail: String,
}

/// What stands in a body, field by field.
pub(super) trait Item<'a>: Default {
    /// Several of them are a list of this name.
    const SEVERAL: &'static str;
    /// What one of them looks like.
    const EXAMPLE: &'static str;

    /// Reads what stands behind a name.
    fn read<A: MapAccess<'a>>(&mut self, name: Cow<'a, str>, from: &mut A) -> Result<(), A::Error>;

    /// Whether all is there that must be.
    fn check<E: Error>(&self) -> Result<(), E> {
        Ok(())
    }
}

/// Reads a body with at most so many.
pub(super) fn read<'a, T: Item<'a>>(bytes: &'a [u8], most: usize) -> Result<Body<T>, Unreadable> {
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let read = Whatever { most, kind: PhantomData }.deserialize(&mut from);
    read.and_then(|body| from.end().map(|()| body)).map_err(|error| {
        let detail = match bytes.iter().all(u8::is_ascii_whitespace) {
            true => format!("the body is empty: send {}", T::EXAMPLE),
            // What somebody wrote may be repeated, but not at any length.
            false => error.to_string().chars().take(LONGEST).collect(),
        };
        Unreadable { is_syntax: !error.is_data(), detail }
    })
}

/// How a request ended.
#[derive(Debug, Default)]
pub(super) struct Ended<'a> {
    pub(super) ticket: Option<Cow<'a, str>>,
    pub(super) status: Option<u64>,
    pub(super) headers: Fields<'a>,
    seen: [bool; 3],
}

impl<'a> Item<'a> for Asked<'a> {
    const SEVERAL: &'static str = "checks";
    const EXAMPLE: &'static str = r#"{"method": "GET", "path": "/v1/items", "user": "alice"}"#;

    fn read<A: MapAccess<'a>>(&mut self, name: Cow<'a, str>, from: &mut A) -> Result<(), A::Error> {
        self.read(name, from)
    }
}

impl<'a> Item<'a> for Ended<'a> {
    const SEVERAL: &'static str = "reports";
    const EXAMPLE: &'static str = r#"{"ticket": "...", "status": 200}"#;

    fn read<A: MapAccess<'a>>(&mut self, name: Cow<'a, str>, from: &mut A) -> Result<(), A::Error> {
        let number = match &*name {
            "ticket" => 0,
            "status" => 1,
            "headers" => 2,
            _ => {
                let name: String = name.chars().take(60).collect();
                return Err(A::Error::custom(format_args!(
                    "there is no field `{name}`: there are `ticket`, `status` and `headers`"
                )));
            }
        };
        if std::mem::replace(&mut self.seen[number], true) {
            return Err(twice(&name));
        }
        match number {
            0 => self.ticket = from.next_value_seed(Scalar("ticket"))?,
            1 => {
                let whole = Whole { name: "status", range: 100..=999 };
                self.status = from.next_value_seed(whole)?;
            }
            _ => from.next_value_seed(Headers(&mut self.headers))?,
        }
        Ok(())
    }

    fn check<E: Error>(&self) -> Result<(), E> {
        match self.ticket {
            Some(_) => Ok(()),
            None => Err(E::custom("`ticket` is missing: send that of the check's answer")),
        }
    }
}

/// A whole body.
struct Whatever<T> {
    most: usize,
    kind: PhantomData<T>,
}

impl<'a, T: Item<'a>> DeserializeSeed<'a> for Whatever<T> {
    type Value = Body<T>;

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<Body<T>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'a, T: Item<'a>> Visitor<'a> for Whatever<T> {
    type Value = Body<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object such as {}", T::EXAMPLE)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut from: A) -> Result<Body<T>, A::Error> {
        let mut one = T::default();
        let mut names = 0;
        while let Some(name) = from.next_key_seed(Name)? {
            if name == T::SEVERAL {
                let many = from.next_value_seed(List { most: self.most, kind: self.kind })?;
                return match (names, from.next_key_seed(Name)?) {
                    (0, None) => Ok(Body::Many(many)),
                    _ => Err(alone(T::SEVERAL)),
                };
            }
            one.read(name, &mut from)?;
            names += 1;
        }
        one.check()?;
        Ok(Body::One(one))
    }
}

fn alone<E: Error>(name: &str) -> E {
    E::custom(format_args!("`{name}` stands alone: move the other fields into its objects"))
}

/// Several of a kind.
struct List<T> {
    most: usize,
    kind: PhantomData<T>,
}

impl<'a, T: Item<'a>> DeserializeSeed<'a> for List<T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<Vec<T>, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'a, T: Item<'a>> Visitor<'a> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of objects such as {}", T::EXAMPLE)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element_seed(One(PhantomData))? {
            if all.len() == self.most {
                let (name, most) = (T::SEVERAL, self.most);
                let detail = format_args!("`{name}` has more than {most}: send several bodies");
                return Err(A::Error::custom(detail));
            }
            all.push(one);
        }
        Ok(all)
    }
}

/// One of a list.
struct One<T>(PhantomData<T>);

impl<'a, T: Item<'a>> DeserializeSeed<'a> for One<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<T, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'a, T: Item<'a>> Visitor<'a> for One<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object such as {}", T::EXAMPLE)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut from: A) -> Result<T, A::Error> {
        let mut one = T::default();
        while let Some(name) = from.next_key_seed(Name)? {
            one.read(name, &mut from)?;
        }
        one.check()?;
        Ok(one)
    }
}

/// The longest that is said about a body, in characters.
const LONGEST: usize = 400;

#[cfg(test)]
mod tests;

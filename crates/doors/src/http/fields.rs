//! Fields with names, each there once: the attributes of a request, or its headers.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use smallvec::SmallVec;

use super::text::{Name, Scalar};

/// Fields in order: a name, and what stands behind it. `None` is null, or an object or a list whose
/// members stand behind it. It is kept because the name must not be there again.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(SmallVec<[Named<'a>; 3]>);

/// A name, and what stands behind it; nothing, if that is null.
type Named<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

/// As [`Request`](tollgate::Request) wants them.
pub(super) type Pairs<'r> = SmallVec<[(&'r str, &'r str); 6]>;

impl<'a> Fields<'a> {
    /// Those that have a value.
    pub(super) fn pairs(&self) -> Pairs<'_> {
        self.0.iter().filter_map(|(name, value)| Some((&**name, value.as_deref()?))).collect()
    }

    /// Every one is compared with all others, so there cannot be many.
    fn push<E: Error>(&mut self, name: Cow<'a, str>, value: Option<Cow<'a, str>>) -> Result<(), E> {
        if self.0.len() == FIELDS {
            return Err(E::custom(format_args!(
                "there are more than {FIELDS} fields: send only those that rules ask for"
            )));
        }
        self.0.push((name, value));
        Ok(())
    }
}

/// One field, to be read.
pub(super) struct Field<'x, 'a> {
    into: &'x mut Fields<'a>,
    name: Cow<'a, str>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// How deep it is nested. Objects are families, whose members are attributes.
    Attribute(u8),
    /// Names are compared without regard to case. Lists are headers that are there several times.
    Header,
}

impl<'x, 'a> Field<'x, 'a> {
    pub(super) const fn attribute(into: &'x mut Fields<'a>, name: Cow<'a, str>) -> Self {
        Self { into, name, kind: Kind::Attribute(0) }
    }

    pub(super) const fn header(into: &'x mut Fields<'a>, name: Cow<'a, str>) -> Self {
        Self { into, name, kind: Kind::Header }
    }

    /// Takes it in, if its name is not there yet.
    fn add<E: Error>(&mut self, value: Option<Cow<'a, str>>) -> Result<(), E> {
        let (into, name) = (&mut *self.into, &self.name);
        if name.len() > NAME_BYTES {
            return Err(E::custom(format_args!("a name has more than {NAME_BYTES} bytes")));
        }
        let same = match self.kind {
            Kind::Attribute(_) => str::eq,
            Kind::Header => str::eq_ignore_ascii_case,
        };
        if into.0.iter().any(|(known, _)| same(known, name)) {
            return Err(twice(name));
        }
        into.push(name.clone(), value)
    }

    fn add_value<E: Error>(mut self, value: Option<Cow<'a, str>>) -> Result<(), E> {
        let name = &*self.name;
        let is_attribute = matches!(self.kind, Kind::Attribute(_));
        if is_attribute && value.is_some() && ["claims", "body", "descriptor"].contains(&name) {
            return Err(E::custom(format_args!(
                "`{name}` is an object: write `{{\"{name}\": {{\"name\": \"value\"}}}}`"
            )));
        }
        self.add(value)
    }

    fn add_scalar<E: Error>(
        self,
        read: impl FnOnce(Scalar<'_>) -> Result<Option<Cow<'a, str>>, E>,
    ) -> Result<(), E> {
        let value = read(Scalar(&self.name))?;
        self.add_value(value)
    }
}

impl<'a> DeserializeSeed<'a> for Field<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Field<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text for `{}`", self.name)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<(), E> {
        self.add_value(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.add_value(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.add_scalar(|scalar| scalar.visit_u64(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.add_scalar(|scalar| scalar.visit_i64(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.add_scalar(|scalar| scalar.visit_f64(number))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.add_scalar(|scalar| scalar.visit_bool(value))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.add_value(None)
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut list: A) -> Result<(), A::Error> {
        if matches!(self.kind, Kind::Attribute(_)) {
            return Scalar(&self.name).visit_seq(list).map(|_| ());
        }
        self.add(None)?;
        while let Some(value) = list.next_element_seed(Scalar(&self.name))? {
            self.into.push(self.name.clone(), value)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut members: A) -> Result<(), A::Error> {
        let depth = match self.kind {
            Kind::Attribute(depth) if FAMILIES.contains(&family(&self.name)) => depth,
            _ => return Scalar(&self.name).visit_map(members).map(|_| ()),
        };
        if depth == DEPTH {
            return Err(A::Error::custom(format_args!("`{}` is nested too deeply", self.name)));
        }
        self.add(None)?;
        let Self { into, name, .. } = self;
        while let Some(member) = members.next_key_seed(Name)? {
            if member.is_empty() {
                return Err(A::Error::custom(format_args!("a member of `{name}` has no name")));
            }
            let name = Cow::Owned(format!("{name}.{member}"));
            members.next_value_seed(Field { into, name, kind: Kind::Attribute(depth + 1) })?;
        }
        Ok(())
    }
}

/// All headers, in an object of their own.
pub(super) struct Headers<'x, 'a>(pub(super) &'x mut Fields<'a>);

impl<'a> DeserializeSeed<'a> for Headers<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Headers<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of headers: {\"x-plan\": \"pro\"}")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key_seed(Name)? {
            if name.is_empty() {
                return Err(A::Error::custom("a header has no name"));
            }
            members.next_value_seed(Field::header(self.0, name))?;
        }
        Ok(())
    }
}

pub(super) fn twice<E: Error>(name: &str) -> E {
    E::custom(format_args!("`{name}` is there twice"))
}

/// What stands before the first dot.
pub(super) fn family(name: &str) -> &str {
    name.split_once('.').map_or(name, |(family, _)| family)
}

/// Families of what callers give.
pub(super) const FAMILIES: [&str; 5] = ["claims", "body", "user", "account", "descriptor"];

/// How many attributes, and how many headers, a request has.
const FIELDS: usize = 256;

/// The longest name of one.
const NAME_BYTES: usize = 256;

/// How deep objects are nested within a family.
const DEPTH: u8 = 8;

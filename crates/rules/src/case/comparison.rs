//! What a number must be.

use std::fmt;
use std::time::Duration;

use tollgate_core::{Period, Quota, QuotaError};

use crate::lasting::Lasting;

/// A value to compare with, and how: `5`, `>= 5`, `<= 1s`.
///
/// ```
/// use tollgate_rules::{Comparison, Relation};
/// let comparison = Comparison { relation: Relation::AtMost, value: 5_u64 };
/// assert!(comparison.holds(&5) && !comparison.holds(&6));
/// assert_eq!(comparison.to_string(), "at most 5");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison<T> {
    /// How.
    pub relation: Relation,
    /// With what.
    pub value: T,
}

/// How two values are compared.
///
/// ```
/// use tollgate_rules::Relation;
/// assert_eq!(Relation::AtLeast.to_string(), "at least ");
/// assert_eq!(Relation::Equal.to_string(), "");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `=`, or nothing.
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

/// As they are written: of two that begin alike the longer first.
const WRITTEN: [(&str, Relation); 6] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("==", Relation::Equal),
    ("<", Relation::Less),
    (">", Relation::More),
    ("=", Relation::Equal),
];

impl<T> Comparison<T> {
    /// Whether a value is as it must be.
    ///
    /// ```
    /// use tollgate_rules::{Comparison, Relation};
    /// assert!(Comparison { relation: Relation::More, value: 5 }.holds(&6));
    /// ```
    pub fn holds(&self, actual: &T) -> bool
    where
        T: PartialOrd,
    {
        match self.relation {
            Relation::Less => *actual < self.value,
            Relation::AtMost => *actual <= self.value,
            Relation::Equal => *actual == self.value,
            Relation::AtLeast => *actual >= self.value,
            Relation::More => *actual > self.value,
        }
    }

    fn parse(
        text: &str,
        value: impl FnOnce(&str) -> Result<T, QuotaError>,
    ) -> Result<Self, QuotaError> {
        let text = text.trim();
        let written = WRITTEN.iter().find_map(|(sign, relation)| {
            text.strip_prefix(sign).map(|rest| (*relation, rest.trim_start()))
        });
        let (relation, text) = written.unwrap_or((Relation::Equal, text));
        Ok(Self { relation, value: value(text)? })
    }
}

impl Comparison<u64> {
    /// How many.
    pub(super) fn count(text: &str) -> Result<Self, QuotaError> {
        Self::parse(text, |text| if text == "0" { Ok(0) } else { Quota::parse_count(text) })
    }

    /// A percentage, with or without its sign.
    pub(super) fn percent(text: &str) -> Result<Self, QuotaError> {
        Self::count(text.trim_end().strip_suffix('%').unwrap_or(text))
    }
}

impl Comparison<Duration> {
    /// How long.
    pub(super) fn duration(text: &str) -> Result<Self, QuotaError> {
        Self::parse(text, |text| match text {
            "0" | "0s" | "0ms" => Ok(Duration::ZERO),
            _ => Ok(text.parse::<Period>()?.as_duration()),
        })
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Less => "less than ",
            Self::AtMost => "at most ",
            Self::Equal => "",
            Self::AtLeast => "at least ",
            Self::More => "more than ",
        })
    }
}

impl fmt::Display for Comparison<u64> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.relation, self.value)
    }
}

impl fmt::Display for Comparison<Duration> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.relation, Lasting(self.value))
    }
}

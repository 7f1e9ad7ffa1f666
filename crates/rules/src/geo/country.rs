//! Countries by their two letters.

use std::fmt;
use std::str::FromStr;

/// A country, by the two letters of ISO 3166.
///
/// ```
/// use tollgate_rules::Country;
/// let country: Country = "de".parse()?;
/// assert_eq!(country.as_str(), "DE");
/// # Ok::<(), tollgate_rules::CountryError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Country([u8; 2]);

/// Text that is not two letters. Whoever wrote it is at fault.
///
/// ```
/// use tollgate_rules::Country;
/// let error = "Germany".parse::<Country>().unwrap_err();
/// assert_eq!(error.to_string(), "a country is two letters, such as `DE`");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a country is two letters, such as `DE`")]
pub struct CountryError;

impl Country {
    /// The two letters, in upper case.
    ///
    /// ```
    /// # use tollgate_rules::Country;
    /// assert_eq!("fr".parse::<Country>()?.as_str(), "FR");
    /// # Ok::<(), tollgate_rules::CountryError>(())
    /// ```
    pub fn as_str(&self) -> &str {
        // They are letters, so this is never empty.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Country {
    type Err = CountryError;

    fn from_str(text: &str) -> Result<Self, CountryError> {
        match text.as_bytes() {
            [a, b] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() => {
                Ok(Self([a.to_ascii_uppercase(), b.to_ascii_uppercase()]))
            }
            _ => Err(CountryError),
        }
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_is_two_letters() {
        assert_eq!("dE".parse::<Country>().map(|country| country.to_string()), Ok("DE".into()));
        for text in ["", "D", "DEU", "D1", "D ", "\u{e9}"] {
            assert_eq!(text.parse::<Country>(), Err(CountryError), "{text}");
        }
    }
}

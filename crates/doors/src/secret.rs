//! What is never printed.

use std::fmt;

/// A password or a token. It is compared in a time that does not tell how much of it was right, and
/// never shown.
///
/// ```
/// use tollgate_doors::Secret;
/// let secret = Secret::new("s3cret");
/// assert!(secret.is("s3cret") && !secret.is("s3crets"));
/// assert_eq!(format!("{secret:?}"), "***");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// This text, kept secret.
    ///
    /// ```
    /// # use tollgate_doors::Secret;
    /// assert!(Secret::new("a").is("a"));
    /// ```
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text, for whoever has to send it to somebody. It is not to be written anywhere.
    ///
    /// ```
    /// # use tollgate_doors::Secret;
    /// assert_eq!(Secret::new("a").expose(), "a");
    /// ```
    pub const fn expose(&self) -> &str {
        &self.0
    }

    /// Whether it is this.
    ///
    /// ```
    /// # use tollgate_doors::Secret;
    /// assert!(!Secret::new("a").is("b"));
    /// ```
    pub fn is(&self, text: &str) -> bool {
        let (known, given) = (self.0.as_bytes(), text.as_bytes());
        // Every byte of what was given is looked at, whatever the ones before it were.
        let differ = given.iter().zip(known.iter().cycle()).fold(0, |sum, (a, b)| sum | (a ^ b));
        // The optimiser must not see that one difference is enough.
        std::hint::black_box(differ) == 0 && given.len() == known.len()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_of_it_is_right() {
        let secret = Secret::new("abc");
        assert!(secret.is("abc"));
        for wrong in ["", "ab", "abcabc", "abd", "xbc", "ABC"] {
            assert!(!secret.is(wrong), "{wrong}");
        }
        assert!(!Secret::new("").is("a"));
    }
}

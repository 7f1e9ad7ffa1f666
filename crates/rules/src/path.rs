//! Patterns of paths: `/v1/users/{id}/**`.

use std::fmt;
use std::str::FromStr;

use crate::normal::write_segment;
use crate::short::same;

/// A pattern that the path of a request fits or does not.
///
/// A segment is text, `*` (any one), `{name}` (any one, which keys can be made of), or, at the end,
/// `**` (any number of them, also none). Text may be written as in a browser or escaped, which is
/// the same; paths that are compared with it are those of requests in their [usual
/// form](crate::Request::normal).
///
/// ```
/// use tollgate_rules::PathPattern;
/// let pattern: PathPattern = "/v1/users/{id}/**".parse()?;
/// assert!(pattern.matches("/v1/users/7/orders/9"));
/// assert!(pattern.matches("/v1/users/7"));
/// assert!(!pattern.matches("/v1/users"));
/// assert_eq!(pattern.parameters().collect::<Vec<_>>(), ["id"]);
/// # Ok::<(), tollgate_rules::PathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    segments: Vec<Segment>,
    open_ended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Segment {
    Text(Box<str>),
    Any,
    Parameter(Box<str>),
}

/// Why text is no [`PathPattern`].
///
/// ```
/// use tollgate_rules::PathPattern;
/// let error = "v1/users".parse::<PathPattern>().unwrap_err();
/// assert_eq!(error.to_string(), "a path begins with a slash");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No slash at the beginning.
    #[error("a path begins with a slash")]
    NotAbsolute,
    /// `**` in the middle.
    #[error("`**` can only be the last segment")]
    InnerRest,
    /// A star or a brace beside text in one segment.
    #[error("`{segment}` mixes text and a wildcard: a segment is text, `*`, `{{name}}` or `**`")]
    Mixed {
        /// The segment.
        segment: String,
    },
    /// Two parameters of one name.
    #[error("there are two parameters `{name}`")]
    Repeated {
        /// The name.
        name: String,
    },
    /// A query, a fragment, or parameters of a segment.
    #[error(
        "a path has no `{character}`: {} are not part of it",
        if *.character == ';' { "parameters of segments" } else { "queries" }
    )]
    Foreign {
        /// The character.
        character: char,
    },
    /// A segment that leads elsewhere: no request has it when it is compared.
    #[error(
        "`{segment}` leads elsewhere, and is followed before paths are compared: write the path it leads to"
    )]
    Dots {
        /// The segment.
        segment: String,
    },
    /// More segments than are looked at.
    #[error("a path has at most {max} segments")]
    TooLong {
        /// The most.
        max: usize,
    },
}

impl PathPattern {
    /// The most segments of a pattern.
    pub const MAX_SEGMENTS: usize = 64;

    /// Whether the path fits. A slash at its end does not matter.
    ///
    /// ```
    /// # use tollgate_rules::PathPattern;
    /// let pattern: PathPattern = "/login".parse()?;
    /// assert!(pattern.matches("/login") && pattern.matches("/login/"));
    /// assert!(!pattern.matches("/login/again") && !pattern.matches("/Login"));
    /// # Ok::<(), tollgate_rules::PathError>(())
    /// ```
    pub fn matches(&self, path: &str) -> bool {
        self.values(path).is_some()
    }

    /// The value of a parameter in a path that fits.
    ///
    /// ```
    /// # use tollgate_rules::PathPattern;
    /// let pattern: PathPattern = "/users/{id}".parse()?;
    /// assert_eq!(pattern.parameter("id", "/users/7"), Some("7"));
    /// assert_eq!(pattern.parameter("id", "/posts/7"), None);
    /// # Ok::<(), tollgate_rules::PathError>(())
    /// ```
    pub fn parameter<'p>(&self, name: &str, path: &'p str) -> Option<&'p str> {
        let is_it =
            |segment: &Segment| matches!(segment, Segment::Parameter(own) if **own == *name);
        let index = self.segments.iter().position(is_it)?;
        self.values(path)?;
        texts(path).nth(index)
    }

    /// The names of all parameters, in order.
    ///
    /// ```
    /// # use tollgate_rules::PathPattern;
    /// let pattern: PathPattern = "/{shop}/items/{item}".parse()?;
    /// assert_eq!(pattern.parameters().collect::<Vec<_>>(), ["shop", "item"]);
    /// # Ok::<(), tollgate_rules::PathError>(())
    /// ```
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Parameter(name) => Some(&**name),
            _ => None,
        })
    }

    /// How much it says: exact segments count most, named ones and an end a little.
    pub(crate) fn specificity(&self) -> usize {
        let exact = |segment: &&Segment| matches!(segment, Segment::Text(_));
        let exact = self.segments.iter().filter(exact).count();
        4 * exact + 2 * (self.segments.len() - exact) + usize::from(!self.open_ended)
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(crate) const fn is_open_ended(&self) -> bool {
        self.open_ended
    }

    /// Walks the path along the pattern; `None` if it does not fit.
    fn values(&self, path: &str) -> Option<()> {
        let mut given = segments(path);
        for segment in &self.segments {
            let value = given.next()?;
            match segment {
                Segment::Text(text) if !same(text.as_bytes(), value) => return None,
                _ => {}
            }
        }
        (self.open_ended || given.next().is_none()).then_some(())
    }
}

/// The segments of a path. Empty ones do not count: `//v1/` is `/v1`, as it is for most servers.
fn texts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// The same in bytes, for whoever goes through the paths of all requests.
#[inline]
pub(crate) const fn segments(path: &str) -> Segments<'_> {
    Segments { rest: path.as_bytes() }
}

/// See [`segments`]. Paths are short: a plain loop is faster than a search made for long texts.
#[derive(Clone)]
pub(crate) struct Segments<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while let [b'/', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let end = self.rest.iter().position(|byte| *byte == b'/').unwrap_or(self.rest.len());
        let (segment, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!segment.is_empty()).then_some(segment)
    }
}

impl FromStr for PathPattern {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        if !text.starts_with('/') {
            return Err(PathError::NotAbsolute);
        }
        if let Some(character) = text.chars().find(|c| matches!(c, '?' | '#' | ';')) {
            return Err(PathError::Foreign { character });
        }
        let mut pattern = Self { segments: Vec::new(), open_ended: false };
        for segment in texts(text) {
            if pattern.open_ended {
                return Err(PathError::InnerRest);
            }
            if pattern.segments.len() == Self::MAX_SEGMENTS {
                return Err(PathError::TooLong { max: Self::MAX_SEGMENTS });
            }
            match segment {
                "**" => pattern.open_ended = true,
                _ => pattern.segments.push(pattern.segment(segment)?),
            }
        }
        Ok(pattern)
    }
}

impl PathPattern {
    fn segment(&self, text: &str) -> Result<Segment, PathError> {
        let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        match (text, name) {
            ("*", _) => Ok(Segment::Any),
            (_, Some(name)) if is_name(name) => {
                match self.parameters().any(|other| other == name) {
                    true => Err(PathError::Repeated { name: name.to_owned() }),
                    false => Ok(Segment::Parameter(name.into())),
                }
            }
            _ if text.contains(['*', '{', '}']) => {
                Err(PathError::Mixed { segment: text.to_owned() })
            }
            _ => {
                let mut normal = String::with_capacity(text.len());
                write_segment(text, &mut normal);
                match &*normal {
                    "." | ".." => Err(PathError::Dots { segment: text.to_owned() }),
                    _ => Ok(Segment::Text(normal.into())),
                }
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Signs that are only text are written so that they are not taken for wildcards.
fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(['*', '{', '}']) {
        write!(f, "{}%{:X}", &rest[..at], rest.as_bytes()[at])?;
        rest = &rest[at + 1..];
    }
    f.write_str(rest)
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Text(text) => {
                    f.write_str("/")?;
                    write_text(text, f)?;
                }
                Segment::Any => f.write_str("/*")?,
                Segment::Parameter(name) => write!(f, "/{{{name}}}")?,
            }
        }
        match (self.open_ended, self.segments.is_empty()) {
            (true, _) => f.write_str("/**"),
            (false, true) => f.write_str("/"),
            (false, false) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Request;

    fn matches(pattern: &str, target: &str) -> bool {
        let pattern: PathPattern = pattern.parse().unwrap();
        pattern.matches(Request::new("GET", target).normal(&mut String::new()).path())
    }

    #[test]
    fn one_path_is_one_path_in_patterns_too() {
        for (pattern, target) in [
            ("/a%2fb", "/a%2Fb"),
            ("/a%2Fb", "/a%2fb"),
            ("/café", "/caf%c3%a9"),
            ("/caf%c3%a9", "/café"),
            ("/%6cogin", "/login"),
            ("/a b", "/a%20b"),
            ("/100%", "/100%25"),
            ("/a%3Bb", "/a%3bb"),
            ("/%2A", "/*"),
            ("/%7bid%7D", "/{id}"),
        ] {
            assert!(matches(pattern, target), "`{pattern}` fits `{target}`");
        }
        for (pattern, target) in [("/%2A", "/a"), ("/%7bid%7D", "/a"), ("/a%2fb", "/a/b")] {
            assert!(!matches(pattern, target), "`{pattern}` does not fit `{target}`");
        }
    }

    #[test]
    fn patterns_that_no_request_fits_are_refused() {
        for (pattern, why) in [
            ("/v1/../login", "`..` leads elsewhere"),
            ("/v1/./login", "`.` leads elsewhere"),
            ("/v1/%2e%2E/login", "`%2e%2E` leads elsewhere"),
            ("/login;v=1", "a path has no `;`: parameters of segments are not part of it"),
            ("/login?a", "a path has no `?`: queries are not part of it"),
        ] {
            let error = pattern.parse::<PathPattern>().unwrap_err();
            assert!(error.to_string().starts_with(why), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_fits_its_path_however_that_is_written(
            path in prop::collection::vec("[a-z.*{}/?#;%é -]{1,6}", 0..5),
            how in prop::collection::vec(0..3_u8, 64),
            around in prop::collection::vec(0..6_u8, 8),
        ) {
            let leads_elsewhere = |segment: &String| matches!(segment.as_str(), "." | "..");
            prop_assume!(!path.iter().any(leads_elsewhere));
            // What stands for something else must be escaped, and all the rest may be.
            let spell = |hows: &[u8], around: &[u8]| -> String {
                let mut hows = hows.iter().cycle();
                let mut target = String::new();
                for (segment, around) in path.iter().zip(around.iter().cycle()) {
                    let detours = ["", "/", "/.", "/x/..", "/%2e", "/;a=1"];
                    target.push_str(detours[usize::from(*around)]);
                    target.push('/');
                    for c in segment.chars() {
                        let how = hows.next();
                        if how == Some(&0) && !"*{}/?#;%".contains(c) {
                            target.push(c);
                            continue;
                        }
                        for byte in c.to_string().bytes() {
                            match how {
                                Some(1) => target.push_str(&format!("%{byte:02x}")),
                                _ => target.push_str(&format!("%{byte:02X}")),
                            }
                        }
                    }
                }
                if target.is_empty() { "/".to_owned() } else { target }
            };
            let (plain, other) = (spell(&[0], &[0]), spell(&how, &around));
            prop_assert!(matches(&plain, &other), "`{}` fits `{}`", plain, other);
            let written: PathPattern = plain.parse().unwrap();
            prop_assert_eq!(&written, &written.to_string().parse().unwrap());
        }
    }
}

//! Patterns of paths: `/v1/users/{id}/**`.

use std::fmt;
use std::str::FromStr;

/// A pattern that the path of a request fits or does not.
///
/// A segment is text, `*` (any one), `{name}` (any one, which keys can be made of), or, at the end,
/// `**` (any number of them, also none).
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
    /// A query or a fragment.
    #[error("a path has no `{character}`: queries are not part of it")]
    Foreign {
        /// The character.
        character: char,
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
        segments(path).nth(index)
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
                Segment::Text(text) if **text != *value => return None,
                _ => {}
            }
        }
        (self.open_ended || given.next().is_none()).then_some(())
    }
}

/// The segments of a path. Empty ones do not count: `//v1/` is `/v1`, as it is for most servers.
#[inline]
pub(crate) const fn segments(path: &str) -> Segments<'_> {
    Segments { rest: path }
}

/// See [`segments`]. Paths are short: a plain loop is faster than a search made for long texts.
#[derive(Clone)]
pub(crate) struct Segments<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.rest.as_bytes();
        let start = bytes.iter().position(|byte| *byte != b'/')?;
        let len = bytes[start..].iter().position(|byte| *byte == b'/');
        let end = len.map_or(bytes.len(), |len| start + len);
        // Slashes are whole characters, so this cuts between characters.
        let segment = &self.rest[start..end];
        self.rest = &self.rest[end..];
        Some(segment)
    }
}

impl FromStr for PathPattern {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        if !text.starts_with('/') {
            return Err(PathError::NotAbsolute);
        }
        if let Some(character) = text.chars().find(|c| matches!(c, '?' | '#')) {
            return Err(PathError::Foreign { character });
        }
        let mut pattern = Self { segments: Vec::new(), open_ended: false };
        for segment in segments(text) {
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
            _ => Ok(Segment::Text(text.into())),
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Text(text) => write!(f, "/{text}")?,
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

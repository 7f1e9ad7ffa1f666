//! Why a line is no request.

use std::borrow::Cow;

use crate::attribute::AttributeError;
use crate::request_line::RequestLine;

/// Why a line is no [`RequestLine`]. Whoever wrote it is at fault.
///
/// ```
/// use tollgate_rules::RequestLine;
/// let error = "GET / acount=a".parse::<RequestLine>().unwrap_err();
/// assert_eq!(error.to_string(), "there is no attribute `acount`");
/// assert_eq!((error.at(), &*error.remedy()), (6, "did you mean `account`?"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestLineError {
    /// It is longer than [`RequestLine::MAX_BYTES`].
    #[error("the line has {bytes} bytes, and at most {} are read", RequestLine::MAX_BYTES)]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// There is nothing.
    #[error("there is no request")]
    NoMethod,
    /// The first word is no method.
    #[error("`{method}` is no method")]
    BadMethod {
        /// Where it stands.
        at: usize,
        /// What stands there.
        method: String,
    },
    /// There is only one word.
    #[error("there is no path behind the method")]
    NoTarget {
        /// Where it should stand.
        at: usize,
    },
    /// The second word is no path.
    #[error("`{target}` is no path")]
    BadTarget {
        /// Where it stands.
        at: usize,
        /// What stands there.
        target: String,
    },
    /// A quote is opened and never closed.
    #[error("the quote is never closed")]
    OpenQuote {
        /// Where it is opened.
        at: usize,
    },
    /// Something stands right behind a closing quote.
    #[error("there is no blank behind the closing quote")]
    AfterQuote {
        /// Where the blank should be.
        at: usize,
    },
    /// A word after the path has no name.
    #[error("`{word}` says no name")]
    NotAPair {
        /// Where it stands.
        at: usize,
        /// What stands there.
        word: String,
    },
    /// Nothing has that name.
    #[error("{error}")]
    Attribute {
        /// Where it stands.
        at: usize,
        /// What is wrong with it.
        #[source]
        error: AttributeError,
    },
    /// It has a name, and is not said this way.
    #[error("`{name}` cannot be given")]
    NotGiven {
        /// Where it stands.
        at: usize,
        /// What was given.
        name: String,
        /// How it is said.
        remedy: &'static str,
    },
    /// `ip` is no address.
    #[error("`{text}` is no address")]
    BadAddress {
        /// Where it stands.
        at: usize,
        /// What stands there.
        text: String,
    },
    /// What can be known only once is said twice.
    #[error("`{name}` is given twice")]
    Twice {
        /// Where it stands again.
        at: usize,
        /// What is given twice.
        name: String,
    },
    /// The line names a tier, and the rules have none.
    #[error("the request names a tier, and the rules have none")]
    NoTiers,
    /// The rules have other tiers.
    #[error("there is no tier `{name}`")]
    UnknownTier {
        /// What was given.
        name: String,
        /// What to write instead.
        remedy: String,
    },
    /// The line names a tier, and also what names it by the rules.
    #[error("the request names its tier twice: with `tier` and with `{name}`")]
    TierTwice {
        /// What names it by the rules.
        name: String,
    },
    /// The rules find tiers by something that a line cannot say as a tier.
    #[error("the tier of a request is found by `{from}`")]
    TierNotSaid {
        /// What they find it by.
        from: String,
    },
}

impl RequestLineError {
    /// Where in the line, in bytes; 0 if it is about all of it.
    ///
    /// ```
    /// # use tollgate_rules::RequestLine;
    /// assert_eq!("GET / user".parse::<RequestLine>().unwrap_err().at(), 6);
    /// ```
    pub const fn at(&self) -> usize {
        match self {
            Self::BadMethod { at, .. }
            | Self::NoTarget { at }
            | Self::BadTarget { at, .. }
            | Self::OpenQuote { at }
            | Self::AfterQuote { at }
            | Self::NotAPair { at, .. }
            | Self::Attribute { at, .. }
            | Self::NotGiven { at, .. }
            | Self::BadAddress { at, .. }
            | Self::Twice { at, .. } => *at,
            Self::TooLong { .. }
            | Self::NoMethod
            | Self::NoTiers
            | Self::UnknownTier { .. }
            | Self::TierTwice { .. }
            | Self::TierNotSaid { .. } => 0,
        }
    }

    /// What to write instead.
    ///
    /// ```
    /// # use tollgate_rules::RequestLine;
    /// let error = "/v1/items".parse::<RequestLine>().unwrap_err();
    /// assert_eq!(error.remedy(), "begin with the method: `GET /v1/items user=alice`");
    /// ```
    pub fn remedy(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::TooLong { .. } => "leave out what no rule asks for",
            Self::NoMethod | Self::BadMethod { .. } => {
                "begin with the method: `GET /v1/items user=alice`"
            }
            Self::NoTarget { .. } => "write the path: `GET /v1/items`",
            Self::BadTarget { .. } => "a path begins with `/`: `GET /v1/items`",
            Self::OpenQuote { .. } => "close it, and write `\\\"` for a quote inside",
            Self::AfterQuote { .. } => "put the whole value in quotes: `body.name=\"a b\"`",
            Self::NotAPair { .. } => "write `name=value`, with quotes around values with blanks",
            Self::Attribute { error, .. } => error.remedy(),
            Self::NotGiven { remedy, .. } => remedy,
            Self::BadAddress { .. } => "write one like `192.0.2.7` or `2001:db8::7`",
            Self::Twice { .. } | Self::TierTwice { .. } => "keep one of them",
            Self::NoTiers => "leave `tier` out, or add `tiers` to the rules",
            Self::UnknownTier { remedy, .. } => remedy,
            Self::TierNotSaid { from } => {
                return Cow::Owned(format!("say what leads to it: `{from}=...`"));
            }
        })
    }
}

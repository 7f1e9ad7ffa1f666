//! A request in one line, as people write it in tests and on the command line.

mod error;
mod split;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

pub use error::RequestLineError;

use crate::attribute::Attribute;
use crate::read::{did_you_mean, listed};
use crate::request::Request;
use crate::request_line::split::{Word, words};
use crate::tiers::Tiers;

/// A request that owns what it says, written in one line: the method and the target, then what
/// else is known, under the names that rules use. Values with blanks stand in double quotes.
///
/// | written | means |
/// |---|---|
/// | `ip=192.0.2.7` | who is at the other end of the connection |
/// | `host=api.example.com` | the host it is for |
/// | `header.x-plan=a` | a header; several may have one name |
/// | `tier=pro` | whatever `tiers.from` of the rules names: see [`for_tiers`](Self::for_tiers) |
/// | `user=u1`, `claims.plan=free`, ... | what the caller knows |
///
/// ```
/// use tollgate_rules::RequestLine;
/// let line: RequestLine = r#"POST /login?x=1 ip=192.0.2.7 body.username="a b""#.parse()?;
/// line.with(|request| {
///     assert_eq!((request.method(), request.path(), request.query()), ("POST", "/login", "x=1"));
///     assert_eq!(request.attribute("body.username"), Some("a b"));
///     assert_eq!(request.peer_address(), "192.0.2.7".parse().ok());
/// });
/// assert_eq!(line.to_string(), r#"POST /login?x=1 ip=192.0.2.7 body.username="a b""#);
/// # Ok::<(), tollgate_rules::RequestLineError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLine {
    method: Box<str>,
    target: Box<str>,
    host: Option<Box<str>>,
    peer: Option<IpAddr>,
    tier: Option<Box<str>>,
    headers: Vec<Pair>,
    attributes: Vec<Pair>,
}

type Pair = (Box<str>, Box<str>);

impl RequestLine {
    /// The longest line that is read, in bytes.
    pub const MAX_BYTES: usize = 64 << 10;

    /// Shows the request to `ask`.
    ///
    /// ```
    /// # use tollgate_rules::RequestLine;
    /// let line: RequestLine = "GET /v1/items user=alice".parse()?;
    /// assert_eq!(line.with(|request| request.path().len()), 9);
    /// # Ok::<(), tollgate_rules::RequestLineError>(())
    /// ```
    pub fn with<R>(&self, ask: impl FnOnce(&Request<'_>) -> R) -> R {
        let headers = borrowed(&self.headers);
        let attributes = borrowed(&self.attributes);
        let request = Request::new(&self.method, &self.target)
            .host(self.host.as_deref().unwrap_or_default())
            .headers(&headers)
            .attributes(&attributes);
        match self.peer {
            Some(peer) => ask(&request.peer(peer)),
            None => ask(&request),
        }
    }

    /// The same request with what these tiers are named by instead of `tier=`. A line without that
    /// stays as it is.
    ///
    /// ```
    /// # use tollgate_rules::{RequestLine, RuleSet};
    /// let set = RuleSet::parse(
    ///     "tiers: { from: claims.plan, known: [free, pro], else: free }\nrules: []",
    /// )?;
    /// let line: RequestLine = "GET / tier=pro".parse()?;
    /// assert_eq!(line.for_tiers(set.tiers())?.to_string(), "GET / claims.plan=pro");
    /// let line: RequestLine = "GET / tier=por".parse()?;
    /// let error = line.for_tiers(set.tiers()).unwrap_err();
    /// assert_eq!(error.remedy(), "did you mean `pro`?");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_tiers(mut self, tiers: Option<&Tiers>) -> Result<Self, RequestLineError> {
        let Some(name) = self.tier.take() else { return Ok(self) };
        let Some(tiers) = tiers else { return Err(RequestLineError::NoTiers) };
        if tiers.named(&name).is_none() {
            let names: Vec<_> = tiers.names().collect();
            let remedy = did_you_mean(&name, &names)
                .unwrap_or_else(|| format!("the tiers are {}", listed(&names)));
            return Err(RequestLineError::UnknownTier { name: name.into(), remedy });
        }
        let from = tiers.from();
        let twice = || RequestLineError::TierTwice { name: from.to_string() };
        match from {
            Attribute::Given(known) => match self.says(known) {
                true => Err(twice()),
                false => {
                    self.attributes.push((known.clone(), name));
                    Ok(self)
                }
            },
            Attribute::Header(known) => match self.headers.iter().any(|(it, _)| it == known) {
                true => Err(twice()),
                false => {
                    self.headers.push((known.clone(), name));
                    Ok(self)
                }
            },
            other => Err(RequestLineError::TierNotSaid { from: other.to_string() }),
        }
    }

    fn says(&self, name: &str) -> bool {
        self.attributes.iter().any(|(known, _)| **known == *name)
    }

    /// Takes in one pair.
    fn add(&mut self, word: &Word<'_>) -> Result<(), RequestLineError> {
        let at = word.at;
        let Some(name) = word.name else {
            return Err(RequestLineError::NotAPair { at, word: word.value.to_string() });
        };
        let error = |error| RequestLineError::Attribute { at, error };
        let attribute = name.parse().map_err(error)?;
        let value = &*word.value;
        let twice = || Err(RequestLineError::Twice { at, name: name.to_owned() });
        match attribute {
            Attribute::Header(name) => self.headers.push((name, value.into())),
            Attribute::Given(name) if self.says(&name) => return twice(),
            Attribute::Given(name) => self.attributes.push((name, value.into())),
            Attribute::Ip if self.peer.is_some() => return twice(),
            Attribute::Ip => {
                let bad = |_| RequestLineError::BadAddress { at, text: value.to_owned() };
                self.peer = Some(value.parse().map_err(bad)?);
            }
            Attribute::Host if self.host.is_some() => return twice(),
            Attribute::Host => self.host = Some(value.into()),
            Attribute::Tier if self.tier.is_some() => return twice(),
            Attribute::Tier => self.tier = Some(value.into()),
            other => {
                let remedy = elsewhere(&other);
                return Err(RequestLineError::NotGiven { at, name: name.to_owned(), remedy });
            }
        }
        Ok(())
    }
}

/// Where to say what is not said as a pair.
const fn elsewhere(attribute: &Attribute) -> &'static str {
    match attribute {
        Attribute::Method => "it is the first word of the line: `GET /v1/items`",
        Attribute::Path | Attribute::PathParameter(_) => {
            "the path is the second word of the line: `GET /v1/items/7`"
        }
        Attribute::Query(_) => "write the query behind the path: `GET /v1/items?page=2`",
        _ => "it is found by the address: write `ip=192.0.2.7`",
    }
}

fn borrowed(pairs: &[Pair]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (&**name, &**value)).collect()
}

impl FromStr for RequestLine {
    type Err = RequestLineError;

    fn from_str(text: &str) -> Result<Self, RequestLineError> {
        if text.len() > Self::MAX_BYTES {
            return Err(RequestLineError::TooLong { bytes: text.len() });
        }
        let mut words = words(text);
        let end = text.len();
        let method = words.next().transpose()?.ok_or(RequestLineError::NoMethod)?;
        let method = method.whole(text);
        if !is_method(method) {
            let at = text.len() - text.trim_start().len();
            return Err(RequestLineError::BadMethod { at, method: method.to_owned() });
        }
        let target = words.next().transpose()?.ok_or(RequestLineError::NoTarget { at: end })?;
        let at = target.at;
        // What is quoted loses its quotes; what looks like a pair is none here.
        let target = if target.quoted { &*target.value } else { target.whole(text) };
        if !target.starts_with('/') && target != "*" {
            return Err(RequestLineError::BadTarget { at, target: target.to_owned() });
        }
        let mut line = Self {
            method: method.into(),
            target: target.into(),
            host: None,
            peer: None,
            tier: None,
            headers: Vec::new(),
            attributes: Vec::new(),
        };
        for word in words {
            line.add(&word?)?;
        }
        Ok(line)
    }
}

/// Whether HTTP would take it for a method.
fn is_method(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(fits)
}

/// As it can be read again.
impl fmt::Display for RequestLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, Quoted(&self.target))?;
        if let Some(host) = &self.host {
            write!(f, " host={}", Quoted(host))?;
        }
        if let Some(peer) = &self.peer {
            write!(f, " ip={peer}")?;
        }
        if let Some(tier) = &self.tier {
            write!(f, " tier={}", Quoted(tier))?;
        }
        for (name, value) in &self.headers {
            write!(f, " header.{name}={}", Quoted(value))?;
        }
        for (name, value) in &self.attributes {
            write!(f, " {name}={}", Quoted(value))?;
        }
        Ok(())
    }
}

/// A value with quotes if it needs them.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        if !text.is_empty() && !text.starts_with('"') && !text.contains(char::is_whitespace) {
            return f.write_str(text);
        }
        f.write_str("\"")?;
        for part in text.split_inclusive(['"', '\\']) {
            match part.strip_suffix(['"', '\\']) {
                Some(before) => write!(f, "{before}\\{}", &part[before.len()..])?,
                None => f.write_str(part)?,
            }
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests;

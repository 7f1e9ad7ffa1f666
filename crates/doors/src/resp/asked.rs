//! Requests in pairs of names and values.
//!
//! Names are those that rules use, and `cost`. Nothing is ignored: what is not known, or said twice,
//! is an error, because a misspelt attribute would be a limit that never holds.

use std::net::IpAddr;
use std::ops::Range;

use smallvec::SmallVec;
use tollgate::Request;
use tollgate_rules::{Attribute, AttributeError};

use crate::resp::frame::integer;

type Pair<'a> = (&'a str, &'a str);

/// Requests that were asked about in one go, with everything they say.
#[derive(Debug, Default)]
pub(crate) struct Asked<'a> {
    requests: SmallVec<[Said<'a>; 4]>,
    /// Of all of them, one behind the other.
    headers: SmallVec<[Pair<'a>; 8]>,
    attributes: SmallVec<[Pair<'a>; 16]>,
}

/// What one of them says.
#[derive(Clone, Debug, Default)]
struct Said<'a> {
    method: Option<&'a str>,
    path: Option<&'a str>,
    host: Option<&'a str>,
    ip: Option<IpAddr>,
    cost: Option<u64>,
    /// The rule that it is about, if it is about one.
    rule: Option<&'a str>,
    headers: Range<usize>,
    attributes: Range<usize>,
}

/// Why pairs are no request. Whoever sent them is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AskError {
    #[error("`{0}` has no value behind it: write pairs of a name and a value")]
    NoValue(String),
    #[error("{0} is not text in UTF-8")]
    NotText(String),
    #[error("`{0}` is given twice: keep one of them")]
    Twice(String),
    #[error("`ip` is no address: write one like 192.0.2.7 or 2001:db8::7")]
    Address,
    #[error("`cost` is no whole number from 0 to 2^53 - 1: leave it out, or write one")]
    Cost,
    #[error("`method` is empty: write one like GET, or leave it out")]
    Method,
    #[error("`path` is empty: write one like /v1/items, or leave it out")]
    Path,
    #[error("`{name}` cannot be given: {remedy}")]
    NotGiven { name: String, remedy: &'static str },
    #[error("`status` is no status of HTTP: write one like 200, or leave it out")]
    Status,
    #[error("`{0}` says nothing about how a request ended: give `status`, or `header.name`")]
    NotAnOutcome(String),
    #[error("{error}: {}", .error.remedy())]
    Unknown { error: AttributeError },
}

impl<'a> Asked<'a> {
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn clear(&mut self) {
        self.requests.clear();
        self.headers.clear();
        self.attributes.clear();
    }

    /// Takes in one more request. If something is wrong with it, nothing of it stays.
    pub(crate) fn add(&mut self, arguments: &[&'a [u8]], naming: Naming) -> Result<(), AskError> {
        let (headers, attributes) = (self.headers.len(), self.attributes.len());
        let mut said = Said::default();
        let added = self.read(arguments, naming, attributes, &mut said);
        match added {
            Ok(()) => {
                said.headers = headers..self.headers.len();
                said.attributes = attributes..self.attributes.len();
                self.requests.push(said);
            }
            Err(_) => {
                self.headers.truncate(headers);
                self.attributes.truncate(attributes);
            }
        }
        added
    }

    fn read(
        &mut self,
        arguments: &[&'a [u8]],
        naming: Naming,
        begin: usize,
        said: &mut Said<'a>,
    ) -> Result<(), AskError> {
        let pairs = arguments.get(1..).unwrap_or_default().chunks(2);
        for pair in pairs {
            let name = text(pair[0]).ok_or_else(|| AskError::NotText("a name".to_owned()))?;
            let [_, value] = pair else { return Err(AskError::NoValue(shown(name))) };
            let value = text(value)
                .ok_or_else(|| AskError::NotText(format!("the value of `{}`", shown(name))))?;
            match name {
                "method" if value.is_empty() => return Err(AskError::Method),
                "method" => once(&mut said.method, value, name)?,
                "path" if value.is_empty() => return Err(AskError::Path),
                "path" => once(&mut said.path, value, name)?,
                "host" => once(&mut said.host, value, name)?,
                "ip" => {
                    let ip: IpAddr = value.parse().map_err(|_| AskError::Address)?;
                    once(&mut said.ip, ip.to_canonical(), name)?;
                }
                "cost" => once(&mut said.cost, cost(value)?, name)?,
                "rule" if naming == Naming::Rules => once(&mut said.rule, value, name)?,
                _ => match name.strip_prefix("header.") {
                    Some(header) if !header.is_empty() => self.headers.push((header, value)),
                    None if is_given(name) => {
                        if self.attributes[begin..].iter().any(|(known, _)| *known == name) {
                            return Err(AskError::Twice(shown(name)));
                        }
                        self.attributes.push((name, value));
                    }
                    _ => return Err(unknown(name)),
                },
            }
        }
        Ok(())
    }

    /// Each request of a client that has shown this certificate, and the rule that it is about.
    /// Without a method it is a GET, without a path one for `/`.
    pub(crate) fn each<'r>(
        &'r self,
        client: &'r str,
    ) -> impl ExactSizeIterator<Item = (Request<'r>, Option<&'r str>)> {
        self.requests.iter().map(move |said| {
            let request = Request::new(said.method.unwrap_or("GET"), said.path.unwrap_or("/"))
                .host(said.host.unwrap_or_default())
                .client_cert(client)
                .cost(said.cost.unwrap_or(1))
                .headers(&self.headers[said.headers.clone()])
                .attributes(&self.attributes[said.attributes.clone()]);
            (said.ip.map_or(request, |ip| request.peer(ip)), said.rule)
        })
    }
}

/// Whether a request may name a rule that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// It is about all that apply.
    Nothing,
    Rules,
}

pub(super) fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}

fn once<T>(known: &mut Option<T>, value: T, name: &str) -> Result<(), AskError> {
    match known.replace(value) {
        None => Ok(()),
        Some(_) => Err(AskError::Twice(name.to_owned())),
    }
}

fn cost(value: &str) -> Result<u64, AskError> {
    let cost = integer(value.as_bytes()).and_then(|cost| u64::try_from(cost).ok());
    cost.filter(|cost| *cost <= MOST_COST).ok_or(AskError::Cost)
}

/// Whether callers give an attribute of this name.
fn is_given(name: &str) -> bool {
    match name.split_once('.') {
        Some((family, member)) => {
            !member.is_empty()
                && matches!(family, "claims" | "body" | "user" | "account" | "descriptor")
        }
        None => matches!(name, "user" | "account" | "api_key" | "domain" | "descriptor_keys"),
    }
}

/// Why a name is none that can be given.
#[cold]
fn unknown(name: &str) -> AskError {
    let name = shown(name);
    let remedy = match name.parse::<Attribute>() {
        Err(error) => return AskError::Unknown { error },
        Ok(Attribute::Query(_)) => "write the query behind the path: /v1/items?page=2",
        Ok(Attribute::PathParameter(_)) => "it is found in the path: give `path`",
        Ok(Attribute::ClientCert) => "it is found by the certificate of the connection",
        Ok(Attribute::Tier) => "give what the rules find it by: `tiers.from` names that",
        Ok(_) => "it is found by the address: give `ip`",
    };
    AskError::NotGiven { name, remedy }
}

/// It is repeated, but not at any length.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(60).collect()
}

/// The same as in JSON, where numbers are not exact beyond.
const MOST_COST: u64 = (1 << 53) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(words: &[&'a str]) -> Result<Asked<'a>, AskError> {
        let arguments: Vec<_> =
            ["tg.check"].iter().chain(words).map(|word| word.as_bytes()).collect();
        let mut asked = Asked::default();
        asked.add(&arguments, Naming::Nothing).map(|()| asked)
    }

    #[test]
    fn pairs_are_a_request() {
        let asked = asked(&[
            "method",
            "POST",
            "path",
            "/login?a=b",
            "user",
            "u1",
            "header.x-a",
            "1",
            "ip",
            "::ffff:192.0.2.7",
            "cost",
            "3",
            "header.x-a",
            "2",
            "claims.plan",
            "pro",
            "host",
            "h",
        ])
        .unwrap();
        let (request, _) = asked.each("").next().unwrap();
        assert_eq!((request.method(), request.path(), request.query()), ("POST", "/login", "a=b"));
        assert_eq!(request.all_headers("X-A").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(request.every_attribute(), [("user", "u1"), ("claims.plan", "pro")]);
        assert_eq!(request.peer_address(), "192.0.2.7".parse().ok());
        assert_eq!(request.host_name(), "h");
    }

    #[test]
    fn what_is_left_out_is_usual() {
        let asked = asked(&[]).unwrap();
        let (request, rule) = asked.each("").next().unwrap();
        assert_eq!((request.method(), request.path(), rule), ("GET", "/", None));
    }

    #[test]
    fn what_is_wrong_is_named_and_leaves_nothing() {
        for (words, part) in [
            (&["user"][..], "`user` has no value"),
            (&["acount", "a"], "did you mean `account`?"),
            (&["user", "a", "user", "b"], "`user` is given twice"),
            (&["path", "/", "path", "/"], "`path` is given twice"),
            (&["ip", "localhost"], "`ip` is no address"),
            (&["cost", "-1"], "`cost` is no whole number"),
            (&["cost", "9007199254740992"], "`cost` is no whole number"),
            (&["method", ""], "`method` is empty"),
            (&["path", ""], "`path` is empty"),
            (&["tier", "pro"], "`tiers.from` names that"),
            (&["query.a", "b"], "behind the path"),
            (&["path.id", "b"], "give `path`"),
            (&["country", "DE"], "give `ip`"),
            (&["header.", "b"], "needs a name"),
            (&["claims.", "b"], "needs a name"),
            (&["rule", "a"], "there is no attribute `rule`"),
        ] {
            let error = asked(words).unwrap_err().to_string();
            assert!(error.contains(part), "{words:?}: {error}");
        }
        let mut both = Asked::default();
        assert!(
            both.add(&[b"c", b"user", b"a", b"header.a", b"b", b"x", b"y"], Naming::Nothing)
                .is_err()
        );
        assert!(both.add(&[b"c", b"user", b"\xff"], Naming::Nothing).is_err());
        assert!(both.add(&[b"c", b"user", b"b"], Naming::Nothing).is_ok());
        let (request, _) = both.each("").next().unwrap();
        assert_eq!((both.len(), request.every_attribute()), (1, &[("user", "b")][..]));
        assert!(request.every_header().is_empty());
    }
}

//! Requests that somebody asks about, as messages.

use std::net::IpAddr;
use std::ops::Range;

use smallvec::SmallVec;
use tollgate::Request;
use tollgate_proto::tollgate::v1::CheckRequest;
use tollgate_rules::Attribute;

use crate::grpc::frame::Refusal;
use crate::grpc::wire::{self, Fields};

/// Requests that somebody asks about at once, with everything that they say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub(super) checks: SmallVec<[Check<'a>; 1]>,
    /// Of all of them, one behind the other: in lists of their own they would be most of what is
    /// moved about.
    attributes: Pairs<'a>,
    headers: Pairs<'a>,
}

/// What one of them says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Check<'a> {
    method: &'a str,
    path: &'a str,
    host: &'a str,
    ip: Option<IpAddr>,
    cost: Option<u64>,
    attributes: Part,
    headers: Part,
    pub(super) id: u64,
    pub(super) peek: bool,
    pub(super) with_rules: bool,
}

/// Where the pairs of one stand among those of all.
type Part = Range<u32>;

/// Names and values.
type Pairs<'a> = SmallVec<[(&'a str, &'a str); 2]>;

impl<'a> Asked<'a> {
    /// None yet, with room for so many of the usual size.
    pub(super) fn with_room(count: usize) -> Self {
        Self {
            checks: SmallVec::with_capacity(count),
            attributes: SmallVec::with_capacity(count),
            headers: SmallVec::new(),
        }
    }

    /// A message that was read before.
    pub(super) fn of(asked: &'a CheckRequest) -> Result<Self, Refusal> {
        let pairs = |map: &'a std::collections::BTreeMap<String, String>| -> Pairs<'a> {
            map.iter().map(|(name, value)| (&**name, &**value)).collect()
        };
        let mut read = Self {
            checks: SmallVec::new(),
            attributes: pairs(&asked.attributes),
            headers: pairs(&asked.headers),
        };
        let ip = address(&asked.ip)?;
        if let Some((name, _)) = read.attributes.iter().find(|(name, _)| !Attribute::is_given(name))
        {
            return Err(unknown(name));
        }
        let check = Check {
            method: &asked.method,
            path: &asked.path,
            host: &asked.host,
            ip,
            cost: asked.cost,
            attributes: 0..end(&read.attributes),
            headers: 0..end(&read.headers),
            id: asked.id,
            peek: asked.peek,
            with_rules: asked.with_rules,
        };
        check.validate()?;
        read.checks.push(check);
        Ok(read)
    }

    /// Takes in a message as it came: the same, without making a copy of everything first.
    pub(super) fn read(&mut self, message: &'a [u8]) -> Result<(), Refusal> {
        let (mut check, mut fields) = (Check::default(), Fields::of(message));
        check.attributes.start = end(&self.attributes);
        check.headers.start = end(&self.headers);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => check.method = value.text()?,
                2 => check.path = value.text()?,
                3 => check.host = value.text()?,
                4 => check.ip = address(value.text()?)?,
                5 => {
                    let (name, value) = wire::named(value.bytes()?)?;
                    self.attributes.push((given(name)?, value));
                }
                6 => self.headers.push(wire::pair(value.bytes()?)?),
                7 => check.cost = Some(value.number()?),
                8 => check.peek = value.number()? != 0,
                9 => check.with_rules = value.number()? != 0,
                10 => check.id = value.number()?,
                // What later versions say does not concern us.
                _ => {}
            }
        }
        check.attributes.end = end(&self.attributes);
        check.headers.end = end(&self.headers);
        check.validate()?;
        self.checks.push(check);
        Ok(())
    }

    /// The request that one of them asks about, of a client that has shown this certificate. Without
    /// a method it is a GET, without a path one for `/`.
    #[inline(always)]
    pub(super) fn request<'r>(&'r self, check: &Check<'r>, client: &'r str) -> Request<'r> {
        let method = if check.method.is_empty() { "GET" } else { check.method };
        let path = if check.path.is_empty() { "/" } else { check.path };
        let request = Request::new(method, path)
            .host(check.host)
            .client_cert(client)
            .cost(check.cost.unwrap_or(1))
            .headers(&self.headers[within(&check.headers)])
            .attributes(&self.attributes[within(&check.attributes)]);
        match check.ip {
            Some(ip) => request.peer(ip),
            None => request,
        }
    }
}

impl Check<'_> {
    fn validate(&self) -> Result<(), Refusal> {
        if self.attributes.len() > MOST || self.headers.len() > MOST {
            let message = format!("there are more than {MOST} attributes or headers");
            return Err(Refusal::invalid(message));
        }
        if self.cost.is_some_and(|cost| cost > MOST_COST) {
            return Err(Refusal::invalid(format!("the cost is more than {MOST_COST}")));
        }
        Ok(())
    }
}

/// Where the next pair will stand. A message has fewer bytes than fit.
#[inline]
fn end(pairs: &Pairs<'_>) -> u32 {
    pairs.len() as u32
}

#[inline]
const fn within(part: &Part) -> Range<usize> {
    part.start as usize..part.end as usize
}

/// The name of an attribute that can be given. Those that are given most are known by their bytes.
#[inline]
fn given(name: &[u8]) -> Result<&str, Refusal> {
    match name {
        b"user" => Ok("user"),
        b"account" => Ok("account"),
        b"api_key" => Ok("api_key"),
        _ => match wire::text(name)? {
            name if Attribute::is_given(name) => Ok(name),
            name => Err(unknown(name)),
        },
    }
}

fn address(text: &str) -> Result<Option<IpAddr>, Refusal> {
    match text {
        "" => Ok(None),
        text => match text.parse::<IpAddr>() {
            Ok(ip) => Ok(Some(ip.to_canonical())),
            Err(_) => Err(Refusal::invalid(NO_ADDRESS)),
        },
    }
}

/// Why a name is none that can be given.
#[cold]
fn unknown(name: &str) -> Refusal {
    let shown: String = name.chars().take(60).collect();
    let remedy = match name.parse::<Attribute>() {
        Err(error) => error.remedy().to_owned(),
        Ok(Attribute::Header(_)) => "write it among the headers".to_owned(),
        Ok(_) => "it has a field of its own, or is found in others".to_owned(),
    };
    Refusal::invalid(format!("there is no attribute `{shown}` that can be given: {remedy}"))
}

/// The most attributes, and headers, of a request: rules look through all of them.
const MOST: usize = 256;

/// What everybody can count up to.
const MOST_COST: u64 = (1 << 53) - 1;

const NO_ADDRESS: &str =
    "`ip` is no address: write `192.0.2.7` or `2001:db8::1`, without a port, or leave it out";

//! A request that somebody asks about, as a message.

use std::net::IpAddr;

use smallvec::SmallVec;
use tollgate::Request;
use tollgate_proto::tollgate::v1::CheckRequest;
use tollgate_rules::Attribute;

use crate::grpc::frame::Refusal;
use crate::grpc::wire::{self, Fields};

/// A request that somebody asks about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    method: &'a str,
    path: &'a str,
    host: &'a str,
    ip: Option<IpAddr>,
    attributes: Pairs<'a>,
    headers: Pairs<'a>,
    cost: Option<u64>,
    pub(super) peek: bool,
    pub(super) with_rules: bool,
    pub(super) id: u64,
}

/// Names and values.
type Pairs<'a> = SmallVec<[(&'a str, &'a str); 2]>;

impl<'a> Asked<'a> {
    /// A message that was read before.
    pub(super) fn of(asked: &'a CheckRequest) -> Result<Self, Refusal> {
        let pairs = |map: &'a std::collections::BTreeMap<String, String>| {
            map.iter().map(|(name, value)| (&**name, &**value)).collect()
        };
        let read = Self {
            method: &asked.method,
            path: &asked.path,
            host: &asked.host,
            ip: address(&asked.ip)?,
            attributes: pairs(&asked.attributes),
            headers: pairs(&asked.headers),
            cost: asked.cost,
            peek: asked.peek,
            with_rules: asked.with_rules,
            id: asked.id,
        };
        read.check()
    }

    /// A message as it came: the same, without making a copy of everything first.
    pub(super) fn read(message: &'a [u8]) -> Result<Self, Refusal> {
        let (mut read, mut fields) = (Self::default(), Fields::of(message));
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => read.method = value.text()?,
                2 => read.path = value.text()?,
                3 => read.host = value.text()?,
                4 => read.ip = address(value.text()?)?,
                5 => read.attributes.push(wire::pair(value.bytes()?)?),
                6 => read.headers.push(wire::pair(value.bytes()?)?),
                7 => read.cost = Some(value.number()?),
                8 => read.peek = value.number()? != 0,
                9 => read.with_rules = value.number()? != 0,
                10 => read.id = value.number()?,
                // What later versions say does not concern us.
                _ => {}
            }
        }
        read.check()
    }

    fn check(self) -> Result<Self, Refusal> {
        if self.attributes.len() > MOST || self.headers.len() > MOST {
            let message = format!("there are more than {MOST} attributes or headers");
            return Err(Refusal::invalid(message));
        }
        if let Some((name, _)) = self.attributes.iter().find(|(name, _)| !Attribute::is_given(name))
        {
            return Err(unknown(name));
        }
        if self.cost.is_some_and(|cost| cost > MOST_COST) {
            return Err(Refusal::invalid(format!("the cost is more than {MOST_COST}")));
        }
        Ok(self)
    }

    /// The request. Without a method it is a GET, without a path one for `/`.
    pub(super) fn request(&self) -> Request<'_> {
        let method = if self.method.is_empty() { "GET" } else { self.method };
        let path = if self.path.is_empty() { "/" } else { self.path };
        let request = Request::new(method, path)
            .host(self.host)
            .cost(self.cost.unwrap_or(1))
            .headers(&self.headers)
            .attributes(&self.attributes);
        self.ip.map_or(request, |ip| request.peer(ip))
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

//! A request that somebody asks about, as they wrote it in JSON.
//!
//! The fields of the object are what rules call attributes: `method`, `path`, `host`, `ip`, `user`,
//! `claims.plan`. What belongs to a family may also stand in an object of its own, so
//! `{"claims": {"plan": "pro"}}` says the same. Nothing is ignored: a field that no rule could ever
//! ask for is a mistake, and a field that is there twice would be read one way by us and another way
//! by somebody else.

use std::borrow::Cow;
use std::net::IpAddr;

use serde::de::{DeserializeSeed, Error, MapAccess};
use tollgate::Request;
use tollgate_rules::{Attribute, AttributeError};

use super::fields::{FAMILIES, Field, Fields, Headers, Pairs, twice};
use super::text::Scalar;
use super::whole::Whole;

/// A request that somebody asks about.
#[derive(Debug, Default)]
pub(super) struct Asked<'a> {
    method: Option<Cow<'a, str>>,
    path: Option<Cow<'a, str>>,
    host: Option<Cow<'a, str>>,
    ip: Option<IpAddr>,
    cost: Option<u64>,
    headers: Fields<'a>,
    attributes: Fields<'a>,
    /// Which of the fields that are one of a kind were there.
    seen: u8,
}

impl<'a> Asked<'a> {
    /// Headers and attributes, to make a [request](Self::request) with.
    pub(super) fn pairs(&self) -> (Pairs<'_>, Pairs<'_>) {
        (self.headers.pairs(), self.attributes.pairs())
    }

    /// The request. Without a method it is a GET, without a path one for `/`.
    pub(super) fn request<'r>(
        &'r self,
        headers: &'r [(&'r str, &'r str)],
        attributes: &'r [(&'r str, &'r str)],
    ) -> Request<'r> {
        let method = self.method.as_deref().unwrap_or("GET");
        let request = Request::new(method, self.path.as_deref().unwrap_or("/"))
            .host(self.host.as_deref().unwrap_or_default())
            .cost(self.cost.unwrap_or(1))
            .headers(headers)
            .attributes(attributes);
        self.ip.map_or(request, |ip| request.peer(ip))
    }

    /// Reads what stands behind a name.
    pub(super) fn read<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        from: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "method" => {
                let text = self.once(METHOD, "method", Scalar("method"), from)?;
                self.method = filled("method", "GET", text)?;
            }
            "path" => {
                let text = self.once(PATH, "path", Scalar("path"), from)?;
                self.path = filled("path", "/v1/items", text)?;
            }
            // It may be empty, as in HTTP: then nothing is known about it.
            "host" => self.host = self.once(HOST, "host", Scalar("host"), from)?,
            "cost" => {
                let whole = Whole { name: "cost", range: 0..=MOST_COST };
                self.cost = self.once(COST, "cost", whole, from)?;
            }
            "ip" => {
                let text = self.once(IP, "ip", Scalar("ip"), from)?;
                self.ip = text.map(|text| address(&text)).transpose()?;
            }
            "headers" => {
                self.see(HEADERS, "headers")?;
                from.next_value_seed(Headers(&mut self.headers))?;
            }
            _ => match name.strip_prefix("header.") {
                Some("") => return Err(unknown(&name)),
                Some(header) => {
                    let header = header.to_owned();
                    from.next_value_seed(Field::header(&mut self.headers, header.into()))?;
                }
                None if is_given(&name) => {
                    from.next_value_seed(Field::attribute(&mut self.attributes, name))?;
                }
                None => return Err(unknown(&name)),
            },
        }
        Ok(())
    }

    fn once<A: MapAccess<'a>, S: DeserializeSeed<'a>>(
        &mut self,
        field: u8,
        name: &str,
        seed: S,
        from: &mut A,
    ) -> Result<S::Value, A::Error> {
        self.see(field, name)?;
        from.next_value_seed(seed)
    }

    fn see<E: Error>(&mut self, field: u8, name: &str) -> Result<(), E> {
        if self.seen & field != 0 {
            return Err(twice(name));
        }
        self.seen |= field;
        Ok(())
    }
}

/// No request has an empty one, and no rule would ever apply to it.
fn filled<'a, E: Error>(
    name: &str,
    example: &str,
    text: Option<Cow<'a, str>>,
) -> Result<Option<Cow<'a, str>>, E> {
    match text {
        Some(text) if text.is_empty() => Err(E::custom(format_args!(
            "`{name}` is empty: write one like `{example}`, or leave it out"
        ))),
        text => Ok(text),
    }
}

fn address<E: Error>(text: &str) -> Result<IpAddr, E> {
    let refused = |_| {
        E::custom(
            "`ip` is no address: write `192.0.2.7` or `2001:db8::1`, without a port, or leave it out",
        )
    };
    text.parse::<IpAddr>().map(|ip| ip.to_canonical()).map_err(refused)
}

/// Whether callers give an attribute of this name, or a family.
fn is_given(name: &str) -> bool {
    match name.split_once('.') {
        Some((family, member)) => FAMILIES.contains(&family) && !member.is_empty(),
        None => SINGLE.contains(&name) || FAMILIES.contains(&name),
    }
}

/// Why a name is none that can be given.
fn unknown<E: Error>(name: &str) -> E {
    let remedy = match name.parse::<Attribute>() {
        Err(error @ AttributeError::Unknown { .. }) => {
            // It is repeated, but not at any length.
            let name: String = name.chars().take(60).collect();
            return E::custom(format_args!("there is no field `{name}`: {}", error.remedy()));
        }
        Err(error) => return E::custom(format_args!("{error}: {}", error.remedy())),
        Ok(Attribute::Query(_)) => "write the query behind the path: `/v1/items?page=2`",
        Ok(Attribute::PathParameter(_)) => "it is found in the path: write `path`",
        Ok(Attribute::ClientCert) => "it is found by the certificate of the connection",
        Ok(Attribute::Tier) => "write what the rules find it by: `tiers.from` names that",
        Ok(_) => "it is found by the address: write `ip`",
    };
    E::custom(format_args!("`{name}` cannot be given: {remedy}"))
}

/// What callers give that belongs to no family, and has none.
const SINGLE: [&str; 3] = ["api_key", "domain", "descriptor_keys"];

const METHOD: u8 = 1;
const PATH: u8 = 1 << 1;
const HOST: u8 = 1 << 2;
const IP: u8 = 1 << 3;
const COST: u8 = 1 << 4;
const HEADERS: u8 = 1 << 5;

/// What JSON numbers are exact up to, wherever they come from.
const MOST_COST: u64 = (1 << 53) - 1;

//! What a request can be counted by.

use std::fmt;
use std::str::FromStr;

use crate::read::did_you_mean;

/// A part of a request: what rules name in `key`, `cost` and `tiers.from`.
///
/// ```
/// use tollgate_rules::Attribute;
/// assert_eq!("ip/24".parse(), Ok(Attribute::IpPrefix(24)));
/// assert_eq!("path.id".parse(), Ok(Attribute::PathParameter("id".into())));
/// assert!("acount".parse::<Attribute>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attribute {
    /// The client's address; of an IPv6 address its network, as `client_ip` says.
    Ip,
    /// So many first bits of the client's address.
    IpPrefix(u8),
    /// The network operator of the client's address.
    Asn,
    /// The country of the client's address.
    Country,
    /// The plan.
    Tier,
    /// The method of the request.
    Method,
    /// The host it is for.
    Host,
    /// Its path, without the query.
    Path,
    /// Whom the certificate is for that a client of TLS has shown to the server.
    ClientCert,
    /// A part of the path that the rule's pattern names.
    PathParameter(Box<str>),
    /// A header, by its name in lower case.
    Header(Box<str>),
    /// A parameter of the query.
    Query(Box<str>),
    /// What the caller says under this name: `user`, `account`, `api_key`, `domain` and
    /// `descriptor_keys` (what Envoy says about its descriptors), or a member of the families `claims` (of a token that somebody before us has verified), `body`, `user`,
    /// `account` and `descriptor`.
    Given(Box<str>),
}

/// Why text names no [`Attribute`].
///
/// ```
/// use tollgate_rules::Attribute;
/// let error = "header.".parse::<Attribute>().unwrap_err();
/// assert_eq!(error.to_string(), "`header.` needs a name behind the dot");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttributeError {
    /// Nothing is called that.
    #[error("there is no attribute `{name}`")]
    Unknown {
        /// What was given.
        name: String,
        /// What to write instead.
        remedy: String,
    },
    /// A prefix of no bits, or of more than an address has.
    #[error("an address has 1 to 128 bits, and `{name}` names others")]
    Prefix {
        /// What was given.
        name: String,
    },
    /// A family without a member.
    #[error("`{name}` needs a name behind the dot")]
    Nameless {
        /// What was given.
        name: String,
    },
}

impl AttributeError {
    /// What to write instead.
    ///
    /// ```
    /// use tollgate_rules::Attribute;
    /// let error = "acount".parse::<Attribute>().unwrap_err();
    /// assert_eq!(error.remedy(), "did you mean `account`?");
    /// ```
    pub fn remedy(&self) -> &str {
        match self {
            Self::Unknown { remedy, .. } => remedy,
            Self::Prefix { .. } => "write `ip/24` for IPv4 networks, `ip/64` for IPv6 networks",
            Self::Nameless { .. } => "write the name: `header.x-plan`, `claims.sub`",
        }
    }
}

/// Attributes that are one of a kind, and not given by the caller.
const SINGLE: [(&str, Attribute); 8] = [
    ("ip", Attribute::Ip),
    ("asn", Attribute::Asn),
    ("country", Attribute::Country),
    ("tier", Attribute::Tier),
    ("method", Attribute::Method),
    ("host", Attribute::Host),
    ("path", Attribute::Path),
    ("client_cert", Attribute::ClientCert),
];

/// What callers give without a family.
const GIVEN: [&str; 5] = ["user", "account", "api_key", "domain", "descriptor_keys"];

/// Families of what callers give.
const GIVEN_FAMILIES: [&str; 5] = ["claims", "body", "user", "account", "descriptor"];

impl FromStr for Attribute {
    type Err = AttributeError;

    fn from_str(text: &str) -> Result<Self, AttributeError> {
        if let Some((_, attribute)) = SINGLE.iter().find(|(name, _)| *name == text) {
            return Ok(attribute.clone());
        }
        if let Some(bits) = text.strip_prefix("ip/") {
            return match bits.parse() {
                Ok(bits @ 1..=128) => Ok(Self::IpPrefix(bits)),
                _ => Err(AttributeError::Prefix { name: text.to_owned() }),
            };
        }
        if GIVEN.contains(&text) {
            return Ok(Self::Given(text.into()));
        }
        let (family, name) = text.split_once('.').ok_or_else(|| unknown(text))?;
        let make: fn(&str, &str) -> Self = match family {
            "path" => |_, name| Self::PathParameter(name.into()),
            "header" => |_, name| Self::Header(name.to_ascii_lowercase().into()),
            "query" => |_, name| Self::Query(name.into()),
            _ if GIVEN_FAMILIES.contains(&family) => |text, _| Self::Given(text.into()),
            _ => return Err(unknown(text)),
        };
        match name {
            "" => Err(AttributeError::Nameless { name: text.to_owned() }),
            name => Ok(make(text, name)),
        }
    }
}

fn unknown(text: &str) -> AttributeError {
    let single = SINGLE.iter().map(|(name, _)| *name);
    let names: Vec<_> = single.chain(GIVEN).collect();
    let remedy = did_you_mean(text, &names).unwrap_or_else(|| {
        format!("write `descriptor.{text}` if the caller sends it as a descriptor")
    });
    AttributeError::Unknown { name: text.to_owned(), remedy }
}

impl Attribute {
    /// Whether callers say what an attribute of this name is, whoever they are.
    ///
    /// ```
    /// use tollgate_rules::Attribute;
    /// assert!(Attribute::is_given("user") && Attribute::is_given("claims.plan"));
    /// assert!(!Attribute::is_given("ip") && !Attribute::is_given("header.x-plan"));
    /// assert!(!Attribute::is_given("claims") && !Attribute::is_given("claims."));
    /// ```
    pub fn is_given(name: &str) -> bool {
        match name.split_once('.') {
            Some((family, member)) => !member.is_empty() && GIVEN_FAMILIES.contains(&family),
            None => GIVEN.contains(&name),
        }
    }

    /// Whether clients can send what they like for it, and nobody has checked it.
    pub(crate) const fn is_chosen_by_clients(&self) -> bool {
        matches!(self, Self::Header(_) | Self::Query(_))
    }

    /// Whether it is where a client is, which it cannot choose.
    pub(crate) const fn is_where(&self) -> bool {
        matches!(self, Self::Ip | Self::IpPrefix(_) | Self::Asn | Self::Country)
    }

    /// Whether only those know it who see bodies.
    pub(crate) fn is_body(&self) -> bool {
        matches!(self, Self::Given(name) if name.starts_with("body."))
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(name) => f.write_str(name),
            Self::IpPrefix(bits) => write!(f, "ip/{bits}"),
            Self::PathParameter(name) => write!(f, "path.{name}"),
            Self::Header(name) => write!(f, "header.{name}"),
            Self::Query(name) => write!(f, "query.{name}"),
            _ => {
                let single = SINGLE.iter().find(|(_, attribute)| attribute == self);
                single.map_or(Ok(()), |(name, _)| f.write_str(name))
            }
        }
    }
}

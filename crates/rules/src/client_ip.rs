//! Which address a request comes from, when proxies stand between.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::hops;
use crate::networks::Networks;
use crate::request::Request;

/// Whose word is believed about where a request comes from, and how much of an address counts.
///
/// By default nobody's: the client is whoever is at the other end of the connection.
///
/// ```
/// use tollgate_rules::{ClientIp, Networks, Request};
/// let proxies = Networks::try_new([Networks::network("10.0.0.0/8")?])?;
/// let client_ip = ClientIp::default().with_trusted_proxies(proxies);
///
/// let headers = [("x-forwarded-for", "1.1.1.1, 192.0.2.7, 10.0.0.2")];
/// let request = Request::new("GET", "/").headers(&headers);
/// let of = |peer: &str| client_ip.of(&request.peer(peer.parse().unwrap()));
///
/// // 10.0.0.2 is ours and was told of 192.0.2.7; what that one claims is anybody's guess.
/// assert_eq!(of("10.0.0.1"), "192.0.2.7".parse().ok());
/// // A peer that is not ours can claim what it likes.
/// assert_eq!(of("198.51.100.1"), "198.51.100.1".parse().ok());
/// # Ok::<(), tollgate_rules::NetworksError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIp {
    trusted_proxies: Networks,
    header: ClientHeader,
    ipv6_host: u8,
}

/// Where trusted proxies write the client's address.
///
/// ```
/// use tollgate_rules::ClientHeader;
/// assert_eq!("X-Forwarded-For".parse(), Ok(ClientHeader::XForwardedFor));
/// assert_eq!("CF-Connecting-IP".parse(), Ok(ClientHeader::Single("cf-connecting-ip".into())));
/// assert!("x forwarded for".parse::<ClientHeader>().is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientHeader {
    /// `X-Forwarded-For`: each proxy adds who has called it.
    #[default]
    XForwardedFor,
    /// `Forwarded`, the same as a standard (RFC 7239).
    Forwarded,
    /// A header of this name, in lower case, with one address, such as `x-real-ip`. The proxy
    /// must replace what the client has sent.
    Single(Box<str>),
}

/// Why a setting of [`ClientIp`] is refused. The setting is at fault, and nothing was changed.
///
/// ```
/// use tollgate_rules::ClientIp;
/// let error = ClientIp::default().try_with_ipv6_host(0).unwrap_err();
/// assert_eq!(error.to_string(), "an IPv6 client has 1 to 128 bits, not 0: 64 is usual");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientIpError {
    /// A prefix of no bits, or of more than an address has.
    #[error("an IPv6 client has 1 to 128 bits, not {bits}: 64 is usual")]
    Ipv6Host {
        /// What was given.
        bits: u8,
    },
    /// No header can be called that.
    #[error("`{name}` is no name of a header: write one such as `x-forwarded-for`")]
    Header {
        /// What was given.
        name: String,
    },
}

impl ClientIp {
    /// The most hops that are looked at, from the nearest on: the last of them is the client if
    /// all of them are trusted. Real chains have two or three.
    pub const MAX_HOPS: usize = 64;

    /// Proxies whose word is believed. Too few, and all clients of a proxy share its counter; too
    /// many, and clients in these networks choose their counters themselves.
    ///
    /// ```
    /// use tollgate_rules::{ClientIp, Networks};
    /// let nobody = ClientIp::default().with_trusted_proxies(Networks::default());
    /// assert_eq!(nobody, ClientIp::default());
    /// ```
    #[must_use]
    pub fn with_trusted_proxies(self, trusted_proxies: Networks) -> Self {
        Self { trusted_proxies, ..self }
    }

    /// Where they write it; by default `X-Forwarded-For`. All of them must replace or extend this
    /// header: one that passes it on as it came lets clients choose.
    ///
    /// ```
    /// use tollgate_rules::{ClientHeader, ClientIp};
    /// let forwarded = ClientIp::default().with_header(ClientHeader::Forwarded);
    /// assert_ne!(forwarded, ClientIp::default());
    /// ```
    #[must_use]
    pub fn with_header(self, header: ClientHeader) -> Self {
        Self { header, ..self }
    }

    /// How many bits of an IPv6 address are one client; by default 64, what one customer gets at
    /// least. With more, a client has as many counters as it likes; with fewer, neighbours share.
    ///
    /// ```
    /// use tollgate_rules::ClientIp;
    /// let client_ip = ClientIp::default().try_with_ipv6_host(56)?;
    /// let ip = "2001:db8:0:12ff::1".parse().unwrap();
    /// assert_eq!(client_ip.counted(ip).to_string(), "2001:db8:0:1200::");
    /// # Ok::<(), tollgate_rules::ClientIpError>(())
    /// ```
    pub fn try_with_ipv6_host(self, bits: u8) -> Result<Self, ClientIpError> {
        match bits {
            1..=128 => Ok(Self { ipv6_host: bits, ..self }),
            _ => Err(ClientIpError::Ipv6Host { bits }),
        }
    }

    /// The client's address.
    ///
    /// The hops of the header are walked from the peer on, all lines of the header being one
    /// list. The first that is no trusted proxy is the client; if all are trusted, the farthest.
    /// The walk ends before a hop that names no address (`unknown`, `_hidden`, nothing, garbage):
    /// the hop before it is the client, for whatever is farther may be made up.
    ///
    /// Of a header with a single address the last line counts, and if that is no address the
    /// client is the peer. An IPv4 address that is written as an IPv6 one is the IPv4 address.
    /// A request without a peer has no client: there is nobody whose headers could be believed.
    ///
    /// ```
    /// use tollgate_rules::{ClientHeader, ClientIp, Networks, Request};
    /// let client_ip = ClientIp::default()
    ///     .with_trusted_proxies(Networks::try_new([Networks::network("10.0.0.0/8")?])?)
    ///     .with_header(ClientHeader::Forwarded);
    /// let headers = [("forwarded", "for=\"[2001:db8::1]:4711\";proto=https, for=10.0.0.2")];
    /// let request = Request::new("GET", "/").headers(&headers);
    /// let peer = "10.0.0.1".parse().unwrap();
    /// assert_eq!(client_ip.of(&request.peer(peer)), "2001:db8::1".parse().ok());
    /// assert_eq!(client_ip.of(&request), None);
    /// # Ok::<(), tollgate_rules::NetworksError>(())
    /// ```
    #[inline]
    pub fn of(&self, request: &Request<'_>) -> Option<IpAddr> {
        let peer = request.peer_address()?.to_canonical();
        match self.trusted_proxies.is_empty() {
            true => Some(peer),
            false => Some(self.behind(peer, request)),
        }
    }

    /// The same, as far as it can be told at a glance: nobody stands behind the peer, and it has one
    /// of the shorter addresses, as they are [counted](Self::counted).
    #[inline]
    pub(crate) const fn at_a_glance(&self, request: &Request<'_>) -> Option<Ipv4Addr> {
        match self.trusted_proxies.is_empty() {
            true => request.peer_v4(),
            false => None,
        }
    }

    /// Who stands behind the peer, if that is a proxy.
    fn behind(&self, peer: IpAddr, request: &Request<'_>) -> IpAddr {
        if !self.trusted_proxies.contains(peer) {
            return peer;
        }
        let mut lines = request.all_headers(self.header.name()).rev();
        let farther: fn(&str) -> Option<IpAddr> = match self.header {
            ClientHeader::XForwardedFor => hops::address,
            ClientHeader::Forwarded => hops::forwarded_for,
            ClientHeader::Single(_) => {
                let address = lines.next().and_then(|line| hops::address(line.trim_ascii()));
                return address.unwrap_or(peer);
            }
        };
        let elements = lines.flat_map(|line| hops::elements(line, b','));
        let mut client = peer;
        for hop in elements.take(Self::MAX_HOPS).map_while(farther) {
            client = hop;
            if !self.trusted_proxies.contains(hop) {
                break;
            }
        }
        client
    }

    /// Whether the word of this peer is believed.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.contains(peer)
    }

    /// All of it, to be compared.
    pub(crate) fn in_words(&self) -> String {
        let proxies = match &*self.trusted_proxies.texts() {
            [] => "nobody".to_owned(),
            texts => texts.join(", "),
        };
        format!("{proxies} by {}, IPv6 /{}", self.header, self.ipv6_host)
    }

    /// Where trusted proxies write the client's address.
    pub(crate) const fn header(&self) -> &ClientHeader {
        &self.header
    }

    /// The part of a client's address that is counted by: all of an IPv4 address, and so many
    /// bits of an IPv6 address as [are one client](Self::try_with_ipv6_host).
    ///
    /// ```
    /// use tollgate_rules::ClientIp;
    /// let counted = |ip: &str| ClientIp::default().counted(ip.parse().unwrap()).to_string();
    /// assert_eq!(counted("192.0.2.7"), "192.0.2.7");
    /// assert_eq!(counted("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    /// ```
    #[inline]
    pub fn counted(&self, ip: IpAddr) -> IpAddr {
        match ip.to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6(first_bits_v6(ip, self.ipv6_host)),
            v4 => v4,
        }
    }

    /// The network of an address that `ip/24` or `ip/48` in a key stands for.
    ///
    /// Up to 32 bits are meant for IPv4, and of an IPv6 address twice as many count: `ip/24`
    /// counts by /48 there, the usual network of one site, and `ip/32` by /64, the usual network
    /// of one client. More than 32 bits are meant for IPv6, and an IPv4 address counts whole.
    ///
    /// ```
    /// use tollgate_rules::ClientIp;
    /// let prefix = |ip: &str, bits| ClientIp::prefix(ip.parse().unwrap(), bits).to_string();
    /// assert_eq!(prefix("192.0.2.7", 24), "192.0.2.0");
    /// assert_eq!(prefix("192.0.2.7", 48), "192.0.2.7");
    /// assert_eq!(prefix("2001:db8:1:2::7", 24), "2001:db8:1::");
    /// assert_eq!(prefix("2001:db8:1:2::7", 48), "2001:db8:1::");
    /// ```
    pub fn prefix(ip: IpAddr, bits: u8) -> IpAddr {
        match (ip.to_canonical(), bits) {
            (IpAddr::V4(ip), _) => IpAddr::V4(first_bits_v4(ip, bits)),
            (IpAddr::V6(ip), 0..=32) => IpAddr::V6(first_bits_v6(ip, bits * 2)),
            (IpAddr::V6(ip), _) => IpAddr::V6(first_bits_v6(ip, bits)),
        }
    }
}

impl Default for ClientIp {
    fn default() -> Self {
        let (trusted_proxies, header) = (Networks::default(), ClientHeader::default());
        Self { trusted_proxies, header, ipv6_host: 64 }
    }
}

impl ClientHeader {
    /// The header's name, in lower case.
    ///
    /// ```
    /// assert_eq!(tollgate_rules::ClientHeader::Forwarded.name(), "forwarded");
    /// ```
    pub fn name(&self) -> &str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
            Self::Single(name) => name,
        }
    }
}

impl FromStr for ClientHeader {
    type Err = ClientIpError;

    fn from_str(text: &str) -> Result<Self, ClientIpError> {
        // What RFC 9110 calls a token.
        let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if text.is_empty() || !text.chars().all(fits) {
            return Err(ClientIpError::Header { name: text.to_owned() });
        }
        Ok(match text.to_ascii_lowercase() {
            name if name == Self::XForwardedFor.name() => Self::XForwardedFor,
            name if name == Self::Forwarded.name() => Self::Forwarded,
            name => Self::Single(name.into()),
        })
    }
}

impl fmt::Display for ClientHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn first_bits_v4(ip: Ipv4Addr, bits: u8) -> Ipv4Addr {
    let rest = 32_u32.saturating_sub(bits.into());
    Ipv4Addr::from_bits(ip.to_bits() & u32::MAX.checked_shl(rest).unwrap_or(0))
}

fn first_bits_v6(ip: Ipv6Addr, bits: u8) -> Ipv6Addr {
    let rest = 128_u32.saturating_sub(bits.into());
    Ipv6Addr::from_bits(ip.to_bits() & u128::MAX.checked_shl(rest).unwrap_or(0))
}

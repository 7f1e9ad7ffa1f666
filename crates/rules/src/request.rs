//! What is decided about.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::normal::{bare_host, bare_path, scan_path, split_host, write_normal, write_query};
use crate::short::same;

/// A request as far as its caller knows it. It borrows everything, so it costs nothing to make.
///
/// ```
/// use tollgate_rules::Request;
/// let request = Request::new("GET", "/v1/items?page=2")
///     .host("api.example.com")
///     .peer("192.0.2.7".parse().expect("an address"))
///     .headers(&[("x-request-id", "7"), ("Accept", "text/html")])
///     .attributes(&[("user", "alice"), ("claims.plan", "pro")]);
/// assert_eq!(request.path(), "/v1/items");
/// assert_eq!(request.query(), "page=2");
/// assert_eq!(request.header("accept"), Some("text/html"));
/// assert_eq!(request.attribute("user"), Some("alice"));
/// ```
#[derive(Clone, Copy)]
pub struct Request<'a> {
    method: &'a str,
    host: &'a str,
    path: &'a str,
    /// Whether it is in its usual form, but for slashes at its end.
    path_is_normal: bool,
    query: &'a str,
    /// Nothing in it is decoded twice.
    query_is_decoded: bool,
    peer: Peer,
    client_cert: &'a str,
    cost: u64,
    headers: &'a [(&'a str, &'a str)],
    attributes: &'a [(&'a str, &'a str)],
}

/// An address in whole words: one in bytes stands where it happens to, and is copied from there and
/// back piece by piece, each time it is looked at.
#[derive(Clone, Copy)]
enum Peer {
    Unknown,
    V4(u32),
    V6(u64, u64),
}

impl<'a> Request<'a> {
    /// A request with this method for this path, which may have a query behind it; what is behind
    /// a `#` is not part of either. A whole address, as clients send it to proxies, says the host
    /// too.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").method(), "GET");
    /// let whole = Request::new("GET", "http://example.com/a?b=c#d");
    /// assert_eq!((whole.host_name(), whole.path(), whole.query()), ("example.com", "/a", "b=c"));
    /// ```
    #[inline]
    pub fn new(method: &'a str, target: &'a str) -> Self {
        let (host, target) = match target.as_bytes().first() {
            Some(b'/') => ("", target),
            _ => split_host(target),
        };
        let (end, path_is_normal) = scan_path(target);
        let (path, query) = match end < target.len() {
            true => split_query(target, end),
            false => (target, ""),
        };
        Self {
            method,
            host,
            path,
            path_is_normal,
            query,
            query_is_decoded: false,
            peer: Peer::Unknown,
            client_cert: "",
            cost: 1,
            headers: &[],
            attributes: &[],
        }
    }

    /// The host it is for: the one that the server will take it to be for. Rules do not see a port
    /// behind it. An empty one says nothing, and the one of the target stays, if that has one.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").host("example.com").host_name(), "example.com");
    /// assert_eq!(Request::new("GET", "http://a.com/").host("").host_name(), "a.com");
    /// ```
    #[must_use]
    #[inline]
    pub const fn host(mut self, host: &'a str) -> Self {
        if !host.is_empty() {
            self.host = host;
        }
        self
    }

    /// Who is at the other end of the connection: the client, or a proxy.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// let peer = "192.0.2.7".parse().expect("an address");
    /// assert_eq!(Request::new("GET", "/").peer(peer).peer_address(), Some(peer));
    /// ```
    #[must_use]
    #[inline]
    pub const fn peer(mut self, peer: IpAddr) -> Self {
        self.peer = match peer {
            IpAddr::V4(peer) => Peer::V4(peer.to_bits()),
            IpAddr::V6(peer) => {
                let bits = peer.to_bits();
                Peer::V6((bits >> 64) as u64, bits as u64)
            }
        };
        self
    }

    /// Whom the certificate is for that the other end of the connection has shown; empty if it has
    /// shown none.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// let rules = RuleSet::parse("rules: [{ name: a, key: [client_cert], limit: 50/s }]")?;
    /// let applying = |request: Request<'_>| rules.applying(&Facts::new(&rules, &request, None)).len();
    /// let request = Request::new("GET", "/");
    /// assert_eq!((applying(request), applying(request.client_cert("billing.example"))), (0, 1));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[must_use]
    #[inline]
    pub const fn client_cert(mut self, name: &'a str) -> Self {
        self.client_cert = name;
        self
    }

    /// How often it counts, 1 unless said otherwise: it spends so many times what it would spend
    /// from each limit. It takes one slot of those under way at once, whatever it costs.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// let set = RuleSet::parse(
    ///     "rules: [{ name: a, key: [], limit: 50/s }, { name: b, key: [], limit: 50/s, cost: 5 }]",
    /// )?;
    /// let request = Request::new("GET", "/").cost(3);
    /// let facts = Facts::new(&set, &request, None);
    /// assert_eq!([0, 1].map(|rule| facts.cost(&set.rules()[rule])), [3, 15]);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[must_use]
    #[inline]
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Its headers, in order. Their names are compared without regard to case.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// let request = Request::new("GET", "/").headers(&[("Via", "a"), ("via", "b")]);
    /// assert_eq!(request.all_headers("VIA").collect::<Vec<_>>(), ["a", "b"]);
    /// ```
    #[must_use]
    #[inline]
    pub const fn headers(mut self, headers: &'a [(&'a str, &'a str)]) -> Self {
        self.headers = headers;
        self
    }

    /// What else the caller knows, under the names that rules use: `user`, `account`, `api_key`,
    /// `claims.plan`, `body.username`, `descriptor.anything`.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// let request = Request::new("GET", "/").attributes(&[("account", "acme")]);
    /// assert_eq!(request.attribute("account"), Some("acme"));
    /// ```
    #[must_use]
    #[inline]
    pub const fn attributes(mut self, attributes: &'a [(&'a str, &'a str)]) -> Self {
        self.attributes = attributes;
        self
    }

    /// The same request in its usual form, which is what rules should see: a server takes
    /// `/v1/../%6Cogin` for `/login`, and so nobody goes around a rule by writing it differently.
    ///
    /// - The method is in capitals.
    /// - The host is in lower case, without a port and without a dot at its end.
    /// - The path begins with a slash and does not end with one, dots are followed, slashes stand
    ///   alone, and parameters of segments (`;v=1`) are gone. Letters, digits and signs are not escaped; `/`, `?`, `#`, `;`,
    ///   `%`, and all that is not ASCII are.
    /// - The query is decoded, `+` being a blank. Only what would not be read again stays escaped:
    ///   `&`, `=` in a name, what does not print, and what is not UTF-8.
    ///
    /// `room` is written to only if something changes that cannot be cut off.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// let mut room = String::new();
    /// let request = Request::new("post", "/v1/..//%6Cogin;v=1?a=%64+e").host("Example.com.:443");
    /// let normal = request.normal(&mut room);
    /// assert_eq!((normal.method(), normal.host_name()), ("POST", "example.com"));
    /// assert_eq!((normal.path(), normal.query()), ("/login", "a=d e"));
    /// assert_eq!(Request::new("GET", "/a%2fb c").normal(&mut room).path(), "/a%2Fb%20c");
    /// ```
    #[must_use]
    pub fn normal<'b>(&self, room: &'b mut String) -> Request<'b>
    where
        'a: 'b,
    {
        let bare = Self {
            host: bare_host(self.host),
            path: bare_path(self.path),
            path_is_normal: true,
            query_is_decoded: true,
            ..*self
        };
        let host = bare.host.bytes().any(|byte| byte.is_ascii_uppercase());
        let method = self.method.bytes().any(|byte| byte.is_ascii_lowercase());
        let path = !self.path_is_normal && !scan_path(bare.path).1;
        let query = self.query_is_encoded();
        if !(host || method || path || query) {
            return bare;
        }
        room.clear();
        if host {
            room.push_str(bare.host);
            room.make_ascii_lowercase();
        }
        let host_end = room.len();
        if method {
            room.push_str(self.method);
            room[host_end..].make_ascii_uppercase();
        }
        let method_end = room.len();
        if path {
            write_normal(bare.path, room);
        }
        let path_end = room.len();
        if query {
            write_query(self.query, room);
        }
        let room: &'b str = room;
        Request {
            host: if host { &room[..host_end] } else { bare.host },
            method: if method { &room[host_end..method_end] } else { self.method },
            path: if path { &room[method_end..path_end] } else { bare.path },
            query: if query { &room[path_end..] } else { self.query },
            ..bare
        }
    }

    /// Whether it is in its [usual form](Self::normal) already, as most requests are.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert!(Request::new("GET", "/v1/items?a=b").host("example.com").is_normal());
    /// assert!(!Request::new("get", "/").is_normal() && !Request::new("GET", "/a/").is_normal());
    /// ```
    #[inline]
    pub fn is_normal(&self) -> bool {
        self.path_is_normal
            && (!self.path.ends_with('/') || self.path == "/")
            && !self.method.bytes().any(|byte| byte.is_ascii_lowercase())
            && (self.host.is_empty() || self.host_is_normal())
            && (self.query.is_empty() || !self.query_is_encoded())
    }

    fn host_is_normal(&self) -> bool {
        bare_host(self.host).len() == self.host.len()
            && !self.host.bytes().any(|byte| byte.is_ascii_uppercase())
    }

    fn query_is_encoded(&self) -> bool {
        !self.query_is_decoded && self.query.bytes().any(|byte| matches!(byte, b'%' | b'+'))
    }

    /// The method.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("PUT", "/").method(), "PUT");
    /// ```
    pub const fn method(&self) -> &'a str {
        self.method
    }

    /// Whom the certificate of the connection is for, empty if there is none.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").client_cert("a.example").client_cert_name(), "a.example");
    /// ```
    pub const fn client_cert_name(&self) -> &'a str {
        self.client_cert
    }

    /// The host, empty if it is not known.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").host_name(), "");
    /// ```
    pub const fn host_name(&self) -> &'a str {
        self.host
    }

    /// The path, without the query.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/a?b=c").path(), "/a");
    /// ```
    pub const fn path(&self) -> &'a str {
        self.path
    }

    /// What is behind the question mark.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/a?b=c").query(), "b=c");
    /// ```
    pub const fn query(&self) -> &'a str {
        self.query
    }

    /// See [`cost`](Self::cost).
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").counts(), 1);
    /// ```
    pub const fn counts(&self) -> u64 {
        self.cost
    }

    /// See [`peer`](Self::peer).
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").peer_address(), None);
    /// ```
    #[inline]
    pub const fn peer_address(&self) -> Option<IpAddr> {
        match self.peer {
            Peer::Unknown => None,
            Peer::V4(bits) => Some(IpAddr::V4(Ipv4Addr::from_bits(bits))),
            Peer::V6(upper, lower) => {
                let bits = (upper as u128) << 64 | lower as u128;
                Some(IpAddr::V6(Ipv6Addr::from_bits(bits)))
            }
        }
    }

    /// The same, if it is a short one.
    #[inline]
    pub(crate) const fn peer_v4(&self) -> Option<Ipv4Addr> {
        match self.peer {
            Peer::V4(bits) => Some(Ipv4Addr::from_bits(bits)),
            Peer::Unknown | Peer::V6(..) => None,
        }
    }

    /// The first header of this name.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").header("via"), None);
    /// ```
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let is_it = |header: &&(&str, &str)| header.0.eq_ignore_ascii_case(name);
        self.headers.iter().find(is_it).map(|(_, value)| *value)
    }

    /// All headers of this name, in order.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").all_headers("via").count(), 0);
    /// ```
    pub fn all_headers(&self, name: &str) -> impl DoubleEndedIterator<Item = &'a str> {
        let named = move |header: &&(&str, &str)| header.0.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| *value)
    }

    /// What the caller said under this name.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").attribute("user"), None);
    /// ```
    #[inline]
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        let is_it = |(known, _): &&(&str, &str)| same(known.as_bytes(), name.as_bytes());
        self.attributes.iter().find(is_it).map(|(_, value)| *value)
    }

    /// A parameter of the query, the first if there are several of this name. It is decoded in
    /// requests in their [usual form](Self::normal), as is its name.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// let request = Request::new("GET", "/a?b=c&%64=e%2Bf&d=g");
    /// assert_eq!(request.query_parameter("d"), Some("g"));
    /// assert_eq!(request.normal(&mut String::new()).query_parameter("d"), Some("e+f"));
    /// ```
    pub fn query_parameter(&self, name: &str) -> Option<&'a str> {
        let mut pairs =
            self.query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Every header, name and value.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert!(Request::new("GET", "/").every_header().is_empty());
    /// ```
    pub const fn every_header(&self) -> &'a [(&'a str, &'a str)] {
        self.headers
    }

    /// Every attribute, name and value.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert!(Request::new("GET", "/").every_attribute().is_empty());
    /// ```
    pub const fn every_attribute(&self) -> &'a [(&'a str, &'a str)] {
        self.attributes
    }
}

/// What is before this place, and what is behind the question mark that is there, if one is.
fn split_query(target: &str, at: usize) -> (&str, &str) {
    let (path, rest) = target.split_at(at);
    let query = rest.strip_prefix('?').unwrap_or("");
    (path, query.split_once('#').map_or(query, |(query, _)| query))
}

/// Headers and attributes by name alone: their values may be secrets.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| *name).collect();
        let attributes: Vec<_> = self.attributes.iter().map(|(name, _)| *name).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("host", &self.host)
            .field("path", &self.path)
            .field("peer", &self.peer_address())
            .field("client_cert", &self.client_cert)
            .field("headers", &headers)
            .field("attributes", &attributes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

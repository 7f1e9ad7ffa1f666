//! What is decided about.

use std::net::IpAddr;

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
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    method: &'a str,
    host: &'a str,
    path: &'a str,
    query: &'a str,
    peer: Option<IpAddr>,
    headers: &'a [(&'a str, &'a str)],
    attributes: &'a [(&'a str, &'a str)],
}

impl<'a> Request<'a> {
    /// A request with this method for this path, which may have a query behind it.
    ///
    /// ```
    /// assert_eq!(tollgate_rules::Request::new("GET", "/").method(), "GET");
    /// ```
    pub fn new(method: &'a str, target: &'a str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self { method, host: "", path, query, peer: None, headers: &[], attributes: &[] }
    }

    /// The host it is for, without a port.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").host("example.com").host_name(), "example.com");
    /// ```
    #[must_use]
    pub const fn host(mut self, host: &'a str) -> Self {
        self.host = host;
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
    pub const fn peer(mut self, peer: IpAddr) -> Self {
        self.peer = Some(peer);
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
    pub const fn attributes(mut self, attributes: &'a [(&'a str, &'a str)]) -> Self {
        self.attributes = attributes;
        self
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

    /// See [`peer`](Self::peer).
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/").peer_address(), None);
    /// ```
    pub const fn peer_address(&self) -> Option<IpAddr> {
        self.peer
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
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// A parameter of the query, as it stands there: percent signs are not decoded.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// assert_eq!(Request::new("GET", "/a?b=c&d=e").query_parameter("d"), Some("e"));
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

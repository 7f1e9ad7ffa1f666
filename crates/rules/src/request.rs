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
        // A plain loop: targets are short.
        let (path, query) = match target.bytes().position(|byte| byte == b'?') {
            Some(at) => (&target[..at], &target[at + 1..]),
            None => (target, ""),
        };
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

    /// The same request for the same path in its usual form, which is what rules should see: a
    /// server takes `/v1/../%6Cogin` for `/login`, and so nobody goes around a rule by writing it
    /// differently. Letters, digits and signs are not escaped, dots are followed, slashes stand
    /// alone; names of hosts are in lower case. `room` is written to only if something changes.
    ///
    /// ```
    /// # use tollgate_rules::Request;
    /// let mut room = String::new();
    /// let request = Request::new("POST", "/v1/..//%6Cogin?next=/");
    /// assert_eq!(request.normal(&mut room).path(), "/login");
    /// assert_eq!(Request::new("GET", "/a%2fb%20c").normal(&mut room).path(), "/a%2Fb%20c");
    /// ```
    #[must_use]
    pub fn normal<'b>(&self, room: &'b mut String) -> Request<'b>
    where
        'a: 'b,
    {
        if is_normal(self.path) && !self.host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return *self;
        }
        room.clear();
        room.push_str(self.host);
        room.make_ascii_lowercase();
        write_normal(self.path, room);
        let (host, path) = room.split_at(self.host.len());
        Request { host, path, ..*self }
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

/// Most paths are.
fn is_normal(path: &str) -> bool {
    let mut before = 0;
    !path.bytes().any(|byte| {
        let odd = byte == b'%' || (before == b'/' && matches!(byte, b'/' | b'.'));
        before = byte;
        odd
    })
}

/// Appends the path to what is there.
fn write_normal(path: &str, normal: &mut String) {
    let begin = normal.len();
    for segment in path.split('/') {
        let start = normal.len();
        normal.push('/');
        write_unescaped(segment, normal);
        match &normal[start..] {
            "/" | "/." => normal.truncate(start),
            "/.." => {
                let parent = normal[begin..start].rfind('/').unwrap_or(0);
                normal.truncate(begin + parent);
            }
            _ => {}
        }
    }
    if normal.len() == begin {
        normal.push('/');
    }
}

/// Writes a segment whose signs stand for themselves; what must be escaped stays so.
fn write_unescaped(segment: &str, normal: &mut String) {
    let mut rest = segment;
    while let Some((before, after)) = rest.split_once('%') {
        normal.push_str(before);
        let code = after.get(..2).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(code) = code else {
            normal.push('%');
            rest = after;
            continue;
        };
        match u8::from_str_radix(code, 16) {
            Ok(byte) if byte.is_ascii_graphic() && !matches!(byte, b'/' | b'%' | b'?' | b'#') => {
                normal.push(char::from(byte));
            }
            _ => {
                normal.push('%');
                normal.push_str(&code.to_ascii_uppercase());
            }
        }
        rest = &after[2..];
    }
    normal.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(path: &str) -> String {
        Request::new("GET", path).normal(&mut String::new()).path().to_owned()
    }

    #[test]
    fn one_path_is_one_path_however_it_is_written() {
        for (written, path) in [
            ("/login", "/login"),
            ("/%6c%6Fgin", "/login"),
            ("//login", "/login"),
            ("/./login", "/login"),
            ("/a/../login", "/login"),
            ("/../../login", "/login"),
            ("/%2e%2E/login", "/login"),
            ("/a/%2e./login", "/login"),
            ("/", "/"),
            ("/..", "/"),
            ("/a/b/..", "/a"),
            ("/a%2Fb", "/a%2Fb"),
            ("/a%2fb", "/a%2Fb"),
            ("/100%", "/100%"),
            ("/100%zz%4", "/100%zz%4"),
            ("/%c3%a9", "/%C3%A9"),
            ("/.well-known/x", "/.well-known/x"),
        ] {
            assert_eq!(normal(written), path, "{written}");
        }
    }

    #[test]
    fn one_host_is_one_host_however_it_is_written() {
        let mut room = String::new();
        let request = Request::new("GET", "/../a%2e").host("API.Example.com");
        let normal = request.normal(&mut room);
        assert_eq!((normal.host_name(), normal.path()), ("api.example.com", "/a."));
    }

    proptest! {
        #[test]
        fn what_is_normal_stays_as_it_is(path in "(/|%2e|%2E|[.]|a|%61|%2f|%25|%20){0,30}") {
            let path = format!("/{path}");
            let once = normal(&path);
            prop_assert!(once.len() <= path.len());
            let dots = |segment: &str| segment == "." || segment == "..";
            prop_assert!(once.starts_with('/') && !once.split('/').any(dots), "{}", once);
            prop_assert!(!once.contains("//"), "{}", once);
            prop_assert_eq!(normal(&once), once);
        }
    }
}

//! What is asked.

use std::net::IpAddr;

use tollgate_proto::tollgate::v1 as proto;

/// A request that is asked about. What is not said is not known: a rule that counts by it does not
/// apply.
///
/// ```
/// use tollgate_client::Check;
/// let check = Check::new("POST", "/v1/items?dry=1")
///     .host("api.example.com")
///     .ip("192.0.2.7".parse().expect("an address"))
///     .header("x-plan", "pro")
///     .attribute("claims.plan", "pro")
///     .cost(3);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Check(pub(crate) proto::CheckRequest);

impl Check {
    /// A request with this method for this path, with its query.
    pub fn new(method: impl Into<String>, path: impl Into<String>) -> Self {
        let (method, path) = (method.into(), path.into());
        Self(proto::CheckRequest { method, path, ..Default::default() })
    }

    /// The host it is for.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.0.host = host.into();
        self
    }

    /// The client's address.
    #[must_use]
    pub fn ip(mut self, ip: IpAddr) -> Self {
        self.0.ip = ip.to_string();
        self
    }

    /// A header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.headers.insert(name.to_ascii_lowercase(), value.into());
        self
    }

    /// What else is known, by the names of rules: `user`, `account`, `claims.plan`.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.attributes.insert(name.into(), value.into());
        self
    }

    /// How many times it counts; once, if nothing is said.
    #[must_use]
    pub fn cost(mut self, cost: u64) -> Self {
        self.0.cost = Some(cost);
        self
    }

    /// Only looks, and spends nothing.
    #[must_use]
    pub fn peek(mut self) -> Self {
        self.0.peek = true;
        self
    }

    /// Comes back in the answer.
    #[must_use]
    pub fn id(mut self, id: u64) -> Self {
        self.0.id = id;
        self
    }
}

/// How a request ended.
///
/// ```
/// let ended = tollgate_client::Ended::new("a ticket").status(401).header("x-reason", "password");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended(pub(crate) proto::Ended);

impl Ended {
    /// The request whose answer had this ticket.
    pub fn new(ticket: impl Into<String>) -> Self {
        Self(proto::Ended { ticket: ticket.into(), ..Default::default() })
    }

    /// The status of its response.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.0.status = status.into();
        self
    }

    /// A header of its response.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.headers.insert(name.to_ascii_lowercase(), value.into());
        self
    }
}

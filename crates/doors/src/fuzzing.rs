//! What those who fuzz need: doors without sockets. Not for anybody else.

use std::sync::Arc;

use tollgate::RuleSet;

use crate::connection::Limits;
use crate::resp::Talk;
use crate::secret::Secret;
use crate::service::Service;
use crate::tickets::Tickets;

/// A connection to the door for clients of Redis, without a socket.
pub struct RespClient(Talk);

impl RespClient {
    /// To a server with these rules, and with room for few keys; `None` if they are no rules.
    pub fn new(rules: &str, password: Option<&str>) -> Option<Self> {
        let limits = Limits { body_bytes: 1 << 16, batch: 50, tickets: 1000, ..Limits::default() };
        let service = Service::new(RuleSet::parse(rules).ok()?, 64).ok()?;
        let tickets = Arc::new(Tickets::new(&limits));
        let password = password.map(Secret::new);
        Some(Self(Talk::new(Arc::new(service), tickets, password, limits)))
    }

    /// Sends bytes, and returns what is answered; `None` once the connection has ended.
    pub fn send(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.0.send(bytes)
    }
}

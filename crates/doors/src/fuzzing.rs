//! What those who fuzz need: doors without sockets. Not for anybody else.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::body::Body as _;
use tollgate::RuleSet;

use crate::config::Config;
use crate::connection::Limits;
use crate::http::Http;
use crate::resp::Talk;
use crate::respond::Answers;
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

/// A client of the door that speaks JSON, without a socket.
pub struct HttpClient(Http);

impl HttpClient {
    /// Of a server with these rules, and with room for few keys; `None` if they are no rules.
    pub fn new(rules: &str) -> Option<Self> {
        let limits = Limits { batch: 50, tickets: 4, ..Limits::default() };
        let service = Arc::new(Service::new(RuleSet::parse(rules).ok()?, 64).ok()?);
        let answers = Answers::new(Arc::clone(&service), Config::defaults(1).respond);
        let tickets = Arc::new(Tickets::new(&limits));
        Some(Self(Http::new(service, Arc::new(answers), tickets, limits)))
    }

    /// The status and the body of what is answered to a body; `None` if nothing has that path.
    pub fn post(&self, path: &str, body: &[u8]) -> Option<(u16, Vec<u8>)> {
        let answer = self.0.post_now(path, &Bytes::copy_from_slice(body))?;
        let status = answer.status().as_u16();
        let body = pin!(answer.into_body()).poll_frame(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Some(Ok(frame))) = body else { return Some((status, Vec::new())) };
        Some((status, frame.into_data().map(|data| data.to_vec()).unwrap_or_default()))
    }
}

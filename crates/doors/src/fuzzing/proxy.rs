//! A proxy that asks, without a socket.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use tollgate::RuleSet;

use crate::config::Config;
use crate::connection::Peer;
use crate::forward_auth::ForwardAuth;
use crate::respond::Answers;
use crate::service::Service;

/// A proxy that asks, without a socket.
pub struct ProxyClient(ForwardAuth);

/// A request as a proxy says it: its target, and headers of any bytes.
pub struct Question(Parts);

impl Question {
    /// `None` if that can be in no request of HTTP.
    pub fn new(target: &str, headers: &[(&str, &[u8])]) -> Option<Self> {
        let mut request = http::Request::builder().uri(target);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            request = request.header(name, HeaderValue::from_bytes(value).ok()?);
        }
        Some(Self(request.body(()).ok()?.into_parts().0))
    }

    /// The method, the target and the host of what it is about, or what is wrong with it; `None` if
    /// no proxy asks there.
    pub fn is_about(&self) -> Option<Result<[String; 3], String>> {
        ForwardAuth::original(&self.0)
    }
}

impl ProxyClient {
    /// Of a server with these rules, and with room for few keys; `None` if they are no rules.
    pub fn new(rules: &str) -> Option<Self> {
        let service = Arc::new(Service::new(RuleSet::parse(rules).ok()?, 64).ok()?);
        let answers = Answers::new(Arc::clone(&service), Config::defaults(1).respond);
        Some(Self(ForwardAuth::new(service, Arc::new(answers))))
    }

    /// The status of what is answered; `None` if no proxy asks there.
    pub fn ask(&self, question: &Question) -> Option<u16> {
        let peer = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        self.0.status(&question.0, Peer { ip: peer, name: None })
    }
}

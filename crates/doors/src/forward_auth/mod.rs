//! The door for proxies that ask before they let a request pass.
//!
//! Each proxy has a path of its own, and what its requests say is believed only where that proxy
//! says it itself: see [`Original`]. The query of the path is never looked at, for some proxies pass
//! on that of the client with it.
//!
//! A proxy does not say what became of a request. Rules that count only some outcomes therefore
//! count all of them here, and a slot of a rule about what is under way at once is free again as
//! soon as the answer is on its way: such a rule only limits how many are asked about at once.

mod original;
mod text;

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use ::http::request::Parts;
use ::http::{Request, StatusCode};
use hyper::body::Incoming;
use smallvec::SmallVec;
use tollgate::{Timer as _, Wait};

use crate::connection::Peer;
use crate::door::Name;
use crate::forward_auth::original::{Believed, Original};
use crate::respond::{self, Answers};
use crate::service::{Service, Turn, in_turn};
use crate::status;
use crate::web::{Answer, Plain, Site};

/// Where proxies ask.
#[derive(Debug)]
pub(crate) struct ForwardAuth {
    service: Arc<Service>,
    answers: Arc<Answers>,
}

/// Who asks, by the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asking {
    believed: Believed,
    /// Whether everything but 403 would be taken for a failure.
    forbids: bool,
}

impl Asking {
    fn at(path: &str) -> Option<Self> {
        let (believed, forbids) = match path {
            "/nginx" | "/haproxy" => (Believed::Original, false),
            "/nginx/403" => (Believed::Original, true),
            "/caddy" | "/traefik" => (Believed::Forwarded, false),
            _ => {
                let behind = path.strip_prefix(ENVOY)?;
                (behind.is_empty() || behind.starts_with('/'))
                    .then_some((Believed::Itself { prefix: ENVOY }, false))?
            }
        };
        Some(Self { believed, forbids })
    }
}

impl ForwardAuth {
    pub(crate) const fn new(service: Arc<Service>, answers: Arc<Answers>) -> Self {
        Self { service, answers }
    }

    /// The method, the target and the host of the request that a proxy asks about, or what is wrong
    /// with how it asks; `None` if none asks there.
    pub(crate) fn original(request: &Parts) -> Option<Result<[String; 3], String>> {
        let asking = Asking::at(request.uri.path())?;
        let read = Original::read(request, asking.believed);
        let parts = |it: Original<'_>| [it.method, it.target, it.host].map(Cow::into_owned);
        Some(read.map(parts).map_err(|error| error.to_string()))
    }

    /// The status of the answer to a proxy; `None` if none asks there.
    pub(crate) fn status(&self, request: &Parts, peer: Peer) -> Option<u16> {
        let asking = Asking::at(request.uri.path())?;
        Some(self.ask(asking, request, &peer).0.status().as_u16())
    }

    /// The answer with what is known here, and how long it is to be kept back.
    fn ask(&self, asking: Asking, request: &Parts, peer: &Peer) -> (Answer, Duration) {
        self.try_ask(asking, request, peer, Turn::Now).unwrap_or_else(|_| unknown())
    }

    /// The same, or what to wait for first.
    fn try_ask(
        &self,
        asking: Asking,
        request: &Parts,
        peer: &Peer,
        turn: Turn,
    ) -> Result<(Answer, Duration), Wait> {
        let original = match Original::read(request, asking.believed) {
            Ok(original) => original,
            Err(error) => {
                let detail = error.to_string();
                tracing::debug!(path = request.uri.path(), "a proxy asks in vain: {detail}");
                return Ok((respond::problem(StatusCode::BAD_REQUEST, &detail), Duration::ZERO));
            }
        };
        let headers: SmallVec<[_; 32]> =
            request.headers.iter().map(|(name, value)| (name.as_str(), text::of(value))).collect();
        let headers: SmallVec<[_; 32]> =
            headers.iter().map(|(name, value)| (*name, &**value)).collect();
        let request = tollgate::Request::new(&original.method, &original.target)
            .host(&original.host)
            // Whoever may use a socket of this machine is taken for this machine.
            .peer(peer.ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)))
            .client_cert(peer.name())
            .headers(&headers);
        let ruling = self.service.try_check(Name::ForwardAuth, &request, turn)?;
        let words = self.answers.words(&ruling);
        Ok(match (ruling.is_allowed(), asking.forbids) {
            (true, _) => (words.allowed(), ruling.decision().delay()),
            (false, false) => (words.denied(), Duration::ZERO),
            (false, true) => (words.forbidden(), Duration::ZERO),
        })
    }
}

impl Site for ForwardAuth {
    const NAME: Name = Name::ForwardAuth;
    type Body = Plain;

    fn service(&self) -> &Arc<Service> {
        &self.service
    }

    async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Answer {
        let (request, _) = request.into_parts();
        let path = request.uri.path();
        let Some(asking) = Asking::at(path) else {
            return status::health(&self.service, path).unwrap_or_else(|| {
                let paths =
                    "proxies ask at /nginx, /nginx/403, /caddy, /traefik, /haproxy or /envoy";
                respond::problem(StatusCode::NOT_FOUND, paths)
            });
        };
        let (answer, delay) = in_turn(|turn| self.try_ask(asking, &request, &peer, turn)).await;
        // A request that must wait in line waits here: a proxy cannot be told to.
        if !delay.is_zero() {
            self.service.clock().sleep(delay.min(LONGEST_DELAY)).await;
        }
        answer
    }
}

/// The answer where none is known. There is one for whoever does not wait.
fn unknown() -> (Answer, Duration) {
    (respond::no_room("ask again"), Duration::ZERO)
}

/// What Envoy puts before the path of the request.
const ENVOY: &str = "/envoy";

/// No request is kept waiting for longer: proxies have given up by then.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;

//! The door for whoever speaks gRPC: Envoy, and programs that ask often.
//!
//! ```text
//!   frame      bytes of HTTP/2 as a message, and a message as bytes; refusals as statuses of gRPC
//!   reply      what an answer consists of
//!   rls        Envoy's rate limit service, also in JSON
//!   rlqs       Envoy's rate limit quota service
//!   authz      Envoy's external authorization
//!   native     Tollgate's own protocol
//!   health     whether requests should be sent here
//!   streamed   what goes through tonic
//!   wire       bytes of protocol buffers, for what is asked most
//! ```
//!
//! Calls with one message and one answer are made here, straight from the bytes and back, because
//! there are so many of them. What is rare, or a stream, goes through tonic.
//!
//! Whoever asks is a program of ours that asks for its clients. So the other end of the connection
//! says nothing about a client; a certificate that it shows is its own, and says which program asks.

mod authz;
mod frame;
mod health;
mod native;
mod patient;
mod reply;
mod rlqs;
mod rls;
mod streamed;
mod wire;

pub(crate) use rlqs::{Counts as QuotaCounts, Desk, KINDS as QUOTA_KINDS, Talk as QuotaTalk};

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, Response, StatusCode};
use bytes::Bytes;
use hyper::body::Incoming;
use prost::Message;
use tollgate::{Ruling, Timer as _};

use crate::connection::{Limits, Peer};
use crate::door::Name;
use crate::grpc::frame::{Code, Refusal};
use crate::grpc::reply::Reply;
use crate::grpc::streamed::Streamed;
use crate::respond::{self, Answers};
use crate::service::{Service, Turn};
use crate::status;
use crate::tickets::Tickets;
use crate::web::{self, Called, Calls, Deadline, OneRequest, Site, page};

/// Where gRPC is spoken.
#[derive(Debug)]
pub(crate) struct Grpc {
    asking: Arc<Asking>,
    /// What goes through tonic.
    streamed: Streamed,
}

/// What everybody needs who answers here.
#[derive(Clone, Debug)]
struct Asking {
    service: Arc<Service>,
    answers: Arc<Answers>,
    tickets: Arc<Tickets>,
    limits: Limits,
    /// Whom the certificate is for that the client has shown.
    client: Option<Arc<str>>,
    turn: Turn,
}

/// What an answer is, and how long it is to be kept back.
type Told<T> = Result<(T, Duration), Refusal>;

impl Grpc {
    pub(crate) fn new(
        service: Arc<Service>,
        answers: Arc<Answers>,
        tickets: Arc<Tickets>,
        limits: Limits,
    ) -> Self {
        let asking =
            Arc::new(Asking { service, answers, tickets, limits, client: None, turn: Turn::First });
        Self { streamed: Streamed::new(&asking), asking }
    }

    /// A call with one message and one answer.
    async fn call(
        &self,
        method: Method,
        (body, deadline): (Incoming, Option<Deadline>),
        peer: Peer,
    ) -> Response<Reply> {
        let told = match frame::read(body, &self.asking.limits, self.asking.service.held()).await {
            Ok(message) => {
                let act = |it: &Asking| it.answer(method, &message);
                self.asking.in_turn(&peer, deadline, act).await
            }
            Err(refusal) => Err(refusal),
        };
        match told {
            Ok((answer, delay)) => {
                // A request that must wait in line waits here: a proxy cannot be told to.
                if !delay.is_zero() {
                    self.asking.service.clock().sleep(delay.min(LONGEST_DELAY)).await;
                }
                reply::message(answer)
            }
            Err(refusal) => refusal.answer(),
        }
    }

    /// What a call is answered, without waiting for anything; `None` if there is no such method.
    pub(crate) fn call_at_once(
        &self,
        path: &str,
        message: &[u8],
    ) -> Option<Result<Vec<u8>, (u16, String)>> {
        let answer = self.asking.answer(Method::of(path)?, message);
        Some(match answer {
            Ok((answer, _)) => Ok(answer.to_vec()),
            Err(Refusal::Call { code, message }) => Err((code as u16, message)),
            Err(Refusal::NoCall | Refusal::Wait(_)) => Err((0, String::new())),
        })
    }

    /// `POST /json`, as envoyproxy/ratelimit has it.
    async fn json(&self, body: Incoming, peer: Peer) -> Response<Reply> {
        let limits = &self.asking.limits;
        let answer = match web::body(body, limits, self.asking.service.held()).await {
            Ok(body) => rls::answer_json(&self.asking, &peer, &body).await,
            Err(error) => respond::no_body(&error, limits.body_bytes),
        };
        answer.map(Reply::Plain)
    }

    /// What is neither a call nor JSON.
    fn other(&self, request: &Request<Incoming>) -> Response<Reply> {
        if request.uri().path() == "/json" {
            return respond::wrong_method("POST").map(Reply::Plain);
        }
        if frame::is_grpc(request.headers()) {
            let path: String = request.uri().path().chars().take(100).collect();
            return Refusal::new(Code::Unimplemented, format!("there is no method {path}"))
                .answer();
        }
        let health = status::health(&self.asking.service, request.uri().path());
        let answer = health.unwrap_or_else(|| {
            let detail = "gRPC is spoken here, and there are POST /json, /healthz and /readyz";
            respond::problem(StatusCode::NOT_FOUND, detail)
        });
        answer.map(Reply::Plain)
    }
}

impl Site for Grpc {
    const NAME: Name = Name::Grpc;
    type Body = Reply;

    fn service(&self) -> &Arc<Service> {
        &self.asking.service
    }

    async fn answer(&self, mut request: Request<Incoming>, peer: Peer) -> Response<Reply> {
        let path = request.uri().path();
        // Nothing but the body is kept while it is waited for: that would have to be moved about.
        match (Method::of(path), *request.method() == ::http::Method::POST) {
            (Some(method), true) if frame::is_grpc(request.headers()) => {
                let deadline = Deadline::of(request.headers(), self.asking.service.clock());
                self.call(method, (request.into_body(), deadline), peer).await
            }
            (Some(_), _) => Refusal::NoCall.answer(),
            (None, true) if path == "/json" && page::is_of_another(&request) => {
                respond::problem(StatusCode::FORBIDDEN, page::REFUSAL).map(Reply::Plain)
            }
            (None, true) if path == "/json" => self.json(request.into_body(), peer).await,
            (None, _) => match self.streamed.serving(path) {
                Some(call) => {
                    request.extensions_mut().insert(peer);
                    call(request).await.map(Reply::streamed)
                }
                None => self.other(&request),
            },
        }
    }

    fn calls(&self) -> Option<&dyn Calls> {
        Some(self)
    }

    fn began(&self, answer: &mut Response<Reply>, one: OneRequest) {
        // A stream is under way until its last answer is taken.
        answer.body_mut().hold(one);
    }
}

/// A method with one message and one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    ShouldRateLimit,
    Authorize,
    Check,
    CheckBatch,
    Report,
}

impl Method {
    const ALL: [Self; 5] =
        [Self::ShouldRateLimit, Self::Authorize, Self::Check, Self::CheckBatch, Self::Report];

    fn of(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.path() == path)
    }

    const fn path(self) -> &'static str {
        match self {
            Self::ShouldRateLimit => "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            Self::Authorize => "/envoy.service.auth.v3.Authorization/Check",
            Self::Check => "/tollgate.v1.Tollgate/Check",
            Self::CheckBatch => "/tollgate.v1.Tollgate/CheckBatch",
            Self::Report => "/tollgate.v1.Tollgate/Report",
        }
    }
}

/// Methods have the numbers of their places in [`Method::ALL`].
impl Calls for Grpc {
    fn method(&self, path: &[u8]) -> Option<u8> {
        let place = Method::ALL.iter().position(|method| method.path().as_bytes() == path)?;
        u8::try_from(place).ok()
    }

    fn path(&self, method: u8) -> &'static str {
        Method::ALL.get(usize::from(method)).map_or("/", |method| method.path())
    }

    fn call(&self, method: u8, body: &[u8], peer: &Peer, turn: Turn) -> Called {
        let method = Method::ALL.get(usize::from(method));
        let told = match (method, frame::message(body)) {
            (Some(method), Ok(message)) => self.asking.of(peer, turn).answer(*method, message),
            (None, _) => Err(Refusal::NoCall),
            (_, Err(refusal)) => Err(refusal),
        };
        match told {
            Ok((answer, delay)) => Called::Message(answer, delay.min(LONGEST_DELAY)),
            Err(Refusal::Wait(wait)) => Called::Wait(wait.0),
            Err(refusal) => refusal.called(),
        }
    }
}

impl Asking {
    /// The same for this client, at its turn.
    fn of(&self, peer: &Peer, turn: Turn) -> Cow<'_, Self> {
        match (&peer.name, turn) {
            (None, Turn::First) => Cow::Borrowed(self),
            (client, turn) => Cow::Owned(Self { client: client.clone(), turn, ..self.clone() }),
        }
    }

    /// Does something, and again whenever a store was asked that has to be: no longer than the caller waits.
    async fn in_turn<T>(
        &self,
        peer: &Peer,
        deadline: Option<Deadline>,
        mut act: impl FnMut(&Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut turn = Turn::First;
        loop {
            match act(&self.of(peer, turn)) {
                Err(Refusal::Wait(wait)) => {
                    turn = Turn::after(&wait.0);
                    web::within(deadline, wait.0).fetch().await;
                }
                answer => return answer,
            }
        }
    }

    /// Whether a request may pass.
    #[inline]
    fn ruling(&self, request: &tollgate::Request<'_>) -> Result<Ruling, Refusal> {
        Ok(self.service.try_check(Name::Grpc, request, self.turn)?)
    }

    /// What would be said to it.
    fn look_at(&self, request: &tollgate::Request<'_>) -> Result<Ruling, Refusal> {
        Ok(self.service.try_peek(request, self.turn)?)
    }

    /// Whom its certificate is for; empty if it has shown none.
    fn client_cert(&self) -> &str {
        self.client.as_deref().unwrap_or_default()
    }

    /// Answers a message with a message.
    fn answer(&self, method: Method, message: &[u8]) -> Told<Bytes> {
        match method {
            Method::ShouldRateLimit => self.should_rate_limit(message),
            Method::Authorize => self.act(message, Self::authorize),
            Method::Check => self.act(message, Self::check),
            Method::CheckBatch => self.check_batch(message).map(|answer| (answer, Duration::ZERO)),
            Method::Report => self.act(message, Self::report),
        }
    }

    fn act<Q: Message + Default, A: Message>(
        &self,
        message: &[u8],
        act: impl FnOnce(&Self, Q) -> Told<A>,
    ) -> Told<Bytes> {
        let message = Q::decode(message)
            .map_err(|error| Refusal::invalid(format!("the message cannot be read: {error}")))?;
        let (answer, delay) = act(self, message)?;
        Ok((frame::framed(&answer), delay))
    }
}

/// No request is kept waiting for longer: proxies have given up by then.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;

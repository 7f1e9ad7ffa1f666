//! The door for whoever speaks gRPC: Envoy, and programs that ask often.
//!
//! ```text
//!   frame      bytes of HTTP/2 as a message, and a message as bytes; refusals as statuses of gRPC
//!   reply      what an answer consists of
//!   rls        Envoy's rate limit service, also in JSON
//!   authz      Envoy's external authorization
//!   native     Tollgate's own protocol
//!   health     whether requests should be sent here
//!   streamed   what goes through tonic
//! ```
//!
//! Calls with one message and one answer are made here, straight from the bytes and back, because
//! there are so many of them. What is rare, or a stream, goes through tonic.
//!
//! Whoever asks is a program of ours that asks for its clients. So the other end of the connection
//! says nothing about a client.

mod authz;
mod frame;
mod health;
mod native;
mod reply;
mod rls;
mod streamed;

use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use prost::Message;
use tollgate::Timer as _;

use crate::connection::{Limits, Peer};
use crate::door::Name;
use crate::grpc::frame::{Code, Refusal};
use crate::grpc::reply::Reply;
use crate::grpc::streamed::Streamed;
use crate::respond::{self, Answers};
use crate::service::Service;
use crate::status;
use crate::tickets::Tickets;
use crate::web::{self, OneRequest, Site, page};

/// Where gRPC is spoken.
#[derive(Debug)]
pub(crate) struct Grpc {
    asking: Arc<Asking>,
    /// What goes through tonic.
    streamed: Streamed,
}

/// What everybody needs who answers here.
#[derive(Debug)]
struct Asking {
    service: Arc<Service>,
    answers: Arc<Answers>,
    tickets: Arc<Tickets>,
    limits: Limits,
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
        let asking = Arc::new(Asking { service, answers, tickets, limits });
        Self { streamed: Streamed::new(&asking), asking }
    }

    /// A call with one message and one answer.
    async fn unary<Q: Message + Default, A: Message>(
        &self,
        request: Request<Incoming>,
        act: impl FnOnce(&Asking, Q) -> Told<A>,
    ) -> Response<Reply> {
        match self.act(request, act).await {
            Ok(answer) => reply::message(&answer),
            Err(refusal) => refusal.answer(),
        }
    }

    async fn act<Q: Message + Default, A: Message>(
        &self,
        request: Request<Incoming>,
        act: impl FnOnce(&Asking, Q) -> Told<A>,
    ) -> Result<A, Refusal> {
        let bytes = frame::read(request, &self.asking.limits, self.asking.service.held()).await?;
        let message = Q::decode(bytes).map_err(|error| {
            Refusal::new(Code::InvalidArgument, format!("the message cannot be read: {error}"))
        })?;
        let (answer, delay) = act(&self.asking, message)?;
        // A request that must wait in line waits here: a proxy cannot be told to.
        if !delay.is_zero() {
            self.asking.service.clock().sleep(delay.min(LONGEST_DELAY)).await;
        }
        Ok(answer)
    }

    /// `POST /json`, as envoyproxy/ratelimit has it.
    async fn json(&self, request: Request<Incoming>) -> Response<Reply> {
        if *request.method() != Method::POST {
            return respond::wrong_method("POST").map(Reply::Plain);
        }
        let limits = &self.asking.limits;
        if page::is_of_another(&request) {
            return respond::problem(StatusCode::FORBIDDEN, page::REFUSAL).map(Reply::Plain);
        }
        let answer = match web::body(request.into_body(), limits, self.asking.service.held()).await
        {
            Ok(body) => rls::answer_json(&self.asking, &body).await,
            Err(error) => respond::no_body(&error, limits.body_bytes),
        };
        answer.map(Reply::Plain)
    }

    /// What is neither a call nor JSON.
    fn other(&self, request: &Request<Incoming>) -> Response<Reply> {
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

    async fn answer(&self, request: Request<Incoming>, _: Peer) -> Response<Reply> {
        match request.uri().path() {
            "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit" => {
                self.unary(request, Asking::should_rate_limit).await
            }
            "/tollgate.v1.Tollgate/Check" => self.unary(request, Asking::check).await,
            "/tollgate.v1.Tollgate/CheckBatch" => self.unary(request, Asking::check_batch).await,
            "/tollgate.v1.Tollgate/Report" => self.unary(request, Asking::report).await,
            "/envoy.service.auth.v3.Authorization/Check" => {
                self.unary(request, Asking::authorize).await
            }
            "/json" => self.json(request).await,
            path => match self.streamed.serving(path) {
                Some(call) => call(request).await.map(Reply::streamed),
                None => self.other(&request),
            },
        }
    }

    fn began(&self, answer: &mut Response<Reply>, one: OneRequest) {
        // A stream is under way until its last answer is taken.
        answer.body_mut().hold(one);
    }
}

/// No request is kept waiting for longer: proxies have given up by then.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;

//! The door for those who run it: keys, rules, switches, the log, the end.
//!
//! What takes long, such as reading rules, runs on threads of its own: the worker that the
//! connection is on goes on with its other connections.

mod attempts;
mod controls;
mod guard;
mod keys;
mod named;
mod rules;

use std::sync::Arc;

use ::http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::admin::attempts::Attempts;
use crate::admin::guard::Refusal;
use crate::connection::{Limits, Peer};
use crate::door::Name;
use crate::respond;
use crate::secret::Secret;
use crate::service::Service;
use crate::status;
use crate::web::{self, Answer, Plain, Site};

/// The door for those who run it.
#[derive(Debug)]
pub(crate) struct Admin {
    service: Arc<Service>,
    token: Option<Secret>,
    attempts: Attempts,
    limits: Limits,
    /// Whoever sends rules: one at a time, because rules can be long.
    pushing: Semaphore,
}

impl Admin {
    pub(crate) fn new(service: Arc<Service>, token: Option<Secret>, limits: Limits) -> Self {
        let attempts = Attempts::new(service.clock());
        Self { service, token, attempts, limits, pushing: Semaphore::const_new(1) }
    }

    async fn route(&self, request: Request<Incoming>) -> Outcome<Answer> {
        let path = request.uri().path().to_owned();
        let method = match *request.method() {
            // The body is left out by whoever sends the answer.
            Method::HEAD => Method::GET,
            ref method => method.clone(),
        };
        let allowed = match (&*path, method.as_str()) {
            ("/v1/keys", "GET") => return keys::inspect(&self.service, query(&request)).await,
            ("/v1/keys/top", "GET") => return keys::top(&self.service, query(&request), false),
            ("/v1/keys/denied", "GET") => return keys::top(&self.service, query(&request), true),
            ("/v1/keys/reset", "POST") => {
                return keys::reset(&self.service, &self.json(request).await?).await;
            }
            ("/v1/rules", "GET") => return Ok(rules::show(&self.service)),
            ("/v1/rules", "PUT") => return self.push(request).await,
            ("/v1/kill", "GET") => return Ok(controls::killed(&self.service.now_in_force())),
            ("/v1/kill", "POST") => {
                let asked = self.json(request).await?;
                return self.apart(move |service| controls::kill(service, &asked)).await;
            }
            ("/v1/unkill", "POST") => {
                let asked = self.json(request).await?;
                return self.apart(move |service| controls::unkill(service, &asked)).await;
            }
            ("/v1/drain", "POST") => return Ok(controls::drain(&self.service)),
            ("/v1/log-level", "GET") => return Ok(controls::log_level(&self.service)),
            ("/v1/log-level", "PUT") => {
                return controls::set_log_level(&self.service, &self.json(request).await?);
            }
            ("/v1/keys" | "/v1/keys/top" | "/v1/keys/denied", _) => "GET, HEAD",
            ("/v1/keys/reset" | "/v1/unkill" | "/v1/drain", _) => "POST",
            ("/v1/rules" | "/v1/log-level", _) => "GET, HEAD, PUT",
            ("/v1/kill", _) => "GET, HEAD, POST",
            _ => match status::health(&self.service, &path) {
                Some(health) if method == Method::GET => return Ok(health),
                Some(_) => "GET, HEAD",
                None => return Err(unknown()),
            },
        };
        Err(Box::new(respond::wrong_method(allowed)))
    }

    /// The body of a request, in JSON.
    async fn json<T: DeserializeOwned>(&self, request: Request<Incoming>) -> Outcome<T> {
        let body = web::body(request.into_body(), &self.limits, self.service.held()).await;
        let body =
            body.map_err(|error| Box::new(respond::no_body(&error, self.limits.body_bytes)))?;
        serde_json::from_slice(&body)
            .map_err(|error| bad_request(&format!("the body is not what it should be: {error}")))
    }

    async fn push(&self, request: Request<Incoming>) -> Outcome<Answer> {
        let _alone = self.pushing.acquire().await;
        let pushed = rules::Pushed::of(&request)?;
        let limits = Limits { body_bytes: rules::MOST_BYTES, ..self.limits };
        let body = web::body(request.into_body(), &limits, self.service.held()).await;
        let body = body.map_err(|error| Box::new(respond::no_body(&error, limits.body_bytes)))?;
        self.apart(move |service| rules::push(service, pushed, body.into())).await
    }

    /// Does something that may take long.
    async fn apart(
        &self,
        work: impl FnOnce(&Service) -> Outcome<Answer> + Send + 'static,
    ) -> Outcome<Answer> {
        let service = Arc::clone(&self.service);
        let done = tokio::task::spawn_blocking(move || work(&service)).await;
        done.unwrap_or_else(|_| {
            Err(problem(StatusCode::INTERNAL_SERVER_ERROR, "it broke off: see the log"))
        })
    }
}

impl Site for Admin {
    const NAME: Name = Name::Admin;
    type Body = Plain;

    fn service(&self) -> &Arc<Service> {
        &self.service
    }

    async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Answer {
        match guard::check(&request, &peer, self.token.as_ref()) {
            Ok(()) => {}
            Err(Refusal::NoToken) => return respond::unauthorized(),
            Err(Refusal::WrongToken) => {
                self.service.metrics().wrong_secret(Self::NAME);
                return self.attempts.wrong();
            }
            Err(Refusal::Page(detail)) => return respond::problem(StatusCode::FORBIDDEN, detail),
        }
        self.route(request).await.unwrap_or_else(|problem| *problem)
    }
}

fn query(request: &Request<Incoming>) -> &str {
    request.uri().query().unwrap_or_default()
}

/// What comes of a request, or what is wrong with it.
type Outcome<T> = Result<T, Box<Answer>>;

fn problem(status: StatusCode, detail: &str) -> Box<Answer> {
    Box::new(respond::problem(status, detail))
}

fn good(body: &impl Serialize) -> Answer {
    respond::told(StatusCode::OK, body)
}

fn bad_request(detail: &str) -> Box<Answer> {
    problem(StatusCode::BAD_REQUEST, detail)
}

fn not_found(detail: &str) -> Box<Answer> {
    problem(StatusCode::NOT_FOUND, detail)
}

fn unknown() -> Box<Answer> {
    not_found(
        "there are /v1/keys, /v1/keys/top, /v1/keys/denied, /v1/keys/reset, /v1/rules, /v1/kill, \
         /v1/unkill, /v1/drain and /v1/log-level",
    )
}

#[cfg(test)]
mod tests;

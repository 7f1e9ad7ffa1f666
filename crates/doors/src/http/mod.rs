//! The door for whoever speaks JSON: `/v1/check`, `/v1/peek`, `/v1/report`.
//!
//! ```text
//!   route     what is asked for, by its path
//!   body      bytes as one thing or several: `asked` is a request, `Ended` how one ended
//!   check     decides, and keeps what is under way
//!   told      the ruling as JSON
//!   openapi   the whole of it, for people and programs
//! ```
//!
//! Whoever asks is a program of ours that asks for its clients. So the other end of the connection
//! says nothing about a client: its address is the one that the body names, or is not known. A
//! certificate that it shows is its own, and says which program asks.

mod asked;
mod body;
mod check;
mod fields;
mod openapi;
mod report;
mod route;
mod text;
mod told;
mod whole;

use std::sync::Arc;

use ::http::header::{CONTENT_ENCODING, HeaderMap};
use ::http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use tollgate::{Clock as _, Wait};

use crate::connection::{Limits, Peer};
use crate::door::Name;
use crate::http::body::Unreadable;
use crate::http::check::{Intent, Stop, Way};
use crate::http::route::Route;
use crate::respond::{self, Answers};
use crate::service::{Service, Turn, in_turn};
use crate::status;
use crate::tickets::Tickets;
use crate::web::{self, Answer, Plain, Site, page};

#[derive(Debug)]
pub(crate) struct Http {
    service: Arc<Service>,
    answers: Arc<Answers>,
    tickets: Arc<Tickets>,
    limits: Limits,
}

impl Http {
    pub(crate) const fn new(
        service: Arc<Service>,
        answers: Arc<Answers>,
        tickets: Arc<Tickets>,
        limits: Limits,
    ) -> Self {
        Self { service, answers, tickets, limits }
    }

    async fn post(&self, route: Route, request: Request<Incoming>, peer: &Peer) -> Answer {
        let (head, incoming) = request.into_parts();
        if let Some(answer) = encoded(&head.headers) {
            return answer;
        }
        // They can be long, and the body can be long in coming.
        drop(head);
        match web::body(incoming, &self.limits, self.service.held()).await {
            Ok(body) => in_turn(|turn| self.act(route, &body, peer.name(), turn)).await,
            Err(error) => respond::no_body(&error, self.limits.body_bytes),
        }
    }

    /// Does what a body asks for, for a client that has shown this certificate.
    fn act(&self, route: Route, body: &[u8], client: &str, turn: Turn) -> Result<Answer, Wait> {
        let now = self.service.clock().now();
        let way = |intent| Way { intent, now, turn };
        let answer = match route {
            Route::Check => self.check(body, client, way(Intent::Spend)),
            Route::Peek => self.check(body, client, way(Intent::Look)),
            Route::Report => self.report(body, now).map_err(Stop::Unreadable),
            _ => Ok(self.page(route)),
        };
        answer.or_else(|stop| match stop {
            Stop::Unreadable(unreadable) => Ok(refused(&unreadable)),
            Stop::Wait(wait) => Err(wait),
            Stop::Full => Ok(respond::no_room("too many requests are under way")),
        })
    }

    fn page(&self, route: Route) -> Answer {
        let page = match route {
            Route::Welcome => {
                let plain = "text/plain; charset=utf-8";
                Some(respond::text(StatusCode::OK, plain, WELCOME.to_owned()))
            }
            Route::OpenApi => Some(respond::json(StatusCode::OK, openapi::TEXT.into())),
            _ => status::health(&self.service, route.path()),
        };
        page.unwrap_or_else(nothing_here)
    }
}

impl Site for Http {
    const NAME: Name = Name::Http;
    type Body = Plain;

    async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Answer {
        let Some(route) = Route::of(request.uri().path()) else { return nothing_here() };
        if route.takes_a_body() && page::is_of_another(&request) {
            return respond::problem(StatusCode::FORBIDDEN, page::REFUSAL);
        }
        match (route.takes_a_body(), request.method()) {
            (true, &Method::POST) => self.post(route, request, &peer).await,
            (true, _) => respond::wrong_method("POST"),
            (false, &Method::GET | &Method::HEAD) => self.page(route),
            (false, _) => respond::wrong_method("GET, HEAD"),
        }
    }

    fn quick(&self, path: &str, body: &[u8], turn: Turn) -> Option<Result<Answer, Wait>> {
        let route = Route::of(path).filter(|route| route.takes_a_body())?;
        (body.len() <= self.limits.body_bytes).then(|| self.act(route, body, "", turn))
    }

    fn service(&self) -> &Arc<Service> {
        &self.service
    }
}

fn nothing_here() -> Answer {
    respond::problem(StatusCode::NOT_FOUND, "there is no such page; `GET /` says what there is")
}

/// The answer to a body that is packed. A body of any type is read as JSON: what `curl -d` calls a
/// form is one.
fn encoded(headers: &HeaderMap) -> Option<Answer> {
    let encoding = headers.get(CONTENT_ENCODING)?;
    let detail = "the body is packed: send it as it is, without Content-Encoding";
    let answer = respond::problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail);
    (!encoding.as_bytes().eq_ignore_ascii_case(b"identity")).then_some(answer)
}

fn refused(Unreadable { is_syntax, detail }: &Unreadable) -> Answer {
    let status = match is_syntax {
        true => StatusCode::BAD_REQUEST,
        false => StatusCode::UNPROCESSABLE_ENTITY,
    };
    respond::problem(status, detail)
}

const WELCOME: &str = "\
This is a tollgate: it says whether a request may pass.

  POST /v1/check    {\"method\": \"GET\", \"path\": \"/v1/items\", \"user\": \"alice\"}
                    200 if it may pass, 429 if not, and why
  POST /v1/peek     the same, and nothing is spent
  POST /v1/report   {\"ticket\": \"...\", \"status\": 401}
                    how a request ended, if the check's answer has a ticket
  GET /openapi.json all of that, for programs
  GET /healthz      200 while it runs
  GET /readyz       200 while requests should be sent here
";

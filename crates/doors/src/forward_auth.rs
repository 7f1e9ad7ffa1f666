//! The door for proxies that ask before they let a request pass.

use std::sync::Arc;

use ::http::{Request, StatusCode};
use hyper::body::Incoming;

use crate::connection::Peer;
use crate::door::Name;
use crate::respond::{self, Answers};
use crate::service::Service;
use crate::status;
use crate::web::{Answer, Site};

#[derive(Debug)]
pub(crate) struct ForwardAuth {
    service: Arc<Service>,
    answers: Arc<Answers>,
}

impl ForwardAuth {
    pub(crate) const fn new(service: Arc<Service>, answers: Arc<Answers>) -> Self {
        Self { service, answers }
    }
}

impl Site for ForwardAuth {
    const NAME: Name = Name::ForwardAuth;

    async fn answer(&self, request: Request<Incoming>, _: Peer) -> Answer {
        status::health(&self.service, request.uri().path())
            .unwrap_or_else(|| respond::problem(StatusCode::NOT_FOUND, "there is no such page"))
    }
}

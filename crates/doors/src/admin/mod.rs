//! The door for those who run it.

use std::sync::Arc;

use ::http::{Request, StatusCode};
use hyper::body::Incoming;

use crate::connection::{Limits, Peer};
use crate::door::Name;
use crate::respond;
use crate::secret::Secret;
use crate::service::Service;
use crate::status;
use crate::web::{Answer, Site};

#[derive(Debug)]
pub(crate) struct Admin {
    service: Arc<Service>,
    token: Option<Secret>,
    limits: Limits,
}

impl Admin {
    pub(crate) const fn new(service: Arc<Service>, token: Option<Secret>, limits: Limits) -> Self {
        Self { service, token, limits }
    }
}

impl Site for Admin {
    const NAME: Name = Name::Admin;

    async fn answer(&self, request: Request<Incoming>, _: Peer) -> Answer {
        status::health(&self.service, request.uri().path())
            .unwrap_or_else(|| respond::problem(StatusCode::NOT_FOUND, "there is no such page"))
    }
}

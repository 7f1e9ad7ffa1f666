//! The door for whoever speaks JSON: `/v1/check`, `/v1/peek`, `/v1/report`.

use std::sync::Arc;

use ::http::{Request, StatusCode};
use hyper::body::Incoming;

use crate::connection::{Limits, Peer};
use crate::door::Name;
use crate::respond;
use crate::service::Service;
use crate::status;
use crate::web::{Answer, Site};

#[derive(Debug)]
pub(crate) struct Http {
    service: Arc<Service>,
    limits: Limits,
}

impl Http {
    pub(crate) const fn new(service: Arc<Service>, limits: Limits) -> Self {
        Self { service, limits }
    }
}

impl Site for Http {
    const NAME: Name = Name::Http;

    async fn answer(&self, request: Request<Incoming>, _: Peer) -> Answer {
        status::health(&self.service, request.uri().path())
            .unwrap_or_else(|| respond::problem(StatusCode::NOT_FOUND, "there is no such page"))
    }
}

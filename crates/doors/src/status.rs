//! The door for whoever watches: health, readiness, metrics.

use std::sync::Arc;

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;

use crate::connection::Peer;
use crate::door::Name;
use crate::respond;
use crate::service::Service;
use crate::web::{Answer, Plain, Site};

/// `/metrics`, `/healthz`, `/readyz`.
#[derive(Debug)]
pub(crate) struct Status {
    service: Arc<Service>,
}

impl Status {
    pub(crate) const fn new(service: Arc<Service>) -> Self {
        Self { service }
    }
}

impl Site for Status {
    const NAME: Name = Name::Status;
    type Body = Plain;

    fn service(&self) -> &Arc<Service> {
        &self.service
    }

    async fn answer(&self, request: Request<Incoming>, _: Peer) -> Answer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return respond::wrong_method("GET, HEAD");
        }
        let path = request.uri().path();
        if path == "/metrics" {
            let text = self.service.metrics().text(&self.service);
            return respond::text(StatusCode::OK, METRICS, text);
        }
        health(&self.service, path).unwrap_or_else(|| {
            respond::problem(StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz")
        })
    }
}

/// The pages about health, which every door of HTTP has.
pub(crate) fn health(service: &Service, path: &str) -> Option<Answer> {
    let plain = "text/plain; charset=utf-8";
    match path {
        "/healthz" => Some(respond::text(StatusCode::OK, plain, "ok\n".to_owned())),
        "/readyz" if service.is_ready() => {
            Some(respond::text(StatusCode::OK, plain, "ready\n".to_owned()))
        }
        "/readyz" => {
            let text = "draining\n".to_owned();
            Some(respond::text(StatusCode::SERVICE_UNAVAILABLE, plain, text))
        }
        _ => None,
    }
}

/// What Prometheus takes for its own.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

//! In place of traces and metrics for OpenTelemetry, which this was built without.

use tollgate_doors::Service;

use crate::environment;
use crate::error::Error;

/// There is none.
#[derive(Debug)]
pub(super) enum Telemetry {}

impl Telemetry {
    /// Says so, if somebody expects it.
    pub(super) fn new() -> Result<Option<Self>, Error> {
        if environment::variable("OTEL_EXPORTER_OTLP_ENDPOINT").is_some() {
            tracing::warn!("OTEL_EXPORTER_OTLP_ENDPOINT is set, but this was built without `otel`");
        }
        Ok(None)
    }

    pub(super) fn observe(&self, _: Service) -> Service {
        match *self {}
    }

    pub(super) async fn run(&self, _: &Service) {
        match *self {}
    }

    pub(super) async fn end(&self, _: &Service) {
        match *self {}
    }
}

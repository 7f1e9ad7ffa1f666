//! Traces and metrics for OpenTelemetry, over OTLP with protobuf in HTTP.
//!
//! What is sent is put together here, in the messages that the project publishes, rather than with
//! its SDK: that can send only what was counted through it, and our counts, above all histograms,
//! are kept by the threads that decide.

mod metrics;
mod send;
mod settings;
mod traces;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use tollgate::{Clock as _, Timer as _};
use tollgate_doors::Service;

use self::send::Receiver;
use self::settings::Settings;
use self::traces::Traces;
use crate::environment;
use crate::error::Error;

/// Sends traces and metrics, as the environment says.
#[derive(Debug)]
pub(super) struct Telemetry {
    settings: Settings,
    traces: Arc<Traces>,
}

impl Telemetry {
    /// If the environment names somebody who takes them.
    pub(super) fn new() -> Result<Option<Self>, Error> {
        let settings = Settings::read(environment::variable)?;
        Ok(settings
            .map(|settings| Self { traces: Arc::new(Traces::new(settings.ratio)), settings }))
    }

    /// Has the service tell about decisions.
    pub(super) fn observe(&self, service: Service) -> Service {
        let traces: Arc<Traces> = Arc::clone(&self.traces);
        service.observed_by(traces)
    }

    /// Sends what there is, again and again. Does not end.
    pub(super) async fn run(&self, service: &Service) {
        let metrics = async {
            loop {
                service.clock().sleep(self.settings.interval).await;
                self.send_metrics(service).await;
            }
        };
        let traces = async {
            loop {
                service.clock().sleep(self.settings.delay).await;
                self.send_traces().await;
            }
        };
        tokio::join!(metrics, traces);
    }

    /// Sends what there is, for the last time.
    pub(super) async fn end(&self, service: &Service) {
        // Whoever does not take it does not keep us from ending.
        let both = async { tokio::join!(self.send_metrics(service), self.send_traces()) };
        let _ = tokio::time::timeout(LAST, both).await;
    }

    async fn send_metrics(&self, service: &Service) {
        let Some(to) = &self.settings.metrics else { return };
        let (began, now) = (service.began(), service.clock().wall());
        post(to, &metrics::request(self.resource(), &service.families(), began, now)).await;
    }

    async fn send_traces(&self) {
        let Some(to) = &self.settings.traces else { return };
        if let Some(request) = self.traces.request(self.resource()) {
            post(to, &request).await;
        }
    }

    fn resource(&self) -> Resource {
        let attributes = self.settings.resource.iter();
        Resource {
            attributes: attributes.map(|(name, value)| text(name, value)).collect(),
            ..Resource::default()
        }
    }
}

async fn post(to: &Receiver, message: &impl prost::Message) {
    if let Err(error) = to.post(message.encode_to_vec()).await {
        tracing::warn!(to = %to, %error, "telemetry is not taken");
    }
}

/// Who speaks.
fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "tollgate".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

fn text(name: &str, value: &str) -> KeyValue {
    let value = any_value::Value::StringValue(value.to_owned());
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
}

/// So long the end waits for it.
const LAST: Duration = Duration::from_secs(2);

//! What the environment says, in the variables that OpenTelemetry has for everybody.

use std::ffi::OsString;
use std::time::Duration;

use super::send::{Receiver, bad_address};
use crate::error::Error;

/// What is sent where.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) metrics: Option<Receiver>,
    pub(super) traces: Option<Receiver>,
    /// How often metrics are sent.
    pub(super) interval: Duration,
    /// How often traces are.
    pub(super) delay: Duration,
    /// Which part of the decisions that are looked at are traced, from 0 to 1.
    pub(super) ratio: f64,
    /// What is said about us.
    pub(super) resource: Vec<(String, String)>,
}

impl Settings {
    /// Nothing, if no variable names an endpoint.
    pub(super) fn read(
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, Error> {
        let variable = |name: &str| {
            let value = environment(name)?.into_string().ok()?;
            Some(value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let headers = pairs(&variable("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default());
        let receiver = |signal: &str, path: &str| {
            let own = variable(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
            let all = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
            let is_off =
                variable(&format!("OTEL_{signal}_EXPORTER")).is_some_and(|it| it == "none");
            let all = all.map(|all| format!("{}{path}", all.trim_end_matches('/')));
            let url = own.or(all).filter(|_| !is_off);
            url.map(|url| Receiver::new(&url, &headers)).transpose()
        };
        let (metrics, traces) = (receiver("METRICS", METRICS)?, receiver("TRACES", TRACES)?);
        if metrics.is_none() && traces.is_none() {
            return Ok(None);
        }
        if variable("OTEL_EXPORTER_OTLP_PROTOCOL").is_some_and(|it| it != "http/protobuf") {
            return Err(bad_address("OTEL_EXPORTER_OTLP_PROTOCOL can be http/protobuf alone"));
        }
        let millis = |name: &str, usual: u64, wrong: &'static str| {
            let millis = variable(name).map_or(Ok(usual), |it| it.parse());
            let millis = millis.ok().filter(|millis| (10..=3_600_000).contains(millis));
            millis.map(Duration::from_millis).ok_or_else(|| bad_address(wrong))
        };
        let ratio = variable("OTEL_TRACES_SAMPLER_ARG").map_or(Ok(1.0), |it| it.parse());
        let ratio = ratio.ok().filter(|ratio| (0.0..=1.0).contains(ratio));
        let name = variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "tollgate".to_owned());
        let mut resource = pairs(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
        resource.retain(|(known, _)| known != "service.name");
        resource.push(("service.name".to_owned(), name));
        resource.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        Ok(Some(Self {
            metrics,
            traces,
            interval: millis(
                "OTEL_METRIC_EXPORT_INTERVAL",
                60_000,
                "OTEL_METRIC_EXPORT_INTERVAL is in milliseconds: 10 to 3600000",
            )?,
            delay: millis(
                "OTEL_BSP_SCHEDULE_DELAY",
                5_000,
                "OTEL_BSP_SCHEDULE_DELAY is in milliseconds: 10 to 3600000",
            )?,
            ratio: ratio.ok_or_else(|| {
                bad_address("OTEL_TRACES_SAMPLER_ARG is a part of all, from 0 to 1")
            })?,
            resource,
        }))
    }
}

/// `a=b,c=d`, with what is not allowed there written as `%20`.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_owned(), decoded(value.trim())))
    };
    text.split(',').filter_map(pair).collect()
}

fn decoded(text: &str) -> String {
    // A plus is one here, and not a blank.
    let text = text.replace('+', "%2B").replace('&', "%26");
    let pair = form_urlencoded::parse(text.as_bytes()).next();
    pair.map(|(name, _)| name.into_owned()).unwrap_or_default()
}

const METRICS: &str = "/v1/metrics";
const TRACES: &str = "/v1/traces";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, Error> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Settings::read(|name| find(name).map(|(_, value)| (*value).into()))
    }

    #[test]
    fn nothing_is_sent_unless_somebody_is_named() {
        assert!(read(&[]).unwrap().is_none());
        assert!(read(&[("OTEL_SERVICE_NAME", "gate")]).unwrap().is_none());
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        assert!(read(&[endpoint, ("OTEL_SDK_DISABLED", "true")]).unwrap().is_none());
        let all = read(&[endpoint]).unwrap().unwrap();
        assert_eq!(all.metrics.unwrap().to_string(), "http://127.0.0.1:4318/v1/metrics");
        assert_eq!(all.traces.unwrap().to_string(), "http://127.0.0.1:4318/v1/traces");
        let metrics = read(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]).unwrap().unwrap();
        assert!(metrics.traces.is_none() && metrics.metrics.is_some());
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a:1/x");
        let traces = read(&[own]).unwrap().unwrap();
        assert_eq!(traces.traces.unwrap().to_string(), "http://a:1/x");
        assert!(traces.metrics.is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a:4318"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
            ("OTEL_TRACES_SAMPLER_ARG", "1.5"),
        ] {
            let error = read(&[(name, value), endpoint]).unwrap_err().to_string();
            assert!(error.contains("OTEL_") || error.contains(value), "{error}");
        }
    }

    #[test]
    fn attributes_are_taken_apart() {
        assert_eq!(
            pairs("a=b, c = d%20+%2Ce,nothing,f=g&h"),
            [("a", "b"), ("c", "d +,e"), ("f", "g&h")].map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
    }
}

//! What a collector of OpenTelemetry receives: a plain server of HTTP that reads protobuf.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, number_data_point};
use prost::Message as _;

use crate::support::{Process, exchange, free_port, until};

/// Takes what is sent, until the test ends.
struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

#[derive(Clone)]
struct Received {
    /// The request line and the headers, in lower case.
    head: String,
    body: Vec<u8>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let all = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = receive(stream, |one| all.lock().unwrap().push(one));
            }
        });
        Self { address, received }
    }

    /// All that came to a path.
    fn at(&self, path: &str) -> Vec<Received> {
        let received = self.received.lock().unwrap();
        let of = |one: &&Received| one.head.starts_with(&format!("post {path} http/1.1\r\n"));
        received.iter().filter(of).cloned().collect()
    }

    /// The metrics that came last, by name.
    fn metrics(&self) -> BTreeMap<String, Metric> {
        let Some(last) = self.at("/v1/metrics").pop() else { return BTreeMap::new() };
        let request = ExportMetricsServiceRequest::decode(&*last.body).unwrap();
        let [resource] = &*request.resource_metrics else { panic!("{request:?}") };
        assert_eq!(of(&resource.resource.as_ref().unwrap().attributes, "service.name"), "gate");
        let metrics = resource.scope_metrics.iter().flat_map(|scope| scope.metrics.clone());
        metrics.map(|metric| (metric.name.clone(), metric)).collect()
    }
}

/// Whoever is answered can rely on it that it is kept.
fn receive(mut stream: TcpStream, keep: impl FnOnce(Received)) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        lines.read_line(&mut head).ok().filter(|length| *length > 0)?;
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    lines.read_exact(&mut body).ok()?;
    keep(Received { head, body });
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").ok()
}

/// The text of an attribute.
fn of<'a>(attributes: &'a [KeyValue], name: &str) -> &'a str {
    let found = attributes.iter().find(|known| known.key == name);
    match found.and_then(|found| found.value.as_ref()?.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text,
        other => panic!("{name} is {other:?} in {attributes:?}"),
    }
}

/// A server that sends there, and where it answers.
fn server(endpoint: &str, more: &[(&str, &str)]) -> (Process, SocketAddr) {
    let folder = tempfile::TempDir::new().unwrap();
    let rules = folder.path().join("rules.yaml");
    std::fs::write(&rules, RULES).unwrap();
    let http = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("serve").arg("--rules").arg(&rules).args(["--http", &http.to_string()]);
    // Each thread looks at one decision in 64 of its own.
    command.args(["--threads", "1"]);
    for door in ["--forward-auth", "--resp", "--grpc", "--status", "--admin"] {
        command.args([door, "off"]);
    }
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    command.env("OTEL_SERVICE_NAME", "gate").env("OTEL_EXPORTER_OTLP_HEADERS", "x-token=s3cret");
    command.env("OTEL_METRIC_EXPORT_INTERVAL", "50").env("OTEL_BSP_SCHEDULE_DELAY", "50");
    let mut process = Process::start(command.envs(more.iter().copied()));
    process.wait_for_line("serving");
    (process, http)
}

/// More than 64, so that some of them are looked at.
fn ask(http: SocketAddr, times: usize) {
    for _ in 0..times {
        exchange(http, "POST", "/v1/check", &[], r#"{"user":"alice"}"#);
    }
}

const RULES: &str = "rules: [{ name: per-user, key: [user], limit: 100/h }]";

#[test]
fn metrics_are_those_that_prometheus_reads() {
    let collector = Collector::start();
    let (_process, http) = server(&format!("http://{}", collector.address), &[]);
    ask(http, 130);
    let count = |metric: &Metric, outcome: &str| {
        let Some(Data::Sum(sum)) = &metric.data else { panic!("{metric:?}") };
        assert!(sum.is_monotonic);
        let point = sum.data_points.iter().find(|point| {
            of(&point.attributes, "rule") == "per-user"
                && of(&point.attributes, "outcome") == outcome
        });
        point.unwrap().value.unwrap()
    };
    let metrics = until("all decisions are told", || {
        let metrics = collector.metrics();
        let rule = metrics.get("tollgate_rule_decisions")?;
        (count(rule, "denied") == number_data_point::Value::AsInt(30)).then_some(metrics)
    });
    let rule = &metrics["tollgate_rule_decisions"];
    assert_eq!(count(rule, "allowed"), number_data_point::Value::AsInt(100));
    let Some(Data::Histogram(time)) = &metrics["tollgate_door_seconds"].data else { panic!() };
    let [point] = &*time.data_points else { panic!("one door is open: {time:?}") };
    assert_eq!(of(&point.attributes, "door"), "http");
    assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    assert!(point.count >= 130 && point.sum.unwrap() > 0.0, "{point:?}");
    let Some(Data::Gauge(build)) = &metrics["tollgate_build_info"].data else { panic!() };
    assert_eq!(of(&build.data_points[0].attributes, "version"), env!("CARGO_PKG_VERSION"));
}

#[test]
fn some_decisions_are_traced_without_their_keys() {
    let collector = Collector::start();
    let (mut process, http) = server(&format!("http://{}", collector.address), &[]);
    ask(http, 130);
    // The last ones are sent at the end.
    process.signal("TERM");
    assert!(process.wait().success());
    let received = collector.at("/v1/traces");
    let mut spans = Vec::new();
    for one in &received {
        assert!(one.head.contains("\r\nx-token: s3cret\r\n"), "{}", one.head);
        assert!(one.head.contains("\r\ncontent-type: application/x-protobuf\r\n"), "{}", one.head);
        assert!(!one.body.windows(5).any(|part| part == b"alice"), "a key is in it");
        let request = ExportTraceServiceRequest::decode(&*one.body).unwrap();
        let scopes = request.resource_spans.into_iter().flat_map(|all| all.scope_spans);
        spans.extend(scopes.flat_map(|scope| scope.spans));
    }
    assert_eq!(spans.len(), 130 / 64, "{spans:?}");
    for span in &spans {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
        assert_eq!(of(&span.attributes, "tollgate.rule"), "per-user");
        assert_eq!(of(&span.attributes, "tollgate.door"), "http");
        assert!(["allowed", "denied"].contains(&of(&span.attributes, "tollgate.outcome")));
        assert!(0 < span.start_time_unix_nano);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
    }
    assert!(!process.output().join("\n").contains("s3cret"));
}

#[test]
fn nothing_is_traced_if_nobody_wants_it() {
    let collector = Collector::start();
    let none = [("OTEL_TRACES_SAMPLER_ARG", "0")];
    let (mut process, http) = server(&format!("http://{}", collector.address), &none);
    ask(http, 130);
    process.signal("TERM");
    assert!(process.wait().success());
    assert!(collector.at("/v1/traces").is_empty() && !collector.at("/v1/metrics").is_empty());
}

#[test]
fn a_collector_that_is_gone_stops_nobody() {
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let (mut process, http) = server(&nobody, &[]);
    process.wait_for_line("telemetry is not taken");
    assert_eq!(exchange(http, "POST", "/v1/check", &[], "{}").0, 200);
    process.signal("TERM");
    assert!(process.wait().success());
}

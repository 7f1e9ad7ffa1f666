//! A real Envoy in front of an origin, that asks before it lets a request pass.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::peers::Programs;
use super::process::{Server, free_port};
use super::yes::Yes;
use super::{KEYS, grpc, output};
use crate::error::BenchError;
use crate::measure::median;
use crate::report::{Reach, Row, Unit};
use crate::suite::Session;

/// What asking adds to a request, against a service that answers without a thought: half of all
/// requests take longer than without asking by no more than this.
pub(super) fn run(session: &mut Session, programs: &Programs) -> Result<(), BenchError> {
    let name =
        format!("RLS behind Envoy, {CONNECTIONS} connections, added to half of all requests");
    if !session.wants(&name) {
        return Ok(());
    }
    session.progress.say("starting Envoy");
    let gateways = Gateways::ready(session)?;
    let folder = Folder::new()?;
    let origin = origin(&gateways, &folder)?;
    let (ours, yes) = (grpc::server(programs)?, Yes::start()?);
    let envoy = |service: Option<u16>| start(&gateways, &folder, origin.port, service);
    let (alone, before_ours, before_yes) =
        (envoy(None)?, envoy(Some(ours.port))?, envoy(Some(yes.port))?);
    let script = folder.write("ask.lua", &script())?;
    let mut times = [const { Vec::new() }; 3];
    for round in 1..=session.scale.long_rounds {
        session.progress.say(&format!("{name}: round {round}"));
        for (times, envoy) in times.iter_mut().zip([&alone, &before_ours, &before_yes]) {
            times.push(half(session, programs, envoy.port, &script)?);
        }
    }
    let [alone, ours, yes] = times.map(median);
    let peer = ("a service that only says OK", yes - alone);
    let row = Row::against(name, Unit::Microseconds, ours - alone, peer)
        .noting(format!("half of all requests take {alone:.0} us without asking"));
    session.add(row.promising(Reach::Within(1.3)));
    Ok(())
}

/// The programs that stand around.
struct Gateways {
    envoy: PathBuf,
    nginx: PathBuf,
}

impl Gateways {
    fn ready(session: &Session) -> Result<Self, BenchError> {
        let nginx = super::peers::debian("nginx", "nginx-light")?;
        Ok(Self { envoy: super::peers::envoy(session)?, nginx })
    }
}

/// A folder for configurations, gone with its row.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, BenchError> {
        let path = std::env::temp_dir().join(format!("tollgate-bench-{}", free_port()?));
        fs::create_dir(&path).map_err(|source| BenchError::File { path: path.clone(), source })?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, BenchError> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(|source| BenchError::File { path: path.clone(), source })?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A small folder that stays behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Answers everything with the same few bytes. One process, which ends when it is told to.
fn origin(gateways: &Gateways, folder: &Folder) -> Result<Server, BenchError> {
    let (port, home) = (free_port()?, folder.0.display());
    let text = format!(
        "daemon off; master_process off; pid {home}/nginx.pid; error_log {home}/error.log;\n\
         events {{}}\n\
         http {{ access_log off; keepalive_requests 1000000000;\n\
         client_body_temp_path {home}/a; proxy_temp_path {home}/b; fastcgi_temp_path {home}/c;\n\
         uwsgi_temp_path {home}/d; scgi_temp_path {home}/e;\n\
         server {{ listen 127.0.0.1:{port}; location / {{ return 200 'ok'; }} }} }}\n"
    );
    let file = folder.write("nginx.conf", &text)?;
    Server::start(Command::new(&gateways.nginx).arg("-c").arg(file), port, 0)
}

/// Envoy, which asks the service on this port, if there is one.
fn start(
    gateways: &Gateways,
    folder: &Folder,
    origin: u16,
    service: Option<u16>,
) -> Result<Server, BenchError> {
    let port = free_port()?;
    let file =
        folder.write(&format!("envoy-{port}.yaml"), &configuration(port, origin, service))?;
    let mut command = Command::new(&gateways.envoy);
    command.arg("-c").arg(file).args(["--use-dynamic-base-id", "--concurrency", "1"]);
    Server::start(&mut command, port, 0)
}

fn configuration(port: u16, origin: u16, service: Option<u16>) -> String {
    let asking = r#"
                  - name: envoy.filters.http.ratelimit
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
                      domain: bench
                      timeout: 1s
                      failure_mode_deny: true
                      rate_limit_service:
                        transport_api_version: V3
                        grpc_service: { envoy_grpc: { cluster_name: service } }"#;
    let filter = if service.is_some() { asking } else { "" };
    // Nobody is asked there if there is no filter.
    let service = service.unwrap_or(origin);
    format!(
        r#"static_resources:
  listeners:
    - address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: web
                http_filters:{filter}
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
                route_config:
                  virtual_hosts:
                    - name: origin
                      domains: ["*"]
                      routes:
                        - match: {{ prefix: / }}
                          route:
                            cluster: origin
                            rate_limits:
                              - actions:
                                  - request_headers: {{ header_name: x-user, descriptor_key: user }}
  clusters:
    - name: service
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {{ http2_protocol_options: {{}} }}
      load_assignment:
        cluster_name: service
        endpoints:
          - lb_endpoints:
              - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {service} }} }} }}
    - name: origin
      load_assignment:
        cluster_name: origin
        endpoints:
          - lb_endpoints:
              - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {origin} }} }} }}
"#
    )
}

/// Every request is somebody's.
fn script() -> String {
    format!(
        "local random, format, headers = math.random, wrk.format, {{}}\n\
         function request()\n  headers['x-user'] = 'key:' .. random({KEYS})\n  \
         return format('GET', '/', headers)\nend\n"
    )
}

/// What half of all requests take at most, in microseconds, as wrk sees it. All answers must be good.
fn half(
    session: &Session,
    programs: &Programs,
    port: u16,
    script: &PathBuf,
) -> Result<f64, BenchError> {
    let seconds = if session.scale.is_quick() { "1s" } else { "4s" };
    let text = output(
        Command::new(&programs.wrk)
            .args(["-t1", "-c", CONNECTIONS, "--latency", "-d", seconds, "-s"])
            .arg(script)
            .arg(format!("http://127.0.0.1:{port}/")),
    )?;
    let why = || BenchError::Program { name: "wrk".to_owned(), why: text.clone() };
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(why());
    }
    let line = text.lines().find_map(|line| line.trim().strip_prefix("50%"));
    line.and_then(|time| microseconds(time.trim())).ok_or_else(why)
}

/// A time as wrk writes it: `873.00us`, `1.25ms`, `1.01s`.
fn microseconds(time: &str) -> Option<f64> {
    let unit = time.find(|one: char| one.is_ascii_alphabetic())?;
    let (number, unit) = time.split_at(unit);
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

const CONNECTIONS: &str = "16";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_wrk_are_read() {
        assert_eq!(microseconds("873.00us"), Some(873.0));
        assert_eq!(microseconds("1.25ms"), Some(1250.0));
        assert_eq!(microseconds("2.00s"), Some(2e6));
        assert_eq!((microseconds("1.00m"), microseconds("")), (None, None));
    }
}

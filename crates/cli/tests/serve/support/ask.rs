//! Requests to the doors for JSON and for those who run it, and commands of the binary.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use serde_json::Value;

use crate::support::Server;

/// What a command of the binary left.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) notes: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}\n{}", self.out, self.notes))
    }
}

/// Runs a command.
pub(crate) fn run(arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    run_command(command.args(arguments).env_remove("TOLLGATE_ADMIN_TOKEN"))
}

pub(crate) fn run_command(command: &mut Command) -> Ran {
    let ran = command.env("NO_COLOR", "1").output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    Ran { code: ran.status.code().unwrap_or(-1), out: text(ran.stdout), notes: text(ran.stderr) }
}

impl Server {
    /// Runs a command that speaks to the admin door.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let admin = self.address("admin").to_string();
        run(&[arguments, &["--server", &admin]].concat())
    }

    /// Whether a request is allowed, at the door for JSON.
    pub(crate) fn allows(&self, request: &str) -> bool {
        match exchange(self.address("http"), "POST", "/v1/check", &[], request).0 {
            200 => true,
            429 => false,
            other => panic!("{request} gets {other}"),
        }
    }

    /// The metrics.
    pub(crate) fn metrics(&self) -> String {
        exchange(self.address("status"), "GET", "/metrics", &[], "").1
    }

    /// The value of a sample, named with its labels.
    pub(crate) fn metric(&self, sample: &str) -> Option<f64> {
        let text = self.metrics();
        let value = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        value.map(|value| value.parse().expect("samples are numbers"))
    }
}

/// The status and the body of the answer to a request.
pub(crate) fn exchange(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut request = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        request += &format!("host: {address}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
    (head[9..12].parse().unwrap(), body.to_owned())
}

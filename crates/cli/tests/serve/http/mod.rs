//! The door that speaks JSON.

mod api;
mod check;
mod client;
mod docs;
mod hostile;
mod idle;
mod slow;
mod under_way;
mod ways;

use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// What is answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The text of a problem, which this is.
    pub(crate) fn detail(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        assert_eq!(self.json()["status"], self.status, "{self:?}");
        self.json()["detail"].as_str().unwrap_or_default().to_owned()
    }

    /// Reads until the connection is closed.
    pub(crate) fn read(mut from: impl Read) -> Self {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("an answer, and then the end");
        let text = String::from_utf8(bytes).expect("it is text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let pair = |line: &str| {
            let (name, value) = line.split_once(": ").expect("a header");
            (name.to_ascii_lowercase(), value.to_owned())
        };
        let headers = lines.map(pair).collect();
        Self { status: status.expect("a status"), headers, body: body.to_owned() }
    }
}

/// A connection that does not wait for ever.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
    stream
}

/// Asks with any method.
pub(crate) fn ask(address: SocketAddr, method: &str, path: &str, body: impl AsRef<[u8]>) -> Reply {
    let (mut stream, body) = (connect(address), body.as_ref());
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).expect("it listens");
    Reply::read(stream)
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &Value) -> Reply {
    ask(address, "POST", path, body.to_string())
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Reply {
    ask(address, "GET", path, "")
}

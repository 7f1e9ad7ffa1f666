//! Sends a message to whoever collects them: one request of HTTP, one answer.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName};
use http::{HeaderMap, HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::error::Error;

/// Who collects.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    url: Uri,
    host: String,
    headers: HeaderMap,
}

impl Receiver {
    pub(super) fn new(url: &str, headers: &[(String, String)]) -> Result<Self, Error> {
        let wrong = || bad_address("OTEL_EXPORTER_OTLP_ENDPOINT is no address of HTTP");
        let url: Uri = url.parse().map_err(|_| wrong())?;
        if url.scheme_str() != Some("http") {
            return Err(wrong());
        }
        let authority = url.authority().ok_or_else(wrong)?;
        let host = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = name.to_lowercase().parse::<HeaderName>();
            let value = HeaderValue::try_from(value);
            let (Ok(name), Ok(mut value)) = (name, value) else {
                return Err(bad_address("OTEL_EXPORTER_OTLP_HEADERS has what no header can have"));
            };
            // They are mostly tokens.
            value.set_sensitive(true);
            map.insert(name, value);
        }
        Ok(Self { url, host, headers: map })
    }

    /// Sends a message of protobuf.
    pub(super) async fn post(&self, body: Vec<u8>) -> io::Result<()> {
        let sent = tokio::time::timeout(PATIENCE, self.exchange(body)).await;
        sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn exchange(&self, body: Vec<u8>) -> io::Result<()> {
        let stream = TcpStream::connect(&self.host).await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // It ends when the sender is gone.
        tokio::spawn(connection);
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let mut request =
            Request::post(path).body(Full::new(Bytes::from(body))).map_err(io::Error::other)?;
        request.headers_mut().extend(self.headers.clone());
        let host = HeaderValue::try_from(&self.host).map_err(io::Error::other)?;
        request.headers_mut().insert(HOST, host);
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        request.headers_mut().insert(CONTENT_TYPE, protobuf);
        let answer = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = answer.status();
        // What it says is not needed, but has to be taken.
        let _ = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
        match status.is_success() {
            true => Ok(()),
            false => Err(io::Error::other(format!("it answers {status}"))),
        }
    }
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

pub(super) const fn bad_address(message: &'static str) -> Error {
    Error::Usage { message, remedy: "mend the variable: http://127.0.0.1:4318 is a collector here" }
}

/// So long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

const MOST_BYTES: usize = 64 << 10;

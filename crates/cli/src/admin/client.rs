//! Speaks to a door of a server, mostly the one for those who run it: one request, one answer.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, IF_MATCH};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::AdminError;
use super::tls::Tls;
use crate::environment;
use crate::error::Error;
use crate::flags::{Remote, Server, TlsFlags};
use crate::print;

/// The admin door of a server.
#[derive(Debug)]
pub(super) struct Client<'a> {
    server: &'a Server,
    token: Option<HeaderValue>,
    tls: Option<Tls>,
}

/// What is sent.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
    /// What must be there for it to be done.
    pub(super) replaces: Option<&'a str>,
}

impl<'a> Client<'a> {
    /// The server that the flags name.
    pub(super) fn new(remote: &'a Remote) -> Result<Self, Error> {
        let token = match &remote.token_file {
            Some(file) => {
                let failed = |error| Error::Read { file: file.display().to_string(), error };
                Some(OsString::from(fs::read_to_string(file).map_err(failed)?))
            }
            None => environment::variable(TOKEN),
        };
        let header = |token: OsString| {
            let token = token.into_string().ok()?;
            let mut header = HeaderValue::try_from(format!("Bearer {}", token.trim())).ok()?;
            header.set_sensitive(true);
            Some(header)
        };
        let token = token.filter(|token| !token.is_empty());
        let token = token.map(|token| header(token).ok_or(AdminError::BadToken)).transpose()?;
        let tls = Tls::of(&remote.server, &remote.tls)?;
        if token.is_some() && tls.is_none() && !remote.server.is_here() {
            print::note(IN_THE_CLEAR);
        }
        Ok(Self { server: &remote.server, token, tls })
    }

    /// A server that asks for no token, at that door.
    pub(super) fn open(server: &'a Server, tls: &TlsFlags) -> Result<Self, Error> {
        Ok(Self { server, token: None, tls: Tls::of(server, tls)? })
    }

    /// The status of the answer to a GET.
    pub(super) fn status(&self, path: &str) -> Result<StatusCode, Error> {
        self.exchange(self.request(Method::GET, path, Message::default())?)
            .map(|(status, _)| status)
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, Error> {
        self.ask(Method::GET, path, Message::default())
    }

    /// Sends JSON.
    pub(super) fn send(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Value, Error> {
        // Texts and numbers can always be written.
        let body = serde_json::to_vec(body).unwrap_or_default();
        let message = Message { content_type: "application/json", body, replaces: None };
        self.ask(method, path, message)
    }

    /// Sends a request, and waits for what is answered.
    pub(super) fn ask(
        &self,
        method: Method,
        path: &str,
        message: Message<'_>,
    ) -> Result<Value, Error> {
        let (status, body) = self.exchange(self.request(method, path, message)?)?;
        let value = serde_json::from_slice(&body);
        match (status.is_success(), value) {
            (true, Ok(value)) => Ok(value),
            (false, Ok(problem)) => Err(AdminError::refused(status, &problem).into()),
            (_, Err(_)) => Err(self.is_another(format!("it answered {status}, without JSON"))),
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        message: Message<'_>,
    ) -> Result<Request<Full<Bytes>>, Error> {
        let host = match self.server {
            Server::Tcp(host) => host,
            Server::Unix(_) => "localhost",
        };
        let mut request = Request::builder().method(method).uri(path).header(HOST, host);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        if !message.content_type.is_empty() {
            request = request.header(CONTENT_TYPE, message.content_type);
        }
        if let Some(version) = message.replaces {
            request = request.header(IF_MATCH, format!("\"{version}\""));
        }
        let request = request.body(Full::from(message.body));
        request.map_err(|error| self.is_another(error.to_string()))
    }

    fn exchange(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(Error::System)?.block_on(async {
            let answered = tokio::time::timeout(PATIENCE, self.answer(request)).await;
            answered.unwrap_or_else(|_| Err(self.unreachable(io::ErrorKind::TimedOut.into())))
        })
    }

    async fn answer(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), Error> {
        match self.server {
            Server::Tcp(host) => {
                let stream = TcpStream::connect(host).await;
                let stream = stream.map_err(|error| self.unreachable(error))?;
                let Some(Tls { connector, name }) = &self.tls else {
                    return self.over(stream, request).await;
                };
                let stream = connector.connect(name.clone(), stream).await;
                self.over(stream.map_err(|error| self.unreachable(error))?, request).await
            }
            Server::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                self.over(stream.map_err(|error| self.unreachable(error))?, request).await
            }
        }
    }

    async fn over(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), Error> {
        let another = |error: hyper::Error| self.is_another(error.to_string());
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(another)?;
        // It ends with the runtime, at the latest.
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(another)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
        let body = body.map_err(|error| self.is_another(error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    fn unreachable(&self, error: io::Error) -> Error {
        AdminError::Unreachable { server: self.server.to_string(), error }.into()
    }

    fn is_another(&self, problem: String) -> Error {
        AdminError::NoDoor { server: self.server.to_string(), problem }.into()
    }

    /// What an answer says.
    pub(super) fn read<T: DeserializeOwned>(&self, answer: Value) -> Result<T, Error> {
        serde_json::from_value(answer).map_err(|error| self.is_another(error.to_string()))
    }
}

const IN_THE_CLEAR: &str = "\
warning: the token is sent as it is, and whoever is on the way can read it
  for a server elsewhere, use a tunnel, such as ssh -L 4299:127.0.0.1:4299 HOST
";

/// The variable with the token.
const TOKEN: &str = "TOLLGATE_ADMIN_TOKEN";

/// So long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer: rules, as JSON.
const MOST_BYTES: usize = 256 << 20;

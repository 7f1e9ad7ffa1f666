//! What those who fuzz need: doors without sockets. Not for anybody else.

pub mod heads;
mod proxy;

pub use proxy::{ProxyClient, Question};

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Builder;
use tollgate::RuleSet;

use crate::config::Config;
use crate::connection::Limits;
use crate::grpc::{Grpc, QuotaTalk};
use crate::http::Http;
use crate::resp::Talk;
use crate::respond::Answers;
use crate::secret::Secret;
use crate::service::Service;
use crate::service::Turn;
use crate::tickets::Tickets;
use crate::web::{self, Site as _};

/// A connection to the door for clients of Redis, without a socket.
pub struct RespClient(Talk);

impl RespClient {
    /// To a server with these rules, and with room for few keys; `None` if they are no rules.
    pub fn new(rules: &str, password: Option<&str>) -> Option<Self> {
        let limits = Limits { body_bytes: 1 << 16, batch: 50, tickets: 1000, ..Limits::default() };
        let service = Service::new(RuleSet::parse(rules).ok()?, 64).ok()?;
        let tickets = Arc::new(Tickets::new(&limits));
        let password = password.map(Secret::new);
        Some(Self(Talk::new(Arc::new(service), tickets, password, limits)))
    }

    /// Sends bytes, and returns what is answered; `None` once the connection has ended.
    pub fn send(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.0.send(bytes)
    }
}

/// A client of the door that speaks JSON, without a socket.
pub struct HttpClient(Http);

impl HttpClient {
    /// Of a server with these rules, and with room for few keys; `None` if they are no rules.
    pub fn new(rules: &str) -> Option<Self> {
        let limits = Limits { batch: 50, tickets: 4, ..Limits::default() };
        let service = Arc::new(Service::new(RuleSet::parse(rules).ok()?, 64).ok()?);
        let answers = Answers::new(Arc::clone(&service), Config::defaults(1).respond);
        let tickets = Arc::new(Tickets::new(&limits));
        Some(Self(Http::new(service, Arc::new(answers), tickets, limits)))
    }

    /// The status and the body of what is answered to a body; `None` if nothing has that path.
    pub fn post(&self, path: &str, body: &[u8]) -> Option<(u16, Vec<u8>)> {
        let answer = self.0.quick(path, body, Turn::Now)?.ok()?;
        let status = answer.status().as_u16();
        Some((status, web::at_once(answer.into_body()).to_vec()))
    }
}

/// A client of the door that speaks gRPC, without a socket.
pub struct GrpcClient(Arc<Grpc>, Limits);

impl GrpcClient {
    /// Of a server with these rules, and with room for few keys; `None` if they are no rules.
    pub fn new(rules: &str) -> Option<Self> {
        let limits = Limits { batch: 50, tickets: 4, ..Limits::default() };
        let service = Arc::new(Service::new(RuleSet::parse(rules).ok()?, 64).ok()?);
        let answers = Answers::new(Arc::clone(&service), Config::defaults(1).respond);
        let tickets = Arc::new(Tickets::new(&limits));
        let grpc = Grpc::new(service, Arc::new(answers), tickets, limits);
        Some(Self(Arc::new(grpc), limits))
    }

    /// What is answered to a message: a message with what stands before it, or a code of gRPC and
    /// why; `None` if nothing has that path.
    pub fn call(&self, path: &str, message: &[u8]) -> Option<Result<Vec<u8>, (u16, String)>> {
        self.0.call_at_once(path, message)
    }

    /// What is answered to these frames, behind the preface and in one piece, by a connection that
    /// goes on for no longer than a moment; `None` if there is nothing to run it with.
    pub fn talk(&self, frames: &[u8]) -> Option<Vec<u8>> {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let (client, server) = tokio::io::duplex(1 << 16);
        let (mut hears, mut says) = tokio::io::split(client);
        let serves = web::serve_http2(Arc::clone(&self.0), server, self.1);
        let mut told = Vec::new();
        runtime.block_on(async {
            let says = async {
                let all = [&web::PREFACE[..], frames].concat();
                // It may have heard enough.
                let _ = says.write_all(&all).await;
                let _ = says.shutdown().await;
            };
            let hears = async { _ = hears.read_to_end(&mut told).await };
            let all = async { tokio::join!(says, serves, hears) };
            let _ = tokio::time::timeout(Duration::from_millis(100), all).await;
        });
        Some(told)
    }
}

/// An Envoy that reports how much of its quotas it uses, without a socket.
pub struct QuotaClient(QuotaTalk);

/// What an Envoy is told about one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// Everybody may pass.
    AllowAll,
    /// Nobody may pass, or nobody needs the bucket.
    Nothing,
    /// A token bucket to enforce.
    Share {
        /// How many it holds.
        tokens: u32,
        /// How many come back at once.
        tokens_per_fill: u32,
        /// How far apart.
        fill_seconds: i64,
    },
}

impl QuotaClient {
    /// Of a server with these rules, and with room for few keys; `None` if they are no rules.
    pub fn new(rules: &str) -> Option<Self> {
        let limits = Limits { batch: 50, tickets: 4, ..Limits::default() };
        let service = Arc::new(Service::new(RuleSet::parse(rules).ok()?, 64).ok()?);
        let answers = Answers::new(Arc::clone(&service), Config::defaults(1).respond);
        let tickets = Arc::new(Tickets::new(&limits));
        Some(Self(QuotaTalk::new(service, Arc::new(answers), tickets, limits)))
    }

    /// Another one of the same server.
    pub fn other(&self) -> Self {
        Self(self.0.other())
    }

    /// What a message of reports is answered, or a code of gRPC and why its stream ends; `None` if it
    /// is no such message. After a refusal the next report begins another stream.
    pub fn report(&mut self, message: &[u8]) -> Option<Result<Vec<Assigned>, (u16, String)>> {
        self.0.report(message)
    }
}

//! A connection to one server, and what is known of the process at its other end.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, Pipeline, ServerErrorKind, TlsCertificates,
    Value,
};
use tokio::time::timeout;

use crate::error::StoreError;
use crate::redis::answer::text;
use crate::redis::config::RedisConfig;
use crate::redis::failure;
use crate::redis::identity::RedisIdentity;
use crate::redis::script::Algorithm;

/// A connection that many questions share. It ends with the process at its other end, so whatever is
/// said on it is said to the process that it was made to.
#[derive(Clone)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    pub(super) address: String,
    /// The name of the process: another one after every start.
    pub(super) process: String,
    patience: Duration,
}

impl Link {
    /// Connects to a server that keeps books: it has to take writes, and our scripts.
    pub(super) async fn to_server(
        info: ConnectionInfo,
        config: &RedisConfig,
        may_redirect: bool,
    ) -> Result<Self, StoreError> {
        let mut link = Self::to_anybody(info, config).await?;
        link.patience = config.connect_timeout;
        let mut first = redis::pipe();
        first.cmd("INFO").arg("server").cmd("INFO").arg("replication");
        let replies = link.send_all_well(&first, 2).await?;
        let server = replies.first().map(text).unwrap_or_default();
        let replication = replies.get(1).map(text).unwrap_or_default();
        refuse_old(&server)?;
        if !may_redirect && field(&replication, "role") == Some("slave") {
            let reason = format!("{} is a replica", link.address);
            return Err(StoreError::ReadOnly { reason });
        }
        let reason = "INFO names no run_id".to_owned();
        link.process = field(&server, "run_id").ok_or(StoreError::Refused { reason })?.to_owned();
        // Not before: whoever has not said who they are is cut off when they send so much.
        let mut scripts = redis::pipe();
        for algorithm in Algorithm::ALL {
            scripts.cmd("SCRIPT").arg("LOAD").arg(algorithm.source());
        }
        link.send_all_well(&scripts, Algorithm::ALL.len()).await?;
        link.patience = config.timeout;
        Ok(link)
    }

    /// Connects to whoever is there: a Sentinel, or somebody who knows the way in a Cluster.
    pub(super) async fn to_anybody(
        info: ConnectionInfo,
        config: &RedisConfig,
    ) -> Result<Self, StoreError> {
        let address = info.addr().to_string();
        let patience = config.connect_timeout;
        let has_shown = config.identity.is_some();
        let unreachable = |error: redis::RedisError| {
            failure::of_connecting(&error, &address, patience, has_shown)
        };
        let client = match config.is_about_tls() {
            true => {
                let client_tls = config.identity.as_ref().map(RedisIdentity::pair);
                let root_cert = config.root_certificate.clone();
                Client::build_with_tls(info, TlsCertificates { client_tls, root_cert })
            }
            false => Client::open(info),
        };
        let client = client.map_err(unreachable)?;
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(patience))
            .set_response_timeout(None);
        // The client has a limit of its own; it was seen to hang all the same.
        let connection = client.get_multiplexed_async_connection_with_config(&settings);
        let connection = timeout(patience, connection)
            .await
            .map_err(|_| StoreError::Timeout { after: patience })?
            .map_err(unreachable)?;
        Ok(Self { connection, address, process: String::new(), patience: config.timeout })
    }

    /// Whether the connection has ended already, so that nothing would be sent that is asked on it. The
    /// client tells nobody before, but refuses at once: a question is begun and given up, which is not sent
    /// then, or is a ping if the client is so quick.
    pub(super) fn is_closed(&self) -> bool {
        let mut connection = self.connection.clone();
        let ping = redis::cmd("PING");
        let asked = pin!(connection.send_packed_command(&ping));
        matches!(asked.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)))
    }

    /// Sends commands and waits for as many replies, each by itself good or bad.
    pub(super) async fn send(
        &self,
        commands: &Pipeline,
        count: usize,
    ) -> Result<Vec<Value>, StoreError> {
        let mut connection = self.connection.clone();
        let replies = connection.send_packed_commands(commands, 0, count);
        let replies = timeout(self.patience, replies)
            .await
            .map_err(|_| StoreError::Timeout { after: self.patience })?
            .map_err(|error| failure::of_client(&error, &self.address, self.patience))?;
        match replies.len() == count {
            true => Ok(replies),
            false => Err(StoreError::Refused { reason: "too few replies".into() }),
        }
    }

    /// Whether it is a primary that has given a slot away, or is about to: the slot whose mark this is. One
    /// that only hears that another has taken its place becomes a replica when it does.
    pub(super) async fn inquire(&self, mark: &str) -> Result<Finding, StoreError> {
        let mut ask = redis::pipe();
        ask.cmd("INFO").arg("replication").cmd("GET").arg(mark).cmd("INFO").arg("replication");
        let replies = self.send(&ask, 3).await?;
        let [before, said, after] = &replies[..] else { return Ok(Finding::Unknown) };
        let is_elsewhere = match said {
            Value::ServerError(error) => {
                matches!(error.kind(), Some(ServerErrorKind::Moved | ServerErrorKind::Ask))
            }
            _ => false,
        };
        let (before, after) = (text(before), text(after));
        Ok(match (field(&before, "role"), field(&after, "role")) {
            (Some("master"), Some("master")) if is_elsewhere => Finding::Given,
            (Some("master"), Some("master")) => Finding::NotGiven,
            (Some(_), Some(_)) => Finding::Gone,
            // It has said that it cannot say.
            _ => Finding::Unknown,
        })
    }

    /// Loads a script again that somebody has flushed.
    pub(super) async fn load(&self, algorithm: Algorithm) -> Result<(), StoreError> {
        let mut load = redis::pipe();
        load.cmd("SCRIPT").arg("LOAD").arg(algorithm.source());
        self.send_all_well(&load, 1).await.map(drop)
    }

    /// Sends commands none of which may fail.
    async fn send_all_well(
        &self,
        commands: &Pipeline,
        count: usize,
    ) -> Result<Vec<Value>, StoreError> {
        let replies = self.send(commands, count).await?;
        let wrong = |reply: &Value| match reply {
            Value::ServerError(error) => Some(failure::of_reply(error, &self.address, "")),
            _ => None,
        };
        replies.iter().find_map(wrong).map_or(Ok(replies), Err)
    }
}

/// What has become of a process that had a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// It has given the slot away in good order.
    Given,
    /// It is a primary, and has not given this one away.
    NotGiven,
    /// There is no such process, or it is no primary any more: that goes for all slots that it had.
    Gone,
    /// Somebody who may be it does not answer.
    Unknown,
}

/// The value of a line of INFO.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn refuse_old(server: &str) -> Result<(), StoreError> {
    let version = field(server, "redis_version").unwrap_or("of an unknown version");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= LEAST_MAJOR => Ok(()),
        _ => Err(StoreError::Version { found: format!("Redis {version}"), least: LEAST }),
    }
}

/// Before, the time of the clock and a write did not go together in a script.
pub(super) const LEAST_MAJOR: u32 = 6;
const LEAST: &str = "6.0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_refused_by_name() {
        let info = |version: &str| format!("# Server\r\nredis_version:{version}\r\nrun_id:abc\r\n");
        assert_eq!(refuse_old(&info("7.0.15")), Ok(()));
        assert_eq!(refuse_old(&info("6.0.0")), Ok(()));
        let old = refuse_old(&info("5.0.14")).unwrap_err();
        assert!(old.to_string().contains("Redis 5.0.14"), "{old}");
        assert!(refuse_old("").is_err());
        assert_eq!(field(&info("7"), "run_id"), Some("abc"));
    }
}

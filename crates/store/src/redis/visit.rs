//! A visit to the servers of a store, by somebody who wants to know how they are.

use redis::Value;

use crate::error::StoreError;
use crate::redis::address::{self, Address};
use crate::redis::answer::text;
use crate::redis::config::RedisConfig;
use crate::redis::link::{self, Link};
use crate::redis::route::{Route, beside};
use crate::redis::{failure, name};

/// A connection to one server of a store, to ask it anything: the way there is that of a
/// [`RedisStore`](crate::RedisStore), and whoever is there may be unfit to be one.
///
/// ```no_run
/// use tollgate_store::{RedisConfig, RedisVisit};
///
/// # async fn run() -> Result<(), tollgate_store::StoreError> {
/// let visit = RedisVisit::open("redis://localhost", RedisConfig::default()).await?;
/// println!("{}: {}", visit.address(), visit.ask(&["INFO", "server"]).await?.concat());
/// # Ok(())
/// # }
/// ```
pub struct RedisVisit {
    link: Link,
}

impl RedisVisit {
    /// Servers before this major version are refused by the store.
    pub const LEAST_MAJOR: u32 = link::LEAST_MAJOR;

    /// Connects to the server at an address, to the one that Sentinels name, or to the first of a
    /// Cluster that answers. Addresses are those of [`RedisStore::open`](crate::RedisStore::open).
    pub async fn open(url: &str, config: RedisConfig) -> Result<Self, StoreError> {
        let route = Route { address: Address::fitting(url, &config)?, config };
        let config = &route.config;
        let link = match &route.address {
            Address::Server(info) => Link::to_anybody(info.clone(), config).await?,
            Address::Sentinel { sentinels, service, primary } => {
                let (host, port) = route.primary(sentinels, service).await?;
                Link::to_anybody(address::at(primary, &host, port), config).await?
            }
            Address::Cluster { seeds } => {
                let mut found = Err(no_host());
                for seed in seeds {
                    found = Link::to_anybody(seed.clone(), config).await;
                    if found.is_ok() {
                        break;
                    }
                }
                found?
            }
        };
        Ok(Self { link })
    }

    /// Connects to another server of the same Cluster, by its host and port.
    pub async fn open_node(url: &str, config: RedisConfig, node: &str) -> Result<Self, StoreError> {
        let address = Address::fitting(url, &config)?;
        let Address::Cluster { seeds } = address else { return Err(no_host()) };
        let info = seeds.first().and_then(|seed| beside(seed, node)).ok_or_else(no_host)?;
        Ok(Self { link: Link::to_anybody(info, &config).await? })
    }

    /// The host and the port.
    pub fn address(&self) -> &str {
        &self.link.address
    }

    /// Sends a command, and returns the texts and numbers in its reply, in order, without how they
    /// were nested. It has the time of [`RedisConfig::timeout`].
    pub async fn ask(&self, command: &[&str]) -> Result<Vec<String>, StoreError> {
        let replies = self.ask_all(&[command]).await?;
        replies.into_iter().next().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// The same for several commands at once.
    pub async fn ask_all(
        &self,
        commands: &[&[&str]],
    ) -> Result<Vec<Result<Vec<String>, StoreError>>, StoreError> {
        // The client refuses to send nothing.
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::pipe();
        for command in commands {
            let (name, words) = command.split_first().unwrap_or((&"", &[]));
            pipeline.cmd(name).arg(words);
        }
        let replies = self.link.send(&pipeline, commands.len()).await?;
        let read = |reply: &Value| match reply {
            Value::ServerError(error) => Err(failure::of_reply(error, self.address(), "")),
            reply => Ok(texts(reply)),
        };
        Ok(replies.iter().map(read).collect())
    }

    /// The name of a key that lies in a slot, apart from all that count.
    ///
    /// ```
    /// assert!(tollgate_store::RedisVisit::key_in(7).starts_with("tg:doctor:{"));
    /// ```
    pub fn key_in(slot: u16) -> String {
        format!("tg:doctor:{{{}}}", name::tag_in(slot))
    }
}

impl std::fmt::Debug for RedisVisit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisVisit").field("address", &self.link.address).finish_non_exhaustive()
    }
}

fn texts(reply: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![reply];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(parts) | Value::Set(parts) => left.extend(parts.iter().rev()),
            Value::Map(pairs) => {
                left.extend(pairs.iter().rev().flat_map(|(name, value)| [value, name]));
            }
            Value::Okay => found.push("OK".to_owned()),
            Value::Nil => {}
            value => found.push(text(value)),
        }
    }
    found
}

fn no_host() -> StoreError {
    StoreError::ClusterDown { reason: "no host of a Cluster was named".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_in_their_order() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let pair = Value::Map(vec![(bulk("c"), Value::Int(4)), (bulk("d"), Value::Nil)]);
        let reply = Value::Array(vec![bulk("0"), Value::Array(vec![bulk("a"), bulk("b")]), pair]);
        assert_eq!(texts(&reply), ["0", "a", "b", "c", "4", "d"]);
        assert_eq!(texts(&Value::Okay), ["OK"]);
    }

    #[test]
    fn keys_lie_where_they_should() {
        for wanted in [0, 1, 8_191, 16_383] {
            let key = RedisVisit::key_in(wanted);
            let tag = key.split(['{', '}']).nth(1).unwrap();
            assert_eq!(name::slot(tag.as_bytes()), wanted, "{key}");
        }
    }
}

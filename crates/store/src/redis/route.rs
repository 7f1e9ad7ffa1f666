//! The way to a server: straight, through a Sentinel who knows it, or by the slots of a Cluster.

use std::collections::BTreeSet;

use redis::{ConnectionInfo, Value};

use crate::error::StoreError;
use crate::redis::address::{self, Address};
use crate::redis::answer::{text, whole};
use crate::redis::config::RedisConfig;
use crate::redis::failure;
use crate::redis::link::Link;

/// What the one server is called where there is but one.
pub(super) const PRIMARY: &str = "primary";

pub(super) struct Route {
    pub(super) address: Address,
    pub(super) config: RedisConfig,
}

impl Route {
    /// Connects to a server: the [`PRIMARY`], or that of a Cluster with this host and port.
    pub(super) async fn link(&self, node: &str) -> Result<Link, StoreError> {
        match &self.address {
            Address::Server(info) => Link::to_server(info.clone(), &self.config, false).await,
            Address::Sentinel { sentinels, service, primary } => {
                let (host, port) = self.primary(sentinels, service).await?;
                let info = address::at(primary, &host, port);
                Link::to_server(info, &self.config, false).await
            }
            Address::Cluster { seeds } => {
                let info = seeds.first().and_then(|seed| beside(seed, node));
                let reason = || format!("`{node}` is no address");
                let info = info.ok_or_else(|| StoreError::ClusterDown { reason: reason() })?;
                Link::to_server(info, &self.config, true).await
            }
        }
    }

    /// Where slots lie, by the first who knows: those that were given, and those that were found.
    pub(super) async fn slots(&self, known: BTreeSet<String>) -> Result<Slots, StoreError> {
        let Address::Cluster { seeds } = &self.address else { return Ok(Slots::default()) };
        let mut infos = seeds.clone();
        for node in &known {
            infos.extend(seeds.first().and_then(|seed| beside(seed, node)));
        }
        let mut last = StoreError::ClusterDown { reason: "no host was named".into() };
        for info in infos {
            match self.slots_by(&info).await {
                Ok(mut slots) if !slots.ranges.is_empty() => {
                    slots.known.extend(known);
                    return Ok(slots);
                }
                Ok(_) => {
                    let reason = format!("{} knows of no slots", info.addr());
                    last = StoreError::ClusterDown { reason };
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn slots_by(&self, info: &ConnectionInfo) -> Result<Slots, StoreError> {
        let link = Link::to_anybody(info.clone(), &self.config).await?;
        let mut ask = redis::pipe();
        ask.cmd("CLUSTER").arg("SLOTS");
        let replies = link.send(&ask, 1).await?;
        match replies.first() {
            Some(Value::ServerError(error)) => Err(failure::of_reply(error, "")),
            Some(Value::Array(ranges)) => Ok(Slots::read(ranges, address::host(info))),
            other => Err(StoreError::Refused { reason: format!("CLUSTER SLOTS is {other:?}") }),
        }
    }

    /// What the first Sentinel who knows a primary says.
    pub(super) async fn primary(
        &self,
        sentinels: &[ConnectionInfo],
        service: &str,
    ) -> Result<(String, u16), StoreError> {
        let mut reasons = Vec::new();
        for info in sentinels {
            let mut ask = redis::pipe();
            ask.cmd("SENTINEL").arg("get-master-addr-by-name").arg(service);
            let replies = match Link::to_anybody(info.clone(), &self.config).await {
                Ok(link) => link.send(&ask, 1).await,
                Err(error) => Err(error),
            };
            match replies.map(|mut replies| replies.pop()) {
                Ok(Some(Value::Array(parts))) if parts.len() == 2 => {
                    if let Ok(port) = text(&parts[1]).parse() {
                        return Ok((text(&parts[0]), port));
                    }
                }
                Ok(other) => reasons.push(format!("{} says {other:?}", info.addr())),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(StoreError::NoPrimary { service: service.into(), reason: reasons.join("; ") })
    }
}

/// Which server has which slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    /// First and last slot, and the address.
    pub(super) ranges: Vec<(u16, u16, String)>,
    /// All servers that were ever heard of, replicas too: one of them will know more.
    pub(super) known: BTreeSet<String>,
}

impl Slots {
    pub(super) fn node_of(&self, slot: u16) -> Option<String> {
        let range = self.ranges.iter().find(|(from, to, _)| (*from..=*to).contains(&slot));
        range.map(|(_, _, node)| node.clone())
    }

    /// The slots of a server.
    pub(super) fn of(&self, node: &str) -> Vec<u16> {
        let ranges = self.ranges.iter().filter(|(_, _, of)| of == node);
        ranges.flat_map(|(from, to, _)| *from..=*to).collect()
    }

    /// All servers that have slots.
    pub(super) fn primaries(&self) -> BTreeSet<String> {
        self.ranges.iter().map(|(_, _, node)| node.clone()).collect()
    }

    pub(super) fn any_node(&self) -> Option<String> {
        self.ranges.first().map(|(_, _, node)| node.clone())
    }

    pub(super) fn nodes(&self) -> BTreeSet<String> {
        self.known.clone()
    }

    fn read(ranges: &[Value], asked: &str) -> Self {
        let mut slots = Self::default();
        for range in ranges {
            let Value::Array(parts) = range else { continue };
            let [from, to, servers @ ..] = &parts[..] else { continue };
            let (Some(from), Some(to)) = (whole(from), whole(to)) else { continue };
            let addresses: Vec<_> =
                servers.iter().filter_map(|server| address_of(server, asked)).collect();
            slots.known.extend(addresses.iter().take(MOST_REPLICAS).cloned());
            let ends = (u16::try_from(from), u16::try_from(to));
            if let (Some(first), (Ok(from), Ok(to))) = (addresses.into_iter().next(), ends) {
                slots.ranges.push((from, to, first));
            }
        }
        slots
    }
}

/// A server that does not know its own name is where it was asked.
fn address_of(server: &Value, asked: &str) -> Option<String> {
    let Value::Array(parts) = server else { return None };
    let (host, port) = (text(parts.first()?), whole(parts.get(1)?)?);
    let host = if host.is_empty() || host == "?" { asked.to_owned() } else { host };
    Some(format!("{host}:{port}"))
}

/// The same way to another host and port.
pub(super) fn beside(seed: &ConnectionInfo, node: &str) -> Option<ConnectionInfo> {
    let (host, port) = node.rsplit_once(':')?;
    let host = if host.is_empty() { address::host(seed) } else { host };
    Some(address::at(seed, host, port.parse().ok()?))
}

/// Replicas of one range that are remembered.
const MOST_REPLICAS: usize = 16;

//! The way to a server: straight, through a Sentinel who knows it, or by the slots of a Cluster.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use redis::{ConnectionInfo, Value};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::StoreError;
use crate::redis::address::{self, Address};
use crate::redis::answer::text;
use crate::redis::config::RedisConfig;
use crate::redis::failure;
use crate::redis::link::Link;
use crate::redis::slots::Slots;

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

    /// Where slots lie, by the first who knows: servers that are linked already, those that were given, and
    /// those that were found. Some are asked at a time, and who takes long is not waited for by the next.
    pub(super) async fn slots(
        self: Arc<Self>,
        linked: Vec<Link>,
        known: BTreeSet<String>,
    ) -> Result<Slots, StoreError> {
        let Address::Cluster { seeds } = &self.address else { return Ok(Slots::default()) };
        let is_linked = |info: &ConnectionInfo| {
            let address = info.addr().to_string();
            linked.iter().any(|link| link.address == address)
        };
        let found = known.iter().filter_map(|node| beside(seeds.first()?, node));
        let others = seeds.iter().cloned().chain(found).filter(|info| !is_linked(info));
        let mut ways: VecDeque<_> = others.map(Way::To).collect();
        linked.iter().rev().for_each(|link| ways.push_front(Way::Over(link.clone())));
        // Until somebody says more than that.
        let mut last = StoreError::Timeout { after: self.config.connect_timeout };
        let mut asked = JoinSet::new();
        loop {
            for way in ways.drain(..ways.len().min(ASKED_AT_A_TIME)) {
                asked.spawn(Arc::clone(&self).slots_by(way));
            }
            let patience = match ways.is_empty() {
                true => self.config.connect_timeout + self.config.timeout,
                false => self.config.timeout,
            };
            match timeout(patience, first_who_knows(&mut asked, &mut last)).await {
                Ok(Some(slots)) => return Ok(slots),
                _ if ways.is_empty() => return Err(last),
                _ => {}
            }
        }
    }

    async fn slots_by(self: Arc<Self>, way: Way) -> Result<Slots, StoreError> {
        let link = match way {
            Way::Over(link) => link,
            Way::To(info) => Link::to_anybody(info, &self.config).await?,
        };
        let mut ask = redis::pipe();
        ask.cmd("CLUSTER").arg("SLOTS");
        let replies = link.send(&ask, 1).await?;
        match replies.first() {
            Some(Value::ServerError(error)) => Err(failure::of_reply(error, &link.address, "")),
            Some(Value::Array(ranges)) => {
                let slots = Slots::read(ranges, host_of(&link.address));
                let reason = || format!("{} knows of no slots", link.address);
                match slots.is_empty() {
                    true => Err(StoreError::ClusterDown { reason: reason() }),
                    false => Ok(slots),
                }
            }
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
        let (mut wants_user, mut certificate) = (false, None);
        for info in sentinels {
            let error = match self.named_by(info, service).await {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            reasons.push(match &error {
                StoreError::Credentials { reason, .. }
                | StoreError::NotAllowed { reason, .. }
                | StoreError::Refused { reason } => format!("{} says {reason}", info.addr()),
                error => error.to_string(),
            });
            match error {
                StoreError::Credentials { .. } | StoreError::NotAllowed { .. } => wants_user = true,
                StoreError::NoCertificate { .. } | StoreError::BadCertificate { .. } => {
                    certificate = Some(error);
                }
                _ => {}
            }
        }
        // Whoever may not be asked could know; what can be done about it comes first.
        let reason = reasons.join("; ");
        match certificate {
            Some(error) => Err(error),
            None if wants_user => Err(StoreError::SentinelCredentials { reason }),
            None => Err(StoreError::NoPrimary { service: service.into(), reason }),
        }
    }

    /// The primary that a Sentinel names.
    async fn named_by(
        &self,
        sentinel: &ConnectionInfo,
        service: &str,
    ) -> Result<(String, u16), StoreError> {
        let mut ask = redis::pipe();
        ask.cmd("SENTINEL").arg("get-master-addr-by-name").arg(service);
        let link = Link::to_anybody(sentinel.clone(), &self.config).await?;
        let said = link.send(&ask, 1).await?.pop();
        let reason = match &said {
            Some(Value::ServerError(error)) => {
                return Err(failure::of_reply(error, &link.address, ""));
            }
            Some(Value::Array(parts)) if parts.len() == 2 => match text(&parts[1]).parse() {
                Ok(port) => return Ok((text(&parts[0]), port)),
                Err(_) => format!("{parts:?}"),
            },
            Some(Value::Nil) => "that it knows none of that name".into(),
            said => format!("{said:?}"),
        };
        Err(StoreError::Refused { reason })
    }
}

/// How somebody is asked.
enum Way {
    Over(Link),
    To(ConnectionInfo),
}

/// `None` if nobody of them does.
async fn first_who_knows(
    asked: &mut JoinSet<Result<Slots, StoreError>>,
    last: &mut StoreError,
) -> Option<Slots> {
    while let Some(said) = asked.join_next().await {
        match said {
            Ok(Ok(slots)) => return Some(slots),
            Ok(Err(error)) => *last = error,
            Err(_) => {}
        }
    }
    None
}

/// The host of an address.
pub(super) fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// The same way to another host and port.
pub(super) fn beside(seed: &ConnectionInfo, node: &str) -> Option<ConnectionInfo> {
    let (host, port) = node.rsplit_once(':')?;
    let host = if host.is_empty() { address::host(seed) } else { host };
    Some(address::at(seed, host, port.parse().ok()?))
}

/// Servers that are asked at once where slots lie. One of them may be silent, and two seldom are.
const ASKED_AT_A_TIME: usize = 3;

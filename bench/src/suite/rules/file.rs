//! Rule files of any size, and requests that meet three of their rules.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use tollgate::{Engine, EngineBuilder, Request, RuleSet};

use crate::error::BenchError;
use crate::keys;
use crate::subject::Folded;

/// A file with so many rules. Three are about every request; the rest are about other paths and
/// other values of a descriptor, half and half.
pub(super) fn text(rules: usize, overrides: &str) -> String {
    let mut text = format!(
        "rules:
  - {{ name: per-user, match: {{ path: /v1/** }}, key: [user], limit: 1G/day{overrides} }}
  - {{ name: per-ip, key: [ip], limit: 1G/day }}
  - {{ name: reads, match: {{ path: /v1/items, method: GET }}, key: [account], limit: 1G/day }}
"
    );
    for number in 3..rules {
        let about = match number % 2 {
            0 => format!("path: /v{number}/items/**"),
            _ => format!("path: /v1/**, descriptor.plan: plan-{number}"),
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "  - {{ name: rule-{number}, match: {{ {about} }}, key: [user], limit: 100/min }}"
        );
    }
    text
}

/// Whoever asks: as many as there are keys, each with three counters.
pub(super) struct Client {
    user: String,
    ip: IpAddr,
}

impl Client {
    pub(super) fn all(count: usize) -> Vec<Self> {
        let client = |index: usize| Self {
            user: keys::text(index),
            ip: Ipv4Addr::from_bits(index as u32).into(),
        };
        (0..count).map(client).collect()
    }

    pub(super) const fn user(&self) -> &String {
        &self.user
    }

    /// Asks the engine, as a door that has read the request does.
    #[inline]
    pub(super) fn ask(&self, engine: &Engine) -> bool {
        let attributes =
            [("user", &*self.user), ("account", &*self.user), ("descriptor.plan", "none")];
        let headers = [("accept", "application/json"), ("user-agent", "client/1.0")];
        let request = Request::new("GET", "/v1/items")
            .peer(self.ip)
            .headers(&headers)
            .attributes(&attributes);
        engine.decide(&request).is_allowed()
    }
}

impl Folded for &Client {
    #[inline]
    fn folded(&self) -> u64 {
        (&self.user).folded()
    }
}

/// An engine whose counters know all clients.
pub(super) fn engine(rules: RuleSet, clients: &[Client]) -> Result<Engine, BenchError> {
    engine_of(Engine::builder(rules), clients)
}

/// The same for an engine that is to be made in another way.
pub(super) fn engine_of(builder: EngineBuilder, clients: &[Client]) -> Result<Engine, BenchError> {
    let engine = builder.keys(3 * clients.len()).build()?;
    for index in keys::insertion_order(clients.len()) {
        clients[index as usize].ask(&engine);
    }
    Ok(engine)
}

/// The rules of a file.
pub(super) fn rules(text: &str) -> Result<RuleSet, BenchError> {
    RuleSet::parse(text).map_err(|error| BenchError::Rules(error.to_string()))
}

//! Why a rule does not apply, and why an address is the client's, for programs.

use std::net::IpAddr;

use serde::Serialize;
use tollgate_rules::{ClientReason, Reason};

/// Why a rule does not apply.
#[derive(Debug, Serialize)]
pub(super) struct Why {
    #[serde(flatten)]
    cause: Cause,
    /// For people.
    pub(super) text: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "because", rename_all = "snake_case")]
enum Cause {
    Off,
    Method {
        method: String,
        wanted: Vec<String>,
    },
    Path {
        path: String,
        wanted: Vec<String>,
    },
    Host {
        host: String,
        wanted: Vec<String>,
    },
    Tier {
        tier: String,
        wanted: Vec<String>,
    },
    Network {
        address: Option<IpAddr>,
    },
    Attribute {
        attribute: String,
        value: Option<String>,
        wanted: Vec<String>,
    },
    When {
        condition: String,
    },
    KeyMissing {
        part: String,
        instead: Option<String>,
    },
    Alternative {
        first: String,
        more_specific: bool,
    },
    /// A reason that this program does not know.
    Other,
}

impl Why {
    pub(super) fn of(reason: &Reason) -> Self {
        let cause = match reason.clone() {
            Reason::Off => Cause::Off,
            Reason::Method { method, wanted } => Cause::Method { method, wanted },
            Reason::Path { path, wanted } => Cause::Path { path, wanted },
            Reason::Host { host, wanted } => Cause::Host { host, wanted },
            Reason::Tier { tier, wanted } => Cause::Tier { tier, wanted },
            Reason::Network { address } => Cause::Network { address },
            Reason::Attribute { attribute, value, wanted } => {
                Cause::Attribute { attribute: attribute.to_string(), value, wanted }
            }
            Reason::When { condition } => Cause::When { condition },
            Reason::KeyMissing { part, instead } => {
                let instead = instead.map(|attribute| attribute.to_string());
                Cause::KeyMissing { part: part.to_string(), instead }
            }
            Reason::Alternative { first, more_specific } => {
                Cause::Alternative { first, more_specific }
            }
            _ => Cause::Other,
        };
        Self { cause, text: reason.to_string() }
    }
}

/// Whose address counts, and why.
#[derive(Debug, Serialize)]
pub(super) struct Client {
    /// Absent if nobody is known to be there.
    pub(super) address: Option<IpAddr>,
    #[serde(flatten)]
    cause: ClientCause,
    /// For people.
    pub(super) text: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "because", rename_all = "snake_case")]
enum ClientCause {
    NoPeer,
    NotTrusted {
        peer: IpAddr,
    },
    NoHeader {
        peer: IpAddr,
        header: String,
    },
    NobodyNamed {
        peer: IpAddr,
        header: String,
    },
    Named {
        peer: IpAddr,
        header: String,
        trusted: bool,
    },
    /// A reason that this program does not know.
    Other,
}

impl Client {
    pub(super) fn of(address: Option<IpAddr>, reason: &ClientReason) -> Self {
        let cause = match reason.clone() {
            ClientReason::NoPeer => ClientCause::NoPeer,
            ClientReason::NotTrusted { peer } => ClientCause::NotTrusted { peer },
            ClientReason::NoHeader { peer, header } => ClientCause::NoHeader { peer, header },
            ClientReason::NobodyNamed { peer, header } => ClientCause::NobodyNamed { peer, header },
            ClientReason::Named { peer, header, trusted } => {
                ClientCause::Named { peer, header, trusted }
            }
            _ => ClientCause::Other,
        };
        Self { address, cause, text: reason.to_string() }
    }
}

//! Why a client has the address it has.

use std::fmt;
use std::net::IpAddr;

use crate::client_ip::ClientIp;
use crate::facts::Facts;

/// Why the client's address is the one it is.
///
/// ```
/// use tollgate_rules::{ClientReason, Facts, Request, RuleSet};
/// let set = RuleSet::parse("rules: []")?;
/// let peer = "192.0.2.7".parse().expect("an address");
/// let request = Request::new("GET", "/").peer(peer).headers(&[("x-forwarded-for", "10.0.0.1")]);
/// let explanation = set.explain(&Facts::new(&set, &request, None));
/// assert_eq!(explanation.client, Some(peer));
/// assert_eq!(explanation.client_reason, ClientReason::NotTrusted { peer });
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientReason {
    /// There is none: nobody is known to be at the other end of the connection.
    NoPeer,
    /// The peer is the client: it is no trusted proxy, and headers are anybody's.
    NotTrusted {
        /// Who is at the other end of the connection.
        peer: IpAddr,
    },
    /// The peer is a trusted proxy, but says nothing about whom it stands for.
    NoHeader {
        /// The proxy.
        peer: IpAddr,
        /// Where it should say it.
        header: String,
    },
    /// The peer is a trusted proxy, and names no address that can be believed but its own.
    NobodyNamed {
        /// The proxy.
        peer: IpAddr,
        /// Where it should.
        header: String,
    },
    /// A trusted proxy says so.
    Named {
        /// The proxy.
        peer: IpAddr,
        /// Where it says it.
        header: String,
        /// Whether that address is a trusted proxy too: there was nobody behind it.
        trusted: bool,
    },
}

impl ClientReason {
    /// The address, and why it is this one.
    pub(super) fn of(client_ip: &ClientIp, facts: &Facts<'_>) -> (Option<IpAddr>, Self) {
        let (request, address) = (facts.request(), facts.client_ip());
        let peer = request.peer_address().map(|peer| peer.to_canonical());
        let (Some(peer), Some(client)) = (peer, address) else { return (None, Self::NoPeer) };
        let header = client_ip.header().name();
        let reason = if !client_ip.trusts(peer) {
            Self::NotTrusted { peer }
        } else if request.header(header).is_none() {
            Self::NoHeader { peer, header: header.to_owned() }
        } else if client == peer {
            Self::NobodyNamed { peer, header: header.to_owned() }
        } else {
            let trusted = client_ip.trusts(client);
            Self::Named { peer, header: header.to_owned(), trusted }
        };
        (address, reason)
    }
}

impl fmt::Display for ClientReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPeer => f.write_str("the request has no peer"),
            Self::NotTrusted { peer } => {
                write!(f, "the peer {peer} is no trusted proxy, so it is the client itself")
            }
            Self::NoHeader { peer, header } => {
                write!(f, "the peer {peer} is a trusted proxy, but sent no `{header}`")
            }
            Self::NobodyNamed { peer, header } => {
                write!(
                    f,
                    "the peer {peer} is a trusted proxy, but its `{header}` names nobody else"
                )
            }
            Self::Named { peer, header, trusted } => {
                write!(f, "the peer {peer} is a trusted proxy, and its `{header}` says so")?;
                match trusted {
                    true => f.write_str("; that is a trusted proxy too, with nobody behind it"),
                    false => Ok(()),
                }
            }
        }
    }
}

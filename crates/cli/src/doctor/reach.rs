//! Whether the store can be reached, and if not, why.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tollgate_store::{RedisConfig, RedisVisit, StoreError};

use super::diagnosis::Diagnosis;

pub(super) fn reached(is_tls: bool) -> Diagnosis {
    Diagnosis::ok(CODE, if is_tls { "it answers, through TLS" } else { "it answers" })
}

/// Why nobody answers as they should.
pub(super) async fn failed(error: &StoreError, is_tls: bool) -> Diagnosis {
    match error {
        StoreError::Unreachable { address, reason } => {
            let obstacle = Obstacle::on_the_way_to(address).await;
            unreachable(obstacle, reason, is_tls).at(address)
        }
        StoreError::Timeout { after } => Diagnosis::problem(
            CODE,
            format!(
                "no answer within {after:?}: every decision would be left to the rule's policy"
            ),
            match is_tls {
                true => {
                    "see that the server speaks TLS on this port, and that no firewall drops what \
                     is sent"
                }
                false => {
                    "see that the host and the port are right, that no firewall drops what is sent, \
                     and that the server is not stopped"
                }
            },
        ),
        StoreError::Credentials { reason, .. } => {
            let is_missing = reason.starts_with("NOAUTH");
            let what =
                if is_missing { "it wants a password" } else { "user or password are wrong" };
            Diagnosis::problem(
                CODE,
                format!("{what} ({reason}): nothing else was looked at"),
                "name both in the address: redis://user:password@host:6379, with `%40` for an `@`; \
                 without a user, redis://:password@host:6379",
            )
        }
        StoreError::SentinelCredentials { reason } => Diagnosis::problem(
            CODE,
            format!("the Sentinels want another user or password, their own ({reason})"),
            "name both at the end of the address: redis+sentinel://host:26379/service?sentinel=\
             user:password, without a user ?sentinel=:password; what is before the hosts is the \
             primary's. The user has to have +sentinel|get-master-addr-by-name",
        ),
        StoreError::NoCertificate { address, reason } => Diagnosis::problem(
            CODE,
            format!("it lets in nobody without a certificate, and was shown none ({reason})"),
            "name that of this node: `--cert FILE --key FILE`; `tollgate serve` takes both as \
             `--store-cert` and `--store-key`",
        )
        .at(address),
        StoreError::BadCertificate { address, reason } => Diagnosis::problem(
            CODE,
            format!("it does not take the certificate that it was shown: {reason}"),
            "show one that has not ended, and is signed by one in the server's `tls-ca-cert-file`",
        )
        .at(address),
        StoreError::NotAllowed { reason, .. } => Diagnosis::problem(
            CODE,
            format!("this user may not even ask what the store asks first ({reason})"),
            NEEDED,
        ),
        StoreError::NoPrimary { service, reason } => Diagnosis::problem(
            CODE,
            format!("no Sentinel names a primary of `{service}`: {reason}"),
            "see that the Sentinels run, and under which name they watch it: SENTINEL masters",
        ),
        StoreError::Refused { reason } => refused(reason),
        error => Diagnosis::problem(CODE, error.to_string(), LOOK),
    }
}

/// What a server says to an address that names what it does not have.
fn refused(reason: &str) -> Diagnosis {
    let (message, remedy) = match reason {
        _ if reason.contains("DB index is out of range") => (
            "the number of the database in the address is too high",
            "the last part of the address is that number, from 0 on: a server has 16 unless its \
             `databases` says otherwise",
        ),
        _ if reason.contains("SELECT is not allowed") => (
            "it is one of a Cluster, which has no databases",
            "write redis+cluster:// in place of redis://, and nothing after the hosts",
        ),
        _ => ("it answers something else than it should", LOOK),
    };
    Diagnosis::problem(CODE, format!("{message} ({reason})"), remedy)
}

/// The host and the port that an address leads to, for errors that do not say whose they are. Of several
/// servers of a Cluster it is the last: the others were asked before it.
pub(super) async fn place(url: &str, config: &RedisConfig) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let (rest, behind) = rest.split_once('?').unwrap_or((rest, ""));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let Some(plain) = scheme.strip_suffix("+sentinel") else {
        return hosts.split(',').next_back().map(with_port);
    };
    let service = path.split('/').next().unwrap_or_default();
    let user = behind.strip_prefix("sentinel=").map(|user| format!("{user}@")).unwrap_or_default();
    for host in hosts.split(',') {
        let sentinel = RedisVisit::open(&format!("{plain}://{user}{host}"), config.clone()).await;
        let Ok(sentinel) = sentinel else { continue };
        let named = sentinel.ask(&["SENTINEL", "get-master-addr-by-name", service]).await;
        if let Ok([host, port]) = named.as_deref() {
            return Some(format!("{host}:{port}"));
        }
    }
    None
}

/// An address of IPv6 has colons of its own, and stands in brackets.
fn with_port(host: &str) -> String {
    match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => host.to_owned(),
        _ => format!("{host}:6379"),
    }
}

/// What is in the way of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Obstacle {
    /// The name of the host has no address.
    Name,
    Refused,
    Silence,
    Other(String),
    /// There is none: what is said over it is not understood.
    None,
}

impl Obstacle {
    /// Goes the way once more, on foot.
    async fn on_the_way_to(address: &str) -> Self {
        let walk = async {
            let found = lookup_host(address).await;
            if !found.is_ok_and(|mut addresses| addresses.next().is_some()) {
                return Self::Name;
            }
            match TcpStream::connect(address).await {
                Ok(_) => Self::None,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => Self::Refused,
                Err(error) if error.kind() == ErrorKind::TimedOut => Self::Silence,
                Err(error) => Self::Other(error.to_string()),
            }
        };
        timeout(PATIENCE, walk).await.unwrap_or(Self::Silence)
    }
}

fn unreachable(obstacle: Obstacle, reason: &str, is_tls: bool) -> Diagnosis {
    let (message, remedy) = match obstacle {
        Obstacle::Name => (
            format!("the host's name is not found: {reason}"),
            "see that it is written right, and that this machine asks the right name server",
        ),
        Obstacle::Refused => (
            "the connection is refused: nobody listens there".to_owned(),
            "see that the server runs, on this port, and that it listens to more than its own \
             machine (`bind`)",
        ),
        Obstacle::Silence => (
            "nobody answers there".to_owned(),
            "see that the host and the port are right, and that no firewall is in the way",
        ),
        Obstacle::Other(why) => (
            format!("there is no way there: {why}"),
            "see that host and port are right, and that this machine has a way to them",
        ),
        Obstacle::None if is_tls => (
            format!("TLS failed: {reason}"),
            "name who signs its certificate with `--ca FILE`; see that the certificate names this \
             host and has not ended, and that the server speaks TLS on this port",
        ),
        Obstacle::None => (
            format!("somebody listens there, and the connection broke: {reason}"),
            "see that it is Redis or Valkey; if it speaks TLS on this port, write rediss://",
        ),
    };
    Diagnosis::problem(CODE, message, remedy)
}

const CODE: &str = "reachable";

const LOOK: &str = "see what the server's log says";

/// What the user of a store may do at least.
pub(super) const NEEDED: &str = "allow its user what the store needs: ~tg:* +@hash +@list +@string \
    +exists +del +pexpire +time +info +evalsha +script|load +select +cluster|slots +asking";

const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_needs_is_what_the_store_says() {
        let said =
            StoreError::NotAllowed { address: String::new(), reason: String::new() }.to_string();
        let (_, needed) = NEEDED.split_once(": ").unwrap();
        assert!(said.contains(needed), "{said}");
    }

    #[tokio::test]
    async fn an_address_leads_to_a_host_and_a_port() {
        for (url, told) in [
            ("redis://h", "h:6379"),
            ("redis://u:p%40@h:1/2", "h:1"),
            ("rediss://u:p@[::1]/0", "[::1]:6379"),
            ("redis://[::1]:7", "[::1]:7"),
            ("valkey+cluster://:p@a:1,b", "b:6379"),
        ] {
            assert_eq!(place(url, &RedisConfig::default()).await.as_deref(), Some(told), "{url}");
        }
    }

    #[test]
    fn each_obstacle_has_its_own_remedy() {
        let all = [
            (Obstacle::Name, false, "name is not found"),
            (Obstacle::Refused, false, "refused"),
            (Obstacle::Silence, false, "nobody answers"),
            (Obstacle::Other("no route".into()), false, "no route"),
            (Obstacle::None, true, "TLS failed: why"),
            (Obstacle::None, false, "broke: why"),
        ];
        let found = all.map(|(obstacle, is_tls, part)| {
            let found = unreachable(obstacle, "why", is_tls);
            assert!(found.message.contains(part), "{found:?}");
            found.remedy
        });
        let different: std::collections::BTreeSet<_> = found.iter().collect();
        assert_eq!(different.len(), found.len());
    }
}

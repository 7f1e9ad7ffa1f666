//! Where a Redis store is: one server, Sentinels that know one, or a Cluster.
//!
//! ```text
//!   redis://user:password@host:6379/0
//!   redis+sentinel://user:password@host:26379,host:26379/service/0
//!   redis+cluster://user:password@host:6379,host:6379
//! ```
//!
//! `rediss` in place of `redis` is the same through TLS, `valkey` and `valkeys` are the same again. Who
//! stands before the hosts is the user of the servers that keep books. That of Sentinels stands behind
//! everything: `?sentinel=user:password`.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _};

use crate::error::StoreError;
use crate::redis::config::RedisConfig;

#[derive(Clone, Debug)]
pub(super) enum Address {
    Server(ConnectionInfo),
    Sentinel { sentinels: Vec<ConnectionInfo>, service: String, primary: ConnectionInfo },
    Cluster { seeds: Vec<ConnectionInfo> },
}

impl Address {
    /// An address that these settings fit.
    pub(super) fn fitting(url: &str, config: &RedisConfig) -> Result<Self, StoreError> {
        let address = Self::parse(url)?;
        match config.is_about_tls() && !address.speaks_tls() {
            true => Err(StoreError::NoTls { url: redacted(url) }),
            false => Ok(address),
        }
    }

    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let wrong =
            |reason: &str| StoreError::Address { url: redacted(url), reason: reason.into() };
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| wrong("it has no scheme such as `redis://`"))?;
        let (family, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let plain = match family {
            "redis" | "valkey" => "redis",
            "rediss" | "valkeys" => "rediss",
            _ => return Err(wrong("it begins with none of redis, rediss, valkey, valkeys")),
        };
        let (rest, behind) =
            rest.split_once('?').map_or((rest, None), |(rest, it)| (rest, Some(it)));
        let (user, rest) = rest.rsplit_once('@').map_or(("", rest), |(user, rest)| (user, rest));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let server = |host: &str, user: &str, db: &str| {
            // An address of IPv6 has colons of its own, and stands in brackets.
            let (name, port) = match host.rsplit_once(':') {
                Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
                _ => (host, None),
            };
            if name.is_empty() {
                return Err(wrong("it names no host"));
            }
            if let Some(port) = port.filter(|port| port.parse::<u16>().is_err()) {
                return Err(wrong(&format!("`{port}` is no port: they go from 1 to 65535")));
            }
            if !db.is_empty() && db.parse::<u16>().is_err() {
                return Err(wrong(&format!("`{db}` is no number of a database")));
            }
            // Whatever follows one of these would not be taken for a part of the password.
            if user.contains(['/', '?', '#']) {
                return Err(wrong(ESCAPES));
            }
            let at = if user.is_empty() { "" } else { "@" };
            let parsed = format!("{plain}://{user}{at}{host}/{db}").into_connection_info();
            parsed.map_err(|error| wrong(&error.to_string()))
        };
        let each = |user| {
            let servers = hosts.split(',').map(|host| server(host, user, ""));
            servers.collect::<Result<Vec<_>, _>>()
        };
        match kind {
            "" | "cluster" if behind.is_some() => {
                Err(wrong(&format!("what stands behind a `?` is for Sentinels alone; {ESCAPES}")))
            }
            "" => Ok(Self::Server(server(hosts, user, path)?)),
            "cluster" if path.is_empty() => Ok(Self::Cluster { seeds: each(user)? }),
            "cluster" => Err(wrong("a Cluster has no databases: nothing follows its hosts")),
            "sentinel" => {
                let (service, db) = path.split_once('/').unwrap_or((path, ""));
                if service.is_empty() {
                    return Err(wrong("the name of the service follows the hosts: `/mymaster`"));
                }
                // First: if a password has a `?` in it, nothing before that is what it seems to be.
                let own = behind.map_or(Ok(""), user_of_sentinels).map_err(wrong)?;
                // The address of the primary is put in when it is known.
                let primary = server("primary:6379", user, db)?;
                Ok(Self::Sentinel { sentinels: each(own)?, service: service.into(), primary })
            }
            _ => Err(wrong("after the `+` stands `sentinel` or `cluster`")),
        }
    }

    fn speaks_tls(&self) -> bool {
        let info = match self {
            Self::Server(info) | Self::Sentinel { primary: info, .. } => Some(info),
            Self::Cluster { seeds } => seeds.first(),
        };
        info.is_some_and(|info| matches!(info.addr(), ConnectionAddr::TcpTls { .. }))
    }
}

/// The user and the password of Sentinels, in what stands behind an address. They are written as those
/// before the hosts are, so they are read by the same rules.
fn user_of_sentinels(behind: &str) -> Result<&str, &'static str> {
    let user = behind.strip_prefix("sentinel=").unwrap_or_default();
    match user.split_once(':') {
        // Without a colon a password would be taken for a user.
        Some((_, password)) if !password.is_empty() => Ok(user),
        _ => Err("behind a `?` stands who asks the Sentinels: `sentinel=user:password`, or \
                  `sentinel=:password`"),
    }
}

/// The same way to another server.
pub(super) fn at(info: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let addr = match info.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host: host.into(),
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host.into(), port),
    };
    info.clone().set_addr(addr)
}

/// The host of an address.
pub(super) fn host(info: &ConnectionInfo) -> &str {
    match info.addr() {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host,
        _ => "localhost",
    }
}

/// Passwords are for nobody to read: neither what stands before the hosts nor what stands behind
/// everything.
pub(super) fn redacted(url: &str) -> String {
    let (front, behind) = match url.split_once('?') {
        Some((front, behind)) => (front, Some(behind)),
        None => (url, None),
    };
    // Nobody can tell where the hosts are if a password may have a `?` in it.
    let is_unclear = behind.is_some_and(|behind| behind.contains('@'));
    let (scheme, rest) = match front.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), front),
    };
    let shown = match rest.rsplit_once('@') {
        _ if is_unclear => "***".to_owned(),
        Some((_, hosts)) => format!("***@{hosts}"),
        None => rest.to_owned(),
    };
    let end = if behind.is_some() && !is_unclear { "?***" } else { "" };
    format!("{scheme}{shown}{end}")
}

const ESCAPES: &str =
    "in a user or a password, write `%2F` for a `/`, `%3F` for a `?` and `%23` for a `#`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_repeated() {
        for (url, told) in [
            ("redis://u:p@h:1", "redis://***@h:1"),
            (":p@h:1", "***@h:1"),
            ("redis://u:p@q@h", "redis://***@h"),
            ("p://q:r@h", "p://***@h"),
            ("redis://h:1", "redis://h:1"),
            ("redis+sentinel://h:1/s?sentinel=u:p", "redis+sentinel://h:1/s?***"),
            ("redis+sentinel://u:p@h/s?sentinel=:p", "redis+sentinel://***@h/s?***"),
            ("redis+sentinel://u:p@h/s?sentinel=:p@q", "redis+sentinel://***"),
            ("redis://u:p?q@h", "redis://***"),
            ("redis://u:p@q?r@h", "redis://***"),
            ("u:p@h?q", "***@h?***"),
        ] {
            assert_eq!(redacted(url), told);
        }
    }

    #[test]
    fn addresses_of_all_kinds_are_read() {
        let Ok(Address::Server(info)) = Address::parse("redis://u:p@h:7000/3") else { panic!() };
        assert_eq!(info.addr(), &ConnectionAddr::Tcp("h".into(), 7000));
        let settings = info.redis_settings();
        assert_eq!((settings.username(), settings.password()), (Some("u"), Some("p")));
        assert_eq!(settings.db(), 3);
        let Ok(Address::Server(info)) = Address::parse("valkeys://h") else { panic!() };
        assert!(matches!(info.addr(), ConnectionAddr::TcpTls { port: 6379, .. }));
        let Ok(Address::Cluster { seeds }) = Address::parse("redis+cluster://:p@a:1,b:2") else {
            panic!()
        };
        assert_eq!((seeds.len(), seeds[1].redis_settings().password()), (2, Some("p")));
        let parsed = Address::parse("redis+sentinel://:p@a:1,b:2/main/1");
        let Ok(Address::Sentinel { sentinels, service, primary }) = parsed else { panic!() };
        assert_eq!((sentinels.len(), service.as_str()), (2, "main"));
        assert_eq!(primary.redis_settings().password(), Some("p"));
        assert_eq!(sentinels[0].redis_settings().password(), None);
        assert_eq!(at(&primary, "x", 9).addr(), &ConnectionAddr::Tcp("x".into(), 9));
    }

    #[test]
    fn sentinels_have_a_user_of_their_own() {
        for (behind, user, password) in [
            ("u:p", Some("u"), "p"),
            (":p", None, "p"),
            (":p%40%2F%3F", None, "p@/?"),
            ("u:p@q:r=&s", Some("u"), "p@q:r=&s"),
        ] {
            let url = format!("rediss+sentinel://a:b@h:1,i/main?sentinel={behind}");
            let Ok(Address::Sentinel { sentinels, primary, .. }) = Address::parse(&url) else {
                panic!("{url}")
            };
            for one in &sentinels {
                let said = one.redis_settings();
                assert_eq!((said.username(), said.password()), (user, Some(password)), "{url}");
            }
            let said = primary.redis_settings();
            assert_eq!((said.username(), said.password()), (Some("a"), Some("b")), "{url}");
        }
    }

    #[test]
    fn certificates_are_for_addresses_with_tls() {
        let root_certificate = Some(Vec::new());
        let config = RedisConfig { root_certificate, ..RedisConfig::default() };
        for kind in ["://h", "+sentinel://h/main", "+cluster://h,i"] {
            assert!(Address::fitting(&format!("rediss{kind}"), &config).is_ok(), "{kind}");
            let plain = format!("redis{kind}");
            let refused = Address::fitting(&plain, &config).unwrap_err();
            assert_eq!(refused, StoreError::NoTls { url: plain.clone() });
            assert!(Address::fitting(&plain, &RedisConfig::default()).is_ok(), "{kind}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_in_our_own_words() {
        for (url, reason) in [
            ("redis://", "it names no host"),
            ("redis://:6379", "it names no host"),
            ("redis+cluster://a:1,", "it names no host"),
            ("redis://h:99999", "`99999` is no port: they go from 1 to 65535"),
            ("redis://[::1]:x", "`x` is no port: they go from 1 to 65535"),
            ("redis://h/main", "`main` is no number of a database"),
            ("redis://u:1/p@h", "write `%2F` for a `/`"),
            ("redis://u:1?p@h", "`%3F` for a `?`"),
            ("redis+cluster://h?sentinel=:p", "is for Sentinels alone"),
            ("redis+sentinel://h/main?", "`sentinel=user:password`"),
            ("redis+sentinel://h/main?sentinel=", "`sentinel=user:password`"),
            ("redis+sentinel://h/main?sentinel=p", "`sentinel=:password`"),
            ("redis+sentinel://h/main?sentinel=u:", "`sentinel=:password`"),
            ("redis+sentinel://h/main?password=p", "`sentinel=user:password`"),
            ("redis+sentinel://h/main?sentinel=:a/b", "write `%2F` for a `/`"),
        ] {
            let said = Address::parse(url).expect_err(url).to_string();
            assert!(said.contains(reason), "{url}: {said}");
        }
        assert!(Address::parse("redis://[::1]").is_ok());
        assert!(Address::parse("redis://[::1]:6379/2").is_ok());
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for url in [
            "localhost:6379",
            "http://:secret@h",
            "redis+magic://:secret@h",
            "redis+sentinel://:secret@h:1",
            "redis+cluster://:secret@h:1/2",
            "redis://:secret@h:99999",
            "redis://:secret?x@h",
            "redis://:x?secret@h",
            "redis://:secret/x@h",
            "redis+cluster://h?sentinel=:secret",
            "redis+sentinel://h/main?sentinel=secret",
            "redis+sentinel://h/main?sentinel=:x@secret/y",
            "redis+sentinel://h/main/x?sentinel=:secret",
            "redis+sentinel://:1/x/secret?y@h/main",
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}

//! What can be said to the commands that run a server.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Output;

/// Which server, and how to get in.
#[derive(Args, Debug)]
pub(crate) struct Remote {
    /// Where its admin door is: a host with a port, or unix:/path
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4299", value_parser = server)]
    pub(crate) server: Server,

    /// A file with its token [default: the variable TOLLGATE_ADMIN_TOKEN, if it is set]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) tls: TlsFlags,

    /// For whom to print the answer
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// Whether TLS is spoken with it.
#[derive(Args, Debug)]
pub(crate) struct TlsFlags {
    /// Speak TLS, with a server whose certificate is signed by one in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// The certificate to show, if the server asks for one
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca"])]
    pub(crate) cert: Option<PathBuf>,

    /// The key of that certificate
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
}

/// Where a door is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// A host and a port.
    Tcp(String),
    Unix(PathBuf),
}

impl Server {
    /// Whether nothing that is sent there leaves this machine. A name other than `localhost` can be
    /// anybody's.
    pub(crate) fn is_here(&self) -> bool {
        let Self::Tcp(address) = self else { return true };
        let host = address.rsplit_once(':').map_or(&**address, |(host, _)| host);
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
        host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host) => f.write_str(host),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

fn server(text: &str) -> Result<Server, String> {
    let fits = |char: char| char.is_ascii_alphanumeric() || ".-_[]:%".contains(char);
    match (text.strip_prefix("unix:"), text.rsplit_once(':')) {
        (Some(path), _) if !path.is_empty() => Ok(Server::Unix(path.into())),
        (None, Some((host, port)))
            if !host.is_empty() && port.parse::<u16>().is_ok() && host.chars().all(fits) =>
        {
            Ok(Server::Tcp(text.to_owned()))
        }
        _ => Err("write 127.0.0.1:4299, a host with a port, or unix:/path/to/socket".into()),
    }
}

/// `tollgate keys`
#[derive(Args, Debug)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Show every counter of a key: how full it is, and when it is back
    ///
    /// A key is named by what rules count by. Every rule that can count such a request is shown.
    #[command(after_help = KEYS)]
    Inspect(KeysInspect),

    /// Give a key everything back, and end its blocks
    #[command(after_help = KEYS)]
    Reset(KeysReset),

    /// List the keys that come most often, or are denied most often
    Top(KeysTop),
}

/// `tollgate keys inspect`
#[derive(Args, Debug)]
pub(crate) struct KeysInspect {
    /// What the key is made of
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) attributes: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// `tollgate keys reset`
#[derive(Args, Debug)]
pub(crate) struct KeysReset {
    /// What the key is made of
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) attributes: Vec<(String, String)>,

    /// The rule whose counters are reset [default: all that count by what is named]
    #[arg(long)]
    pub(crate) rule: Option<String>,

    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// `tollgate keys top`
#[derive(Args, Debug)]
pub(crate) struct KeysTop {
    /// Those that are denied most often
    #[arg(long)]
    pub(crate) denied: bool,

    /// How many
    #[arg(short, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) n: u16,

    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// A rule, or all of them.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The name of the rule
    pub(crate) rule: Option<String>,

    /// All rules
    #[arg(long)]
    pub(crate) all: bool,
}

/// `tollgate kill`
#[derive(Args, Debug)]
pub(crate) struct Kill {
    #[command(flatten)]
    pub(crate) which: Which,

    /// What it becomes
    #[arg(long, value_enum, default_value_t = KillMode::Off)]
    pub(crate) mode: KillMode,

    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// What a rule becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KillMode {
    /// As if it were not there
    Off,
    /// It counts and reports, and denies nothing
    Shadow,
}

/// `tollgate unkill`
#[derive(Args, Debug)]
pub(crate) struct Unkill {
    #[command(flatten)]
    pub(crate) which: Which,

    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// `tollgate drain`
#[derive(Args, Debug)]
pub(crate) struct Drain {
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// `tollgate ready`
#[derive(Args, Debug)]
pub(crate) struct Ready {
    /// Where its status door is, or another that speaks HTTP: a host with a port, or unix:/path
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4298", value_parser = server)]
    pub(crate) server: Server,

    #[command(flatten)]
    pub(crate) tls: TlsFlags,

    /// For whom to print the answer
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// `tollgate log-level`
#[derive(Args, Debug)]
pub(crate) struct LogLevel {
    /// off, error, warn, info, debug or trace, or parts: warn,tollgate=debug [default: show it]
    pub(crate) level: Option<String>,

    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// `tollgate rules show`
#[derive(Args, Debug)]
pub(crate) struct RulesShow {
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// `tollgate rules push`
#[derive(Args, Debug)]
pub(crate) struct RulesPush {
    /// The rule file; `-` reads standard input
    pub(crate) file: String,

    /// Say what would change, and change nothing; exit with 1 if something would
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) remote: Remote,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write what rules count by, and its value: user=alice".into()),
    }
}

impl KeysCommand {
    pub(super) const fn output(&self) -> Output {
        match self {
            Self::Inspect(KeysInspect { remote, .. })
            | Self::Reset(KeysReset { remote, .. })
            | Self::Top(KeysTop { remote, .. }) => remote.output,
        }
    }
}

const KEYS: &str = "\
Names are those of rules: user, ip, api_key, account, claims.plan, tier,
header.x-plan, host, and path and method where rules count by them.

Examples:
  tollgate keys inspect user=alice
  tollgate keys inspect ip=192.0.2.7 path=/login method=POST
  tollgate keys reset user=alice --rule per-user --server unix:/run/tollgate/admin.sock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_sockets_are_of_this_machine() {
        let is_here = |text: &str| server(text).unwrap().is_here();
        for here in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "LocalHost:1", "unix:/a"] {
            assert!(is_here(here), "{here}");
        }
        assert!(is_here("[::ffff:127.0.0.1]:1"));
        for elsewhere in ["0.0.0.0:1", "10.0.0.1:1", "[2001:db8::1]:1", "gate:1", "localhost.a:1"] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn servers_are_hosts_with_ports_or_sockets() {
        assert_eq!(server("[::1]:4299"), Ok(Server::Tcp("[::1]:4299".into())));
        assert_eq!(server("gate-1.internal:80"), Ok(Server::Tcp("gate-1.internal:80".into())));
        assert_eq!(server("unix:/a b"), Ok(Server::Unix("/a b".into())));
        for bad in ["", "unix:", "localhost", ":4299", "a b:1", "a:99999", "a\r\nb:1", "http://a:1"]
        {
            assert!(server(bad).is_err(), "{bad}");
        }
    }
}

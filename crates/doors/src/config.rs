//! What can be set about a server, apart from its rules.
//!
//! A file says what differs from the defaults; flags say what differs from the file. Both are
//! [`Raw`] and become a [`Config`] in one place, where everything that is wrong is found.

mod store;

pub use store::{StoreConfig, StoreIdentity};

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tollgate::{Period, Quota};

use crate::address::{Address, AddressError};
use crate::connection::Limits;
use crate::door::Name;
use crate::secret::Secret;
use crate::tls::TlsFiles;
use store::RawStore;

/// How a server runs, apart from its rules.
///
/// ```
/// use tollgate_doors::Config;
/// let config = Config::parse("keys = '10M'\n[listen]\nresp = 'off'")?;
/// assert_eq!((config.keys, config.resp), (10_000_000, None));
/// assert!(Config::parse("kees = 1").is_err(), "nothing is ignored");
/// # Ok::<(), tollgate_doors::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rule file; without one, the rules of `tollgate init`.
    pub rules: Option<PathBuf>,
    /// How many keys of all rules are live at once: 24 bytes each. With more, the excess is counted
    /// together, too high and never too low.
    pub keys: usize,
    /// How many threads serve connections; by default one less than there are processors, which is
    /// left to the system, and to those who ask from the same machine.
    pub threads: usize,
    /// Where checks are asked for in JSON; `None` is off.
    pub http: Option<Address>,
    /// Where proxies ask.
    pub forward_auth: Option<Address>,
    /// Where clients of Redis ask.
    pub resp: Option<Address>,
    /// Where Envoy asks, and whoever speaks gRPC.
    pub grpc: Option<Address>,
    /// Where metrics and health are.
    pub status: Option<Address>,
    /// Where it is run from.
    pub admin: Option<Address>,
    /// What clients of Redis must say first, if anything.
    pub resp_password: Option<Secret>,
    /// What those who run it must know. Without it, the door is only opened to this machine.
    pub admin_token: Option<Secret>,
    /// How connections are kept from being read and forged; `None` is not at all.
    pub tls: Option<TlsFiles>,
    /// Where limits are shared with other nodes; `None` is nowhere.
    pub store: Option<StoreConfig>,
    /// What a client may take.
    pub limits: Limits,
    /// What is said to clients about limits.
    pub respond: Respond,
    /// What is written to the log.
    pub log: Log,
    /// How it ends.
    pub drain: DrainTimes,
}

/// What is said to clients about limits, where rules do not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Respond {
    /// What `X-RateLimit-Reset` counts.
    pub reset: ResetStyle,
}

/// What `X-RateLimit-Reset` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResetStyle {
    /// Seconds since 1970, as GitHub has it.
    #[default]
    Epoch,
    /// Seconds from now, as Envoy has it.
    Seconds,
}

/// What is written to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// How a line is written.
    pub format: LogFormat,
    /// From which level on, in the words of `tracing`: `info`, or `warn,tollgate_doors=debug`.
    pub level: String,
    /// How many denials a second are written at most; 0 is none. The rest is counted.
    pub denials: u32,
    /// Whether keys are written as they are. By default a hash of them is.
    pub plain_keys: bool,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainTimes {
    /// How long everybody is still served after `/readyz` has said no: as long as balancers take to
    /// notice.
    pub delay: Duration,
    /// How long whoever is being served then has to end.
    pub timeout: Duration,
}

/// A configuration cannot be used. Nothing of it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is no TOML, or has a field that does not exist.
    #[error("{0}")]
    Syntax(String),
    /// A field has a value that it cannot have.
    #[error("`{field}`: {problem}")]
    Value {
        /// Which.
        field: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Whoever reaches that address could do everything.
    #[error(
        "the admin door cannot listen on {0} without a token: anybody there could switch rules off; \
         give it a token, or an address of this machine alone"
    )]
    OpenAdmin(Address),
}

impl Config {
    /// What is set if nobody says anything.
    pub fn defaults(threads: usize) -> Self {
        let local = |port| Some(Address::Tcp(([127, 0, 0, 1], port).into()));
        Self {
            rules: None,
            keys: 1_000_000,
            threads,
            http: local(4290),
            forward_auth: local(4291),
            resp: local(4292),
            grpc: local(4293),
            status: local(4298),
            admin: local(4299),
            resp_password: None,
            admin_token: None,
            tls: None,
            store: None,
            limits: Limits::default(),
            respond: Respond::default(),
            log: Log {
                format: LogFormat::Text,
                level: "info".to_owned(),
                denials: 10,
                plain_keys: false,
            },
            drain: DrainTimes { delay: Duration::ZERO, timeout: Duration::from_secs(10) },
        }
    }

    /// What a file says, and the defaults for what it does not.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::defaults(1);
        config.apply(text)?;
        Ok(config)
    }

    /// Changes what the text of a file says, and nothing if something is wrong with it.
    pub fn apply(&mut self, text: &str) -> Result<(), ConfigError> {
        let raw: Raw =
            toml::from_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
        let mut new = self.clone();
        raw.write_to(&mut new)?;
        *self = new;
        Ok(())
    }

    /// Whether all of it goes together.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Limits { held_bytes, body_bytes, .. } = self.limits;
        if held_bytes < body_bytes {
            let problem = format!(
                "it is less than `limits.body_bytes`, {body_bytes}: there would never be room for \
                 the longest body"
            );
            return Err(ConfigError::Value { field: "limits.held_bytes", problem });
        }
        match &self.admin {
            Some(admin) if self.admin_token.is_none() && !admin.is_of_this_machine() => {
                Err(ConfigError::OpenAdmin(admin.clone()))
            }
            _ => Ok(()),
        }
    }
}

/// An address, or `off`.
///
/// ```
/// assert_eq!(tollgate_doors::listen("off"), Ok(None));
/// assert!(tollgate_doors::listen("127.0.0.1:80").is_ok_and(|address| address.is_some()));
/// ```
pub fn listen(text: &str) -> Result<Option<Address>, AddressError> {
    match text {
        "off" => Ok(None),
        _ => text.parse().map(Some),
    }
}

/// A file, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    rules: Option<PathBuf>,
    keys: Option<Count>,
    threads: Option<Count>,
    #[serde(default)]
    listen: RawListen,
    #[serde(default)]
    resp: RawResp,
    #[serde(default)]
    admin: RawAdmin,
    tls: Option<RawTls>,
    store: Option<RawStore>,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    respond: RawRespond,
    #[serde(default)]
    log: RawLog,
    #[serde(default)]
    drain: RawDrain,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawListen {
    http: Option<String>,
    forward_auth: Option<String>,
    resp: Option<String>,
    grpc: Option<String>,
    status: Option<String>,
    admin: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawResp {
    password: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAdmin {
    token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTls {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    clients: Option<RawClients>,
    doors: Option<Vec<String>>,
}

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawClients {
    Required,
    Optional,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    connections: Option<Count>,
    header_bytes: Option<Count>,
    body_bytes: Option<Count>,
    held_bytes: Option<Count>,
    batch: Option<Count>,
    patience: Option<String>,
    idle: Option<String>,
    tickets: Option<Count>,
    ticket_time: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRespond {
    reset: Option<ResetStyle>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLog {
    format: Option<LogFormat>,
    level: Option<String>,
    denials: Option<Count>,
    plain_keys: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDrain {
    delay: Option<String>,
    timeout: Option<String>,
}

/// A number, or one as quotas write it: `10k`, `1M`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Count {
    Number(u64),
    Text(String),
}

impl Raw {
    fn write_to(self, config: &mut Config) -> Result<(), ConfigError> {
        config.rules = self.rules.or_else(|| config.rules.take());
        set_count(&mut config.keys, "keys", self.keys, 1..=1_000_000_000)?;
        set_count(&mut config.threads, "threads", self.threads, 1..=1024)?;
        set_address(&mut config.http, "listen.http", self.listen.http)?;
        set_address(&mut config.forward_auth, "listen.forward_auth", self.listen.forward_auth)?;
        set_address(&mut config.resp, "listen.resp", self.listen.resp)?;
        set_address(&mut config.grpc, "listen.grpc", self.listen.grpc)?;
        set_address(&mut config.status, "listen.status", self.listen.status)?;
        set_address(&mut config.admin, "listen.admin", self.listen.admin)?;
        set_secret(&mut config.resp_password, "resp.password", self.resp.password)?;
        set_secret(&mut config.admin_token, "admin.token", self.admin.token)?;
        if let Some(tls) = self.tls {
            config.tls = Some(tls.files()?);
        }
        if let Some(store) = self.store {
            config.store = Some(store.read()?);
        }
        self.limits.write_to(&mut config.limits)?;
        config.respond.reset = self.respond.reset.unwrap_or(config.respond.reset);
        config.log.format = self.log.format.unwrap_or(config.log.format);
        config.log.level = self.log.level.unwrap_or_else(|| config.log.level.clone());
        config.log.plain_keys = self.log.plain_keys.unwrap_or(config.log.plain_keys);
        let mut denials = config.log.denials as usize;
        set_count(&mut denials, "log.denials", self.log.denials, 0..=1_000_000)?;
        config.log.denials = denials as u32;
        set_time(&mut config.drain.delay, "drain.delay", self.drain.delay.as_deref())?;
        set_time(&mut config.drain.timeout, "drain.timeout", self.drain.timeout.as_deref())
    }
}

impl RawTls {
    fn files(self) -> Result<TlsFiles, ConfigError> {
        let all = || Name::ALL.map(|door| door.as_str().to_owned()).to_vec();
        let doors = self.doors.unwrap_or_else(all);
        if let Some(unknown) = doors.iter().find(|name| !all().contains(name)) {
            let problem = format!("there is no door `{unknown}`; there are {}", all().join(", "));
            return Err(ConfigError::Value { field: "tls.doors", problem });
        }
        if self.clients.is_some() && self.client_ca.is_none() {
            let problem = "nobody is asked for a certificate: name who signs them, in `client_ca`";
            return Err(ConfigError::Value { field: "tls.clients", problem: problem.to_owned() });
        }
        let Self { certificate, key, client_ca, clients, .. } = self;
        let clients_must = client_ca.is_some() && clients != Some(RawClients::Optional);
        Ok(TlsFiles { certificate, key, client_ca, clients_must, doors })
    }
}

impl RawLimits {
    fn write_to(self, limits: &mut Limits) -> Result<(), ConfigError> {
        set_count(&mut limits.connections, "limits.connections", self.connections, 1..=1_000_000)?;
        // Shorter ones are taken in any case.
        let header_bytes = 16 << 10..=1 << 30;
        set_count(
            &mut limits.header_bytes,
            "limits.header_bytes",
            self.header_bytes,
            header_bytes,
        )?;
        let body_bytes = 1024..=1 << 30;
        set_count(&mut limits.body_bytes, "limits.body_bytes", self.body_bytes, body_bytes)?;
        let held_bytes = 64 << 10..=1 << 40;
        set_count(&mut limits.held_bytes, "limits.held_bytes", self.held_bytes, held_bytes)?;
        set_count(&mut limits.batch, "limits.batch", self.batch, 1..=100_000)?;
        set_time(&mut limits.patience, "limits.patience", self.patience.as_deref())?;
        set_time(&mut limits.idle, "limits.idle", self.idle.as_deref())?;
        set_count(&mut limits.tickets, "limits.tickets", self.tickets, 1..=10_000_000)?;
        set_time(&mut limits.ticket_time, "limits.ticket_time", self.ticket_time.as_deref())
    }
}

fn set_count(
    value: &mut usize,
    field: &'static str,
    count: Option<Count>,
    range: std::ops::RangeInclusive<usize>,
) -> Result<(), ConfigError> {
    let Some(count) = count else { return Ok(()) };
    let number = match &count {
        Count::Number(number) => Some(*number),
        Count::Text(text) => Quota::parse_count(text).ok(),
    };
    match number.and_then(|number| usize::try_from(number).ok()) {
        Some(number) if range.contains(&number) => {
            *value = number;
            Ok(())
        }
        _ => {
            let (least, most) = (range.start(), range.end());
            let problem = format!("write a whole number from {least} to {most}, such as \"10k\"");
            Err(ConfigError::Value { field, problem })
        }
    }
}

fn set_address(
    value: &mut Option<Address>,
    field: &'static str,
    text: Option<String>,
) -> Result<(), ConfigError> {
    let Some(text) = text else { return Ok(()) };
    let wrong = |error: AddressError| ConfigError::Value { field, problem: error.to_string() };
    *value = listen(&text).map_err(wrong)?;
    Ok(())
}

fn set_secret(
    value: &mut Option<Secret>,
    field: &'static str,
    text: Option<String>,
) -> Result<(), ConfigError> {
    match text.as_deref() {
        None => Ok(()),
        Some("") => {
            let problem = "it is empty: leave it out, or write something".to_owned();
            Err(ConfigError::Value { field, problem })
        }
        Some(text) => {
            *value = Some(Secret::new(text));
            Ok(())
        }
    }
}

fn set_time(
    value: &mut Duration,
    field: &'static str,
    text: Option<&str>,
) -> Result<(), ConfigError> {
    let Some(text) = text else { return Ok(()) };
    *value = match (text, text.parse::<Period>()) {
        ("0" | "0s", _) => Duration::ZERO,
        (_, Ok(period)) => period.as_duration(),
        _ => {
            let problem = format!("`{text}` is no length of time: write 500ms, 10s or 5min");
            return Err(ConfigError::Value { field, problem });
        }
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changes_what_it_names() {
        let text =
            "keys = 5\n[listen]\nhttp = 'unix:/tmp/a'\nadmin = 'off'\n[limits]\nidle = '5min'";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.keys, 5);
        assert_eq!(config.http, Some(Address::Unix("/tmp/a".into())));
        assert_eq!((config.admin, config.limits.idle), (None, Duration::from_secs(300)));
        assert_eq!(config.resp, Config::defaults(1).resp);
    }

    #[test]
    fn what_is_wrong_is_named_and_changes_nothing() {
        for (text, place) in [
            ("kees = 5", "kees"),
            ("keys = 0", "keys"),
            ("keys = 'many'", "keys"),
            ("[listen]\nresp = 'localhost'", "listen.resp"),
            ("[limits]\npatience = 'long'", "limits.patience"),
            ("[drain]\ndelay = '-1s'", "drain.delay"),
            ("[admin]\ntoken = ''", "admin.token"),
            ("[log]\nformat = 'xml'", "format"),
            ("[store]\nurl = ''", "store.url"),
            ("[store]\nurl = 'redis://a'\nshare = 0", "store.share"),
            ("[store]\nurl = 'redis://a'\ntimeout = '0s'", "store.timeout"),
            ("[store]\nshare = 50", "url"),
        ] {
            let mut config = Config::defaults(1);
            let error = config.apply(&format!("{text}\n")).unwrap_err().to_string();
            assert!(error.contains(place), "{error}");
            assert_eq!(config, Config::defaults(1), "{text}");
        }
    }

    #[test]
    fn nobody_elsewhere_gets_in_without_a_token() {
        let mut config = Config::parse("[listen]\nadmin = '0.0.0.0:4299'").unwrap();
        assert!(matches!(config.check(), Err(ConfigError::OpenAdmin(_))));
        config.admin_token = Some(Secret::new("t"));
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn there_is_room_for_the_longest_body() {
        let config = Config::parse("[limits]\nheld_bytes = '1M'").unwrap();
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains("`limits.held_bytes`") && error.contains("1048576"), "{error}");
        let config = Config::parse("[limits]\nheld_bytes = '1M'\nbody_bytes = '1M'").unwrap();
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn tls_needs_what_it_is_made_of() {
        let files = "[tls]\ncertificate = 'c'\nkey = 'k'\n";
        let tls = |more: &str| Config::parse(&format!("{files}{more}")).map(|config| config.tls);
        assert!(tls("").unwrap().is_some_and(|tls| tls.doors.len() == Name::ALL.len()));
        let optional = tls("client_ca = 'a'\nclients = 'optional'").unwrap();
        assert!(optional.is_some_and(|tls| !tls.clients_must));
        for (more, part) in [
            ("clients = 'required'", "nobody is asked for a certificate"),
            ("doors = ['http', 'htp']", "there is no door `htp`; there are http, "),
        ] {
            let error = tls(more).unwrap_err().to_string();
            assert!(error.starts_with("`tls.") && error.contains(part), "{error}");
        }
        let error = Config::parse("[tls]\ncertificate = 'c'").unwrap_err().to_string();
        assert!(error.contains("missing field `key`"), "{error}");
    }

    #[test]
    fn the_documented_file_has_every_setting_with_its_default() {
        let text = include_str!("../../../docs/operating.md");
        let (_, file) = text.split_once("```toml tollgate.toml\n").unwrap();
        let (file, _) = file.split_once("```").unwrap();
        assert_eq!(Config::parse(file), Ok(Config::defaults(1)));
        // Those that have no default are there as comments.
        let all = file.replace("# rules", "rules").replace("# threads", "threads");
        let all = all.replace("# token", "token").replace("# password", "password");
        let tls = ["[tls]", "certificate", "key =", "client_ca", "clients", "doors"];
        let store = ["[store]", "url", "ca =", "cert =", "key = \"node", "timeout", "round_trip"];
        let store = store.iter().chain(&["share", "keys ="]);
        let all = store.fold(all, |all, name| all.replacen(&format!("# {name}"), name, 1));
        let all = tls.iter().fold(all, |all, name| all.replacen(&format!("# {name}"), name, 1));
        let raw: toml::Table = all.parse().unwrap();
        let names = |table: &toml::Table| table.keys().cloned().collect::<Vec<_>>();
        let known = |text: String| -> Vec<String> {
            let message = toml::from_str::<Raw>(&text).unwrap_err().to_string();
            let (_, list) = message.split_once("expected").unwrap();
            list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        let sorted = |mut list: Vec<String>| {
            list.sort();
            list
        };
        assert_eq!(sorted(names(&raw)), sorted(known("x = 1".to_owned())));
        for (name, table) in &raw {
            let Some(table) = table.as_table() else { continue };
            assert_eq!(sorted(names(table)), sorted(known(format!("[{name}]\nx = 1"))), "{name}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let text = "[admin]\ntoken = 's3cret'\n[resp]\npassword = 's3cret'\n\
                    [store]\nurl = 'redis+sentinel://:s3cret@a/b?sentinel=:s3cret'";
        let config = Config::parse(text).unwrap();
        assert!(!format!("{config:?}").contains("s3cret"));
    }
}

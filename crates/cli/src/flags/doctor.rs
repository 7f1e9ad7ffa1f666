//! What can be said to `tollgate doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tollgate::Period;

use super::Output;

/// `tollgate doctor`
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Where the store is [default: the variable TOLLGATE_STORE, if it is set]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// Who signs the certificate of a store that speaks TLS [default: whom this machine trusts]
    #[arg(long, alias = "store-ca", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// The certificate to show to a store that asks for one
    #[arg(long, alias = "store-cert", value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,

    /// The key of that certificate
    #[arg(long, alias = "store-key", value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// How long nodes wait for it, `store.timeout` of their settings [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    pub(crate) timeout: Option<Duration>,

    /// How far away nodes take it to be, `store.round_trip` of their settings [default: 5ms]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) round_trip: Option<Duration>,

    /// For whom to print what was found
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// As the settings of a server have it.
fn time(text: &str) -> Result<Duration, String> {
    match (text, text.parse::<Period>()) {
        ("0" | "0s", _) => Ok(Duration::ZERO),
        (_, Ok(period)) => Ok(period.as_duration()),
        _ => Err(format!("`{text}` is no length of time: write 500ms, 10s or 5min")),
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("no store answers in no time: write 50ms, for instance".into()),
        timeout => Ok(timeout),
    }
}

pub(super) const LOOKS: &str = "\
A store is named as
  redis://user:password@host:6379/0                       one server
  redis+sentinel://user:password@host:26379,host/service  the one Sentinels name
  redis+cluster://user:password@host:6379,host:6379       a Cluster
with rediss for TLS; valkey and valkeys are the same. A user and a password of
the Sentinels themselves stand at the end: ?sentinel=user:password. Others on
this machine can read a command line: passwords are better kept in the variable
TOLLGATE_STORE. They are never printed.

Looked at are: the way there, version, role, round trip, clock, scripts,
eviction, memory, what is on disk, idle connections, keys of a wrong type, and
in a Cluster its state, slots, nodes and replicas.

Nodes leave a store alone whose answers take longer than half of their timeout:
name what their settings say, if they say anything about it.

Examples:
  tollgate doctor --store redis://127.0.0.1:6379 --timeout 200ms
  tollgate doctor --store rediss://cache.internal:6379 --ca ca.pem --output json";

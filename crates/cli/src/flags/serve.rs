//! What can be said to `tollgate serve` and `tollgate init`.

use std::path::PathBuf;

use clap::Args;
use tollgate_doors::{Address, LogFormat};

/// `tollgate serve`
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// The rule file, watched for changes [default: the rules that `tollgate init` writes]
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,

    /// A file with everything else, in TOML; flags override it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Where checks are asked for in JSON: an address, unix:/path, or off [default: 127.0.0.1:4290]
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub(crate) http: Option<Listen>,

    /// Where proxies ask: nginx, Caddy, Traefik, HAProxy, Envoy [default: 127.0.0.1:4291]
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub(crate) forward_auth: Option<Listen>,

    /// Where clients of Redis ask [default: 127.0.0.1:4292]
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub(crate) resp: Option<Listen>,

    /// Where Envoy asks, and whoever speaks gRPC [default: 127.0.0.1:4293]
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub(crate) grpc: Option<Listen>,

    /// Where /metrics, /healthz and /readyz are [default: 127.0.0.1:4298]
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub(crate) status: Option<Listen>,

    /// Where it is run from: keys, kill switch, rules [default: 127.0.0.1:4299]
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub(crate) admin: Option<Listen>,

    /// A file with the token of the admin door
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,

    /// A file with the password of the RESP door
    #[arg(long, value_name = "FILE")]
    pub(crate) resp_password_file: Option<PathBuf>,

    /// Speak TLS at all doors, with this certificate, read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,

    /// The key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Let in only clients with a certificate that one in this file has signed
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_client_ca: Option<PathBuf>,

    /// Share limits with other nodes through this store: redis://, rediss://, redis+sentinel:// or
    /// redis+cluster:// [default: the variable TOLLGATE_STORE, if it is set]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// Who signs the certificate of a store that speaks TLS [default: whom this machine trusts]
    #[arg(long, value_name = "FILE")]
    pub(crate) store_ca: Option<PathBuf>,

    /// The certificate to show to a store that asks for one, read again when it changes
    #[arg(long, value_name = "FILE", requires = "store_key")]
    pub(crate) store_cert: Option<PathBuf>,

    /// The key of that certificate
    #[arg(long, value_name = "FILE", requires = "store_cert")]
    pub(crate) store_key: Option<PathBuf>,

    /// How many keys are live at once: `100k`, `10M` [default: 1M]
    #[arg(long, value_parser = super::count)]
    pub(crate) keys: Option<u64>,

    /// How many threads serve connections [default: one less than cores]
    #[arg(long, value_parser = super::threads)]
    pub(crate) threads: Option<u16>,

    /// How lines of the log are written: text or json [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = log_format)]
    pub(crate) log_format: Option<LogFormat>,

    /// From which level on: error, warn, info, debug, trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
}

/// Where a door listens: nowhere, if it is `off`.
#[derive(Clone, Debug)]
pub(crate) struct Listen(pub(crate) Option<Address>);

fn listen(text: &str) -> Result<Listen, String> {
    tollgate_doors::listen(text).map(Listen).map_err(|error| error.to_string())
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("write text or json".into()),
    }
}

/// `tollgate init`
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// The file to write
    #[arg(default_value = "rules.yaml")]
    pub(crate) file: String,

    /// Replace a file that is there already
    #[arg(long)]
    pub(crate) force: bool,
}

pub(crate) const SERVING: &str = "\
Every door is open to this machine alone unless an address says otherwise. On
SIGTERM the server stops being ready, answers whoever has asked, and ends; on
SIGHUP it reads its rules again.

Examples:
  tollgate serve
  tollgate serve --rules rules.yaml --http 0.0.0.0:4290 --resp off
  tollgate serve --config /etc/tollgate/tollgate.toml";

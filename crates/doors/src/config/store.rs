//! Where limits are shared, and how.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tollgate::SharingConfig;

use super::{ConfigError, Count, set_count, set_secret, set_time};
use crate::secret::Secret;

/// Where limits are shared with other nodes, and how.
///
/// ```
/// use tollgate_doors::{Config, StoreConfig};
/// let config = Config::parse("[store]\nurl = 'redis://10.0.0.5'\nshare = 20")?;
/// assert_eq!(config.store.map(|store| store.share), Some(20));
/// # Ok::<(), tollgate_doors::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Its address, which may have a password in it.
    pub url: Secret,
    /// Who signs its certificate, in PEM, if it speaks TLS; `None` is whom this machine trusts.
    pub ca: Option<PathBuf>,
    /// What it is shown if it asks for a certificate.
    pub identity: Option<StoreIdentity>,
    /// How long a request waits for it.
    pub timeout: Duration,
    /// How far away it is taken to be: the same for all nodes.
    pub round_trip: Duration,
    /// What part of a limit this node lets pass by itself while the store is gone, in per cent.
    pub share: u8,
    /// How many keys can be lent to at once.
    pub keys: usize,
}

/// The files with which a node shows a store who it is, in PEM.
///
/// ```
/// use tollgate_doors::Config;
/// let text = "[store]\nurl = 'rediss://10.0.0.5'\ncert = 'node.pem'\nkey = 'node.key'";
/// let store = Config::parse(text)?.store.expect("it has a section about it");
/// assert!(store.identity.is_some());
/// # Ok::<(), tollgate_doors::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreIdentity {
    /// The certificate, with those that lead to its authority behind it.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl StoreConfig {
    /// A store at an address, with defaults for the rest.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_doors::{Secret, StoreConfig};
    /// let config = StoreConfig::at(Secret::new("redis://10.0.0.5"));
    /// assert_eq!(config.timeout, Duration::from_millis(50));
    /// ```
    pub fn at(url: Secret) -> Self {
        let SharingConfig { timeout, round_trip, share, keys } = SharingConfig::default();
        Self { url, ca: None, identity: None, timeout, round_trip, share, keys }
    }

    /// All files that it names.
    ///
    /// ```
    /// use tollgate_doors::{Secret, StoreConfig};
    /// let mut config = StoreConfig::at(Secret::new("rediss://10.0.0.5"));
    /// config.ca = Some("ca.pem".into());
    /// assert_eq!(config.files().count(), 1);
    /// ```
    pub fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let identity = self.identity.as_mut().map(|files| [&mut files.cert, &mut files.key]);
        self.ca.iter_mut().chain(identity.into_iter().flatten())
    }

    /// The same, as an engine wants it.
    ///
    /// ```
    /// use tollgate_doors::{Secret, StoreConfig};
    /// assert_eq!(StoreConfig::at(Secret::new("redis://10.0.0.5")).sharing().share, 50);
    /// ```
    pub const fn sharing(&self) -> SharingConfig {
        let Self { timeout, round_trip, share, keys, .. } = *self;
        SharingConfig { timeout, round_trip, share, keys }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStore {
    url: String,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    timeout: Option<String>,
    round_trip: Option<String>,
    share: Option<Count>,
    keys: Option<Count>,
}

impl RawStore {
    pub(super) fn read(self) -> Result<StoreConfig, ConfigError> {
        let mut url = None;
        set_secret(&mut url, "store.url", Some(self.url))?;
        // It is not empty.
        let mut store = StoreConfig::at(url.unwrap_or_else(|| Secret::new("")));
        store.ca = self.ca;
        store.identity = identity(self.cert, self.key)?;
        set_time(&mut store.timeout, "store.timeout", self.timeout.as_deref())?;
        set_time(&mut store.round_trip, "store.round_trip", self.round_trip.as_deref())?;
        let mut share = usize::from(store.share);
        set_count(&mut share, "store.share", self.share, 1..=100)?;
        store.share = share as u8;
        set_count(&mut store.keys, "store.keys", self.keys, 8..=1 << 20)?;
        match store.timeout.is_zero() {
            false => Ok(store),
            true => {
                let problem = "no store answers in no time: write 50ms, for instance".to_owned();
                Err(ConfigError::Value { field: "store.timeout", problem })
            }
        }
    }
}

/// Both or none.
fn identity(
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<StoreIdentity>, ConfigError> {
    let (field, problem) = match (cert, key) {
        (None, None) => return Ok(None),
        (Some(cert), Some(key)) => return Ok(Some(StoreIdentity { cert, key })),
        (Some(_), None) => ("store.cert", "a certificate is shown with its key: name it in `key`"),
        (None, Some(_)) => ("store.key", "a key is that of a certificate: name it in `cert`"),
    };
    Err(ConfigError::Value { field, problem: problem.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn a_store_is_shown_a_certificate_with_its_key_or_none() {
        let store = |more: &str| {
            let text = format!("[store]\nurl = 'rediss://a'\n{more}");
            Config::parse(&text).map(|config| config.store.and_then(|store| store.identity))
        };
        assert_eq!(store(""), Ok(None));
        let both = store("cert = 'c'\nkey = 'k'").unwrap();
        assert_eq!(both, Some(StoreIdentity { cert: "c".into(), key: "k".into() }));
        for (more, part) in [
            ("cert = 'c'", "`store.cert`: a certificate is shown with its key: name it in `key`"),
            ("key = 'k'", "`store.key`: a key is that of a certificate: name it in `cert`"),
        ] {
            let error = store(more).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}

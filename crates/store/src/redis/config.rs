//! How a Redis store is asked.

use std::time::Duration;

use crate::redis::identity::RedisIdentity;

/// What can be set about a [`RedisStore`](crate::RedisStore).
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::RedisConfig;
/// let config = RedisConfig { timeout: Duration::from_millis(20), ..RedisConfig::default() };
/// assert_eq!(config.most_waiting, 16_384);
/// ```
#[derive(Clone, Debug)]
pub struct RedisConfig {
    /// What time the store has to answer a question, waiting for others included: 50 ms. More than
    /// callers have makes them late, much less than a round trip takes makes the store seem down.
    pub timeout: Duration,
    /// What time a connection may take: a second. Callers do not wait for it beyond their own
    /// timeout.
    pub connect_timeout: Duration,
    /// So many questions wait to be sent, and further ones are refused at once: 16,384.
    pub most_waiting: usize,
    /// The certificate of who signed that of the server, in PEM, for addresses that begin with
    /// `rediss`. Without one, those that the machine trusts.
    pub root_certificate: Option<Vec<u8>>,
    /// What is shown to servers that ask for a certificate, Sentinels included; also for addresses
    /// that begin with `rediss` alone.
    pub identity: Option<RedisIdentity>,
}

impl RedisConfig {
    /// Whether it says something that only TLS has a use for.
    pub(super) const fn is_about_tls(&self) -> bool {
        self.root_certificate.is_some() || self.identity.is_some()
    }
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_secs(1),
            most_waiting: 16_384,
            root_certificate: None,
            identity: None,
        }
    }
}

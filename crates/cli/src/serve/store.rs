//! Limits that are shared through a store.

use std::sync::Arc;

use tollgate::SystemClock;
use tollgate_doors::{Config, Given, Service, StoreConfig};
use tollgate_store::{RedisConfig, RedisStore, Store as _, StoreError};

use crate::certificates;
use crate::error::Error;
use crate::serve::identity::Shown;

/// What decides by these rules: alone, or with others through the store that is set. And what the store
/// is shown, if it asks.
pub(super) async fn serving(
    rules: impl Into<Given>,
    config: &Config,
) -> Result<(Service, Option<Shown>), Error> {
    let Some(store) = &config.store else { return Ok((Service::new(rules, config.keys)?, None)) };
    let shown = store.identity.as_ref().map(Shown::new).transpose()?;
    let opened = open(store, shown.as_ref())?;
    // Whoever comes first is not to wait for a connection.
    if let Err(error) = greeted(&opened).await {
        let (at, what) = (self::shown(store), complaint(&error));
        tracing::warn!(store = at, %error, "{what}; `tollgate doctor` looks at why");
    }
    Ok((Service::sharing(rules, config.keys, opened, store.sharing())?, shown))
}

/// Whether the store answers. A connection may take longer than a question.
async fn greeted(store: &RedisStore) -> Result<(), StoreError> {
    let mut said = store.ping().await;
    for _ in 0..TRIES {
        match said {
            Err(StoreError::Timeout { .. }) => said = store.ping().await,
            said => return said.map(|_| ()),
        }
    }
    said.map(|_| ())
}

/// What is wrong with a store: one that says no is there, and whoever is told that it is not looks in the
/// wrong place.
const fn complaint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unreachable { .. }
        | StoreError::Timeout { .. }
        | StoreError::Busy { .. }
        | StoreError::NoPrimary { .. } => "the store does not answer",
        StoreError::Version { .. } | StoreError::Clock => "the store is of no use as it is",
        _ => "the store refuses",
    }
}

/// How often it is asked before it is served without.
const TRIES: usize = 3;

fn open(config: &StoreConfig, shown: Option<&Shown>) -> Result<RedisStore, Error> {
    let root_certificate = config.ca.as_deref().map(certificates::authority).transpose()?;
    let identity = shown.map(|shown| shown.identity.clone());
    // A little less than whoever asks waits for: then what some servers of a Cluster have answered is
    // known when another one is silent.
    let timeout = config.timeout * 9 / 10;
    let redis = RedisConfig { timeout, root_certificate, identity, ..RedisConfig::default() };
    Ok(RedisStore::open(config.url.expose(), redis, Arc::new(SystemClock::new()))?)
}

/// Its address without what is secret about it.
pub(super) fn shown(config: &StoreConfig) -> String {
    match config.url.expose() {
        url if url.contains("://") => RedisStore::redacted(url),
        _ => "(hidden)".to_owned(),
    }
}

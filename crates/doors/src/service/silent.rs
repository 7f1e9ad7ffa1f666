//! A store for tests that is asked, and never answers.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tollgate::store::{Ask, Budget, Grant, Pulse, Store, StoreError};
use tollgate::{RuleSet, SharingConfig};

use crate::service::Service;

/// A store that never answers.
#[derive(Clone, Default)]
pub(crate) struct Silent {
    asked: Arc<AtomicUsize>,
}

impl Silent {
    /// A server with these rules that waits for it.
    pub(crate) fn serves(&self, rules: &str) -> Arc<Service> {
        self.serves_within(rules, Duration::from_millis(40))
    }

    /// The same with so much patience.
    pub(crate) fn serves_within(&self, rules: &str, timeout: Duration) -> Arc<Service> {
        let rules = RuleSet::parse(rules).unwrap();
        let config = SharingConfig { timeout, ..Default::default() };
        Arc::new(Service::sharing(rules, 1000, self.clone(), config).unwrap())
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Store for Silent {
    async fn exchange(&self, _: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        pending().await
    }

    async fn forget(&self, _: &Arc<Budget>, _: &[u8]) -> Result<bool, StoreError> {
        pending().await
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        pending().await
    }
}

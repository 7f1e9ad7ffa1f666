//! One question to a store.

use std::sync::Arc;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use tollgate_core::Phase;
use tollgate_core::lease::Exchange;

use crate::budget::Budget;

/// What a node tells and asks a store about one key.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use tollgate_core::{Limit, Wall, lease::Exchange};
/// use tollgate_store::{Ask, Budget};
/// let limit = Limit::token_bucket("100/min")?;
/// let budget = Budget::new("api", &limit, Duration::from_millis(5), Wall::from_unix_seconds(1_800_000_000));
/// let ask = Ask::new(Arc::new(budget), "alice", Exchange::once(1));
/// assert_eq!(ask.key(), b"alice");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ask {
    budget: Arc<Budget>,
    key: Arc<[u8]>,
    exchange: Exchange,
}

impl Ask {
    /// About a key of any bytes and length.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::lease::Exchange;
    /// use tollgate_store::{Ask, Budget};
    /// fn look(budget: &Arc<Budget>, key: &[u8]) -> Ask {
    ///     Ask::new(Arc::clone(budget), key, Exchange::once(0))
    /// }
    /// ```
    pub fn new(budget: Arc<Budget>, key: impl AsRef<[u8]>, exchange: Exchange) -> Self {
        Self { budget, key: key.as_ref().into(), exchange }
    }

    /// Whose budget it is about.
    ///
    /// ```
    /// fn rule(ask: &tollgate_store::Ask) -> &str {
    ///     ask.budget().rule()
    /// }
    /// ```
    pub const fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// What is counted separately.
    ///
    /// ```
    /// fn is_about(ask: &tollgate_store::Ask, key: &str) -> bool {
    ///     ask.key() == key.as_bytes()
    /// }
    /// ```
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) const fn shared_key(&self) -> &Arc<[u8]> {
        &self.key
    }

    /// What is told and asked.
    ///
    /// ```
    /// fn cost(ask: &tollgate_store::Ask) -> u64 {
    ///     ask.exchange().cost
    /// }
    /// ```
    pub const fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Where the windows of this key end, if those of the limit are spread: the same for all nodes.
    pub(crate) fn phase(&self) -> Phase {
        const SECRETS: RapidSecrets = RapidSecrets::seed(0);
        Phase(rapidhash_v3_seeded(&self.key, &SECRETS))
    }
}

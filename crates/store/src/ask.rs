//! One question to a store.

use std::sync::Arc;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use tollgate_core::Phase;
use tollgate_core::lease::{Carried, Exchange};

use crate::budget::Budget;
use crate::carry::Before;

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
    carried: Option<Carried>,
    before: Option<Arc<Before>>,
}

impl Ask {
    /// About a key of any bytes and length.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::lease::{Carried, Exchange};
    /// use tollgate_store::{Ask, Budget};
    /// fn look(budget: &Arc<Budget>, key: &[u8]) -> Ask {
    ///     Ask::new(Arc::clone(budget), key, Exchange::once(0))
    /// }
    /// ```
    pub fn new(budget: Arc<Budget>, key: impl AsRef<[u8]>, exchange: Exchange) -> Self {
        Self::with_key(budget, key.as_ref().into(), exchange)
    }

    /// The same about a key that is there already, which saves a copy of it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::lease::Exchange;
    /// use tollgate_store::{Ask, Budget};
    /// fn looks(budget: &Arc<Budget>, key: &Arc<[u8]>, count: usize) -> Vec<Ask> {
    ///     let look = || Ask::with_key(Arc::clone(budget), Arc::clone(key), Exchange::once(0));
    ///     (0..count).map(|_| look()).collect()
    /// }
    /// ```
    pub const fn with_key(budget: Arc<Budget>, key: Arc<[u8]>, exchange: Exchange) -> Self {
        Self { budget, key, exchange, carried: None, before: None }
    }

    /// The same about a key whose limit has changed. If the store does not know it, it begins with
    /// what it brings along; to [look](Exchange::is_look) at it leaves nothing behind all the same.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::lease::Carried;
    /// use tollgate_store::Ask;
    /// fn after_change(ask: Ask, spent: u64, ago: Duration) -> Ask {
    ///     ask.carrying(Carried { spent, ago, of_known: false })
    /// }
    /// ```
    #[must_use]
    pub fn carrying(self, carried: Carried) -> Self {
        Self { carried: Some(carried), ..self }
    }

    /// The same about a key whose limit has changed, for a store that finds out by itself what it brings
    /// along: [`Carrying`](crate::Carrying). Others take no note of it.
    ///
    /// ```
    /// use tollgate_store::{Ask, Before};
    /// fn after_change(ask: Ask, before: Before) -> Ask {
    ///     ask.following(before)
    /// }
    /// ```
    #[must_use]
    pub fn following(self, before: impl Into<Arc<Before>>) -> Self {
        Self { before: Some(before.into()), ..self }
    }

    /// Another question about the same key, which brings along the same.
    ///
    /// ```
    /// # use tollgate_core::lease::Exchange;
    /// use tollgate_store::Ask;
    /// fn look(ask: Ask) -> Ask {
    ///     ask.asking(Exchange::once(0))
    /// }
    /// ```
    #[must_use]
    pub fn asking(self, exchange: Exchange) -> Self {
        Self { exchange, ..self }
    }

    /// Another question about the same key of another budget.
    pub(crate) fn about(&self, budget: &Arc<Budget>, exchange: Exchange) -> Self {
        Self::with_key(Arc::clone(budget), Arc::clone(&self.key), exchange)
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

    /// What the key brings along, if its limit has changed.
    ///
    /// ```
    /// fn brings(ask: &tollgate_store::Ask) -> u64 {
    ///     ask.carried().map_or(0, |carried| carried.spent)
    /// }
    /// ```
    pub const fn carried(&self) -> Option<&Carried> {
        self.carried.as_ref()
    }

    pub(crate) const fn before(&self) -> Option<&Arc<Before>> {
        self.before.as_ref()
    }

    /// Where the windows of this key end, if those of the limit are spread: the same for all nodes.
    pub(crate) fn phase(&self) -> Phase {
        const SECRETS: RapidSecrets = RapidSecrets::seed(0);
        Phase(rapidhash_v3_seeded(&self.key, &SECRETS))
    }
}

//! What all doors ask.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate::{Clock as _, Engine, Request, RuleSet, Ruling, SystemClock};

use crate::door::Name;
use crate::drain::Drain;
use crate::metrics::Metrics;

/// What all doors ask: the engine, and what is known about it.
#[derive(Debug)]
pub struct Service {
    engine: Engine,
    /// The rules as they were given, before any switch.
    given: Mutex<Arc<RuleSet>>,
    metrics: Metrics,
    drain: Drain,
}

/// Rules cannot be put in force. The old ones stay.
#[derive(Debug, thiserror::Error)]
#[error("these rules cannot be kept: {0}")]
pub struct SwapError(#[from] tollgate::Error);

impl Service {
    /// Decides by these rules, with room for so many keys.
    pub fn new(rules: RuleSet, keys: usize) -> Result<Self, SwapError> {
        let rules = Arc::new(rules);
        let engine = Engine::builder(Arc::clone(&rules)).keys(keys).build()?;
        let metrics = Metrics::new(&rules, engine.clock().wall());
        Ok(Self { engine, given: Mutex::new(rules), metrics, drain: Drain::new() })
    }

    /// Puts other rules in force.
    pub fn swap(&self, rules: RuleSet) -> Result<(), SwapError> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = Arc::new(rules);
        let exchange = || self.engine.exchange(Arc::clone(&rules));
        self.metrics.exchange(&rules, self.clock().wall(), exchange)?;
        *given = rules;
        Ok(())
    }

    /// Says that rules were refused, and why. Those in force stay.
    pub fn refuse_rules(&self, file: &str, problem: &str) {
        self.metrics.rules_refused();
        tracing::error!(file, "rules are refused, and the old ones stay: {problem}");
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        self.engine.rules()
    }

    /// The clock that everything is decided by.
    pub const fn clock(&self) -> &SystemClock {
        self.engine.clock()
    }

    /// Lets a request pass, or not.
    pub(crate) fn check(&self, door: Name, request: &Request<'_>) -> Ruling {
        let began = self.metrics.times_next().then(|| self.clock().now());
        let ruling = self.engine.decide(request);
        if let Some(began) = began {
            self.metrics.decided_in(self.clock().now().since(began));
        }
        self.metrics.decided(door, &ruling);
        ruling
    }

    /// What [`check`](Self::check) would answer.
    pub(crate) fn peek(&self, request: &Request<'_>) -> Ruling {
        self.engine.peek(request)
    }

    /// Whether requests should be sent here.
    pub(crate) fn is_ready(&self) -> bool {
        self.drain.is_ready()
    }

    pub(crate) const fn drain(&self) -> &Drain {
        &self.drain
    }

    pub(crate) const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Seconds since 1970, for headers.
    pub(crate) fn unix_seconds(&self) -> u64 {
        u64::try_from(self.engine.clock().wall().as_unix_nanos() / 1_000_000_000).unwrap_or(0)
    }
}

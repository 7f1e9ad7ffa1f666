//! How an engine with a store is doing.

use tollgate_local::Clock;

use crate::engine::Engine;
use crate::sharing::{Health, SharingStats};

impl<C: Clock> Engine<C> {
    /// How sharing is going, if the engine has a store.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(engine.sharing().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sharing(&self) -> Option<SharingStats> {
        self.sharing.as_ref().map(|sharing| sharing.stats())
    }

    /// Whether the store is well, now and whenever that changes; `None` without a store.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(engine.health().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn health(&self) -> Option<tokio::sync::watch::Receiver<Health>> {
        self.sharing.as_ref().map(|sharing| sharing.health())
    }
}

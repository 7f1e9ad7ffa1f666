//! How an engine with a store is doing.

use tollgate_local::Clock;
use tollgate_store::Losses;

use crate::engine::Engine;
use crate::sharing::{Health, Lapse, SharingStats};

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

    /// What the store was found to have forgotten, now and whenever there is more; `None` without a store,
    /// and with one that does not forget while it is there.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(engine.losses().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn losses(&self) -> Option<tokio::sync::watch::Receiver<Losses>> {
        self.sharing.as_ref().and_then(|sharing| sharing.losses())
    }

    /// Waits until there is something to say about requests that a rule decided as `on_store_failure`
    /// says although the store is asked: it was late once, or what it has of one key is not ours. The
    /// same rule and kind of reason is said at most once a minute, with how many requests there were
    /// since. While the store is left alone, [`health`](Self::health) says so, and this says nothing.
    /// Each thing is said to one of those who wait; without a store there is never any.
    ///
    /// ```
    /// # use tollgate::Engine;
    /// async fn tell(engine: &Engine) {
    ///     let lapse = engine.lapse().await;
    ///     eprintln!("{}: {} ({})", lapse.rule, lapse.reason, lapse.policy);
    /// }
    /// ```
    pub async fn lapse(&self) -> Lapse {
        match &self.sharing {
            Some(sharing) => sharing.lapse().await,
            None => std::future::pending().await,
        }
    }
}

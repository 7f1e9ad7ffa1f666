//! Numbers about an engine for its operator.

use std::time::Duration;

use tollgate_local::Clock;
use tollgate_rules::Version;

use crate::engine::Engine;
use crate::stats::Stats;

/// How an [`Engine`] is doing.
///
/// ```
/// use tollgate::{Engine, RuleSet};
/// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
/// let stats = engine.stats();
/// assert_eq!((stats.rules, stats.failures), (1, 0));
/// assert_eq!(stats.version, engine.rules().version());
/// assert!(stats.counters.keys >= 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct EngineStats {
    /// What the content of the rules in force is called.
    pub version: Version,
    /// How many rules that are, also those that are off.
    pub rules: usize,
    /// Versions of the rules that are not in force any more and that requests under way may still
    /// hold: see [`Engine::release_retired`].
    pub retired: usize,
    /// The counters of these rules. What is counted here begins anew with the counters of a limit
    /// that changes. The memory includes what tells which keys have limits of their own.
    pub counters: Stats,
    /// How often a slot was denied because a million are out, of all keys of a rule.
    pub turned_away: u64,
    /// How often something about a request could not be found out: see [`Engine::failures`].
    pub failures: u64,
}

impl<C: Clock> Engine<C> {
    /// How long a request waits for the store at most; `None` without one.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(engine.store_timeout().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn store_timeout(&self) -> Option<Duration> {
        self.sharing.as_ref().map(|sharing| sharing.config().timeout)
    }

    /// How the engine is doing. It goes through the limits of all rules, so it is for whoever asks
    /// every few seconds.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// let _ = engine.decide(&Request::new("GET", "/"));
    /// let stats = engine.stats();
    /// assert_eq!(stats.counters.overflowed, 0, "there is room for everybody");
    /// assert!(stats.counters.occupancy < 0.1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> EngineStats {
        let active = self.active.load_full();
        let counted = active.all_counted();
        let every = counted.iter().flat_map(|counted| counted.every());
        let mut counters = Stats::new(&self.table, every, 0, self.clock.now());
        counters.memory +=
            counted.iter().map(|counted| counted.memory_of_overrides()).sum::<usize>();
        EngineStats {
            version: active.rules().version(),
            rules: active.rules().rules().len(),
            retired: self.retired().len(),
            counters,
            turned_away: counted.iter().map(|counted| counted.turned_away()).sum(),
            failures: self.failures(),
        }
    }
}

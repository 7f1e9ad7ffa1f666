//! Making an engine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use tollgate_local::{Clock, HeavyKeys, Seed, SystemClock, Timer};
use tollgate_rules::RuleSet;
use tollgate_store::Store;

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::error::Error;
use crate::sharing::{Sharing, SharingConfig};
use crate::size::Size;

/// Makes an [`Engine`].
///
/// ```
/// use tollgate::{Engine, ManualClock, RuleSet};
/// let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?;
/// let engine = Engine::builder(rules).keys(1_000_000).clock(ManualClock::new()).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct EngineBuilder<C = SystemClock> {
    rules: Arc<RuleSet>,
    size: Size,
    seed: Option<Seed>,
    heavy: bool,
    sharing: Option<Arc<Sharing>>,
    clock: C,
}

impl Engine {
    /// An engine with room for the counters of 100,000 keys.
    ///
    /// ```
    /// use tollgate::{Engine, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(rules: impl Into<Arc<RuleSet>>) -> Result<Self, Error> {
        Self::builder(rules).build()
    }

    /// Starts to make an engine.
    ///
    /// ```
    /// use tollgate::{Engine, RuleSet};
    /// let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?;
    /// let engine = Engine::builder(rules).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(rules: impl Into<Arc<RuleSet>>) -> EngineBuilder {
        let rules = rules.into();
        let (size, clock) = (Size::default(), SystemClock::new());
        EngineBuilder { rules, size, seed: None, heavy: true, sharing: None, clock }
    }
}

impl<C: Clock> EngineBuilder<C> {
    /// How many keys of all rules are live at the same time: see
    /// [`LimiterBuilder::keys`](crate::LimiterBuilder::keys).
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// # let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?;
    /// let engine = Engine::builder(rules).keys(1_000).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keys(self, keys: usize) -> Self {
        Self { size: Size::Keys(keys), ..self }
    }

    /// How many bytes the table of all counters has. What rules themselves need comes on top.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// # let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?;
    /// let engine = Engine::builder(rules).memory(1 << 20).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory(self, bytes: usize) -> Self {
        Self { size: Size::Memory(bytes), ..self }
    }

    /// The seed of all hashes; by default one that nobody knows.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet, Seed};
    /// # let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?;
    /// let engine = Engine::builder(rules).seed(Seed::new(7)).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn seed(self, seed: Seed) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Whether keys are watched for [`Engine::top`], as they are unless this says otherwise. A few
    /// hundred of them are then kept as text.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?;
    /// let engine = Engine::builder(rules).heavy_keys(false).build()?;
    /// let _ = engine.decide(&Request::new("GET", "/"));
    /// assert!(engine.top(1).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn heavy_keys(self, watch: bool) -> Self {
        Self { heavy: watch, ..self }
    }

    /// The clock; by default the machine's.
    ///
    /// ```
    /// # use tollgate::{Engine, ManualClock, RuleSet};
    /// # let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?;
    /// let engine = Engine::builder(rules).clock(ManualClock::new()).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock<D: Clock>(self, clock: D) -> EngineBuilder<D> {
        let Self { rules, size, seed, heavy, .. } = self;
        EngineBuilder { rules, size, seed, heavy, sharing: None, clock }
    }

    /// Shares limits with other nodes through a store: those of all rules but the `local` ones. Comes
    /// after [`clock`](Self::clock), which others share as well.
    ///
    /// # Errors
    ///
    /// Outside of a Tokio runtime, where nobody could look after what is lent.
    ///
    /// ```
    /// use tollgate::{Clock, Engine, Request, RuleSet, SharingConfig, SystemClock};
    /// use tollgate::store::MemoryStore;
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 2/h }]")?;
    /// let store = MemoryStore::new(SystemClock::new(), 1_000);
    /// let engine = Engine::builder(rules).store(store, SharingConfig::default())?.build()?;
    /// let request = Request::new("GET", "/");
    /// assert!(engine.decide_waiting(&request).await.is_allowed());
    /// assert!(engine.decide_waiting(&request).await.is_allowed());
    /// assert!(!engine.decide_waiting(&request).await.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn store(self, store: impl Store, config: SharingConfig) -> Result<Self, Error>
    where
        C: Clone + Timer,
    {
        let sharing = Sharing::begin(store, config, self.clock.clone());
        let sharing = Some(sharing.ok_or(Error::NoRuntime)?);
        Ok(Self { sharing, ..self })
    }

    /// Makes the engine.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// # let rules = RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?;
    /// assert_eq!(Engine::builder(rules).build()?.rules().rules().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<Engine<C>, Error> {
        let Self { rules, size, seed, heavy, sharing, clock } = self;
        let table = size.table([])?;
        let seed = seed.unwrap_or_else(Seed::random);
        let engine = Engine {
            active: ArcSwap::from_pointee(Active::default()),
            table,
            seed,
            clock,
            salts: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            heavy: heavy.then(HeavyKeys::default),
            sharing,
            retired: Mutex::default(),
        };
        engine.exchange(rules)?;
        Ok(engine)
    }
}

impl<C> Engine<C> {
    /// No two counters of an engine have the same salt, also not of rules that are gone.
    pub(super) fn next_salt(&self) -> u64 {
        // Only that no two are the same matters, and nothing else is published with it.
        self.salts.fetch_add(1, Ordering::Relaxed)
    }
}

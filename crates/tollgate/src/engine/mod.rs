//! Rules at work: which limits a request meets, and what they all say.

mod active;
mod batch;
mod builder;
mod counted;
mod decide;
mod everywhere;
mod health;
mod heavy;
mod inspect;
mod keys;
mod refund;
mod rehearsal;
mod ruling;
mod said;
mod shared;
mod stats;
mod together;
mod under_way;

pub use builder::EngineBuilder;
pub use everywhere::NewStart;
pub use inspect::{KeyState, ToldBy, Under};
pub use rehearsal::{Expectation, Failure, Rehearsal};
pub use ruling::{RuleDecision, Ruling};
pub use stats::EngineStats;
pub use under_way::UnderWay;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use tollgate_local::{Clock, HeavyKeys, Seed, SystemClock, Table};
use tollgate_rules::{Geo, GeoError, Request, RuleSet};

use crate::engine::active::Active;
use crate::engine::decide::Intent;
use crate::error::Error;
use crate::sharing::{Reserve, Sharing};

/// Decides about requests by the rules of a file, which can be exchanged at any time.
///
/// ```
/// use tollgate::{Engine, Request, RuleSet};
///
/// let rules = RuleSet::parse(
///     "rules:
///   - { name: per-user, match: { path: /v1/** }, key: [user], limit: 2/min }
///   - { name: everybody, key: [], limit: 10k/s }",
/// )?;
/// let engine = Engine::new(rules)?;
///
/// let request = Request::new("GET", "/v1/items").attributes(&[("user", "alice")]);
/// assert!(engine.decide(&request).is_allowed());
/// assert!(engine.decide(&request).is_allowed());
/// let denied = engine.decide(&request);
/// assert_eq!(denied.rule(), Some("per-user"));
/// assert_eq!(denied.decision().retry_after().map(|wait| wait.as_secs()), Some(29));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine<C = SystemClock> {
    active: ArcSwap<Active>,
    table: Arc<Table>,
    seed: Seed,
    clock: C,
    /// No two counters of an engine have the same salt, also not of rules that are gone.
    salts: AtomicU64,
    failures: AtomicU64,
    /// Who comes most often, if anybody wants to know.
    heavy: Option<HeavyKeys>,
    /// How limits are shared with other nodes, if they are.
    sharing: Option<Arc<Sharing>>,
    /// Versions that requests under way may still hold.
    retired: Mutex<Vec<Arc<Active>>>,
}

impl<C: Clock> Engine<C> {
    /// Lets a request pass if all rules that apply to it allow it; otherwise it spends nothing.
    /// Allows without allocating if at most eight rules apply, unless one of them has expressions of
    /// CEL or limits what is under way at once, the path is not in its usual form, the request is
    /// sampled for [`top`](Self::top), or this thread has more rulings at once than it ever dropped.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(engine.decide(&Request::new("GET", "/")).is_allowed());
    /// assert!(!engine.decide(&Request::new("GET", "/")).is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// An engine with a store says here what can be said without asking it: a key of a shared limit
    /// that nothing is lent to is denied. [`decide_waiting`](Self::decide_waiting) asks.
    pub fn decide(&self, request: &Request<'_>) -> Ruling {
        self.rule(request, Intent::Spend, None)
    }

    /// The same with what was [kept](Self::reserve) for this request and others.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// let request = Request::new("GET", "/");
    /// let mut reserve = engine.reserve(&[request], &[]).expect("there is no store");
    /// assert!(engine.decide_with(&request, &mut reserve).is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide_with(&self, request: &Request<'_>, reserve: &mut Reserve) -> Ruling {
        self.rule(request, Intent::Spend, Some(reserve))
    }

    /// What [`decide`](Self::decide) would answer, without spending.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(engine.peek(&Request::new("GET", "/")).is_allowed());
    /// assert_eq!(engine.peek(&Request::new("GET", "/")).decision().remaining(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peek(&self, request: &Request<'_>) -> Ruling {
        self.rule(request, Intent::Look, None)
    }

    /// Exchanges the rules, while requests are being decided. Those under way end with the rules
    /// they began with. Counters of limits that stay the same go on; those of limits that change
    /// begin with what was spent from the old ones.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/h }]")?)?;
    /// assert!(engine.decide(&Request::new("GET", "/")).is_allowed());
    /// engine.exchange(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/h }]")?)?;
    /// assert_eq!(engine.peek(&Request::new("GET", "/")).decision().remaining(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a rule asks for what cannot be kept. The old rules then stay in force.
    pub fn exchange(&self, rules: impl Into<Arc<RuleSet>>) -> Result<(), Error> {
        // One at a time, so that no counters are succeeded twice.
        let mut retired = self.retired();
        let old = self.active.load_full();
        let new = Active::succeeding(self, rules.into(), Some(&old))?;
        if let Some(sharing) = &self.sharing {
            sharing.put_in_force(new.shared_budgets());
        }
        self.active.store(Arc::new(new));
        retired.push(old);
        drop(retired);
        self.release_retired();
        Ok(())
    }

    /// Reads the databases of networks again whose files have changed, and says whether any has.
    ///
    /// # Errors
    ///
    /// If one cannot be read. All of them then stay as they are.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(!engine.reload_databases()?, "there are none");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reload_databases(&self) -> Result<bool, GeoError> {
        let active = self.active.load();
        let Some(geo) = active.geo() else { return Ok(false) };
        let mut new = Geo::clone(&geo.load());
        let changed = new.reload_if_changed()?;
        if changed {
            geo.store(Arc::new(new));
        }
        Ok(changed)
    }

    /// The rules in force.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert_eq!(engine.rules().rules()[0].name(), "a");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rules(&self) -> Arc<RuleSet> {
        Arc::clone(self.active.load().rules())
    }

    /// How often something about a request could not be found out: a cost that is no number, for
    /// instance. It was then decided as its rule says, and never let pass for it.
    ///
    /// ```
    /// # use tollgate::{Engine, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert_eq!(engine.failures(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn retired(&self) -> MutexGuard<'_, Vec<Arc<Active>>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, times: u32) {
        if times > 0 {
            self.failures.fetch_add(u64::from(times), Ordering::Relaxed);
        }
    }

    /// The clock.
    ///
    /// ```
    /// # use tollgate::{Clock, Engine, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// let now = engine.clock().now();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

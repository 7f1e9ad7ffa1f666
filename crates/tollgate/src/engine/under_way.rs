//! Requests under way: what is left to do about them when they end.

use std::sync::Arc;

use arc_swap::ArcSwap;
use smallvec::SmallVec;
use tollgate_local::Clock;
use tollgate_rules::{Facts, Outcome, Request};

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::engine::batch::AllMet;
use crate::engine::ruling::{Reserved, Ruling, Spent};
use crate::engine::shared::HeldSlot;

/// What a request under way holds, and what it was charged until its outcome is known.
///
/// A [`Ruling`] is made to be read and dropped at once. Whoever has to wait for the end of a
/// request, maybe for minutes, [keeps](Ruling::keep) this of it: it is small, and belongs to no
/// thread. If it is dropped without a [report](Engine::report), slots come back, and what was
/// reserved is spent.
///
/// ```
/// use std::collections::HashMap;
/// use tollgate::{Engine, Outcome, Request, RuleSet, UnderWay};
///
/// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], concurrent: 1 }]")?)?;
/// let request = Request::new("GET", "/export");
/// let mut under_way: HashMap<u64, UnderWay> = HashMap::new();
/// let ruling = engine.decide(&request);
/// if ruling.is_allowed() && ruling.needs_report() {
///     under_way.insert(7, ruling.keep());
/// }
/// assert!(!engine.decide(&request).is_allowed(), "the only slot is taken");
///
/// if let Some(ended) = under_way.remove(&7) {
///     engine.report(ended, &request, &Outcome { status: Some(200), headers: &[] });
/// }
/// assert!(engine.decide(&request).is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "what is dropped has ended: its slots are free, and what was reserved is spent"]
pub struct UnderWay {
    /// The rules it began with, if they have to be asked what counts.
    active: Option<Arc<Active>>,
    reserved: SmallVec<[Reserved; 1]>,
    /// Given back when this is dropped.
    held: SmallVec<[HeldSlot; 1]>,
}

impl UnderWay {
    pub(super) fn new(
        active: impl FnOnce() -> Arc<Active>,
        reserved: SmallVec<[Reserved; 1]>,
        held: SmallVec<[HeldSlot; 1]>,
    ) -> Self {
        let active = (!reserved.is_empty()).then(active);
        Self { active, reserved, held }
    }

    /// Whether it matters how and when the request ends: see
    /// [`Ruling::needs_report`].
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(!engine.decide(&Request::new("GET", "/")).keep().needs_report());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn needs_report(&self) -> bool {
        !self.reserved.is_empty() || !self.held.is_empty()
    }
}

impl From<Ruling> for UnderWay {
    fn from(ruling: Ruling) -> Self {
        ruling.keep()
    }
}

impl std::fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("UnderWay");
        debug.field("reserved", &self.reserved.len()).field("held", &self.held.len()).finish()
    }
}

impl<C: Clock> Engine<C> {
    /// Says how a request ended: rules that count only some outcomes get back what others were
    /// reserved, and what was under way no longer is. A ruling that is dropped without this has
    /// spent what it was reserved.
    ///
    /// Outcomes count by the rules that the request began with. If its limit was exchanged for
    /// another meanwhile, and the key was seen since, what it was reserved stays spent under the
    /// new one: a key can be counted too high by what it had under way, and never too low.
    ///
    /// ```
    /// # use tollgate::{Engine, Outcome, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse(
    ///     "rules: [{ name: failures, key: [], limit: 1/h, count_if: response.status == 401 }]",
    /// )?)?;
    /// let login = Request::new("POST", "/login");
    /// let outcome = |status| Outcome { status: Some(status), headers: &[] };
    /// engine.report(engine.decide(&login), &login, &outcome(200));
    /// engine.report(engine.decide(&login), &login, &outcome(401));
    /// assert!(!engine.decide(&login).is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn report(&self, ended: impl Into<UnderWay>, request: &Request<'_>, outcome: &Outcome<'_>) {
        // Slots come back at the end.
        let UnderWay { active, reserved, held: _held } = ended.into();
        let Some(active) = active else { return };
        let mut room = String::new();
        let request = request.normal(&mut room);
        let geo = active.geo().map(ArcSwap::load);
        let rules = active.rules();
        let facts = Facts::new(rules, &request, geo.as_ref().map(|geo| &***geo));
        for Reserved { rule, spent } in reserved {
            if rules.rules()[rule].counts(&facts, outcome) {
                continue;
            }
            match (spent, &self.sharing) {
                (Spent::Here { counters, key, cost, at }, _) => {
                    counters.undo(key, cost, at, &self.clock);
                }
                (Spent::Shared(spent), Some(sharing)) => {
                    sharing.give_back_later(spent, &self.clock);
                }
                (Spent::Shared(_), None) => {}
            }
        }
        self.fail(facts.failures());
    }

    /// Whether it will matter how and when a request ends, if it passes: see
    /// [`Ruling::needs_report`]. Nothing is asked of any counter for that.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let rules = "rules: [{ name: a, match: { path: /export }, key: [], concurrent: 1 }]";
    /// let engine = Engine::new(RuleSet::parse(rules)?)?;
    /// assert!(engine.will_need_report(&Request::new("GET", "/export")));
    /// assert!(!engine.will_need_report(&Request::new("GET", "/")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn will_need_report(&self, request: &Request<'_>) -> bool {
        let active = self.active.load();
        let mut room = String::new();
        let request = request.normal(&mut room);
        let geo = active.geo().map(ArcSwap::load);
        let facts = Facts::new(active.rules(), &request, geo.as_ref().map(|geo| &***geo));
        let mut all = AllMet::new();
        self.meet(&active, &facts, &mut all);
        all.iter().any(|met| met.rule.counts_outcomes() || met.rule.concurrent().is_some())
    }

    /// Lets go of rules that were exchanged and that no request holds any more, and says how many
    /// versions requests still hold. An [exchange](Self::exchange) does the same; whoever keeps
    /// requests for long calls this now and then, because to drop thousands of counters takes a
    /// while, and no request should have to.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let rules = || RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]");
    /// let engine = Engine::new(rules()?)?;
    /// let ruling = engine.decide(&Request::new("GET", "/"));
    /// engine.exchange(rules()?)?;
    /// assert_eq!(engine.release_retired(), 1);
    /// drop(ruling);
    /// assert_eq!(engine.release_retired(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release_retired(&self) -> usize {
        let (free, held) = {
            let mut retired = self.retired();
            let (held, free): (Vec<_>, Vec<_>) =
                retired.drain(..).partition(|old| Arc::strong_count(old) > 1);
            *retired = held;
            (free, retired.len())
        };
        // Not while others wait for the lock.
        drop(free);
        held
    }
}

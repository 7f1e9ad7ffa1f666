//! What limits were before rules were exchanged: their keys bring along what they had spent.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tollgate_core::Tick;
use tollgate_core::lease::Exchange;
use tollgate_local::{ByHash, KeyHash, KeyMap};
use tollgate_store::{Ask, Before, Budget};

use crate::sharing::{About, SharedLimit};

/// The limits of a rule that others have followed, as they were shared.
#[derive(Debug)]
pub(crate) struct FormerRule {
    /// Those of all tiers; `None` where there was no limit.
    pub(crate) own: Box<[Option<Arc<Budget>>]>,
    /// Those of overrides, so many for each.
    pub(crate) overrides: Box<[Option<Arc<Budget>>]>,
    pub(crate) each: usize,
    /// Which keys had one.
    pub(crate) overridden: KeyMap,
}

impl FormerRule {
    /// All that a key may have been counted by.
    fn of(&self, key: KeyHash) -> impl Iterator<Item = &Arc<Budget>> {
        let number = self.overridden.get(key).map(|number| number as usize * self.each);
        let overriding = number.and_then(|at| self.overrides.get(at..at + self.each));
        self.own.iter().chain(overriding.unwrap_or_default()).flatten()
    }
}

/// One rule that a limit follows.
#[derive(Clone, Debug)]
pub(crate) struct Former {
    pub(crate) rule: Arc<FormerRule>,
    /// When that was, and when whoever had spent everything then has it back.
    pub(crate) since: Tick,
    pub(crate) until: Tick,
    /// The keys that come from there, if not all do.
    pub(crate) keys: Option<Arc<ByHash<()>>>,
}

impl Former {
    /// A rule that a limit follows from now on, which gives everything back within `rest`.
    pub(crate) fn new(rule: &Arc<FormerRule>, now: Tick, rest: Duration) -> Self {
        let until = now.after(rest + CLOCKS_DIFFER);
        Self { rule: Arc::clone(rule), since: now, until, keys: None }
    }

    /// Adds what a key of this budget was counted by.
    fn add_to(&self, before: &mut Before, key: KeyHash, budget: &Budget) {
        if self.keys.as_ref().is_some_and(|keys| !keys.contains_key(&key)) {
            return;
        }
        before.since = before.since.max(self.since);
        for former in self.rule.of(key) {
            if former.is_kept_as(budget) {
                // What the store knows under this name may be from before.
                before.of_known = true;
            } else if !before.budgets.iter().any(|known| known.is_kept_as(former)) {
                before.budgets.push(Arc::clone(former));
            }
        }
    }
}

/// All that a limit follows, oldest first. If it changes more often than this before everybody has
/// everything back, the oldest are forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Formers(Vec<Former>);

impl Formers {
    /// Adds one, or has one that is known matter for longer.
    pub(crate) fn add(&mut self, former: Former) {
        let is_same = |known: &&mut Former| {
            let keys = [&known.keys, &former.keys].map(|keys| keys.as_ref().map(Arc::as_ptr));
            Arc::ptr_eq(&known.rule, &former.rule) && keys[0] == keys[1]
        };
        if let Some(known) = self.0.iter_mut().find(is_same) {
            known.until = known.until.max(former.until);
            return;
        }
        self.0.push(former);
        self.0.sort_by_key(|former| former.since);
        let too_many = self.0.len().saturating_sub(MOST);
        self.0.drain(..too_many);
    }

    /// Those of a limit that still matter.
    pub(crate) fn of(limit: &SharedLimit, now: Tick) -> Self {
        let mut formers = Self::default();
        formers.inherit(limit, now);
        formers
    }

    /// Adds those of another limit that still matter.
    pub(crate) fn inherit(&mut self, limit: &SharedLimit, now: Tick) {
        let formers = limit.formers.read().unwrap_or_else(PoisonError::into_inner);
        formers.0.iter().filter(|former| now < former.until).cloned().for_each(|it| self.add(it));
    }
}

impl SharedLimit {
    /// The same limit after others.
    pub(crate) fn following(mut self, formers: Formers) -> Self {
        self.formers = RwLock::new(formers);
        self
    }

    /// From now on keys come from there.
    pub(crate) fn follow(&self, former: Former) {
        self.formers.write().unwrap_or_else(PoisonError::into_inner).add(former);
    }

    /// What a key was counted by before, as long as it matters.
    pub(super) fn before(&self, key: KeyHash, owner: KeyHash) -> Option<Before> {
        let formers = self.formers.read().unwrap_or_else(PoisonError::into_inner);
        if formers.0.is_empty() {
            return None;
        }
        let now = self.clock.now();
        if formers.0.iter().any(|former| now < former.until) {
            let mut before =
                Before { budgets: Vec::new(), since: Tick::ZERO, of_known: false, owner };
            formers.0.iter().filter(|former| now < former.until).for_each(|former| {
                former.add_to(&mut before, key, &self.budget);
            });
            return (!before.budgets.is_empty()).then_some(before);
        }
        drop(formers);
        let mut formers = self.formers.write().unwrap_or_else(PoisonError::into_inner);
        formers.0.retain(|former| now < former.until);
        None
    }
}

impl About {
    /// What is asked about the key.
    pub(super) fn ask(&self, exchange: Exchange) -> Ask {
        let (budget, key) = (Arc::clone(&self.limit.budget), Arc::clone(&self.name));
        let ask = Ask::with_key(budget, key, exchange);
        match self.before() {
            Some(before) => ask.following(before),
            None => ask,
        }
    }

    /// What the key was counted by before, as long as it matters.
    pub(super) fn before(&self) -> Option<Before> {
        self.limit.before(self.key, self.owner)
    }
}

/// So many changes of a limit are remembered, as of one that is not shared.
const MOST: usize = 16;

/// By how much the store's clock may be behind, where a window ends by the clock. To remember for
/// longer does no harm: everything is back by then.
const CLOCKS_DIFFER: Duration = Duration::from_secs(10);

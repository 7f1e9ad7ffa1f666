//! The rules in force, and their counters.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tollgate_core::LimitError;
use tollgate_local::Clock;
use tollgate_rules::{Consistency, Geo, Mode, Rule, RuleSet};
use tollgate_store::Budget;

use crate::engine::Engine;
use crate::engine::counted::{Counted, Making};

/// One version of the rules at work. Requests under way keep it until they end.
#[derive(Debug, Default)]
pub(super) struct Active {
    rules: Arc<RuleSet>,
    /// One for each rule.
    counted: Box<[Arc<Counted>]>,
    has_only_rates: bool,
    is_shared: bool,
    shares_only_rates: bool,
    /// Databases of networks, if rules ask for them: they change more often than rules.
    geo: Option<ArcSwap<Geo>>,
}

impl Active {
    /// These rules, with counters that go on from those of `old` with the same names.
    pub(super) fn succeeding<C: Clock>(
        engine: &Engine<C>,
        rules: Arc<RuleSet>,
        old: Option<&Self>,
    ) -> Result<Self, LimitError> {
        // Counters of another namespace are other counters, whatever their rules are called.
        let old = old.filter(|old| old.rules.namespace() == rules.namespace());
        let known: BTreeMap<&str, &Arc<Counted>> = old.map_or_else(BTreeMap::new, |old| {
            let names = old.rules.rules().iter().map(|rule| rule.name());
            names.zip(&old.counted).collect()
        });
        let limits = |rule: &Rule| rule.limits().len() + rule.override_limits().len();
        let among = rules.rules().iter().map(limits).sum();
        let making = Making { engine, rules: &rules, among, now: engine.clock.anchor() };
        // Rules of the same file, in other modes maybe, count as they did.
        let is_same = old.is_some_and(|old| old.rules.version() == rules.version());
        let counted = rules.rules().iter().map(|rule| match known.get(rule.name()).copied() {
            Some(old) if is_same && old.is_of(rule) => Ok(Arc::clone(old)),
            old => Counted::new(&making, rule, old).map(Arc::new),
        });
        let counted = counted.collect::<Result<Box<[Arc<Counted>]>, _>>()?;
        for (rule, counted) in rules.rules().iter().zip(&counted) {
            if let Some(old) = known.get(rule.name()).filter(|old| !Arc::ptr_eq(old, counted)) {
                counted.tell_of_moved_keys(old, making.now.tick);
                if let Some(sharing) = &engine.sharing {
                    counted.follow_with_moved_keys(old, sharing, making.now.tick);
                }
            }
        }
        let only_rate = |rule: &Rule| {
            let enforced = rule.mode() == Mode::Enforce;
            enforced
                && rule.concurrent().is_none()
                && rule.block_limit().is_none()
                && !rule.counts_outcomes()
        };
        let active = |rule: &&Rule| rule.mode() != Mode::Off;
        let is_shared = engine.sharing.is_some()
            && rules.rules().iter().any(|rule| rule.consistency() != Consistency::Local);
        let only_rates = rules.rules().iter().filter(active).all(only_rate);
        let (has_only_rates, shares_only_rates) =
            (only_rates && !is_shared, only_rates && is_shared);
        let geo = rules.geo().map(|geo| ArcSwap::new(newest(geo, old)));
        Ok(Self { counted, has_only_rates, is_shared, shares_only_rates, geo, rules })
    }

    pub(super) const fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Whether all rules in force limit rates, deny, and count everything: the usual case, which is
    /// decided in the shortest way.
    pub(super) const fn has_only_rates(&self) -> bool {
        self.has_only_rates
    }

    /// The same where some of them are shared with other nodes.
    pub(super) const fn shares_only_rates(&self) -> bool {
        self.shares_only_rates
    }

    /// Whether a rule shares its limits with other nodes.
    pub(super) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// All that requests may ask the store about.
    pub(super) fn shared_budgets(&self) -> Vec<Arc<Budget>> {
        let both = self.rules.rules().iter().zip(&self.counted);
        let asking = both.filter(|(rule, _)| rule.mode() != Mode::Off);
        asking.flat_map(|(_, counted)| counted.shared_budgets()).cloned().collect()
    }

    /// The databases of networks, as they are now.
    #[inline]
    pub(super) const fn geo(&self) -> Option<&ArcSwap<Geo>> {
        self.geo.as_ref()
    }

    /// Those of all rules.
    pub(super) const fn all_counted(&self) -> &[Arc<Counted>] {
        &self.counted
    }

    #[inline]
    pub(super) fn counted(&self, rule: usize) -> &Arc<Counted> {
        &self.counted[rule]
    }
}

/// The databases of networks that rules were read with, or what was read since for rules that have
/// the same ones.
fn newest(geo: &Geo, old: Option<&Active>) -> Arc<Geo> {
    let is_same = |old: &&Active| old.rules.geo().is_some_and(|old| old.shares_with(geo));
    let known = old.filter(is_same).and_then(|old| old.geo.as_ref());
    known.map_or_else(|| Arc::new(geo.clone()), ArcSwap::load_full)
}

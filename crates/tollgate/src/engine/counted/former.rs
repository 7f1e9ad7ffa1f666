//! What shared limits were before rules were exchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Tick;
use tollgate_local::ByHash;

use crate::engine::counted::Counted;
use crate::sharing::{Former, FormerRule, Formers, SharedLimit, Sharing};

/// A rule as those of its limits know it that follow.
pub(super) struct AsFormer {
    rule: Arc<FormerRule>,
    /// What its own limits follow.
    formers: Formers,
}

impl AsFormer {
    /// What a limit follows that takes its place, and gives everything back within `rest`.
    pub(super) fn followed(&self, now: Tick, rest: Duration) -> Formers {
        let mut formers = self.formers.clone();
        formers.add(Former::new(&self.rule, now, rest));
        formers
    }
}

impl Counted {
    pub(super) fn as_former(&self, now: Tick) -> AsFormer {
        let mut formers = Formers::default();
        self.shared.iter().for_each(|shared| formers.inherit(shared, now));
        AsFormer { rule: Arc::new(self.former_rule()), formers }
    }

    fn former_rule(&self) -> FormerRule {
        let budget = |shared: &Arc<SharedLimit>| shared.limiting_budget().cloned();
        let (own, overrides) = self.shared.split_at(self.own.min(self.shared.len()));
        FormerRule {
            own: own.iter().map(budget).collect(),
            overrides: overrides.iter().map(budget).collect(),
            each: self.per_tier,
            overridden: self.overridden.clone(),
        }
    }

    /// Keys that got a limit of their own, or lost it, and so come to a shared limit that others have
    /// had: they bring along what they had spent.
    pub(in crate::engine) fn follow_with_moved_keys(
        &self,
        old: &Self,
        sharing: &Sharing,
        now: Tick,
    ) {
        if self.key != old.key || self.shared.is_empty() || old.shared.is_empty() {
            return;
        }
        let known: BTreeSet<_> = old.shared.iter().map(Arc::as_ptr).collect();
        let mut moved: BTreeMap<usize, ByHash<()>> = BTreeMap::new();
        let keys = self.overridden.iter().chain(old.overridden.iter());
        for (key, _) in keys.filter(|(key, _)| self.has_moved(old, *key)) {
            let (first, count) = match self.overridden.get(key) {
                Some(number) => (self.own + number as usize * self.per_tier, self.per_tier),
                None => (0, self.own),
            };
            for (at, shared) in self.shared.iter().enumerate().skip(first).take(count) {
                // Those that are new know already what was before them.
                if known.contains(&Arc::as_ptr(shared)) {
                    moved.entry(at).or_default().insert(key, ());
                }
            }
        }
        let rule = Arc::new(old.former_rule());
        for (at, keys) in moved {
            let rest = self.limits[at].1.rested_by(now).since(now);
            let former = Former::new(&rule, sharing.now(), rest);
            self.shared[at].follow(Former { keys: Some(Arc::new(keys)), ..former });
        }
    }
}

//! One limit of one rule, as it is shared.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tollgate_core::{Anchor, Decision, Limit, Plan, Retry, Tick};
use tollgate_local::{Counters, Half, KeyHash, Seed, Timer};
use tollgate_rules::{Consistency, OnStoreFailure, Rule};
use tollgate_store::Budget;

use crate::sharing::spend::seen_for;
use crate::sharing::{About, Formers, Sharing};

/// What a rule shares of one of its limits.
pub(crate) struct SharedLimit {
    pub(super) budget: Arc<Budget>,
    /// Keeps its keys apart from those of others.
    salt: Half,
    /// Whether the store decides every request.
    pub(super) is_strict: bool,
    /// Whether what it denies then is denied here for a moment: nobody has asked for more than that the
    /// limit is shared, but it is not lent.
    pub(super) keeps_denials: bool,
    /// How it is counted, if in tokens.
    plan: Option<Plan>,
    consistency: Consistency,
    pub(super) policy: OnStoreFailure,
    /// What this node has let pass lately, and lets pass while the store is gone: in shares of the
    /// limit, of which it has less than all. Nothing for permits.
    pub(super) own: Option<Arc<Counters>>,
    /// What a request costs of that, for each of its own cost, in hundredths.
    pub(super) own_cost: u64,
    /// The most that can be had at once.
    pub(super) capacity: u64,
    /// For permits, how many a node gives out by itself.
    pub(super) own_permits: u64,
    /// What it was before rules were exchanged.
    pub(super) formers: RwLock<Formers>,
    pub(super) clock: Arc<dyn Timer>,
}

impl SharedLimit {
    /// The limit of a rule in a namespace, with the counters of this node alone.
    pub(crate) fn new(
        sharing: &Sharing,
        namespace: &str,
        rule: &Rule,
        limit: &Limit,
        own: &Arc<Counters>,
        (seed, salt): (&Seed, KeyHash),
    ) -> Self {
        let name = name(namespace, rule.name());
        let budget = Budget::new(&name, limit, sharing.config().round_trip, sharing.wall());
        let capacity = limit.capacity().unwrap_or(u64::MAX);
        let shared = Self::of(sharing, rule, budget, capacity, (seed, salt));
        Self {
            own: Some(Arc::clone(own)),
            plan: limit.machine(Anchor::default()).map(|machine| machine.plan()),
            // Logs are strict, whatever rules say.
            keeps_denials: shared.keeps_denials && limit.log_rule().is_none(),
            ..shared
        }
    }

    /// Permits of a rule.
    pub(crate) fn of_permits(
        sharing: &Sharing,
        namespace: &str,
        rule: &Rule,
        most: NonZeroU32,
        (seed, salt): (&Seed, KeyHash),
    ) -> Self {
        let (name, round_trip) = (name(namespace, rule.name()), sharing.config().round_trip);
        let budget = Budget::of_permits(&name, most, round_trip, sharing.wall());
        Self::of(sharing, rule, budget, most.get().into(), (seed, salt))
    }

    fn of(
        sharing: &Sharing,
        rule: &Rule,
        budget: Budget,
        capacity: u64,
        (seed, salt): (&Seed, KeyHash),
    ) -> Self {
        let share = match rule.on_store_failure() {
            OnStoreFailure::Local { share: Some(share) } => share,
            _ => sharing.config().share,
        };
        let share = u64::from(share.clamp(1, 100));
        // What may have to be given back much later has to be where it came from.
        let wants_store = rule.consistency() == Consistency::Strict || rule.counts_outcomes();
        let is_lent = budget.terms().is_some();
        Self {
            is_strict: wants_store || !is_lent,
            keeps_denials: !wants_store && !is_lent,
            plan: None,
            consistency: rule.consistency(),
            budget: Arc::new(budget),
            salt: seed.half(salt),
            policy: rule.on_store_failure(),
            own: None,
            own_cost: 10_000u64.div_ceil(share),
            capacity,
            // More than there are is no harm.
            own_permits: (capacity.saturating_mul(share) / 100).max(1),
            formers: RwLock::default(),
            clock: Arc::clone(sharing.clock()),
        }
    }

    /// Under which a key of the rule is known here.
    #[inline]
    pub(crate) fn owner(&self, key: KeyHash) -> KeyHash {
        self.salt.and(key)
    }

    /// For how long at least what is left stays as much as this denial of so much says. Most are denied because
    /// nothing is left, and come again when there is something; others may hear of more before that.
    pub(super) fn stays(&self, denied: &Decision, cost: u64) -> Duration {
        let (limit, left) = (denied.limit(), denied.remaining());
        // When there is as much as that, if there ever is.
        let (much, wait) = match denied.retry() {
            Some(Retry::After(wait)) => (cost, wait),
            _ => (limit, denied.reset_after()),
        };
        if left >= limit {
            return Duration::MAX;
        }
        let others = much.saturating_sub(left.saturating_add(1));
        match self.plan {
            // All of it comes back at once.
            Some(Plan::Window { .. }) => wait,
            Some(
                Plan::Bucket { per_nano, interval, .. } | Plan::Shape { per_nano, interval, .. },
            ) => {
                let takes = others.saturating_mul(interval).div_ceil(per_nano);
                wait.saturating_sub(Duration::from_nanos(takes))
            }
            _ if others == 0 && cost <= limit => wait,
            // How fast comes back what still counts of the last window is not said.
            _ => Duration::ZERO,
        }
    }

    /// Whether the store decides each request.
    pub(crate) const fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Whether nothing about a key of it is ever known here.
    #[inline]
    pub(crate) const fn is_always_asked(&self) -> bool {
        self.is_strict && !self.keeps_denials
    }

    /// Whether everything passes.
    pub(crate) const fn is_unlimited(&self) -> bool {
        self.capacity == u64::MAX
    }

    /// What it is in the store, if it limits anything.
    pub(crate) fn limiting_budget(&self) -> Option<&Arc<Budget>> {
        (!self.is_unlimited()).then_some(&self.budget)
    }

    /// Whether it was made for such a rule and limit.
    pub(crate) fn is_of(&self, rule: &Rule) -> bool {
        self.policy == rule.on_store_failure() && self.consistency == rule.consistency()
    }

    /// The name of its rule.
    pub(super) fn rule(&self) -> &str {
        let name = self.budget.rule();
        name.split_once('/').map_or(name, |(_, rule)| rule)
    }

    /// What its rule does while the store is gone, with a share in any case: that of the node, unless it
    /// has one of its own.
    pub(super) const fn policy_with(&self, share: u8) -> OnStoreFailure {
        match self.policy {
            OnStoreFailure::Local { share: None } => OnStoreFailure::Local { share: Some(share) },
            policy => policy,
        }
    }

    /// How long a lease lasts.
    pub(super) fn hold(&self) -> Duration {
        self.budget.terms().map_or(Duration::ZERO, |terms| terms.hold())
    }

    /// Takes note of what this node has let pass, in case it has to go on alone.
    pub(super) fn note(&self, about: &About, spent: u64, now: Tick) {
        let Some(own) = self.own.as_ref().filter(|_| spent > 0) else { return };
        let left = own.peek(about.key, 0, now).remaining();
        let _ = own.check_at(about.key, self.shares_of(spent).min(left), now);
    }

    /// What is left of the limit after what this node alone let pass lately; not of permits.
    pub(crate) fn passed_here(&self, key: KeyHash, cost: u64, now: Tick) -> Option<Decision> {
        let said = self.own.as_ref()?.peek(key, 0, now);
        let spent = said.limit().saturating_sub(said.remaining());
        let left = said.limit() - spent.div_ceil((self.own_cost / 100).max(1));
        Some(seen_for(Decision::allow(said.limit(), left, said.reset_after()), cost))
    }

    /// What a request of that cost takes from what this node has for itself. However small that is,
    /// what could pass at all can pass.
    pub(super) fn cost_here(&self, cost: u64) -> u64 {
        self.shares_of(cost).min(self.capacity.max(cost))
    }

    fn shares_of(&self, cost: u64) -> u64 {
        let shares = u128::from(cost) * u128::from(self.own_cost) / 100;
        u64::try_from(shares).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for SharedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimit").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// What a rule is called in the store. Both names may have a `/` in them, and the first one is to be that
/// which ends the namespace: there it is written as `+`, which is a letter that names do not have.
fn name(namespace: &str, rule: &str) -> String {
    let namespace = match namespace.contains(['/', '+', '%']) {
        true => namespace.replace('%', "%25").replace('+', "%2B").replace('/', "+").into(),
        false => Cow::from(namespace),
    };
    format!("{namespace}/{rule}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_without_a_slash_stay_as_they_are() {
        assert_eq!(name("default", "per-user"), "default/per-user");
        assert_eq!(name("shop:eu-1.b_c", "v1/items"), "shop:eu-1.b_c/v1/items");
        assert_eq!(name("shop/eu", "v1/items"), "shop+eu/v1/items");
    }

    /// Texts that are like each other, so that they would collide if any did.
    fn text() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec!["a", "/", "+", "%", "%2B", "%25"]);
        prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn different_namespaces_and_rules_have_different_names(
            all in prop::collection::vec((text(), text()), 2..60),
        ) {
            let mut seen = BTreeMap::new();
            for pair in all {
                let other = seen.insert(name(&pair.0, &pair.1), pair.clone());
                prop_assert!(other.is_none_or(|other| other == pair));
            }
        }
    }
}

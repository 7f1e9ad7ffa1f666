//! The counters of one rule.

mod former;
mod past;
mod states;

pub(super) use states::{Candidate, is_at_rest};

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use tollgate_core::{Anchor, Limit, LimitError, Quota};
use tollgate_local::{Clock, Concurrency, Counters, KeyHash, KeyMap, Past, Seed};
use tollgate_rules::{Attribute, Consistency, Facts, Rule, RuleSet};
use tollgate_store::Budget;

use crate::engine::Engine;
use crate::engine::keys::written_key_hash;
use crate::sharing::{Formers, SharedLimit, Sharing};

/// What a rule counts with. What stays as it is goes on when rules are exchanged.
#[derive(Debug)]
pub(super) struct Counted {
    /// What it counts by: counters of another key would mean something else.
    key: Box<[Attribute]>,
    /// The tiers that have limits of their own, if they differ.
    tiers: Box<[Box<str>]>,
    /// How many limits a tier or an override has.
    per_tier: usize,
    /// The limits of each tier, and then those of each override.
    limits: Box<[Kept]>,
    /// How many of these are the rule's.
    pub(super) own: usize,
    overridden: KeyMap,
    /// Who is being denied everything for a while.
    blocks: Option<Kept>,
    /// What is under way at once, for each tier.
    slots: Box<[Slots]>,
    /// Of each of the limits, how it is shared with other nodes; none if they are not.
    pub(super) shared: Box<[Arc<SharedLimit>]>,
}

/// So many at once, with a way back for those whose holder died.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) most: u32,
    pub(super) concurrency: Concurrency,
    /// How they are shared with other nodes, if they are.
    pub(super) shared: Option<Arc<SharedLimit>>,
}

/// A limit and its counters. The limit is only looked at when rules are exchanged, and kept out of
/// the way of those who look for counters.
type Kept = (Box<Limit>, Arc<Counters>);

/// How many can be under way at once, of all keys of a rule.
const ROOM: usize = 1_000_000;

/// What is around a rule whose counters are made.
pub(super) struct Making<'a, C> {
    pub(super) engine: &'a Engine<C>,
    pub(super) rules: &'a RuleSet,
    /// How many limits there are in all.
    pub(super) among: usize,
    pub(super) now: Anchor,
}

impl Counted {
    /// The counters for a rule. Tiers and overrides whose limits stay as they were under its name
    /// keep theirs.
    pub(super) fn new<C: Clock>(
        making: &Making<'_, C>,
        rule: &Rule,
        old: Option<&Arc<Self>>,
    ) -> Result<Self, LimitError> {
        let old = old.filter(|old| *old.key == *rule.key());
        // A rule about what is under way at once has no limit, and its counters allow everything.
        let none = Limit::token_bucket(Quota::unlimited())?;
        let limits =
            if rule.limits().is_empty() { std::slice::from_ref(&none) } else { rule.limits() };
        let (tiers, overrides) = (making.tiers(rule), old.map(|old| old.overrides()));
        let own = |(at, limit): (usize, &Limit)| {
            let same = old.and_then(|old| old.of_tier(rule, &tiers, at));
            (Box::new(limit.clone()), making.next(limit, same, old, None))
        };
        let mut all: Vec<Kept> = limits.iter().enumerate().map(own).collect();
        for (at, limit) in rule.override_limits().iter().enumerate() {
            let same = overrides.as_ref().and_then(|old| old.get(&limit.to_string()).copied());
            // A key has the limit of its override or the rule's own. It stands in the same memory
            // either way, which can be brought before it is known which: it is that of the first
            // tier, because a key may come with several.
            let beside = all.get(at % rule.limits_per_tier()).map(|(_, own)| &**own);
            let counters = making.next(limit, same, old, beside);
            all.push((Box::new(limit.clone()), counters));
        }
        Ok(Self {
            shared: making.shared(rule, &all, old),
            key: rule.key().into(),
            per_tier: rule.limits_per_tier(),
            limits: all.into(),
            own: limits.len(),
            overridden: making.overridden(rule),
            blocks: rule.block_limit().map(|limit| {
                let same = old.and_then(|old| old.blocks.as_ref());
                let past = same.map(|(_, blocks)| blocks);
                (Box::new(limit.clone()), making.next(limit, same, past, None))
            }),
            slots: making.slots(rule, old)?,
            tiers,
        })
    }

    /// Whether it was made for such a rule, of rules of the same version.
    pub(super) fn is_of(&self, rule: &Rule) -> bool {
        let (own, overriding) = self.limits.split_at(self.own);
        let same =
            |kept: &[Kept], limits: &[Limit]| kept.iter().map(|(limit, _)| &**limit).eq(limits);
        let slots = rule.concurrent().map_or(0, |(most, _)| most.len());
        *self.key == *rule.key()
            && self.per_tier == rule.limits_per_tier()
            && (slots > 0 || same(own, rule.limits()))
            && same(overriding, rule.override_limits())
            && self.slots.len() == slots
            && self.blocks.as_ref().map(|(limit, _)| &**limit) == rule.block_limit()
            && self.shared.iter().all(|shared| shared.is_of(rule))
    }

    /// What counted until now for the limit of that number of `rule`. A tier is the same if it has
    /// the same name. Where all had one limit together, that was the limit of each; where each had
    /// its own, none of them is that of all.
    fn of_tier(&self, rule: &Rule, tiers: &[Box<str>], number: usize) -> Option<&Kept> {
        let each = rule.limits_per_tier();
        let tier = match (tiers.get(number / each), self.tiers.is_empty()) {
            (_, true) => 0,
            (Some(name), false) => self.tiers.iter().position(|known| known == name)?,
            (None, false) => return None,
        };
        let at = tier * each + number % each;
        (self.per_tier == each && at < self.own).then(|| &self.limits[at])
    }

    /// The limits of overrides, by what they are called.
    fn overrides(&self) -> BTreeMap<String, &Kept> {
        self.limits[self.own..].iter().map(|known| (known.0.to_string(), known)).collect()
    }

    /// The counters for a request with this key, unless the key has a limit of its own.
    #[inline]
    pub(super) fn counters(&self, rule: &Rule, facts: &Facts<'_>) -> &Arc<Counters> {
        let number = if self.own == 1 { 0 } else { rule.limit_of(facts, None) };
        &self.limits[number].1
    }

    /// Whether its limits are those of all nodes.
    #[inline]
    pub(super) const fn is_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    /// What the store keeps for the rule.
    pub(super) fn shared_budgets(&self) -> impl Iterator<Item = &Arc<Budget>> {
        let slots = self.slots.iter().filter_map(|slots| slots.shared.as_ref());
        self.shared.iter().chain(slots).filter_map(|shared| shared.limiting_budget())
    }

    /// Whether keys may have limits of their own.
    #[inline]
    pub(super) fn has_overrides(&self) -> bool {
        !self.overridden.is_empty()
    }

    /// Starts to bring what [`overridden`](Self::overridden) will need.
    #[inline]
    pub(super) fn prefetch(&self, key: KeyHash) {
        self.overridden.prefetch(key);
    }

    /// The counters for a request whose key has a limit of its own.
    #[inline]
    pub(super) fn overridden(
        &self,
        rule: &Rule,
        facts: &Facts<'_>,
        key: KeyHash,
    ) -> Option<&Arc<Counters>> {
        let number = self.overridden.get(key)?;
        Some(&self.limits[self.own + rule.limit_of(facts, Some(number as usize))].1)
    }

    pub(super) fn blocks(&self) -> Option<&Arc<Counters>> {
        self.blocks.as_ref().map(|(_, blocks)| blocks)
    }

    /// What is under way at once in a tier, if the rule limits that.
    #[inline]
    pub(super) fn slots(&self, tier: impl FnOnce() -> usize) -> Option<&Slots> {
        match &*self.slots {
            [] => None,
            [one] => Some(one),
            several => several.get(tier()),
        }
    }
}

impl<C: Clock> Making<'_, C> {
    /// The counters for a limit: those of the same limit, or new ones that go on from the past,
    /// beside others.
    fn next<P: Past + 'static>(
        &self,
        limit: &Limit,
        same: Option<&Kept>,
        past: Option<&Arc<P>>,
        beside: Option<&Counters>,
    ) -> Arc<Counters> {
        if let Some((_, counters)) = same.filter(|(known, _)| **known == *limit) {
            return Arc::clone(counters);
        }
        let Engine { table, seed, .. } = self.engine;
        let next = self.engine.next_salt();
        let mut builder =
            Counters::builder(table, limit, self.now, seed.salt(next)).among(self.among);
        if let Some(beside) = beside {
            // No two counters of an engine have the same number within two thousand million.
            let number = 1 + next % (u64::from(u32::MAX / 2) - 1);
            builder = builder.beside(beside, number as u32);
        }
        Arc::new(match past {
            Some(past) => {
                let past: Arc<P> = Arc::clone(past);
                builder.following(past, self.now.tick).build()
            }
            None => builder.build(),
        })
    }

    /// How limits are shared, if they are: as before where they are the same.
    fn shared(
        &self,
        rule: &Rule,
        limits: &[Kept],
        old: Option<&Arc<Counted>>,
    ) -> Box<[Arc<SharedLimit>]> {
        let Some(sharing) = self.sharing(rule).filter(|_| rule.concurrent().is_none()) else {
            return Box::default();
        };
        let old = old.filter(|old| !old.shared.is_empty());
        let now = sharing.now();
        let former = LazyCell::new(|| Some(old?.as_former(now)));
        let same = |counters: &Arc<Counters>| {
            let old = old?;
            let at = old.limits.iter().position(|(_, known)| Arc::ptr_eq(known, counters))?;
            old.shared.get(at)
        };
        let shared = |(limit, counters): &Kept| {
            let formers = match same(counters) {
                Some(same) if same.is_of(rule) => return Arc::clone(same),
                Some(same) => Formers::of(same, now),
                None => former.as_ref().map_or_else(Formers::default, |former| {
                    let rest = counters.rested_by(self.now.tick).since(self.now.tick);
                    former.followed(now, rest)
                }),
            };
            let namespace = self.rules.namespace();
            let new = SharedLimit::new(sharing, namespace, rule, limit, counters, self.salt());
            Arc::new(new.following(formers))
        };
        limits.iter().map(shared).collect()
    }

    /// What a rule shares its limits through, if it does.
    fn sharing(&self, rule: &Rule) -> Option<&Arc<Sharing>> {
        let is_shared = rule.consistency() != Consistency::Local;
        self.engine.sharing.as_ref().filter(|_| is_shared)
    }

    fn salt(&self) -> (&Seed, KeyHash) {
        let seed = &self.engine.seed;
        (seed, seed.salt(self.engine.next_salt()))
    }

    /// The names of the tiers, if the rule has a limit for each.
    fn tiers(&self, rule: &Rule) -> Box<[Box<str>]> {
        match self.rules.tiers() {
            Some(tiers) if rule.limits().len() > rule.limits_per_tier() => {
                tiers.names().map(Into::into).collect()
            }
            _ => Box::default(),
        }
    }

    /// Tiers have their own numbers, and what is under way in common: also what began in another
    /// tier, or when there was another number, counts.
    fn slots(&self, rule: &Rule, old: Option<&Arc<Counted>>) -> Result<Box<[Slots]>, LimitError> {
        let Some((most, expires)) = rule.concurrent() else { return Ok(Box::default()) };
        let known = old.map_or(&[][..], |old| &old.slots);
        let mut home = known.first().map(|old| old.concurrency.clone());
        let slots = |most: &u32| {
            let concurrency = match &home {
                Some(home) => home.resized(*most, expires)?,
                None => Concurrency::new(*most, ROOM)?.resized(*most, expires)?,
            };
            home = Some(concurrency.clone());
            let same = known.iter().find(|known| known.most == *most);
            let same = same.and_then(|same| same.shared.clone());
            let new = || {
                let (sharing, most) = (self.sharing(rule)?, NonZeroU32::new(*most)?);
                let namespace = self.rules.namespace();
                let salt = self.salt();
                Some(SharedLimit::of_permits(sharing, namespace, rule, most, salt).into())
            };
            let shared = same.filter(|same| same.is_of(rule)).or_else(new);
            Ok(Slots { most: *most, concurrency, shared })
        };
        most.iter().map(slots).collect()
    }

    fn overridden(&self, rule: &Rule) -> KeyMap {
        let hash = |(key, number): (&str, usize)| {
            let key = written_key_hash(self.rules, rule, key, &self.engine.seed)?;
            Some((key, u32::try_from(number).ok()?))
        };
        KeyMap::new(rule.overrides().filter_map(hash))
    }
}

//! The counters of one rule.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Anchor, Limit, LimitError, Quota, Tick};
use tollgate_local::{Clock, Concurrency, Counters, KeyHash, KeyMap, Past};
use tollgate_rules::{Attribute, Facts, Rule, RuleSet};

use crate::engine::Engine;
use crate::engine::keys::written_key_hash;

/// What a rule counts with. What stays as it is goes on when rules are exchanged.
#[derive(Debug)]
pub(super) struct Counted {
    /// What it counts by: counters of another key would mean something else.
    key: Box<[Attribute]>,
    /// One for each limit of the rule, and then for each that keys have of their own.
    limits: Box<[(Limit, Arc<Counters>)]>,
    /// How many of these are the rule's.
    own: usize,
    overridden: KeyMap,
    /// Who is being denied everything for a while.
    blocks: Option<(Limit, Arc<Counters>)>,
    /// What is under way at once, for each tier.
    slots: Box<[Slots]>,
}

/// So many at once, with a way back for those whose holder died.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) most: u32,
    expires: Option<Duration>,
    pub(super) concurrency: Arc<Concurrency>,
}

/// How many keys can have something under way at once, for each tier of a rule.
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
    /// The counters for a rule. Limits that there were under its name before keep theirs.
    pub(super) fn new<C: Clock>(
        making: &Making<'_, C>,
        rule: &Rule,
        old: Option<&Arc<Self>>,
    ) -> Result<Self, LimitError> {
        let old = old.filter(|old| *old.key == *rule.key());
        // A rule about what is under way at once has no limit, and its counters allow everything.
        let none = Limit::token_bucket(Quota::unlimited())?;
        let own =
            if rule.limits().is_empty() { std::slice::from_ref(&none) } else { rule.limits() };
        let limits = own.iter().chain(rule.override_limits());
        let counters = |limit: &Limit| {
            let same = old.and_then(|old| old.limits.iter().find(|(known, _)| known == limit));
            let counters = same.map(|(_, counters)| Arc::clone(counters));
            (limit.clone(), counters.unwrap_or_else(|| making.counters(limit, old)))
        };
        Ok(Self {
            key: rule.key().into(),
            limits: limits.map(counters).collect(),
            own: own.len(),
            overridden: making.overridden(rule),
            blocks: rule.block_limit().map(|limit| {
                let same = old.and_then(|old| old.blocks.as_ref()).filter(|(old, _)| old == limit);
                let counters = same.map(|(_, blocks)| Arc::clone(blocks));
                (limit.clone(), counters.unwrap_or_else(|| making.counters(limit, None)))
            }),
            slots: making.slots(rule, old)?,
        })
    }

    /// The counters for a request with this key, unless the key has a limit of its own.
    #[inline]
    pub(super) fn counters(&self, rule: &Rule, facts: &Facts<'_>) -> &Arc<Counters> {
        &self.limits[rule.limit_of(facts, None)].1
    }

    /// Whether keys may have limits of their own.
    #[inline]
    pub(super) const fn has_overrides(&self) -> bool {
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
    fn counters(&self, limit: &Limit, old: Option<&Arc<Counted>>) -> Arc<Counters> {
        let Engine { table, seed, .. } = self.engine;
        let salt = seed.salt(self.engine.next_salt());
        let builder = Counters::builder(table, limit, self.now, salt).among(self.among);
        Arc::new(match old {
            Some(old) => builder.following(Arc::clone(old) as Arc<dyn Past>, self.now.tick).build(),
            None => builder.build(),
        })
    }

    fn slots(&self, rule: &Rule, old: Option<&Arc<Counted>>) -> Result<Box<[Slots]>, LimitError> {
        let Some((most, expires)) = rule.concurrent() else { return Ok(Box::default()) };
        let slots = |(tier, most): (usize, &u32)| {
            let same = old.and_then(|old| old.slots.get(tier));
            let same = same.filter(|old| (old.most, old.expires) == (*most, expires));
            let concurrency = match (same, expires) {
                (Some(same), _) => Arc::clone(&same.concurrency),
                (None, Some(after)) => Arc::new(Concurrency::expiring(*most, ROOM, after)?),
                (None, None) => Arc::new(Concurrency::new(*most, ROOM)?),
            };
            Ok(Slots { most: *most, expires, concurrency })
        };
        most.iter().enumerate().map(slots).collect()
    }

    fn overridden(&self, rule: &Rule) -> KeyMap {
        let hash = |(key, number): (&str, usize)| {
            let key = written_key_hash(self.rules, rule, key, &self.engine.seed)?;
            Some((key, u32::try_from(number).ok()?))
        };
        KeyMap::new(rule.overrides().filter_map(hash))
    }
}

/// What a key had spent under the limits that a rule had before: it has one of them, and if it has
/// gone from one to another, the most counts.
impl Past for Counted {
    fn spent(&self, key: KeyHash, at: Tick) -> u64 {
        self.all_of(key).map(|counters| counters.spent(key, at)).max().unwrap_or(0)
    }

    fn forget(&self, key: KeyHash, now: Tick) -> bool {
        // Each of them, also after one that cannot.
        self.all_of(key).fold(true, |all, counters| counters.forget(key, now) & all)
    }

    fn log(&self, key: KeyHash, at: Tick) -> Option<tollgate_core::Log> {
        let most = self.all_of(key).max_by_key(|counters| counters.spent(key, at))?;
        most.log(key, at)
    }

    fn shorten(&self, changes: usize, now: Tick) {
        for (_, counters) in &self.limits {
            counters.shorten(changes, now);
        }
    }
}

impl Counted {
    fn all_of(&self, key: KeyHash) -> impl Iterator<Item = &Arc<Counters>> {
        let overridden = self.overridden.get(key).map(|number| self.own + number as usize);
        let overridden = overridden.and_then(|at| self.limits.get(at));
        self.limits[..self.own].iter().chain(overridden).map(|(_, counters)| counters)
    }
}

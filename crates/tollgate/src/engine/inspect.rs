//! A look at what single keys have spent, and a way to give it back.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tollgate_core::{Decision, Retry, Tick};
use tollgate_local::{Clock, KeyHash};
use tollgate_rules::{Facts, Mode, OnStoreFailure, Request, Rule, RuleSet, UnknownRule};

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::engine::counted::{Candidate, Counted, is_at_rest};
use crate::engine::keys::{key_hash, key_parts};
use crate::sharing::{Shared, SharedLimit};

/// How a key stands with one limit of a rule.
///
/// ```
/// # use tollgate::{Engine, Request, RuleSet, Under};
/// let engine = Engine::new(RuleSet::parse(
///     "rules: [{ name: per-user, key: [user], limit: 5/h, overrides: { acme: 9/h } }]",
/// )?)?;
/// let request = Request::new("GET", "/").attributes(&[("user", "acme")]);
/// assert!(engine.decide(&request).is_allowed());
/// let state = &engine.inspect(&request)[0];
/// assert_eq!((state.rule.as_str(), &state.under), ("per-user", &Under::Override));
/// assert_eq!(state.key, [("user".to_owned(), "acme".to_owned())]);
/// assert_eq!(state.limit, "token bucket of 9/h");
/// assert_eq!((state.used(), state.decision.limit(), state.decision.remaining()), (1, 9, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyState {
    /// The name of the rule.
    pub rule: String,
    /// Its number among [`RuleSet::rules`].
    pub number: usize,
    /// Whether it denies, only says so, or is off.
    pub mode: Mode,
    /// What it counts by and what that is here, in the order of the rule. In parentheses what
    /// stands for a part that the request lacks.
    pub key: Vec<(String, String)>,
    /// Whose limit it is.
    pub under: Under,
    /// The day on which the key's months begin, if each key has its own.
    pub month_begins: Option<u8>,
    /// The limit in words.
    pub limit: String,
    /// What the limit would say to a request like this, with what remains now; for a rule about
    /// what is under way at once, how many slots there are, and how many are free.
    pub decision: Decision,
    /// How long the key will be denied everything, if it is blocked. Each node blocks for itself.
    pub blocked_for: Option<Duration>,
    /// Who says so.
    pub told_by: ToldBy,
    /// How long ago the store lost its memory, if that weighs on the key: then it may count as used what
    /// nobody has used, because nobody knows any more.
    pub lost_ago: Option<Duration>,
}

/// Whose word it is how a key stands.
///
/// ```
/// # use tollgate::{Engine, Request, RuleSet, ToldBy};
/// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 5/h }]")?)?;
/// assert_eq!(engine.inspect(&Request::new("GET", "/"))[0].told_by, ToldBy::Node);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToldBy {
    /// That of this node, which knows what it let pass itself.
    Node,
    /// That of the store, for all nodes. What it has lent counts as spent.
    Store {
        /// How much of what it has lent lies with this node, and is not spent yet.
        lent_here: u64,
    },
    /// That of this node, because the store did not answer, or could not. The limit is not in force:
    /// the decision is what the rule's policy says, and its numbers are what this node lets pass by it,
    /// which is nothing, its share, or everything.
    NodeAlone {
        /// What the rule does without the store, with the share that it has.
        policy: OnStoreFailure,
        /// How much of what the store has lent before lies with this node, and is spent first.
        lent_here: u64,
        /// Why the store said nothing, in a sentence.
        reason: String,
    },
}

/// Whose limit a key is counted under.
///
/// ```
/// use tollgate::Under;
/// assert_eq!(Under::Tier("free".to_owned()).to_string(), "tier free");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Under {
    /// That of the rule, for everybody.
    Rule,
    /// That of a tier.
    Tier(String),
    /// Its own.
    Override,
}

impl KeyState {
    /// What the key has spent, or how many of its slots are out.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], concurrent: 3 }]")?)?;
    /// let held = engine.decide(&Request::new("GET", "/"));
    /// assert_eq!(engine.inspect(&Request::new("GET", "/"))[0].used(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn used(&self) -> u64 {
        self.decision.limit().saturating_sub(self.decision.remaining())
    }
}

impl std::fmt::Display for Under {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rule => f.write_str("rule"),
            Self::Tier(name) => write!(f, "tier {name}"),
            Self::Override => f.write_str("override"),
        }
    }
}

impl<C: Clock> Engine<C> {
    /// How the keys of a request stand with all rules that can count it, whether they are about
    /// such requests or not: also those that are off, and those that count everybody together. It
    /// is enough if the request says what keys are made of.
    ///
    /// Of a rule whose tiers have limits of their own, the one that the request names. If it names
    /// none, that of requests without one, and all that know of something spent; likewise for days
    /// on which months begin.
    ///
    /// Of a limit that is shared it says what this node let pass;
    /// [`inspect_waiting`](Self::inspect_waiting) asks the store.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse(
    ///     "rules:
    ///   - { name: writes, match: { method: POST }, key: [user], limit: 5/h }
    ///   - { name: per-ip, key: [ip], limit: 5/h }
    ///   - { name: everybody, key: [], limit: 9/h }",
    /// )?)?;
    /// let alice = Request::new("GET", "/").attributes(&[("user", "alice")]);
    /// let states = engine.inspect(&alice);
    /// let names: Vec<_> = states.iter().map(|state| state.rule.as_str()).collect();
    /// assert_eq!(names, ["writes", "everybody"], "nobody said where alice is");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inspect(&self, request: &Request<'_>) -> Vec<KeyState> {
        let mut states = Vec::new();
        let active = self.active.load_full();
        self.each_key(&active, request, None, |look| {
            look.states(Thorough::No, &mut |found| states.push(found.state));
        });
        states
    }

    /// Gives the keys of a request everything back, for one rule or for all that
    /// [`inspect`](Self::inspect) shows, in all tiers, and ends their blocks. Says how many
    /// counters and blocks that changed; those that a key shares with others, for want of room in
    /// the table, stay as they are. Slots come back when what is under way ends.
    ///
    /// Of a limit that is shared only this node's part is given back:
    /// [`reset_waiting`](Self::reset_waiting) has the store forget it.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/h }]")?)?;
    /// let request = Request::new("GET", "/");
    /// assert!(engine.decide(&request).is_allowed());
    /// assert!(!engine.decide(&request).is_allowed());
    /// assert_eq!(engine.reset(&request, Some("a"))?, 1);
    /// assert!(engine.decide(&request).is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no rule of that name. Nothing is reset then.
    pub fn reset(&self, request: &Request<'_>, rule: Option<&str>) -> Result<usize, UnknownRule> {
        let active = self.active.load_full();
        let number = rule.map(|name| active.rules().find(name)).transpose()?;
        let mut reset = 0;
        self.each_key(&active, request, number, |look| {
            reset += look.counted.reset(look.key, look.now);
        });
        Ok(reset)
    }

    /// Calls `found` for each rule, or for the one of that number, whose key the request has.
    pub(super) fn each_key(
        &self,
        active: &Active,
        request: &Request<'_>,
        only: Option<usize>,
        mut found: impl for<'a> FnMut(&Look<'a>),
    ) {
        let mut room = String::new();
        let request = request.normal(&mut room);
        let geo = active.geo().map(ArcSwap::load_full);
        let facts = Facts::new(active.rules(), &request, geo.as_deref());
        let now = self.clock.now();
        for (number, rule) in active.rules().rules().iter().enumerate() {
            let Some(key) = key_hash(rule, &facts, &self.seed) else { continue };
            if only.is_none_or(|only| only == number) {
                let (rules, counted) = (active.rules(), active.counted(number));
                found(&Look { rules, number, rule, counted, facts: &facts, key, now });
            }
        }
    }
}

/// A look at the key of one rule.
pub(super) struct Look<'a> {
    rules: &'a RuleSet,
    pub(super) number: usize,
    pub(super) rule: &'a Rule,
    pub(super) counted: &'a Counted,
    pub(super) facts: &'a Facts<'a>,
    pub(super) key: KeyHash,
    now: Tick,
}

/// Whether limits are looked at that this node knows nothing of, and others may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thorough {
    No,
    WhereShared,
}

/// What one limit says of a key, here.
pub(super) struct Found<'a> {
    pub(super) state: KeyState,
    /// How the limit is shared, if it is.
    pub(super) shared: Option<Shared<'a>>,
    /// Whether it is of interest also if nothing was spent.
    pub(super) is_meant: bool,
}

impl<'a> Look<'a> {
    pub(super) fn states(&self, thorough: Thorough, found: &mut dyn FnMut(Found<'a>)) {
        if let Some(slots) = self.counted.slots(|| self.facts.tier()) {
            let (limit, out) = (u64::from(slots.most), slots.concurrency.out(self.key, self.now));
            let decision = match limit.saturating_sub(out as u64) {
                0 => Decision::deny(limit, 0, Duration::ZERO, Retry::OnReturn),
                free => Decision::allow(limit, free, Duration::ZERO),
            };
            let tiered = self.rule.concurrent().is_some_and(|(most, _)| most.len() > 1);
            let tier = self.rules.tiers().filter(|_| tiered);
            let under = tier
                .map_or(Under::Rule, |tiers| Under::Tier(tiers.name(self.facts.tier()).to_owned()));
            let state = self.state(under, None, format!("{limit} at once"), decision);
            let shared = slots.shared.as_ref().map(|limit| self.shared(limit, 1));
            return found(Found { state, shared, is_meant: true });
        }
        let overridden = self.counted.override_of(self.key);
        let (said, each) = (self.rule.limit_of(self.facts, overridden), self.counted.per_tier());
        // One that is named is the one that counts; whoever names none may have been in any.
        let is_asked = |candidate: &Candidate<'_>| {
            let is_other = overridden.is_none() && candidate.at / each != said / each;
            let may_be = !is_other || !self.facts.names_tier();
            let is_known = || !is_at_rest(candidate.counters, self.key, self.now);
            let others_may = thorough == Thorough::WhereShared && candidate.shared.is_some();
            candidate.at == said || may_be && (others_may || is_known())
        };
        let cost = self.facts.cost(self.rule);
        for candidate in self.counted.candidates(self.key).filter(is_asked) {
            let under = match (overridden, self.counted.tiers().get(candidate.at / each)) {
                (Some(_), _) => Under::Override,
                (None, Some(tier)) => Under::Tier(tier.to_string()),
                (None, None) => Under::Rule,
            };
            // At most the 31st.
            let day = (each > 1).then_some((candidate.at % each + 1) as u8);
            let passed = candidate.shared.and_then(|it| it.passed_here(self.key, cost, self.now));
            let counted = || candidate.counters.peek(self.key, cost, self.now);
            let decision = passed.unwrap_or_else(counted);
            let state = self.state(under, day, candidate.limit.to_string(), decision);
            let shared = candidate.shared.map(|limit| self.shared(limit, cost));
            found(Found { state, shared, is_meant: candidate.at == said });
        }
    }

    pub(super) fn shared(&self, limit: &'a Arc<SharedLimit>, cost: u64) -> Shared<'a> {
        Shared { limit, owner: limit.owner(self.key), key: self.key, cost }
    }

    fn state(
        &self,
        under: Under,
        month_begins: Option<u8>,
        limit: String,
        decision: Decision,
    ) -> KeyState {
        let block = self.counted.blocks().map(|blocks| blocks.peek(self.key, 1, self.now));
        KeyState {
            rule: self.rule.name().to_owned(),
            number: self.number,
            mode: self.rule.mode(),
            key: key_parts(self.rule, self.facts),
            under,
            month_begins,
            limit,
            decision,
            blocked_for: block.and_then(|block| block.retry_after()),
            told_by: ToldBy::Node,
            lost_ago: None,
        }
    }
}

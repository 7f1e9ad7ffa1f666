//! What all rules say about a request.

use std::sync::Arc;

use arc_swap::Guard;
use smallvec::SmallVec;
use tollgate_core::{Decision, Tick};
use tollgate_local::{Counters, KeyHash};
use tollgate_rules::{Mode, Rule, RuleSet, Version};

use crate::engine::active::Active;
use crate::engine::batch::same;
use crate::engine::said::{Said, Sheet};
use crate::engine::shared::HeldSlot;
use crate::engine::under_way::UnderWay;
use crate::sharing::LaterBack;

/// What all rules that apply to a request say together. Slots of rules about what is under way at
/// once are held until it is dropped.
///
/// ```
/// use tollgate::{Engine, Request, RuleSet};
/// let engine = Engine::new(RuleSet::parse(
///     "rules:
///   - { name: per-user, key: [user], limit: 5/min }
///   - { name: everybody, key: [], limit: 100/min }
///   - { name: trial, key: [], limit: 1/min, mode: shadow }",
/// )?)?;
/// let request = Request::new("GET", "/").attributes(&[("user", "alice")]);
/// assert!(engine.decide(&request).is_allowed());
/// let ruling = engine.decide(&request);
/// assert!(ruling.is_allowed(), "a rule in shadow denies nothing");
/// assert_eq!(ruling.rule(), Some("per-user"), "the strictest is reported");
/// let each: Vec<_> = ruling.each().map(|each| (each.name(), each.is_allowed())).collect();
/// assert_eq!(each, [("per-user", true), ("everybody", true), ("trial", false)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a ruling may be a denial"]
pub struct Ruling {
    active: Guard<Arc<Active>>,
    said: Sheet,
}

/// What a request was charged until its outcome is known.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) rule: usize,
    pub(super) spent: Spent,
}

/// From where.
#[derive(Debug)]
pub(super) enum Spent {
    Here { counters: Arc<Counters>, key: KeyHash, cost: u64, at: Tick },
    Shared(LaterBack),
}

impl Ruling {
    /// One to which what rules say is to be written.
    #[inline(always)]
    pub(super) fn new(active: Guard<Arc<Active>>) -> Self {
        Self { active, said: Sheet::new() }
    }

    /// Forgets what was said, for the next request. Slots are given back.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.said.clear();
    }

    /// What was said, on its own: as new as `loaded`, mostly.
    pub(super) fn take(&mut self, loaded: Guard<Arc<Active>>) -> Self {
        let said = std::mem::replace(&mut self.said, Sheet::new());
        Self { active: same(&self.active, loaded), said }
    }

    /// What was said before.
    pub(super) fn of(active: Guard<Arc<Active>>, said: Said) -> Self {
        Self { active, said: Sheet::of(said) }
    }

    #[inline]
    pub(super) fn parts(&mut self) -> (&Active, &mut Said) {
        (&self.active, &mut self.said)
    }

    /// Whether the request may pass.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 1/s }]")?)?;
    /// assert!(engine.decide(&Request::new("GET", "/")).is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_allowed(&self) -> bool {
        !self.said.denied
    }

    /// The strictest decision; one without any limit if no rule applies.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// assert_eq!(engine.decide(&Request::new("GET", "/")).decision().remaining(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decision(&self) -> Decision {
        self.strictest().map_or_else(Decision::unlimited, |each| each.decision)
    }

    /// The name of the rule whose decision that is.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// assert_eq!(engine.decide(&Request::new("GET", "/")).rule(), Some("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rule(&self) -> Option<&str> {
        self.strictest().map(|each| each.name())
    }

    /// What each rule that applies says, in the order of the file.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// assert_eq!(engine.decide(&Request::new("GET", "/")).each().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn each(&self) -> impl ExactSizeIterator<Item = RuleDecision<'_>> {
        let rules = self.active.rules().rules();
        self.said.rules.iter().zip(&self.said.each).map(|(number, decision)| RuleDecision {
            number: *number as usize,
            rule: &rules[*number as usize],
            decision: *decision,
        })
    }

    /// The rules that decided. They may have been [exchanged](crate::Engine::exchange) since.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: old, key: [], limit: 3/s }]")?)?;
    /// let ruling = engine.decide(&Request::new("GET", "/"));
    /// engine.exchange(RuleSet::parse("rules: [{ name: new, key: [], limit: 3/s }]")?)?;
    /// assert_eq!(ruling.rules().rules()[0].name(), "old");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rules(&self) -> &RuleSet {
        self.active.rules()
    }

    /// What the content of these rules is called.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// let ruling = engine.decide(&Request::new("GET", "/"));
    /// assert_eq!(ruling.version(), engine.rules().version());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn version(&self) -> Version {
        self.rules().version()
    }

    /// Whether it matters how and when the request ends: it holds slots, or was charged by rules
    /// that count only some outcomes. If not, the ruling can be dropped without a
    /// [report](crate::Engine::report).
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse(
    ///     "rules:
    ///   - { name: all, key: [], limit: 3/s }
    ///   - { name: exports, match: { path: /export }, key: [], concurrent: 3 }",
    /// )?)?;
    /// assert!(!engine.decide(&Request::new("GET", "/")).needs_report());
    /// assert!(engine.decide(&Request::new("GET", "/export")).needs_report());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn needs_report(&self) -> bool {
        !self.said.reserved.is_empty() || !self.said.held.is_empty()
    }

    /// What of it a request under way needs, to be kept until it ends.
    ///
    /// ```
    /// # use tollgate::{Engine, Outcome, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], concurrent: 1 }]")?)?;
    /// let request = Request::new("GET", "/");
    /// let under_way = engine.decide(&request).keep();
    /// let ended = Outcome { status: Some(200), headers: &[] };
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| engine.report(under_way, &request, &ended));
    /// });
    /// assert!(engine.decide(&request).is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep(self) -> UnderWay {
        let Self { active, mut said } = self;
        let Said { reserved, held, .. } = &mut *said;
        let (reserved, held) = (std::mem::take(reserved), std::mem::take(held));
        UnderWay::new(|| Guard::into_inner(active), reserved, held)
    }

    /// The same from a ruling that is [lent](crate::Engine::decide_each).
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], concurrent: 1 }]")?)?;
    /// let requests = [Request::new("GET", "/"); 2];
    /// let (mut under_way, mut allowed) = (Vec::new(), Vec::new());
    /// engine.decide_each(&requests, |_, ruling| {
    ///     allowed.push(ruling.is_allowed());
    ///     under_way.push(ruling.take_under_way());
    /// });
    /// assert_eq!(allowed, [true, false], "the first has the slot");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_under_way(&mut self) -> UnderWay {
        let Said { reserved, held, .. } = &mut *self.said;
        let (reserved, held) = (std::mem::take(reserved), std::mem::take(held));
        UnderWay::new(|| Arc::clone(&self.active), reserved, held)
    }

    /// The rule that both are of: the first of the strictest that are enforced. For whoever asks for
    /// more than one of them.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// let ruling = engine.decide(&Request::new("GET", "/"));
    /// let strictest = ruling.strictest().expect("one rule applies");
    /// assert_eq!((strictest.name(), strictest.decision().remaining()), ("a", 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn strictest(&self) -> Option<RuleDecision<'_>> {
        let enforced = self.each().filter(|each| each.mode() == Mode::Enforce);
        enforced.reduce(|so_far, each| {
            match so_far.decision.stricter(each.decision) == so_far.decision {
                true => so_far,
                false => each,
            }
        })
    }

    /// The slots that it holds: the rest of it is let go.
    pub(super) fn into_held(mut self) -> SmallVec<[HeldSlot; 1]> {
        std::mem::take(&mut self.said.held)
    }
}

impl std::fmt::Debug for Ruling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.each()).finish()
    }
}

/// What one rule says about a request.
///
/// ```
/// # use tollgate::{Engine, Mode, Request, RuleSet};
/// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
/// let ruling = engine.decide(&Request::new("GET", "/"));
/// let each = ruling.each().next().expect("one rule applies");
/// assert_eq!((each.name(), each.decision().remaining(), each.mode()), ("a", 2, Mode::Enforce));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct RuleDecision<'a> {
    number: usize,
    rule: &'a Rule,
    decision: Decision,
}

impl<'a> RuleDecision<'a> {
    /// The rule.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// let ruling = engine.decide(&Request::new("GET", "/"));
    /// assert!(ruling.each().all(|each| each.rule().key().is_empty()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn rule(&self) -> &'a Rule {
        self.rule
    }

    /// Its number: its place among the [rules](Ruling::rules) that decided.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse(
    ///     "rules:
    ///   - { name: a, match: { method: PUT }, key: [], limit: 3/s }
    ///   - { name: b, key: [], limit: 3/s }",
    /// )?)?;
    /// let ruling = engine.decide(&Request::new("GET", "/"));
    /// let numbers: Vec<_> = ruling.each().map(|each| each.number()).collect();
    /// assert_eq!(numbers, [1], "that of `b`");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn number(&self) -> usize {
        self.number
    }

    /// Its name.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// assert!(engine.decide(&Request::new("GET", "/")).each().all(|each| each.name() == "a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> &'a str {
        self.rule.name()
    }

    /// Whether it denies, or only says so.
    ///
    /// ```
    /// # use tollgate::{Engine, Mode, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// let ruling = engine.decide(&Request::new("GET", "/"));
    /// assert!(ruling.each().all(|each| each.mode() == Mode::Enforce));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn mode(&self) -> Mode {
        self.rule.mode()
    }

    /// What it says.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// let ruling = engine.decide(&Request::new("GET", "/"));
    /// assert!(ruling.each().all(|each| each.decision().limit() == 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn decision(&self) -> Decision {
        self.decision
    }

    /// Whether it would let the request pass.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// # let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 3/s }]")?)?;
    /// assert!(engine.decide(&Request::new("GET", "/")).each().all(|each| each.is_allowed()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn is_allowed(&self) -> bool {
        self.decision.is_allowed()
    }

    /// The highest percentage of `warn_at` that the key has reached.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse(
    ///     "rules: [{ name: a, key: [], limit: 4/h, warn_at: [50%, 90%] }]",
    /// )?)?;
    /// let warning = || engine.decide(&Request::new("GET", "/")).each().next()?.warning();
    /// assert_eq!([warning(), warning(), warning(), warning()], [None, Some(50), Some(50), Some(90)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn warning(&self) -> Option<u8> {
        let (limit, remaining) = (self.decision.limit(), self.decision.remaining());
        let used = u128::from(limit.saturating_sub(remaining)) * 100;
        let reached = |percent: &&u8| used >= u128::from(**percent) * u128::from(limit);
        self.rule.warn_at().iter().rev().find(reached).copied()
    }
}

impl std::fmt::Debug for RuleDecision<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}", self.name(), self.decision)
    }
}

//! The way of a request through the rules that apply to it.
//!
//! ```text
//!   blocked? a slot free?   of each rule that asks: a denial ends it, and nothing is spent
//!      |
//!   rates                   all or nothing
//!      |
//!   shadows                 count what passes, and deny nothing
//!      |
//!   blocks begin            of each rule that says no, also of one in shadow
//! ```

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use smallvec::SmallVec;
use tollgate_core::{Decision, Retry, Tick};
use tollgate_local::{Clock, Counters, KeyHash};
use tollgate_rules::{Facts, Mode, Request, Rule};

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::engine::counted::{Counted, Slots};
use crate::engine::keys::key_hash;
use crate::engine::ruling::{Reserved, Ruling, Spent};
use crate::engine::said::Said;
use crate::sharing::{Asking, Back, Lacks, Reserve, Wait};
use crate::spending::{Each, Spending, look_each, spend_all, spend_all_at};

/// Whether a request is let in, or only asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Spend,
    Look,
}

/// A rule that a request meets.
#[derive(Clone, Copy)]
pub(super) struct Met<'a> {
    pub(super) number: usize,
    pub(super) rule: &'a Rule,
    pub(super) counted: &'a Counted,
    pub(super) spending: Spending<'a>,
}

impl<'a> AsRef<Spending<'a>> for Met<'a> {
    #[inline(always)]
    fn as_ref(&self) -> &Spending<'a> {
        &self.spending
    }
}

impl<C: Clock> Engine<C> {
    #[inline]
    pub(super) fn rule(
        &self,
        request: &Request<'_>,
        intent: Intent,
        reserve: Option<&mut Reserve>,
    ) -> Ruling {
        let mut ruling = Ruling::new(self.active.load());
        let (active, said) = ruling.parts();
        // Whoever does not wait lacks nothing.
        let _ = self.ask(active, request, (intent, Asking::Now), reserve, said);
        if intent == Intent::Spend {
            self.watch(active, request, said);
        }
        ruling
    }

    /// What has to be waited for, if something has: then nothing was said or spent. It is boxed, because
    /// nearly always there is nothing to hand over.
    pub(super) fn ask(
        &self,
        active: &Active,
        request: &Request<'_>,
        (intent, asking): (Intent, Asking),
        reserve: Option<&mut Reserve>,
        said: &mut Said,
    ) -> Option<Box<Wait>> {
        let rules = active.rules();
        let (mut room, normal);
        let request = match request.is_normal() {
            true => request,
            false => {
                room = String::new();
                normal = request.normal(&mut room);
                &normal
            }
        };
        let geo = active.geo().map(ArcSwap::load);
        let facts = Facts::new(rules, request, geo.as_ref().map(|geo| &***geo));
        let mut all: Each<Met<'_>> = Each::new();
        rules.each_matching(&facts, |number, rule| {
            // A request that lacks a part of the key does not meet the rule.
            let Some(key) = key_hash(rule, &facts, &self.seed) else { return };
            let counted = &**active.counted(number);
            let counters = counted.counters(rule, &facts);
            self.prefetch((rule, counted, counters), &facts, key);
            let spending = Spending { counters, key, cost: facts.cost(rule) };
            all.push(Met { number, rule, counted, spending });
            // There are at most 100,000 rules.
            said.rules.push(number as u32);
        });
        for met in &mut all {
            met.resolve(&facts);
        }
        let wait = match active.has_only_rates() {
            true => {
                self.ask_rates(&all, intent, said);
                None
            }
            false
                if reserve.is_none()
                    && self.is_lent(active, &all, &facts, (intent, asking), said) =>
            {
                None
            }
            false => {
                let together = Together::one(&facts, said, all.len());
                self.ask_all(&all, together, (intent, asking), reserve)
            }
        };
        self.fail(facts.failures());
        wait
    }

    /// Asks for the memory that a decision will need.
    #[inline(always)]
    pub(super) fn prefetch(
        &self,
        (rule, counted, counters): (&Rule, &Counted, &Counters),
        facts: &Facts<'_>,
        key: KeyHash,
    ) {
        // A key that has a limit of its own stands in the same memory. Which it has is found out when
        // that of all rules is under way.
        counted.prefetch(key);
        match &self.sharing {
            Some(sharing) if counted.is_shared() && !counted.has_overrides() => {
                match counted.shared(rule, facts, key) {
                    // What the store decides is noted here.
                    Some(limit) if limit.is_strict() => counters.prefetch(key),
                    Some(limit) => sharing.prefetch(limit.owner(key)),
                    None => {}
                }
            }
            _ => counters.prefetch(key),
        }
    }

    /// Where there are only rates, and all of them are enforced.
    #[inline]
    fn ask_rates(&self, all: &[Met<'_>], intent: Intent, said: &mut Said) {
        match intent {
            Intent::Spend => _ = spend_all(all, &self.clock, &mut said.each),
            Intent::Look => said.each = look_each(all, self.clock.now()),
        }
        said.denied = said.each.iter().any(|decision| !decision.is_allowed());
    }

    /// The same for whoever spends, at a time that was read before.
    #[inline]
    pub(super) fn ask_rates_at(&self, all: &[Met<'_>], now: Tick, said: &mut Said) {
        spend_all_at(all, &self.clock, now, &mut said.each);
        said.denied = said.each.iter().any(|decision| !decision.is_allowed());
    }

    #[inline(never)]
    pub(super) fn ask_all(
        &self,
        all: &[Met<'_>],
        together: Together<'_, '_>,
        (intent, asking): (Intent, Asking),
        mut reserve: Option<&mut Reserve>,
    ) -> Option<Box<Wait>> {
        if let Some(reserve) = &mut reserve {
            reserve.begin();
        }
        let mut way = Way {
            engine: self,
            together,
            all,
            states: SmallVec::from_elem(State::Open, all.len()),
            intent,
            asking,
            reserve,
            lacks: Lacks::new(),
            spent: SmallVec::new(),
            now: Tick::ZERO,
        };
        way.begin();
        way.shared_rates(intent);
        way.rates();
        if let Some(wait) = way.settle() {
            return Some(Box::new(wait));
        }
        way.shadows();
        way.block(intent);
        let Way { states, together: Together { said, ends, .. }, .. } = &mut way;
        let mut begin = 0;
        for (said, end) in said.iter_mut().zip(ends.iter().copied()) {
            said.each.clear();
            said.each.extend(states[begin..end].iter().map(State::decision));
            begin = end;
        }
        None
    }
}

impl Met<'_> {
    /// Finds out whether the key has a limit of its own.
    #[inline(always)]
    pub(super) fn resolve(&mut self, facts: &Facts<'_>) {
        if self.counted.has_overrides() {
            self.override_limit(facts);
        }
    }

    #[inline]
    fn override_limit(&mut self, facts: &Facts<'_>) {
        if let Some(own) = self.counted.overridden(self.rule, facts, self.spending.key) {
            self.spending.counters = own;
            own.prefetch(self.spending.key);
        }
    }

    fn enforces(&self) -> bool {
        self.rule.mode() == Mode::Enforce
    }
}

/// How far the decision of a rule is.
#[derive(Clone, Copy)]
pub(super) enum State {
    /// Its rate is to be asked.
    Open,
    Decided(Decision),
}

impl State {
    fn decision(&self) -> Decision {
        match self {
            Self::Open => Decision::unlimited(),
            Self::Decided(decision) => *decision,
        }
    }
}

/// A denial that lasts at least as long as a block.
fn blocked(decision: Decision, block: Decision, retry: Retry) -> Decision {
    let (Some(wait), Retry::After(own)) = (block.retry_after(), retry) else { return decision };
    let (wait, reset) = (wait.max(own), decision.reset_after().max(wait));
    Decision::deny(decision.limit(), 0, reset, Retry::After(wait))
}

/// Requests that pass together or not at all: mostly there is one.
pub(super) struct Together<'w, 'a> {
    /// What is known of each.
    pub(super) facts: &'w [Facts<'a>],
    /// What comes of each.
    pub(super) said: &'w mut [Said],
    /// Where the rules of each end, among those that are met.
    pub(super) ends: Ends<'w>,
}

/// Ends of parts of a list, in order.
#[derive(Clone, Copy)]
pub(super) enum Ends<'w> {
    One([usize; 1]),
    Several(&'w [usize]),
}

impl<'w, 'a> Together<'w, 'a> {
    pub(super) fn one(facts: &'w Facts<'a>, said: &'w mut Said, end: usize) -> Self {
        let (facts, said) = (std::slice::from_ref(facts), std::slice::from_mut(said));
        Self { facts, said, ends: Ends::One([end]) }
    }

    /// Whose rule this is.
    pub(super) fn of(&self, at: usize) -> usize {
        // All rules are before the last end.
        self.ends.partition_point(|end| *end <= at).min(self.facts.len() - 1)
    }
}

impl std::ops::Deref for Ends<'_> {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        match self {
            Self::One(end) => end,
            Self::Several(ends) => ends,
        }
    }
}

/// Requests under way.
pub(super) struct Way<'w, 'a, C> {
    pub(super) engine: &'w Engine<C>,
    pub(super) together: Together<'w, 'a>,
    pub(super) all: &'w [Met<'w>],
    /// One for each of these.
    pub(super) states: Each<State>,
    pub(super) intent: Intent,
    pub(super) asking: Asking,
    /// What is kept for them.
    pub(super) reserve: Option<&'w mut Reserve>,
    /// What only the store can say.
    pub(super) lacks: Lacks,
    /// What was spent of shared limits, and how it is given back.
    pub(super) spent: SmallVec<[(usize, Back); 2]>,
    /// When limits are asked that are shared.
    pub(super) now: Tick,
}

impl<C: Clock> Way<'_, '_, C> {
    /// What rules say before their rates are asked.
    fn begin(&mut self) {
        for at in 0..self.all.len() {
            let met = self.all[at];
            let of = self.together.of(at);
            if let Some(slots) = met.counted.slots(|| self.together.facts[of].tier()) {
                let decision = self.slot((of, at), slots, met.spending.key);
                self.decide(at, decision);
            } else if let Some(blocks) = met.counted.blocks() {
                let now = self.engine.clock.now();
                let Spending { counters, key, cost } = met.spending;
                let block = blocks.peek(key, 1, now);
                if !block.is_allowed() {
                    let own = counters.peek(key, cost, now);
                    let retry = Retry::After(own.retry_after().unwrap_or(Duration::ZERO));
                    self.decide(at, blocked(own, block, retry));
                }
            }
        }
    }

    /// From the first denial on nothing is spent, and nothing is held.
    pub(super) fn decide(&mut self, at: usize, decision: Decision) {
        self.states[at] = State::Decided(decision);
        if !decision.is_allowed() && self.all[at].enforces() {
            self.together.said[self.together.of(at)].denied = true;
            self.intent = Intent::Look;
            self.give_slots_back();
        }
    }

    /// Has rules whose slots were held say what is free without them.
    fn give_slots_back(&mut self) {
        if self.together.said.iter().all(|said| said.held.is_empty()) {
            return;
        }
        self.together.said.iter_mut().for_each(|said| said.held.clear());
        for at in 0..self.all.len() {
            let (met, state) = (self.all[at], self.states[at]);
            let State::Decided(decision) = state else { continue };
            let of = self.together.of(at);
            if let Some(slots) = met.counted.slots(|| self.together.facts[of].tier())
                && decision.is_allowed()
            {
                self.states[at] = State::Decided(self.slot((of, at), slots, met.spending.key));
            }
        }
    }

    /// Takes a slot, or only looks whether there is one.
    fn slot(&mut self, (of, at): (usize, usize), slots: &Slots, key: KeyHash) -> Decision {
        let (limit, now) = (u64::from(slots.most), self.engine.clock.now());
        if self.intent == Intent::Spend {
            match slots.concurrency.acquire(key, now) {
                Ok(held) if slots.shared.is_some() => {
                    let out = slots.concurrency.out(key, now) as u64;
                    if let Some(denied) = self.slot_of_all((of, at), held, out) {
                        return denied;
                    }
                }
                Ok(held) => self.together.said[of].held.push(held.into()),
                Err(denied) => return denied,
            }
        }
        let free = limit.saturating_sub(slots.concurrency.out(key, now) as u64);
        match free == 0 && self.intent == Intent::Look {
            true => Decision::deny(limit, 0, Duration::ZERO, Retry::OnReturn),
            false => Decision::allow(limit, free, Duration::ZERO),
        }
    }

    /// Asks the rates of all rules that are enforced, all or nothing.
    fn rates(&mut self) {
        let open = |at: &usize| {
            let met = &self.all[*at];
            met.enforces() && self.is_open(*at) && !met.counted.is_shared()
        };
        let open: Each<usize> = (0..self.all.len()).filter(open).collect();
        if open.is_empty() {
            return;
        }
        let spending: Each<_> = open.iter().map(|at| self.all[*at].spending).collect();
        let clock = &self.engine.clock;
        let mut each = Each::new();
        let times = match self.intent {
            Intent::Spend if self.lacks.is_empty() => Some(spend_all(&spending, clock, &mut each)),
            // Also for whoever has to wait first.
            Intent::Spend | Intent::Look => {
                each = look_each(&spending, clock.now());
                None
            }
        };
        for (index, (at, decision)) in open.into_iter().zip(each).enumerate() {
            if let Some(then) = times.as_ref().and_then(|times| times.of(index)) {
                self.reserve(at, then);
            }
            self.decide(at, decision);
        }
    }

    /// What was spent may have to be given back once the outcome is known.
    fn reserve(&mut self, at: usize, then: Tick) {
        let Met { number, rule, counted, spending } = self.all[at];
        if rule.counts_outcomes() {
            let Spending { key, cost, .. } = spending;
            let of = self.together.of(at);
            let facts = &self.together.facts[of];
            let own = counted.overridden(rule, facts, key);
            let counters = Arc::clone(own.unwrap_or_else(|| counted.counters(rule, facts)));
            let spent = Spent::Here { counters, key, cost, at: then };
            let reserved = Reserved { rule: number, spent };
            self.together.said[of].reserved.push(reserved);
        }
    }

    /// Rules in shadow count what passes, each for itself.
    fn shadows(&mut self) {
        for at in 0..self.all.len() {
            if matches!(self.states[at], State::Decided(_)) {
                continue;
            }
            let (Spending { counters, key, cost }, clock) =
                (self.all[at].spending, &self.engine.clock);
            let mut now = clock.now();
            let decision = match self.intent {
                Intent::Spend => counters.check_with(key, cost, clock, &mut now),
                Intent::Look => counters.peek(key, cost, now),
            };
            if decision.is_allowed() && self.intent == Intent::Spend {
                self.reserve(at, now);
            }
            self.decide(at, decision);
        }
    }

    /// A key to which a rule says no is told so for a while, if the rule has blocks. One in shadow
    /// does the same, or it would not say what it will do once it is enforced.
    fn block(&mut self, intent: Intent) {
        for (met, state) in self.all.iter().zip(&mut self.states) {
            let (Some(blocks), decision) = (met.counted.blocks(), state.decision()) else {
                continue;
            };
            let Some(retry @ Retry::After(_)) = decision.retry() else { continue };
            let (key, clock) = (met.spending.key, &self.engine.clock);
            if intent == Intent::Spend {
                // Who is blocked already spends nothing here, and so is not blocked for longer.
                let _ = blocks.check(key, 1, clock);
            }
            let block = blocks.peek(key, 1, clock.now());
            *state = State::Decided(match (block.is_allowed(), met.rule.block_for()) {
                // It would begin now.
                (true, Some(span)) => {
                    let block = Decision::deny(1, 0, span, Retry::After(span));
                    blocked(decision, block, retry)
                }
                _ => blocked(decision, block, retry),
            });
        }
    }
}

//! Many requests at once: the rules of all are found, and their memory is on its way, before the
//! first is decided.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use smallvec::SmallVec;
use tollgate_core::Tick;
use tollgate_local::Clock;
use tollgate_rules::{Facts, Request};

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::engine::decide::{Intent, Met, Together};
use crate::engine::keys::key_hash;
use crate::engine::ruling::Ruling;
use crate::sharing::{Asking, Reserve};
use crate::spending::Spending;

/// So many requests are brought side by side. With three rules each that is as much memory as a
/// processor can have under way.
const GROUP: usize = 16;

/// The rules that several requests meet, one after the other.
pub(super) type AllMet<'a> = SmallVec<[Met<'a>; 4 * GROUP]>;

impl<C: Clock> Engine<C> {
    /// Decides many requests in order, and calls `each` with the place and the ruling of each, as
    /// [`decide`](Self::decide) would rule one after the other. Memory is brought for several at
    /// once, and the clock is read once for them where only rates are limited: what `each` does
    /// should not take long.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [path], limit: 1/h }]")?)?;
    /// let requests = ["/a", "/b", "/a"].map(|path| Request::new("GET", path));
    /// let mut allowed = Vec::new();
    /// engine.decide_batch(&requests, |_, ruling| allowed.push(ruling.is_allowed()));
    /// assert_eq!(allowed, [true, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide_batch(&self, requests: &[Request<'_>], each: impl FnMut(usize, Ruling)) {
        self.decide_batch_with(requests, &mut Reserve::default(), each);
    }

    /// The same with what was [kept](Self::reserve) for these requests.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Reserve, Ruling};
    /// fn decide(engine: &Engine, requests: &[Request<'_>], mut reserve: Reserve) -> Vec<Ruling> {
    ///     let mut rulings = Vec::new();
    ///     engine.decide_batch_with(requests, &mut reserve, |_, ruling| rulings.push(ruling));
    ///     rulings
    /// }
    /// ```
    pub fn decide_batch_with(
        &self,
        requests: &[Request<'_>],
        reserve: &mut Reserve,
        mut each: impl FnMut(usize, Ruling),
    ) {
        self.decide_each_with(requests, reserve, |at, ruling| {
            each(at, ruling.take(self.active.load()));
        });
    }

    /// The same for whoever only looks at rulings: one is lent for all of them, so none needs memory
    /// or a pointer to the rules of its own. What of it a request under way needs is to
    /// be [taken](Ruling::take_under_way) out of it, or it ends with the call.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [path], limit: 1/h }]")?)?;
    /// let requests = ["/a", "/b", "/a"].map(|path| Request::new("GET", path));
    /// let mut allowed = 0;
    /// engine.decide_each(&requests, |_, ruling| allowed += u32::from(ruling.is_allowed()));
    /// assert_eq!(allowed, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide_each(&self, requests: &[Request<'_>], each: impl FnMut(usize, &mut Ruling)) {
        self.decide_each_with(requests, &mut Reserve::default(), each);
    }

    /// The same with what was [kept](Self::reserve) for these requests.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Reserve};
    /// fn allowed(engine: &Engine, requests: &[Request<'_>], mut reserve: Reserve) -> usize {
    ///     let mut allowed = 0;
    ///     engine.decide_each_with(requests, &mut reserve, |_, ruling| {
    ///         allowed += usize::from(ruling.is_allowed());
    ///     });
    ///     allowed
    /// }
    /// ```
    pub fn decide_each_with(
        &self,
        requests: &[Request<'_>],
        reserve: &mut Reserve,
        mut each: impl FnMut(usize, &mut Ruling),
    ) {
        for (number, group) in requests.chunks(GROUP).enumerate() {
            let first = number * GROUP;
            match group {
                [one] => each(first, &mut self.decide_with(one, reserve)),
                several => self.decide_group(several, first, reserve, &mut each),
            }
        }
    }

    fn decide_group(
        &self,
        requests: &[Request<'_>],
        first: usize,
        reserve: &mut Reserve,
        each: &mut impl FnMut(usize, &mut Ruling),
    ) {
        let active = self.active.load();
        let (mut rooms, in_usual_form): (Vec<String>, Vec<Request<'_>>);
        let normal = match requests.iter().all(Request::is_normal) {
            true => requests,
            false => {
                rooms = vec![String::new(); requests.len()];
                let pairs = requests.iter().zip(&mut rooms);
                in_usual_form = pairs.map(|(request, room)| request.normal(room)).collect();
                &in_usual_form
            }
        };
        let geo = active.geo().map(ArcSwap::load);
        let geo = geo.as_ref().map(|geo| &***geo);
        let facts = normal.iter().map(|request| Facts::new(active.rules(), request, geo));
        let facts: SmallVec<[Facts<'_>; GROUP]> = facts.collect();

        let (mut all, mut ends) = (SmallVec::new(), SmallVec::<[usize; GROUP]>::new());
        for facts in &facts {
            self.meet(&active, facts, &mut all);
            ends.push(all.len());
        }
        let mut begin = 0;
        for (facts, end) in facts.iter().zip(&ends) {
            for met in &mut all[begin..*end] {
                met.resolve(facts);
            }
            begin = *end;
        }

        let (mut begin, mut now) = (0, None);
        let mut ruling = Ruling::new(same(&active, self.active.load()));
        for (at, ((facts, request), end)) in facts.iter().zip(requests).zip(&ends).enumerate() {
            self.rule_met((facts, request), &all[begin..*end], &mut now, reserve, &mut ruling);
            begin = *end;
            each(first + at, &mut ruling);
            ruling.clear();
        }
    }

    /// Finds the rules that a request meets, and asks for the memory of its keys.
    #[inline]
    pub(super) fn meet<'a>(&self, active: &'a Active, facts: &Facts<'a>, all: &mut AllMet<'a>) {
        active.rules().each_matching(facts, |number, rule| {
            // A request that lacks a part of the key does not meet the rule.
            let Some(key) = key_hash(rule, facts, &self.seed) else { return };
            let counted = &**active.counted(number);
            let counters = counted.counters(rule, facts);
            self.prefetch((rule, counted, counters), facts, key);
            let spending = Spending { counters, key, cost: facts.cost(rule) };
            all.push(Met { number, rule, counted, spending });
        });
    }

    #[inline]
    fn rule_met(
        &self,
        (facts, request): (&Facts<'_>, &Request<'_>),
        met: &[Met<'_>],
        now: &mut Option<Tick>,
        reserve: &mut Reserve,
        ruling: &mut Ruling,
    ) {
        let (active, said) = ruling.parts();
        // There are at most 100,000 rules.
        said.rules.extend(met.iter().map(|met| met.number as u32));
        match active.has_only_rates() {
            true => {
                let now = *now.get_or_insert_with(|| self.clock.now());
                self.ask_rates_at(met, now, said);
            }
            false => {
                let together = Together::one(facts, said, met.len());
                let how = (Intent::Spend, Asking::Now);
                let _ = self.ask_all(met, together, how, Some(reserve));
            }
        }
        self.fail(facts.failures());
        self.watch(active, request, said);
    }
}

/// Another pointer to the rules of the group: one that costs nothing, unless rules were exchanged
/// meanwhile.
pub(super) fn same(active: &Guard<Arc<Active>>, loaded: Guard<Arc<Active>>) -> Guard<Arc<Active>> {
    match Arc::ptr_eq(active, &loaded) {
        true => loaded,
        false => Guard::from_inner(Arc::clone(active)),
    }
}

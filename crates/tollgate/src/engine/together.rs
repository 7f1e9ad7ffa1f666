//! Several requests that pass together or not at all.

use arc_swap::ArcSwap;
use tollgate_local::Clock;
use tollgate_rules::{Facts, Request};

use crate::engine::Engine;
use crate::engine::batch::{AllMet, same};
use crate::engine::decide::{Ends, Intent, Together};
use crate::engine::ruling::Ruling;
use crate::engine::said::Said;
use crate::sharing::{Asking, Reserve};
use crate::spending::{Each, spend_all};

impl<C: Clock> Engine<C> {
    /// Lets requests pass if all rules that apply to any of them allow it; otherwise none of them
    /// spends anything. Calls `each` with the place and the ruling of each, in order: the rulings
    /// of those that are not denied themselves say that they would have been allowed.
    ///
    /// It is what parts of one request need that are asked about apart, and counted apart: whoever
    /// is denied for one of them has spent nothing on the others.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [path], limit: 1/h }]")?)?;
    /// let [a, b] = ["/a", "/b"].map(|path| Request::new("GET", path));
    /// assert!(engine.decide(&a).is_allowed());
    /// let mut allowed = Vec::new();
    /// engine.decide_together(&[a, b], |_, ruling| allowed.push(ruling.is_allowed()));
    /// assert_eq!(allowed, [false, true]);
    /// assert!(engine.decide(&b).is_allowed(), "it has spent nothing");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide_together(&self, requests: &[Request<'_>], each: impl FnMut(usize, Ruling)) {
        self.decide_together_with(requests, &mut Reserve::default(), each);
    }

    /// The same with what was [kept](Self::reserve) for these requests.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, Reserve};
    /// fn all_pass(engine: &Engine, requests: &[Request<'_>], mut reserve: Reserve) -> bool {
    ///     let mut all = true;
    ///     let each = |_, ruling: tollgate::Ruling| all &= ruling.is_allowed();
    ///     engine.decide_together_with(requests, &mut reserve, each);
    ///     all
    /// }
    /// ```
    pub fn decide_together_with(
        &self,
        requests: &[Request<'_>],
        reserve: &mut Reserve,
        mut each: impl FnMut(usize, Ruling),
    ) {
        if let [one] = requests {
            return each(0, self.decide_with(one, reserve));
        }
        let active = self.active.load();
        let mut rooms = vec![String::new(); requests.len()];
        let normal = requests.iter().zip(&mut rooms).map(|(request, room)| request.normal(room));
        let normal: Vec<Request<'_>> = normal.collect();
        let geo = active.geo().map(ArcSwap::load);
        let geo = geo.as_ref().map(|geo| &***geo);
        let facts = normal.iter().map(|request| Facts::new(active.rules(), request, geo));
        let facts: Vec<Facts<'_>> = facts.collect();

        let (mut all, mut ends) = (AllMet::new(), Vec::with_capacity(facts.len()));
        let mut said = Vec::with_capacity(facts.len());
        for facts in &facts {
            let begin = all.len();
            self.meet(&active, facts, &mut all);
            ends.push(all.len());
            let mut one = Said::new();
            // There are at most 100,000 rules.
            one.rules.extend(all[begin..].iter().map(|met| met.number as u32));
            said.push(one);
        }
        let mut begin = 0;
        for (facts, end) in facts.iter().zip(&ends) {
            all[begin..*end].iter_mut().for_each(|met| met.resolve(facts));
            begin = *end;
        }

        if active.has_only_rates() {
            let mut decisions = Each::new();
            spend_all(&all, &self.clock, &mut decisions);
            let mut begin = 0;
            for (said, end) in said.iter_mut().zip(&ends) {
                said.each = decisions[begin..*end].iter().copied().collect();
                said.denied = said.each.iter().any(|decision| !decision.is_allowed());
                begin = *end;
            }
        } else {
            let ends = Ends::Several(&ends);
            let together = Together { facts: &facts, said: &mut said, ends };
            let how = (Intent::Spend, Asking::Now);
            let _ = self.ask_all(&all, together, how, Some(reserve));
        }
        facts.iter().for_each(|facts| self.fail(facts.failures()));
        for (at, (said, request)) in said.into_iter().zip(requests).enumerate() {
            self.watch(&active, request, &said);
            each(at, Ruling::of(same(&active, self.active.load()), said));
        }
    }
}

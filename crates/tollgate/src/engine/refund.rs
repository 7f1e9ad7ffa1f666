//! Giving back what requests have spent, and charging what has passed without being asked for.

use arc_swap::ArcSwap;
use tollgate_core::Tick;
use tollgate_local::Clock;
use tollgate_rules::{Facts, Request};

use crate::engine::Engine;
use crate::engine::batch::AllMet;
use crate::engine::decide::Met;
use crate::engine::shared::name;
use crate::spending::Spending;

impl<C: Clock> Engine<C> {
    /// Gives back what a request costs to the rates of all rules that apply to it, but no more than
    /// was spent: for those who asked for more than was needed in the end. Slots of requests under
    /// way, and blocks, stay as they are.
    ///
    /// Whoever knows the ruling, and rules that count only some outcomes, uses
    /// [`report`](Self::report) instead, which knows how much it was.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: tokens, key: [], limit: 100/h }]")?)?;
    /// let request = Request::new("POST", "/v1/completions");
    /// assert!(engine.decide(&request.cost(80)).is_allowed());
    /// engine.refund(&request.cost(50));
    /// assert_eq!(engine.peek(&request).decision().remaining(), 70);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refund(&self, request: &Request<'_>) {
        self.each_rate(request, |met, facts, now| match (met.shared(facts), &self.sharing) {
            (Some(shared), Some(sharing)) => sharing.refund(&shared, name(met.rule, facts)),
            _ => met.spending.counters.refund(met.spending.key, met.spending.cost, now),
        });
    }

    /// Spends what a request costs that has passed already, because somebody else let it: of the rates
    /// of each rule that applies as much as is left. Nobody is denied or blocked for it. Where limits
    /// are shared, the store is told within a moment.
    ///
    /// ```
    /// # use tollgate::{Engine, Request, RuleSet};
    /// let engine = Engine::new(RuleSet::parse("rules: [{ name: a, key: [], limit: 100/h }]")?)?;
    /// let request = Request::new("GET", "/");
    /// engine.charge(&request.cost(80));
    /// assert_eq!(engine.peek(&request).decision().remaining(), 20);
    /// engine.charge(&request.cost(80));
    /// assert_eq!(engine.peek(&request).decision().remaining(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn charge(&self, request: &Request<'_>) {
        self.each_rate(request, |met, facts, now| match (met.shared(facts), &self.sharing) {
            (Some(shared), Some(sharing)) => sharing.charge(&shared, name(met.rule, facts), now),
            _ => {
                let Spending { counters, key, cost } = met.spending;
                let left = counters.peek(key, 0, now).remaining().min(cost);
                // If somebody was faster, there is less, which is as well.
                let _ = counters.check_at(key, left, now);
            }
        });
    }

    /// All rules that apply to a request and limit a rate.
    fn each_rate(&self, request: &Request<'_>, mut each: impl FnMut(&Met<'_>, &Facts<'_>, Tick)) {
        let active = self.active.load();
        let mut room = String::new();
        let request = request.normal(&mut room);
        let geo = active.geo().map(ArcSwap::load);
        let facts = Facts::new(active.rules(), &request, geo.as_ref().map(|geo| &***geo));
        let mut all = AllMet::new();
        self.meet(&active, &facts, &mut all);
        let now = self.clock.now();
        for met in &mut all {
            met.resolve(&facts);
            if met.rule.concurrent().is_none() {
                each(met, &facts, now);
            }
        }
        self.fail(facts.failures());
    }
}

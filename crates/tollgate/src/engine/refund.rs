//! Giving back what requests have spent.

use arc_swap::ArcSwap;
use tollgate_local::Clock;
use tollgate_rules::{Facts, Request};

use crate::engine::Engine;
use crate::engine::batch::AllMet;
use crate::engine::shared::name;

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
            if let (Some(shared), Some(sharing)) = (met.shared(&facts), &self.sharing) {
                sharing.refund(&shared, name(met.rule, &facts));
            } else if met.rule.concurrent().is_none() {
                met.spending.counters.refund(met.spending.key, met.spending.cost, now);
            }
        }
        self.fail(facts.failures());
    }
}

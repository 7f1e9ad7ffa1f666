//! The way of a request through the rules that apply to it.
//!
//! ```text
//!   blocked? a slot free?   of each rule that asks: a denial ends it, and nothing is spent
//!      |
//!   rates                   all or nothing
//!      |
//!   shadows                 count what passes, and deny nothing
//!      |
//!   denied: blocks begin
//! ```

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate_core::{Decision, Retry};
use tollgate_local::{Clock, Counters, Held, KeyHash};
use tollgate_rules::{Facts, Mode, Request, Rule};

use crate::engine::Engine;
use crate::engine::active::Active;
use crate::engine::counted::{Counted, Slots};
use crate::engine::keys::key_hash;
use crate::engine::ruling::{One, Reserved, Ruling, Said};
use crate::spending::{Each, Spending, look_each, spend_all};

/// Whether a request is let in, or only asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Spend,
    Look,
}

/// A rule that a request meets.
struct Met<'a> {
    number: usize,
    rule: &'a Rule,
    counted: &'a Counted,
    key: KeyHash,
    cost: u64,
    state: State<'a>,
}

/// How far its decision is.
enum State<'a> {
    /// Its rate is to be asked.
    Open(&'a Arc<Counters>),
    Decided(Decision),
}

impl Met<'_> {
    fn enforces(&self) -> bool {
        self.rule.mode() == Mode::Enforce
    }

    fn denies(&self) -> bool {
        matches!(&self.state, State::Decided(decision) if !decision.is_allowed())
    }
}

impl<C: Clock> Engine<C> {
    pub(super) fn rule(&self, request: &Request<'_>, intent: Intent) -> Ruling {
        let active = self.active.load();
        let said = self.ask(&active, request, intent);
        Ruling::new(active, said)
    }

    fn ask(&self, active: &Active, request: &Request<'_>, intent: Intent) -> Said {
        let rules = active.rules();
        let facts = Facts::new(rules, request, None);
        let mut met: Each<Met<'_>> = Each::new();
        for number in rules.applying(&facts) {
            let (rule, counted) = (&rules.rules()[number], active.counted(number));
            // It applies, so there is a key.
            let Some(key) = key_hash(rule, &facts, &self.seed) else { continue };
            counted.prefetch(key);
            let cost = facts.cost(rule);
            let state = State::Decided(Decision::unlimited());
            met.push(Met { number, rule, counted, key, cost, state });
        }
        let mut way = Way { engine: self, facts: &facts, intent, held: SmallVec::new() };
        for met in &mut met {
            way.begin(met);
        }
        way.stop_if_denied(&met);
        let reserved = way.rates(&mut met);
        let denied = way.stop_if_denied(&met);
        way.shadows(&mut met);
        if denied && intent == Intent::Spend {
            met.iter_mut().for_each(|met| self.block(met));
        }
        self.fail(facts.failures());
        Said { each: met.iter().map(Met::one).collect(), reserved, held: way.held }
    }

    /// A key that was denied is denied everything for a while, if its rule says so.
    #[inline]
    fn block(&self, met: &mut Met<'_>) {
        let (Some(blocks), State::Decided(decision)) = (met.counted.blocks(), &met.state) else {
            return;
        };
        let Some(retry @ Retry::After(_)) = decision.retry() else { return };
        // Who is blocked already spends nothing here, and so is not blocked for longer.
        let _ = blocks.check(met.key, 1, &self.clock);
        let block = blocks.peek(met.key, 1, self.clock.now());
        met.state = State::Decided(blocked(*decision, block, retry));
    }
}

/// A denial that lasts at least as long as a block.
fn blocked(decision: Decision, block: Decision, retry: Retry) -> Decision {
    let (Some(wait), Retry::After(own)) = (block.retry_after(), retry) else { return decision };
    let (wait, reset) = (wait.max(own), decision.reset_after().max(wait));
    Decision::deny(decision.limit(), 0, reset, Retry::After(wait))
}

/// One request under way.
struct Way<'w, C> {
    engine: &'w Engine<C>,
    facts: &'w Facts<'w>,
    intent: Intent,
    held: SmallVec<[Held; 1]>,
}

impl<C: Clock> Way<'_, C> {
    /// What a rule says before its rate is asked.
    #[inline]
    fn begin(&mut self, met: &mut Met<'_>) {
        if let Some(slots) = met.counted.slots(|| self.facts.tier()) {
            met.state = State::Decided(self.slot(slots, met.key));
            return;
        }
        let counters = met.counted.counters(met.rule, self.facts, met.key);
        met.state = State::Open(counters);
        if let Some(blocks) = met.counted.blocks() {
            let now = self.engine.clock.now();
            let block = blocks.peek(met.key, 1, now);
            if !block.is_allowed() {
                let own = counters.peek(met.key, met.cost, now);
                let retry = Retry::After(own.retry_after().unwrap_or(Duration::ZERO));
                met.state = State::Decided(blocked(own, block, retry));
            }
        }
    }

    /// Takes a slot, or only looks whether there is one.
    fn slot(&mut self, slots: &Slots, key: KeyHash) -> Decision {
        let (limit, now) = (u64::from(slots.most), self.engine.clock.now());
        if self.intent == Intent::Spend {
            match slots.concurrency.acquire(key, now) {
                Ok(held) => self.held.push(held),
                Err(denied) => return denied,
            }
        }
        let free = limit.saturating_sub(slots.concurrency.out(key, now) as u64);
        match free == 0 && self.intent == Intent::Look {
            true => Decision::deny(limit, 0, Duration::ZERO, Retry::OnReturn),
            false => Decision::allow(limit, free, Duration::ZERO),
        }
    }

    /// From the first denial on nothing is spent, and nothing is held.
    fn stop_if_denied(&mut self, met: &[Met<'_>]) -> bool {
        let denied = met.iter().any(|met| met.enforces() && met.denies());
        if denied {
            self.intent = Intent::Look;
            self.held.clear();
        }
        denied
    }

    /// Asks the rates of all rules that are enforced, all or nothing.
    fn rates(&self, met: &mut [Met<'_>]) -> SmallVec<[Reserved; 1]> {
        let (mut reserved, mut spending) = (SmallVec::new(), Each::new());
        for met in met.iter() {
            if let (State::Open(counters), true) = (&met.state, met.enforces()) {
                spending.push(Spending { counters, key: met.key, cost: met.cost });
            }
        }
        let (each, at) = match self.intent {
            Intent::Look => (look_each(&spending, self.engine.clock.now()), Each::new()),
            Intent::Spend => {
                let spent = spend_all(&spending, &self.engine.clock);
                (spent.each, spent.at)
            }
        };
        drop(spending);
        let mut at = at.into_iter();
        let open = met.iter_mut().filter(|met| met.enforces());
        let open = open.filter_map(|met| match met.state {
            State::Open(counters) => Some((met, counters)),
            State::Decided(_) => None,
        });
        for ((met, counters), decision) in open.zip(each) {
            met.state = State::Decided(decision);
            if let Some(at) = at.next().flatten().filter(|_| met.rule.counts_outcomes()) {
                let (rule, key, cost) = (met.number, met.key, met.cost);
                reserved.push(Reserved { rule, counters: Arc::clone(counters), key, cost, at });
            }
        }
        reserved
    }

    /// Rules in shadow count what passes, each for itself.
    #[inline]
    fn shadows(&self, met: &mut [Met<'_>]) {
        for met in met {
            let State::Open(counters) = met.state else { continue };
            let decision = match self.intent {
                Intent::Spend => counters.check(met.key, met.cost, &self.engine.clock),
                Intent::Look => counters.peek(met.key, met.cost, self.engine.clock.now()),
            };
            met.state = State::Decided(decision);
        }
    }
}

impl Met<'_> {
    fn one(&self) -> One {
        let decision = match &self.state {
            State::Decided(decision) => *decision,
            State::Open(_) => Decision::unlimited(),
        };
        One { rule: self.number, decision }
    }
}

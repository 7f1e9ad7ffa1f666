//! A store and its nodes in one thread and in virtual time, driven by the seed of a [`Plan`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::lease::{Account, Exchange, Grant, Lender, Node, Receipt, Spend};
use tollgate_core::{Phase, Tick};

use crate::audit::Audit;
use crate::chance::Chance;
use crate::member::Member;
use crate::plan::{MILLI, Plan, Subject};

/// What came of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Tokens that passed, and those of them that a node let pass by itself.
    pub(crate) passed: u64,
    pub(crate) local: u64,
    pub(crate) requests: u64,
    pub(crate) exchanges: u64,
}

pub(crate) struct Fleet {
    pub(crate) plan: Plan,
    pub(crate) now: u64,
    chance: Chance,
    base: Lender,
    lender: Lender,
    account: Option<Account>,
    epoch: u64,
    members: Vec<Member>,
    events: BTreeMap<Reverse<(u64, u64)>, Event>,
    order: u64,
    is_silent: bool,
    audit: Audit,
    counted: BTreeSet<(u64, u64, u64)>,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Request(usize),
    Wake(usize),
    AtStore(usize, Exchange),
    AtNode(usize, Node, Grant),
    Finish(usize, Node, Receipt),
    Death,
    Restart,
}

impl Fleet {
    pub(crate) fn new(plan: Plan) -> Self {
        let base = plan.subject.lender(plan.round_trip());
        let mut chance = Chance(plan.seed);
        let phase = chance.next();
        let mut fleet = Self {
            audit: Audit::of(plan.subject, phase),
            now: Subject::START,
            lender: base.clone(),
            account: Some(base.open(Tick::from_nanos(Subject::START), Phase(phase))),
            base,
            chance,
            epoch: 0,
            members: Vec::new(),
            events: BTreeMap::new(),
            order: 0,
            is_silent: false,
            counted: BTreeSet::new(),
            outcome: Outcome::default(),
            plan,
        };
        for place in 0..fleet.plan.nodes {
            let member = fleet.new_member(place);
            fleet.members.push(member);
            fleet.after_pause(place as usize);
        }
        fleet.after_about(fleet.plan.deaths, Event::Death);
        fleet.after_about(fleet.plan.restarts, Event::Restart);
        fleet
    }

    /// Runs for as long as the plan says.
    pub(crate) fn run(plan: &Plan) -> Result<Outcome, String> {
        let mut fleet = Self::new(plan.clone());
        fleet.run_until(Subject::START + plan.lasts)?;
        Ok(fleet.outcome)
    }

    pub(crate) fn run_until(&mut self, end: u64) -> Result<(), String> {
        while let Some((Reverse((time, _)), event)) = self.events.pop_last() {
            if time > end {
                self.order += 1;
                self.events.insert(Reverse((time, self.order)), event);
                break;
            }
            self.now = time;
            self.happens(event)?;
        }
        self.now = end;
        Ok(())
    }

    /// All nodes die, and nobody takes their place.
    pub(crate) fn kill_all(&mut self) {
        for member in &mut self.members {
            (member.is_alive, member.wakes) = (false, u64::MAX);
        }
    }

    /// From now on nobody asks for anything.
    pub(crate) fn fall_silent(&mut self) {
        self.is_silent = true;
    }

    /// New nodes take the place of dead ones.
    pub(crate) fn revive(&mut self) {
        for place in 0..self.members.len() {
            self.members[place] = self.new_member(place as u64);
            self.after_pause(place);
        }
    }

    /// What the store has left, and what it has lent.
    pub(crate) fn books(&mut self) -> (u64, u64) {
        let now = Tick::from_nanos(self.now);
        let account = self
            .account
            .get_or_insert_with(|| self.lender.open(now, Phase(Chance(self.plan.seed).next())));
        (self.lender.left(account, now), account.escrow())
    }

    pub(crate) fn hold(&self) -> u64 {
        self.base.terms().map_or(0, |terms| terms.hold().as_nanos() as u64)
    }

    fn happens(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Request(place) if self.members[place].is_alive => {
                self.after_pause(place);
                if !self.is_quiet(place) {
                    self.request(place)?;
                }
                self.wake_later(place);
            }
            Event::Wake(place) if self.members[place].wakes == self.now => {
                self.members[place].wakes = u64::MAX;
                let now = self.members[place].clock(self.now);
                if let Some(exchange) = self.members[place].borrower.exchange(now) {
                    self.send(place, exchange);
                }
                self.wake_later(place);
            }
            Event::AtStore(place, exchange) => self.at_store(place, exchange)?,
            Event::AtNode(place, node, grant) if self.is_living(place, node) => {
                let now = self.members[place].clock(self.now);
                self.members[place].borrower.answer(now, &grant);
                self.permits_fit()?;
                self.wake_later(place);
            }
            Event::Finish(place, node, receipt) if self.is_living(place, node) => {
                let now = self.members[place].clock(self.now);
                self.members[place].borrower.finish(now, receipt);
                self.wake_later(place);
            }
            Event::Death => {
                let place = self.chance.below(self.plan.nodes) as usize;
                self.members[place] = self.new_member(place as u64);
                self.after_about(self.plan.deaths, Event::Death);
            }
            Event::Restart => self.restart(),
            _ => {}
        }
        Ok(())
    }

    fn request(&mut self, place: usize) -> Result<(), String> {
        let cost = self.chance.between((1, self.plan.most_cost));
        self.outcome.requests += 1;
        let member = &mut self.members[place];
        let now = member.clock(self.now);
        match member.borrower.spend(now, cost) {
            Spend::Taken(receipt) => {
                self.outcome.local += cost;
                self.outcome.passed += cost;
                self.audit.passes(self.now, cost)?;
                if matches!(self.plan.subject, Subject::Permits(_)) {
                    let lasts = self.chance.between((0, 300 * MILLI));
                    let node = self.members[place].node;
                    self.at(self.now + lasts, Event::Finish(place, node, receipt));
                }
            }
            Spend::Ask if matches!(self.plan.subject, Subject::Permits(_)) => {}
            Spend::Ask => {
                let ask = member.borrower.ask(now, cost).unwrap_or_else(|| {
                    member.asks += 1;
                    let incarnation = (member.node.incarnation << 32) + member.asks;
                    Exchange::strict(Node { incarnation, ..member.node }, cost)
                });
                self.send(place, ask);
            }
            Spend::Short(denied) => assert!(!denied.is_allowed()),
        }
        Ok(())
    }

    /// Never more permits are lent than there are, by the clocks of those who hold them.
    fn permits_fit(&mut self) -> Result<(), String> {
        if !matches!(self.plan.subject, Subject::Permits(_)) {
            return Ok(());
        }
        let now = self.now;
        let held = |member: &mut Member| {
            let clock = member.clock(now);
            if member.is_alive { member.borrower.held(clock) } else { 0 }
        };
        let out = self.members.iter_mut().map(held).sum::<u64>();
        match out <= self.plan.subject.capacity() {
            true => Ok(()),
            false => Err(format!("{out} permits are out at {now}")),
        }
    }

    fn at_store(&mut self, place: usize, exchange: Exchange) -> Result<(), String> {
        self.outcome.exchanges += 1;
        self.books_fit()?;
        let now = Tick::from_nanos(self.now);
        let account = self.account.as_mut().expect("the books were just looked at");
        let answer = self.lender.exchange(account, now, &exchange);
        self.books_fit()?;
        let Some(grant) = answer else { return Ok(()) };
        let Node { number, incarnation } = exchange.node;
        let is_new = self.counted.insert((number, incarnation, exchange.sequence));
        if exchange.cost > 0 && grant.decision.is_allowed() && is_new {
            self.outcome.passed += exchange.cost;
            self.audit.passes(self.now, exchange.cost)?;
        }
        // Only leases are answered to the borrower; a strict decision ends with its request.
        self.deliver(|node| Event::AtNode(place, node, grant), exchange.node);
        Ok(())
    }

    fn books_fit(&mut self) -> Result<(), String> {
        let (left, lent) = self.books();
        match left + lent <= self.plan.subject.capacity() {
            true => Ok(()),
            false => Err(format!("{left} left and {lent} lent at {}", self.now)),
        }
    }

    /// All that is on its way is lost, and in every other case the store's memory as well.
    fn restart(&mut self) {
        self.events.retain(|_, event| !matches!(event, Event::AtStore(..) | Event::AtNode(..)));
        if self.chance.per_mille(500) {
            self.epoch += 1;
            self.account = None;
            self.lender = self.base.clone().after_loss(self.epoch, Tick::from_nanos(self.now));
        }
        self.after_about(self.plan.restarts, Event::Restart);
    }

    fn send(&mut self, place: usize, exchange: Exchange) {
        self.deliver(|_| Event::AtStore(place, exchange), exchange.node);
    }

    /// A message arrives late, twice or never.
    fn deliver(&mut self, event: impl Fn(Node) -> Event, node: Node) {
        let copies = if self.chance.per_mille(self.plan.repeated) { 2 } else { 1 };
        for _ in 0..copies {
            let delay = self.chance.between(self.plan.delay);
            if !self.chance.per_mille(self.plan.lost) {
                self.at(self.now + delay, event(node));
            }
        }
    }

    fn is_living(&self, place: usize, node: Node) -> bool {
        self.members[place].is_alive && self.members[place].node == node
    }

    fn is_quiet(&self, place: usize) -> bool {
        let turn = |turns| (self.now / turns + place as u64) % 2 == 1;
        self.is_silent || self.plan.turns.is_some_and(turn)
    }

    fn new_member(&mut self, number: u64) -> Member {
        let node = Node { number, incarnation: self.chance.next() >> 32 };
        let terms = self.base.terms().expect("the limits of fleets are lent");
        Member::new(node, terms, self.plan.drift, &mut self.chance)
    }

    fn after_pause(&mut self, place: usize) {
        let pause = self.chance.between(self.plan.pause);
        self.at(self.now + pause, Event::Request(place));
    }

    fn after_about(&mut self, time: Option<u64>, event: Event) {
        if let Some(time) = time {
            let wait = self.chance.between((time / 2, time * 3 / 2));
            self.at(self.now + wait, event);
        }
    }

    fn wake_later(&mut self, place: usize) {
        let member = &mut self.members[place];
        if let Some(due) = member.borrower.due() {
            let time = member.time_of(due).max(self.now);
            if time < member.wakes {
                member.wakes = time;
                self.at(time, Event::Wake(place));
            }
        }
    }

    fn at(&mut self, time: u64, event: Event) {
        self.order += 1;
        self.events.insert(Reverse((time, self.order)), event);
    }
}

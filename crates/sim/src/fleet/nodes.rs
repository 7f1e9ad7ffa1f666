//! What nodes do, and what becomes of them.

use tollgate_core::lease::{Exchange, Grant, Node, Receipt, Spend};

use super::{Event, Fleet, number_of};
use crate::member::Member;
use crate::plan::MILLI;
use crate::schedule::Broken;

impl Fleet {
    /// All nodes die, and nobody takes their place.
    pub fn kill_all(&mut self) {
        for member in &mut self.members {
            (member.is_alive, member.wakes) = (false, u64::MAX);
            member.permits.running = 0;
        }
    }

    /// New nodes take the place of all that were there.
    pub fn revive(&mut self) {
        for place in 0..self.members.len() {
            self.members[place] = self.new_member(place as u64);
            self.after_pause(place);
        }
    }

    /// From now on nobody asks for anything.
    pub const fn fall_silent(&mut self) {
        self.is_silent = true;
    }

    pub(super) fn request_comes(&mut self, place: usize) -> Result<(), Broken> {
        if !self.members[place].is_alive {
            return Ok(());
        }
        self.after_pause(place);
        if !self.is_quiet(place) && self.now >= self.members[place].frozen {
            self.request(place)?;
        }
        self.wake_later(place);
        Ok(())
    }

    fn request(&mut self, place: usize) -> Result<(), Broken> {
        let cost = self.chance.between((1, self.plan.most_cost));
        self.outcome.requests += 1;
        self.outcome.ideal += self.ideal.admits(self.now, cost);
        let is_permits = self.plan.subject.is_permits();
        let terms = self.base.terms();
        let member = &mut self.members[place];
        let now = member.clock(self.now);
        member.forget_if_cold(now, terms);
        if self.plan.displaced > 0
            && self.chance.per_mille(self.plan.displaced)
            && let Some(last) = member.quit(now, terms)
        {
            self.send(place, last);
        }
        let member = &mut self.members[place];
        let said = member.borrower.as_mut().map_or(Spend::Ask, |lent| lent.spend(now, cost));
        match said {
            Spend::Taken(receipt) => {
                self.outcome.local += cost;
                self.passes(cost)?;
                if is_permits {
                    self.begins(place, cost)?;
                    let lasts = self.chance.between((0, self.plan.work));
                    let node = self.members[place].node;
                    self.at(self.now + lasts, Event::Finish(place, node, receipt, cost));
                }
            }
            // Who asks for permits gets them with the lease that is asked for next.
            Spend::Ask if is_permits => self.outcome.waited += 1,
            Spend::Ask => {
                self.outcome.waited += 1;
                self.waits(place, cost, self.now);
            }
            Spend::Short(denied) if denied.is_allowed() => {
                return Err(Broken(format!("what is short is allowed at {}", self.now)));
            }
            Spend::Short(_) => {}
        }
        Ok(())
    }

    /// A request that has come then finds too little, and only the store can say more.
    fn waits(&mut self, place: usize, cost: u64, since: u64) {
        let member = &mut self.members[place];
        let now = member.clock(self.now);
        let asks = member.borrower.as_mut().and_then(|lent| lent.ask(now, cost));
        match asks {
            Some(ask) => self.ask(place, ask),
            None if member.borrower.as_mut().is_some_and(|lent| !lent.asks_apart(now)) => {
                member.waiting.push((cost, since));
            }
            None => {
                let ask = Exchange::strict(member.strict(), cost);
                self.ask(place, ask);
            }
        }
    }

    fn passes(&mut self, cost: u64) -> Result<(), Broken> {
        self.outcome.passed += cost;
        self.audit.passes(self.now, cost)
    }

    /// The store is asked on behalf of a request.
    fn ask(&mut self, place: usize, ask: Exchange) {
        if self.chance.per_mille(self.plan.in_vain) {
            self.in_vain.insert(number_of(ask.node, ask.sequence), ask.cost);
        }
        self.send(place, ask);
    }

    /// What a node has asked for is there. Who waited for it and finds too little asks or waits again,
    /// unless it was too long.
    fn end_waiting(&mut self, place: usize) -> Result<(), Broken> {
        for (cost, since) in std::mem::take(&mut self.members[place].waiting) {
            let member = &mut self.members[place];
            let now = member.clock(self.now);
            if self.now - since > PATIENCE {
                continue;
            }
            match member.borrower.as_mut().map(|lent| lent.spend(now, cost)) {
                Some(Spend::Taken(_)) => self.passes(cost)?,
                Some(Spend::Short(_)) => {}
                Some(Spend::Ask) | None => self.waits(place, cost, since),
            }
        }
        Ok(())
    }

    pub(super) fn wakes(&mut self, place: usize) {
        let member = &mut self.members[place];
        if member.wakes != self.now {
            return;
        }
        member.wakes = u64::MAX;
        if self.now < member.frozen {
            member.wakes = member.frozen;
            let frozen = member.frozen;
            return self.at(frozen, Event::Wake(place));
        }
        let now = member.clock(self.now);
        if let Some(exchange) = member.borrower.as_mut().and_then(|lent| lent.exchange(now)) {
            self.tries(place, &exchange);
            self.send(place, exchange);
        }
        self.wake_later(place);
    }

    /// An answer comes: to the lease, or to a request that asked for itself.
    pub(super) fn at_node(&mut self, place: usize, node: Node, grant: Grant) -> Result<(), Broken> {
        let frozen = self.members[place].frozen;
        if self.now < frozen {
            self.at(frozen, Event::AtNode(place, node, grant));
            return Ok(());
        }
        if self.is_cut_off(place) {
            return Ok(());
        }
        self.take_back(node, &grant);
        if self.members[place].is(node) {
            let member = &mut self.members[place];
            let now = member.clock(self.now);
            let is_taken = member.borrower.as_mut().is_some_and(|lent| lent.answer(now, &grant));
            if is_taken {
                self.look_for_lost_touch()?;
                self.is_in_touch(place, &grant);
                self.end_waiting(place)?;
            }
            self.permits_fit()?;
            self.wake_later(place);
        }
        Ok(())
    }

    /// If a request that was in vain is allowed for the first time it is taken back, by a message
    /// that may be late or lost, and comes once.
    fn take_back(&mut self, node: Node, grant: &Grant) {
        let Some(cost) = self.in_vain.get_mut(&number_of(node, grant.sequence)) else { return };
        let cost = std::mem::take(cost);
        let is_first = cost > 0 && grant.decision.is_allowed();
        if is_first && !self.chance.per_mille(self.plan.lost) {
            let delay = self.chance.between(self.plan.delay);
            self.at(self.now + delay, Event::Undo(Exchange::undo(cost, grant.at)));
        }
    }

    pub(super) fn finishes(&mut self, place: usize, node: Node, receipt: Receipt, cost: u64) {
        let member = &mut self.members[place];
        if !member.is(node) {
            return;
        }
        if self.now < member.frozen {
            let frozen = member.frozen;
            return self.at(frozen, Event::Finish(place, node, receipt, cost));
        }
        let now = member.clock(self.now);
        if let Some(lent) = &mut member.borrower {
            lent.finish(now, receipt);
        }
        self.ends(place, cost);
        self.wake_later(place);
    }

    /// A node dies with all that it holds, and another takes its place.
    pub(super) fn one_dies(&mut self) {
        let place = self.chance.below(self.plan.nodes) as usize;
        let cut = self.members[place].cut;
        self.members[place] = self.new_member(place as u64);
        self.members[place].cut = cut;
        self.outcome.deaths += 1;
        self.after_about(self.plan.deaths, Event::Death);
    }

    /// A node stands still, and goes on as if nothing had been.
    pub(super) fn one_freezes(&mut self) {
        let place = self.chance.below(self.plan.nodes) as usize;
        let longest = (2 * self.hold()).max(100 * MILLI);
        let until = self.now + self.chance.below(longest);
        // It has put off what it does until it goes on: it does not go on sooner.
        let frozen = &mut self.members[place].frozen;
        *frozen = (*frozen).max(until);
        self.outcome.freezes += 1;
        self.after_about(self.plan.freezes, Event::Freeze);
    }

    fn is_quiet(&self, place: usize) -> bool {
        self.is_silent || self.plan.is_quiet(place, self.now)
    }

    pub(super) fn new_member(&mut self, number: u64) -> Member {
        let node = Node { number, incarnation: self.chance.next() >> 32 };
        Member::new(node, self.base.terms(), self.plan.drift, &mut self.chance)
    }

    pub(super) fn after_pause(&mut self, place: usize) {
        let often = if place == 0 { self.plan.heavier.max(1) } else { 1 };
        let pause = self.plan.pace.pause(&mut self.chance) / often;
        self.at(self.now + pause, Event::Request(place));
    }

    fn wake_later(&mut self, place: usize) {
        let member = &mut self.members[place];
        if let Some(due) = member.borrower.as_ref().and_then(|lent| lent.due()) {
            let time = member.time_of(due).max(self.now);
            if time < member.wakes {
                member.wakes = time;
                self.at(time, Event::Wake(place));
            }
        }
    }
}

/// So long a request waits for the store at most.
const PATIENCE: u64 = 50 * MILLI;

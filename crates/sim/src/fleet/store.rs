//! What the store does, and what becomes of it.

use std::cmp::Reverse;

use tollgate_core::lease::{Account, Exchange, Lender};
use tollgate_core::{Phase, Tick};

use super::network::Scheduled;
use super::{Event, Fleet, number_of};
use crate::plan::Loss;
use crate::schedule::Broken;

impl Fleet {
    /// What the store has left, and what it has lent.
    pub fn books(&mut self) -> (u64, u64) {
        let now = Tick::from_nanos(self.now);
        let (lender, account) = self.account();
        (lender.left(account, now), account.escrow())
    }

    /// The store's books on the key, opened if there are none.
    pub(super) fn account(&mut self) -> (&Lender, &mut Account) {
        let (lender, phase) = (&self.lender, Phase(self.phase));
        let open = || lender.open(Tick::from_nanos(self.now), phase);
        (lender, self.account.get_or_insert_with(open))
    }

    pub(super) fn at_store(&mut self, place: usize, exchange: Exchange) -> Result<(), Broken> {
        if self.is_cut_off(place) {
            return Ok(());
        }
        self.outcome.exchanges += 1;
        self.asked[place] += 1;
        self.drop_what_is_at_rest();
        self.books_fit()?;
        let now = Tick::from_nanos(self.now);
        let (lender, account) = self.account();
        let answer = lender.exchange(account, now, &exchange);
        self.books_fit()?;
        let Some(grant) = answer else { return Ok(()) };
        let number = number_of(exchange.node, exchange.sequence);
        let is_counted = exchange.cost > 0
            && grant.decision.is_allowed()
            && self.counted.insert(number)
            && !self.in_vain.contains_key(&number);
        if is_counted {
            let delay = grant.decision.delay().as_nanos() as u64;
            self.outcome.passed += exchange.cost;
            self.audit.passes(self.now + delay, exchange.cost)?;
        }
        self.deliver(place, Event::AtNode(place, exchange.node, grant));
        Ok(())
    }

    pub(super) fn undo(&mut self, exchange: &Exchange) -> Result<(), Broken> {
        self.books_fit()?;
        let now = Tick::from_nanos(self.now);
        let (lender, account) = self.account();
        lender.exchange(account, now, exchange);
        self.books_fit()
    }

    fn books_fit(&mut self) -> Result<(), Broken> {
        let (left, lent) = self.books();
        match left + lent <= self.plan.subject.capacity() {
            true => Ok(()),
            false => Err(Broken(format!("{left} left and {lent} lent at {}", self.now))),
        }
    }

    /// A store forgets keys that have their whole budget when it needs the room.
    fn drop_what_is_at_rest(&mut self) {
        if self.plan.dropped > 0 && self.chance.per_mille(self.plan.dropped) {
            let now = Tick::from_nanos(self.now);
            let (lender, account) = self.account();
            if lender.is_at_rest(account, now) {
                self.account = None;
            }
        }
    }

    /// All that is on its way is lost, and in every other case the store's memory as well.
    pub(super) fn restart(&mut self) {
        self.lose_messages();
        self.outcome.restarts += 1;
        if self.chance.per_mille(500) {
            self.outcome.losses += 1;
            self.epoch += 1;
            self.account = None;
            if self.plan.loss == Loss::Known {
                let now = Tick::from_nanos(self.now);
                self.forgot = Some(now);
                self.lender = self.base.clone().after_loss(self.epoch, now);
            }
            self.replica_starts_anew();
            self.excuse_all();
        }
        self.after_about(self.plan.restarts, Event::Restart);
    }

    pub(super) fn lose_messages(&mut self) {
        let is_message = |event: &Event| {
            matches!(event, Event::AtStore(..) | Event::AtNode(..) | Event::Undo(_))
        };
        self.events.retain(|Reverse(Scheduled { event, .. })| !is_message(event));
    }
}

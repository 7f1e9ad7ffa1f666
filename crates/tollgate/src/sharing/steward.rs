//! Who looks after what is lent, behind everybody's back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use tollgate_core::Tick;
use tollgate_core::lease::Exchange;
use tollgate_local::{Place, Sleep};
use tollgate_store::{Ask, Store as _};

use crate::sharing::breaker::Change;
use crate::sharing::health::{Health, add};
use crate::sharing::{Call, Sharing};

/// Renews what is lent before it ends or is used up, gives back what is idle, and frees the places of
/// keys that nothing is lent to any more. It ends with the sharing it looks after.
pub(super) struct Steward {
    sharing: Weak<Sharing>,
    calls: Receiver<Call>,
    /// When something is due at which place. An entry counts if it is the one that `next` names.
    due: BinaryHeap<Reverse<(Tick, Place)>>,
    next: BTreeMap<Place, Tick>,
    swept: Tick,
}

/// So many places are looked at, or debts paid, in one go.
const AT_ONCE: usize = 512;

/// How often answers are looked for that nobody came for.
const SWEEP: Duration = Duration::from_millis(100);

/// How often a store that fails is looked at, and places whose exchanges wait for it.
const PING: Duration = Duration::from_millis(100);

impl Steward {
    pub(super) fn new(sharing: Weak<Sharing>, calls: Receiver<Call>) -> Self {
        let (due, next, swept) = (BinaryHeap::new(), BTreeMap::new(), Tick::ZERO);
        Self { sharing, calls, due, next, swept }
    }

    pub(super) async fn run(mut self) {
        loop {
            let Some(wait) = self.wait() else { return };
            let first = tokio::select! {
                call = self.calls.recv() => match call {
                    Some(call) => Some(call),
                    None => return,
                },
                () = wait => None,
            };
            let Some(sharing) = self.sharing.upgrade() else { return };
            self.tend(&sharing, first);
        }
    }

    /// Until something is due.
    fn wait(&self) -> Option<Sleep> {
        let sharing = self.sharing.upgrade()?;
        let due = self.due.peek().map(|Reverse((due, _))| due.since(sharing.now()));
        let wait = due.map_or(SWEEP, |due| due.min(SWEEP)).max(LEAST_WAIT);
        Some(sharing.clock.sleep(wait))
    }

    fn tend(&mut self, sharing: &Arc<Sharing>, first: Option<Call>) {
        let now = sharing.now();
        let (mut places, mut undone) = (BTreeSet::new(), Vec::new());
        let mut call = first;
        while let Some(one) = call {
            match one {
                Call::Look(place) => _ = places.insert(place),
                Call::Undo { about, cost, at } => undone.push(about.ask(Exchange::undo(cost, at))),
            }
            let is_enough = places.len() + undone.len() >= AT_ONCE;
            call = if is_enough { None } else { self.calls.try_recv().ok() };
        }
        while let Some(Reverse((due, place))) = self.due.peek().copied() {
            if due > now || places.len() >= AT_ONCE {
                break;
            }
            self.due.pop();
            if self.next.get(&place) == Some(&due) {
                self.next.remove(&place);
                places.insert(place);
            }
        }
        let sweeps = now.since(self.swept) >= SWEEP;
        if sweeps {
            self.swept = now;
            sharing.told.sweep(now, |_, told| {
                if let Some(at) = told.said.spent_at() {
                    undone.push(told.about.ask(Exchange::undo(told.cost, at)));
                }
            });
        }
        self.renew(sharing, places, now);
        // What a rule let pass because one answer was missing is told soon after.
        if sweeps && !sharing.breaker.is_open() && sharing.debts.len() > 0 {
            let sharing = Arc::clone(sharing);
            tokio::spawn(async move { _ = pay(&sharing).await });
        }
        if !undone.is_empty() && !sharing.breaker.is_open() {
            let sharing = Arc::clone(sharing);
            // Whatever is lost of it stays spent.
            tokio::spawn(async move { _ = sharing.exchange(&undone, sharing.now()).await });
        }
    }

    fn renew(&mut self, sharing: &Arc<Sharing>, places: BTreeSet<Place>, now: Tick) {
        let is_gone = sharing.breaker.is_open();
        let mut asked: Vec<(Place, Ask)> = Vec::new();
        for place in places {
            let Some(mut lent) = sharing.purses.lock(place, now) else { continue };
            let exchange = if is_gone { None } else { lent.borrower().exchange(now) };
            if let Some(exchange) = exchange {
                sharing.note(&mut lent, &exchange, now);
                asked.push((place, lent.beside().about.ask(exchange)));
            }
            match lent.borrower().due() {
                Some(due) if is_gone => self.schedule(place, due.max(now.after(PING))),
                Some(due) => self.schedule(place, due),
                None => {
                    let hold = lent.beside().about.limit.hold();
                    let asked = lent.beside().asked;
                    match now.since(asked) < hold {
                        true => self.schedule(place, asked.after(hold)),
                        // The key went cold.
                        false => lent.close(),
                    }
                }
            }
        }
        if asked.is_empty() {
            return;
        }
        let sharing = Arc::clone(sharing);
        tokio::spawn(async move {
            let asks: Vec<Ask> = asked.iter().map(|(_, ask)| ask.clone()).collect();
            let answers = sharing.exchange(&asks, now).await;
            let now = sharing.now();
            for ((place, ask), answer) in asked.iter().zip(answers) {
                if let Ok(grant) = answer {
                    sharing.answer(*place, ask.exchange().node, &grant, now);
                }
            }
        });
    }

    fn schedule(&mut self, place: Place, due: Tick) {
        self.next.insert(place, due);
        self.due.push(Reverse((due, place)));
    }
}

/// However much is due, others get their turn.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// Looks at a store that fails until it is well, and tells it first what passed meanwhile.
pub(super) async fn heal(sharing: Weak<Sharing>) {
    loop {
        let Some(pause) = sharing.upgrade().map(|sharing| sharing.clock.sleep(PING)) else {
            return;
        };
        pause.await;
        let Some(sharing) = sharing.upgrade() else { return };
        let after = sharing.config.timeout / 2;
        let is_answered = matches!(timeout(after, sharing.store.ping()).await, Ok(Ok(_)));
        if sharing.breaker.pinged(is_answered) == Change::Well && pay(&sharing).await {
            sharing.breaker.close();
            sharing.health.send_replace(Health::Well);
            // What passed since the last debt was taken.
            pay(&sharing).await;
            return;
        }
    }
}

/// Tells the store what keys have spent without it, as far as they have so much left. Whether it
/// answered.
async fn pay(sharing: &Sharing) -> bool {
    // Those that are added meanwhile are left for later, or there would be no end.
    let mut most = sharing.debts.len();
    while most > 0 {
        let debts = sharing.debts.take(most.min(AT_ONCE));
        most = most.saturating_sub(AT_ONCE);
        let looks: Vec<Ask> = debts.iter().map(|(about, _)| about.ask(Exchange::once(0))).collect();
        let left = sharing.store.exchange(&looks).await;
        let mut costs = Vec::with_capacity(debts.len());
        let mut is_answered = true;
        for ((about, debt), left) in debts.into_iter().zip(left) {
            match left {
                Ok(grant) => {
                    let cost = debt.min(grant.decision.remaining());
                    costs.push((about.ask(Exchange::once(cost)), about, cost));
                }
                Err(error) => {
                    let is_lost = error.is_about_key()
                        || !sharing.debts.add(about.owner, debt, || about.clone());
                    is_answered &= error.is_about_key();
                    add(&sharing.counts.unpaid, if is_lost { debt } else { 0 });
                }
            }
        }
        let asks: Vec<Ask> = costs.iter().map(|(ask, ..)| ask.clone()).collect();
        let paid = sharing.store.exchange(&asks).await;
        for ((_, about, cost), paid) in costs.into_iter().zip(paid) {
            // Somebody was faster: there is less to pay with, and it is looked at again.
            let is_paid = paid.is_ok_and(|grant| grant.decision.is_allowed());
            if !is_paid && !sharing.debts.add(about.owner, cost, || about.clone()) {
                add(&sharing.counts.unpaid, cost);
            }
        }
        if !is_answered {
            return false;
        }
    }
    true
}

//! Who looks after what is lent, behind everybody's back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use tollgate_core::lease::Exchange;
use tollgate_core::{Tick, Wall};
use tollgate_local::{KeyHash, Place, Sleep};
use tollgate_store::Ask;

use crate::sharing::exchange::is_answered;
use crate::sharing::heal::{PAUSE, pay};
use crate::sharing::{About, Call, Sharing};

/// Renews what is lent before it ends or is used up, gives back what is idle, and frees the places of
/// keys that nothing is lent to any more. It ends with the sharing it looks after.
pub(super) struct Steward {
    sharing: Weak<Sharing>,
    calls: Receiver<Call>,
    /// When something is due at which place. An entry counts if it is the one that `next` names.
    due: BinaryHeap<Reverse<(Tick, Place)>>,
    next: BTreeMap<Place, Tick>,
    swept: Tick,
    /// What is to be undone. While the store is left alone it waits, and what there is no room for stays spent.
    undone: Vec<(About, u64, Wall)>,
    /// The last words of those whose places others have, and how often they were sent in vain. They wait likewise.
    quitting: Vec<(Ask, u32)>,
    /// Who tells the store what passed without it, one at a time.
    paying: Option<JoinHandle<()>>,
}

/// So many places are looked at in one go.
const AT_ONCE: usize = 512;

/// How often answers are looked for that nobody came for.
const SWEEP: Duration = Duration::from_millis(100);

impl Steward {
    pub(super) fn new(sharing: Weak<Sharing>, calls: Receiver<Call>) -> Self {
        let (due, next, swept) = (BinaryHeap::new(), BTreeMap::new(), Tick::ZERO);
        let (undone, quitting) = (Vec::new(), Vec::new());
        Self { sharing, calls, due, next, swept, undone, quitting, paying: None }
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
        let waits = !self.undone.is_empty() || !self.quitting.is_empty();
        let undoes = waits && !sharing.breaker.is_open();
        let most = if undoes { LEAST_WAIT } else { SWEEP };
        let wait = due.map_or(most, |due| due.min(most)).max(LEAST_WAIT);
        Some(sharing.clock.sleep(wait))
    }

    fn tend(&mut self, sharing: &Arc<Sharing>, first: Option<Call>) {
        let now = sharing.now();
        let mut places = BTreeSet::new();
        let (mut call, mut heard) = (first, 0);
        while let Some(one) = call {
            match one {
                Call::Look(place) => _ = places.insert(place),
                Call::Quit { last, tries } if self.quitting.len() < MOST_UNDONE => {
                    self.quitting.push((last, tries));
                }
                // There is no room: what it held counts as used.
                Call::Quit { .. } => {}
                Call::Undo { about, cost, at } => self.undo(about, cost, at),
            }
            heard += 1;
            call = if heard >= AT_ONCE { None } else { self.calls.try_recv().ok() };
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
            sharing.lapses.sweep(now);
            sharing.debts.sweep(now);
            sharing.told.sweep(now, |_, told| {
                if let Some(at) = told.said.spent_at() {
                    self.undo(told.about, told.cost, at);
                }
            });
        }
        self.renew(sharing, places, now);
        if !self.quitting.is_empty() && !sharing.breaker.is_open() {
            self.tell_last(sharing);
        }
        // What a rule let pass because one answer was missing is told soon after.
        let pays = self.paying.as_ref().is_some_and(|paying| !paying.is_finished());
        if sweeps && !pays && !sharing.breaker.is_open() && sharing.debts.len() > 0 {
            let sharing = Arc::clone(sharing);
            self.paying = Some(tokio::spawn(async move { _ = pay(&sharing).await }));
        }
        if !self.undone.is_empty() && !sharing.breaker.is_open() {
            self.undo_some(sharing);
        }
    }

    /// Has the store take back what it has spent for nothing.
    fn undo_some(&mut self, sharing: &Arc<Sharing>) {
        let some = self.undone.len().min(AT_ONCE);
        let undone: Vec<_> = self.undone.drain(..some).collect();
        let spent = undone.into_iter().filter_map(|(about, cost, at)| {
            let is_back = sharing.debts.is_back(about.owner, at);
            if is_back.is_none() {
                self.undone.push((about.clone(), cost, at));
            }
            (is_back == Some(false)).then_some((about, cost, at))
        });
        // What could not be paid is made up for first.
        let rest = spent.filter_map(|(about, cost, at)| {
            let rest = sharing.debts.make_up(about.owner, cost);
            (rest > 0).then(|| (about.owner, about.ask(Exchange::undo(rest, at))))
        });
        let (owners, asks): (Vec<KeyHash>, Vec<Ask>) = rest.unzip();
        if asks.is_empty() {
            return;
        }
        let sharing = Arc::clone(sharing);
        tokio::spawn(async move {
            let sent = sharing.now();
            // Whatever is lost of it stays spent.
            let _ = sharing.exchange(&asks, sent, sent).await;
            // What was denied before may pass now.
            let now = sharing.now();
            owners.into_iter().for_each(|owner| sharing.denials.forget(owner, now));
        });
    }

    /// Sends the last words of those who have quit, until they are heard.
    fn tell_last(&mut self, sharing: &Arc<Sharing>) {
        let some = self.quitting.len().min(AT_ONCE);
        let (asks, tries): (Vec<Ask>, Vec<u32>) = self.quitting.drain(..some).unzip();
        let sharing = Arc::clone(sharing);
        tokio::spawn(async move {
            let sent = sharing.now();
            let answers = sharing.exchange(&asks, sent, sent).await;
            for ((last, tries), answer) in asks.into_iter().zip(tries).zip(answers) {
                if !is_answered(&answer) && tries < MOST_TRIES {
                    sharing.call(Call::Quit { last, tries: tries + 1 });
                }
            }
        });
    }

    /// What the store has spent then is given back to the key.
    fn undo(&mut self, about: About, cost: u64, at: Wall) {
        if self.undone.len() < MOST_UNDONE {
            self.undone.push((about, cost, at));
        }
    }

    fn renew(&mut self, sharing: &Arc<Sharing>, places: BTreeSet<Place>, now: Tick) {
        let is_gone = sharing.breaker.is_open();
        let (mut asked, mut asks): (Vec<Place>, Vec<Ask>) = Default::default();
        for place in places {
            let Some(mut lent) = sharing.purses.lock(place, now) else { continue };
            let exchange = if is_gone { None } else { lent.borrower().exchange(now) };
            if let Some(exchange) = exchange {
                sharing.note(&mut lent, &exchange, now);
                asked.push(place);
                asks.push(lent.beside().about.ask(exchange));
            }
            match lent.borrower().due() {
                Some(due) if is_gone => self.schedule(place, due.max(now.after(PAUSE))),
                Some(due) => self.schedule(place, due),
                None => {
                    let cold = lent.borrower().cold_from();
                    if cold <= now {
                        lent.close();
                        continue;
                    }
                    self.schedule(place, cold);
                }
            }
            lent.tended();
        }
        if asked.is_empty() {
            return;
        }
        let sharing = Arc::clone(sharing);
        tokio::spawn(async move {
            let answers = sharing.exchange(&asks, now, sharing.now()).await;
            let now = sharing.now();
            for ((place, ask), answer) in asked.into_iter().zip(&asks).zip(answers) {
                let Exchange { node, sequence, .. } = *ask.exchange();
                match answer {
                    Ok(grant) => sharing.answer(place, node, &grant, now),
                    // It is sent again when its time comes.
                    Err(error) => {
                        if let Some(mut lent) = sharing.asker(place, node, now) {
                            sharing.unanswered(&mut lent, sequence, &error.into());
                        }
                    }
                }
            }
        });
    }

    fn schedule(&mut self, place: Place, due: Tick) {
        self.next.insert(place, due);
        self.due.push(Reverse((due, place)));
    }
}

/// So much waits to be undone while the store is left alone, and so many last words.
const MOST_UNDONE: usize = 16_384;

/// A last word that was sent so often in vain is not sent again: what its borrower held counts as used.
const MOST_TRIES: u32 = 16;

/// However much is due, others get their turn.
const LEAST_WAIT: Duration = Duration::from_millis(1);

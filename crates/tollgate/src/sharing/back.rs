//! Giving back what was spent of a shared limit.

use std::sync::Arc;

use tollgate_core::{Tick, Wall};
use tollgate_local::{Clock, KeyHash, Place};

use crate::sharing::spend::{Asking, Shared};
use crate::sharing::told::{Said, Told};
use crate::sharing::{About, Call, Sharing};

/// How to give back what was spent.
#[derive(Debug)]
pub(crate) enum Back {
    /// Nothing was.
    Nothing,
    Purse(Place, u32),
    Told(Box<Told<About>>),
    /// By this node alone, at this time.
    Own(Tick),
    /// By this node, without counting.
    Uncounted,
}

/// What was spent and may have to be given back once a request has ended.
#[derive(Debug)]
pub(crate) struct LaterBack {
    about: About,
    cost: u64,
    back: Back,
}

impl LaterBack {
    pub(crate) fn new(shared: &Shared<'_>, name: Arc<[u8]>, back: Back) -> Self {
        Self { about: shared.about(name), cost: shared.cost, back }
    }
}

impl Sharing {
    /// Gives back what was spent, because the request does not pass after all.
    pub(crate) fn give_back(&self, shared: &Shared<'_>, back: Back, clock: &impl Clock) {
        let Shared { limit, owner, key, cost } = *shared;
        match back {
            Back::Nothing => {}
            Back::Purse(place, filling) => self.purses.put_back(place, filling, cost),
            Back::Told(told) => self.give_up_told(owner, told),
            Back::Own(at) => {
                if let Some(own) = &limit.own {
                    own.undo(key, limit.cost_here(cost), at, clock);
                }
                self.debts.settle(owner, cost);
            }
            Back::Uncounted => _ = self.debts.settle(owner, cost),
        }
    }

    /// Gives back what was spent, for a request that comes again in a moment: what the store has said to
    /// it waits here. If that were undone, and asked for once more, what it waits for now would be gone by
    /// then, and so on.
    pub(crate) fn give_back_for_now(&self, shared: &Shared<'_>, back: Back, clock: &impl Clock) {
        match back {
            Back::Told(told) => self.leave(shared.owner, told),
            back => self.give_back(shared, back, clock),
        }
    }

    /// Gives back what the store has spent for a request that has waited for it, and that something else
    /// denies. Whoever has not waited has nothing there.
    pub(crate) fn give_up(&self, shared: &Shared<'_>, now: Tick, asking: Asking) {
        if matches!(asking, Asking::Again { .. })
            && shared.cost > 0
            && self.told.may_have(shared.owner)
            && let Some(told) = self.told_to((shared.owner, shared.cost), false, now, asking)
        {
            self.give_up_told(shared.owner, told);
        }
    }

    /// An answer that nobody needs any more. What was spent for it is undone in the store, and as soon as
    /// can be: that takes off what time has given back since. Others who ask get answers of their own, and
    /// would leave it lying here. What was lent is for whoever comes next.
    pub(super) fn give_up_told(&self, owner: KeyHash, told: Box<Told<About>>) {
        match &told.said {
            Said::Decided(decision, None) if decision.is_allowed() => self.leave(owner, told),
            said => self.undo(told.about.clone(), told.cost, said),
        }
    }

    /// Gives back what was spent a while ago: what the store spent is undone there.
    pub(crate) fn give_back_later(&self, spent: LaterBack, clock: &impl Clock) {
        let LaterBack { about, cost, back } = spent;
        let shared = Shared { limit: &about.limit, owner: about.owner, key: about.key, cost };
        match back {
            Back::Told(told) => self.undo(about, cost, &told.said),
            back => self.give_back(&shared, back, clock),
        }
    }

    /// Leaves an answer for others of its key, or has it undone if there is no room for it.
    pub(super) fn leave(&self, owner: KeyHash, told: Box<Told<About>>) {
        if let Err(told) = self.told.put(owner, told) {
            self.undo(told.about, told.cost, &told.said);
        }
    }

    pub(super) fn undo(&self, about: About, cost: u64, said: &Said) {
        if let Some(at) = said.spent_at() {
            self.undo_since(about, cost, at);
        }
    }

    /// Gives back what the store has spent then.
    pub(super) fn undo_since(&self, about: About, cost: u64, at: Wall) {
        if cost > 0 {
            self.call(Call::Undo { about, cost, at });
        }
    }
}

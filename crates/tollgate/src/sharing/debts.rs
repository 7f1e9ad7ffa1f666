//! What has passed without the store: while it was gone, or where it was not asked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_core::{Tick, Wall};
use tollgate_local::{ByHash, KeyHash};

use crate::sharing::About;

/// What keys have spent that the store does not know of. It is told before it is asked again, or else
/// a store that was gone for a while would grant everything a second time.
///
/// Where a key has less left than it owes, what is missing cannot be paid. But the store may have spent just
/// that for somebody who waited no longer, with the answer still on its way, and what is given back may be on
/// its way as well: undone after the debt is forgotten, it could be spent once more. So what is being paid or
/// could not be is remembered for a while, and is paid by what comes back.
///
/// Nor does that come back which was spent before its key [began anew](Self::begin_anew): the key has it already.
#[derive(Debug, Default)]
pub(super) struct Debts(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    owed: ByHash<(About, u64)>,
    unpaid: ByHash<Unpaid>,
    /// When keys began anew by the clock of the store, if that is known, and until when it is remembered.
    anew: ByHash<(Option<Wall>, Tick)>,
}

/// What is being paid or could not be.
#[derive(Debug, Default)]
struct Unpaid {
    cost: u64,
    /// How many payments are under way. As long as there are any it is remembered: what is not would be taken for made
    /// up, and all of a payment for too much.
    payments: u32,
    /// Until when it is remembered after that.
    until: Tick,
}

impl Unpaid {
    fn is_forgotten(&self, now: Tick) -> bool {
        self.payments == 0 && self.until <= now
    }
}

/// Keys whose debts are remembered, as many whose debts could not be paid, and as many that began anew. To one
/// that begins anew when there are so many, what was spent before comes back.
const MOST: usize = 131_072;

impl Debts {
    /// Writes it down, with what the key is called if it is not known yet. `false` if there is no
    /// room.
    pub(super) fn add(&self, owner: KeyHash, cost: u64, about: impl FnOnce() -> About) -> bool {
        self.lock().add(owner, cost, about)
    }

    /// So much of what was added is not owed any more: the store has spent it for nobody, or it is for
    /// somebody who does not pass after all. How much of it was not owed. None of it while there is no room: it may
    /// be what was not written down.
    pub(super) fn settle(&self, owner: KeyHash, cost: u64) -> u64 {
        let mut book = self.lock();
        let mut rest = cost;
        if let Some((_, owed)) = book.owed.get_mut(&owner) {
            let some = rest.min(*owed);
            (rest, *owed) = (rest - some, *owed - some);
            if *owed == 0 {
                book.owed.remove(&owner);
            }
        } else if book.owed.len() >= MOST {
            return 0;
        }
        book.make_up(owner, rest)
    }

    /// So much comes back to the key. What is left of it after what could not be paid.
    pub(super) fn make_up(&self, owner: KeyHash, cost: u64) -> u64 {
        self.lock().make_up(owner, cost)
    }

    /// Nothing is owed for a key any more.
    pub(super) fn forgive(&self, owner: KeyHash) {
        let mut book = self.lock();
        book.owed.remove(&owner);
        book.make_up(owner, u64::MAX);
    }

    /// The key begins anew, with all that it has, which is remembered until then. When that is by the clock of the
    /// store will be [found out](Self::date).
    pub(super) fn begin_anew(&self, owner: KeyHash, until: Tick) {
        let book = &mut *self.lock();
        if book.anew.len() < MOST || book.anew.contains_key(&owner) {
            book.anew.insert(owner, (None, until));
        }
    }

    /// When the key has begun anew that is remembered until then.
    pub(super) fn date(&self, owner: KeyHash, at: Wall, until: Tick) {
        if let Some(anew) = self.lock().anew.get_mut(&owner).filter(|anew| anew.1 == until) {
            anew.0 = Some(at);
        }
    }

    /// The key goes on as it was, because it could not begin anew.
    pub(super) fn go_on(&self, owner: KeyHash) {
        self.lock().anew.remove(&owner);
    }

    /// Whether the key has begun anew since that was spent: then it has it back. `None` if that is to be found out.
    pub(super) fn is_back(&self, owner: KeyHash, spent: Wall) -> Option<bool> {
        match self.lock().anew.get(&owner) {
            Some((at, _)) => at.map(|at| spent < at),
            None => Some(false),
        }
    }

    /// How many keys owe something.
    pub(super) fn len(&self) -> usize {
        self.lock().owed.len()
    }

    /// Up to so many, to be [paid](Self::paid), or [taken back](Self::take_back).
    pub(super) fn take(&self, most: usize) -> Vec<(About, u64)> {
        let book = &mut *self.lock();
        let keys: Vec<KeyHash> = book.owed.keys().take(most).copied().collect();
        let taken: Vec<_> = keys.iter().filter_map(|key| book.owed.remove(key)).collect();
        if book.unpaid.len() + taken.len() > MOST {
            // Few are just being paid.
            book.unpaid.retain(|_, unpaid| unpaid.payments > 0);
        }
        for (about, owed) in &taken {
            let unpaid = book.unpaid.entry(about.owner).or_default();
            unpaid.cost = unpaid.cost.saturating_add(*owed);
            unpaid.payments += 1;
        }
        taken
    }

    /// The store was told of so much of what was taken, and of no more until what is left is forgotten. How
    /// much of that was too much, because it was made up for meanwhile.
    pub(super) fn paid(&self, owner: KeyHash, cost: u64, until: Tick) -> u64 {
        let mut book = self.lock();
        book.end_payment(owner, until);
        book.make_up(owner, cost)
    }

    /// So much of what was taken is owed again, if it was not made up for meanwhile, and the rest is remembered
    /// until then. `false` if there is no room.
    pub(super) fn take_back(&self, about: &About, cost: u64, until: Tick) -> bool {
        let mut book = self.lock();
        book.end_payment(about.owner, until);
        let cost = cost - book.make_up(about.owner, cost);
        book.add(about.owner, cost, || about.clone())
    }

    /// Forgets what is remembered no longer.
    pub(super) fn sweep(&self, now: Tick) {
        let book = &mut *self.lock();
        book.unpaid.retain(|_, unpaid| !unpaid.is_forgotten(now));
        book.anew.retain(|_, (_, until)| now < *until);
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn add(&mut self, owner: KeyHash, cost: u64, about: impl FnOnce() -> About) -> bool {
        if let Some((_, owed)) = self.owed.get_mut(&owner) {
            *owed = owed.saturating_add(cost);
            return true;
        }
        let has_room = self.owed.len() < MOST;
        if has_room && cost > 0 {
            self.owed.insert(owner, (about(), cost));
        }
        has_room
    }

    /// What is left of it after what is unpaid.
    fn make_up(&mut self, owner: KeyHash, cost: u64) -> u64 {
        let Some(unpaid) = self.unpaid.get_mut(&owner) else { return cost };
        let some = cost.min(unpaid.cost);
        unpaid.cost -= some;
        if unpaid.cost == 0 && unpaid.payments == 0 {
            self.unpaid.remove(&owner);
        }
        cost - some
    }

    fn end_payment(&mut self, owner: KeyHash, until: Tick) {
        if let Some(unpaid) = self.unpaid.get_mut(&owner) {
            unpaid.payments = unpaid.payments.saturating_sub(1);
            unpaid.until = unpaid.until.max(until);
        }
    }
}

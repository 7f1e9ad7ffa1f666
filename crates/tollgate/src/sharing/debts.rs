//! What has passed without the store: while it was gone, or where it was not asked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_local::{ByHash, KeyHash};

use crate::sharing::About;

/// What keys have spent that the store does not know of. It is told before it is asked again, or else
/// a store that was gone for a while would grant everything a second time.
#[derive(Debug, Default)]
pub(super) struct Debts(Mutex<ByHash<(About, u64)>>);

/// Keys whose debts are remembered.
const MOST: usize = 131_072;

impl Debts {
    /// Writes it down, with what the key is called if it is not known yet. `false` if there is no
    /// room.
    pub(super) fn add(&self, owner: KeyHash, cost: u64, about: impl FnOnce() -> About) -> bool {
        let mut debts = self.lock();
        if let Some((_, debt)) = debts.get_mut(&owner) {
            *debt = debt.saturating_add(cost);
            return true;
        }
        let has_room = debts.len() < MOST;
        if has_room {
            debts.insert(owner, (about(), cost));
        }
        has_room
    }

    /// What has been added is not owed after all.
    pub(super) fn remove(&self, owner: KeyHash, cost: u64) {
        if let Some((_, debt)) = self.lock().get_mut(&owner) {
            *debt = debt.saturating_sub(cost);
        }
    }

    /// The store has spent so much for nobody. Whether that much is owed: then it is not any more.
    pub(super) fn settle(&self, owner: KeyHash, cost: u64) -> bool {
        let mut debts = self.lock();
        let owed = debts.get_mut(&owner).and_then(|(_, debt)| {
            *debt = debt.checked_sub(cost)?;
            Some(*debt)
        });
        if owed == Some(0) {
            debts.remove(&owner);
        }
        owed.is_some()
    }

    /// Nothing is owed for a key any more.
    pub(super) fn forgive(&self, owner: KeyHash) {
        self.lock().remove(&owner);
    }

    /// How many keys have any.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Up to so many, to be paid.
    pub(super) fn take(&self, most: usize) -> Vec<(About, u64)> {
        let mut debts = self.lock();
        let keys: Vec<KeyHash> = debts.keys().take(most).copied().collect();
        keys.iter().filter_map(|key| debts.remove(key)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, ByHash<(About, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What is held of requests that are not complete, and of answers that nobody takes.
//!
//! Each connection is bounded by itself, and so is the number of connections. Multiplied that would
//! still be more than most machines have, so all connections of all doors share one budget. Whoever
//! sends whole requests, and reads the answers, never comes here.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many bytes all connections may hold.
#[derive(Debug)]
pub(crate) struct Budget {
    most: AtomicUsize,
    held: AtomicUsize,
    refused: AtomicU64,
}

/// There is no room for that many bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

impl From<OverBudget> for io::Error {
    fn from(OverBudget: OverBudget) -> Self {
        io::ErrorKind::OutOfMemory.into()
    }
}

impl Budget {
    pub(crate) const fn new(most: usize) -> Self {
        Self { most: AtomicUsize::new(most), held: AtomicUsize::new(0), refused: AtomicU64::new(0) }
    }

    /// It is this from now on. What is held stays.
    pub(crate) fn allow(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// How many bytes are held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// How often there was no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> Result<(), OverBudget> {
        let most = self.most();
        // A number alone: nothing else is published with it.
        let more = |held: usize| held.checked_add(bytes).filter(|held| *held <= most);
        match self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(OverBudget)
            }
        }
    }

    fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What somebody holds. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Held {
    /// Of this budget, nothing yet.
    pub(crate) const fn nothing(budget: Arc<Budget>) -> Self {
        Self { budget, bytes: 0 }
    }

    pub(crate) const fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Holds this many bytes from now on, which may be more or less than before. If there is no room
    /// for more, it is what it was.
    #[inline]
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), OverBudget> {
        match bytes == self.bytes {
            true => Ok(()),
            false => self.change(bytes),
        }
    }

    #[cold]
    fn change(&mut self, bytes: usize) -> Result<(), OverBudget> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.budget.take(more)?,
            None => self.budget.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Mostly it is nothing.
        let _ = self.hold(0);
    }
}

/// Headers, commands and answers that are no longer than this are not counted: so much every
/// connection may have.
pub(crate) const SHORT: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_more_is_held_than_there_is_and_all_of_it_comes_back(
            changes in prop::collection::vec((0..4_usize, 0..60_usize), 0..60),
        ) {
            let budget = Arc::new(Budget::new(100));
            let mut all = [(); 4].map(|()| Held::nothing(Arc::clone(&budget)));
            let (mut model, mut refused) = ([0; 4], 0);
            for (which, bytes) in changes {
                let others = model.iter().sum::<usize>() - model[which];
                let fits = others + bytes <= 100 || bytes <= model[which];
                prop_assert_eq!(all[which].hold(bytes).is_ok(), fits);
                match fits {
                    true => model[which] = bytes,
                    false => refused += 1,
                }
                prop_assert_eq!(budget.held(), model.iter().sum::<usize>());
            }
            prop_assert_eq!(budget.refused(), refused);
            drop(all);
            prop_assert_eq!(budget.held(), 0);
        }
    }

    #[test]
    fn less_can_be_allowed_while_something_is_held() {
        let budget = Arc::new(Budget::new(100));
        let mut held = Held::nothing(Arc::clone(&budget));
        assert_eq!(held.hold(80), Ok(()));
        budget.allow(50);
        assert_eq!(held.hold(81), Err(OverBudget));
        assert_eq!((held.hold(60), budget.held()), (Ok(()), 60));
        assert_eq!(held.hold(usize::MAX), Err(OverBudget));
    }
}

//! What the rules in force ask the store about.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tollgate_store::Budget;

use crate::sharing::About;

/// The limits that somebody may ask about, and what somebody would ask while the store is left alone.
///
/// Rules are exchanged also while a store fails. What it has not answered may then be nobody's question any
/// more, and its server may never come back: so another is asked for, and the next who cannot ask has one.
#[derive(Debug, Default)]
pub(super) struct InForce {
    /// In the order of their addresses: as long as they are here, no other has one of them.
    budgets: RwLock<Vec<Arc<Budget>>>,
    /// Whether a question is asked for. It guards nothing: who sees it late is followed by others.
    wants: AtomicBool,
    question: Mutex<Option<About>>,
}

impl InForce {
    /// From now on these are asked about, and no others.
    pub(super) fn replace(&self, mut budgets: Vec<Arc<Budget>>) {
        budgets.sort_unstable_by_key(Arc::as_ptr);
        *self.budgets.write().unwrap_or_else(PoisonError::into_inner) = budgets;
    }

    /// Whether a rule asks about keys of this.
    pub(super) fn has(&self, budget: &Arc<Budget>) -> bool {
        let budgets = self.budgets.read().unwrap_or_else(PoisonError::into_inner);
        budgets.binary_search_by_key(&Arc::as_ptr(budget), Arc::as_ptr).is_ok()
    }

    /// What somebody would have asked if the store were not left alone. If nobody has said so yet, the next
    /// one does.
    pub(super) fn question(&self) -> Option<About> {
        let question = self.lock().take().filter(|about| self.has(&about.limit.budget));
        if question.is_none() {
            self.wants.store(true, Ordering::Relaxed);
        }
        question
    }

    /// Somebody cannot ask this.
    #[inline]
    pub(super) fn offer(&self, about: impl FnOnce() -> About) {
        if self.wants.load(Ordering::Relaxed) && self.wants.swap(false, Ordering::Relaxed) {
            *self.lock() = Some(about());
        }
    }

    /// No question is asked for any more: everybody asks.
    pub(super) fn done(&self) {
        self.wants.store(false, Ordering::Relaxed);
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<About>> {
        self.question.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

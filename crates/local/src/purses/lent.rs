//! A borrower that somebody has locked.

use std::sync::MutexGuard;

use tollgate_core::lease::Borrower;

use crate::purses::{Kept, NOBODY, Place, Purses};
use crate::sync::Ordering;

/// The borrower behind a purse, which is empty as long as this is held. Hold it for a moment: whoever
/// wants to spend has to wait.
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_local::{Place, Purses};
/// fn exchange(purses: &Purses<()>, place: Place, now: Tick) {
///     let exchange = purses.lock(place, now).and_then(|mut lent| lent.borrower().exchange(now));
/// }
/// ```
#[derive(Debug)]
pub struct Lent<'a, T> {
    pub(super) purses: &'a Purses<T>,
    pub(super) place: Place,
    /// There is one as long as this is not closed.
    pub(super) book: MutexGuard<'a, Kept<T>>,
    /// Whether its owner knows when the borrower asks next.
    pub(super) is_tended: bool,
    /// Whether nothing has become of it.
    pub(super) is_refilled: bool,
}

impl<T> Lent<'_, T> {
    /// Who holds what the store has lent.
    ///
    /// ```
    /// # use tollgate_core::Tick;
    /// # use tollgate_local::Lent;
    /// fn has_any(lent: &mut Lent<'_, ()>, now: Tick) -> bool {
    ///     lent.borrower().tokens(now) > 0
    /// }
    /// ```
    #[expect(clippy::expect_used, reason = "whoever closes it has no way to ask any more")]
    pub fn borrower(&mut self) -> &mut Borrower {
        &mut self.book.as_mut().expect("it is open").borrower
    }

    /// What its owner keeps beside it.
    ///
    /// ```
    /// # use tollgate_local::Lent;
    /// fn name<'a>(lent: &'a Lent<'_, String>) -> &'a str {
    ///     lent.beside()
    /// }
    /// ```
    #[expect(clippy::expect_used, reason = "whoever closes it has no way to ask any more")]
    pub fn beside(&self) -> &T {
        &self.book.as_ref().expect("it is open").beside
    }

    /// The same, to be changed.
    ///
    /// ```
    /// # use tollgate_local::Lent;
    /// fn count(lent: &mut Lent<'_, u64>) {
    ///     *lent.beside_mut() += 1;
    /// }
    /// ```
    #[expect(clippy::expect_used, reason = "whoever closes it has no way to ask any more")]
    pub fn beside_mut(&mut self) -> &mut T {
        &mut self.book.as_mut().expect("it is open").beside
    }

    /// Where it lies.
    ///
    /// ```
    /// # use tollgate_local::{Lent, Place};
    /// fn place(lent: &Lent<'_, ()>) -> Place {
    ///     lent.place()
    /// }
    /// ```
    pub const fn place(&self) -> Place {
        self.place
    }

    /// Leaves it to an owner who looks at it again when the borrower is [due](Borrower::due): if more is asked
    /// for by then anyway, no request tells him that the purse is low.
    ///
    /// ```
    /// # use tollgate_core::Tick;
    /// # use tollgate_local::Lent;
    /// fn look_after(mut lent: Lent<'_, ()>) -> Option<Tick> {
    ///     let due = lent.borrower().due();
    ///     lent.tended();
    ///     due
    /// }
    /// ```
    pub fn tended(mut self) {
        self.is_tended = true;
    }

    /// Leaves it as it was, but for what has come in meanwhile: if somebody was told that the purse is low, nobody is
    /// told again.
    ///
    /// ```
    /// # use tollgate_core::Tick;
    /// # use tollgate_local::{KeyHash, Purses};
    /// fn refill(purses: &Purses<()>, key: KeyHash, now: Tick) {
    ///     if let Some(lent) = purses.known(key, now) {
    ///         lent.refilled();
    ///     }
    /// }
    /// ```
    pub fn refilled(mut self) {
        self.is_refilled = true;
    }

    /// Frees the place for another key. What was held is forgotten, and comes back to the store when
    /// the lease ends.
    ///
    /// ```
    /// # use tollgate_local::Lent;
    /// fn demote(mut lent: Lent<'_, ()>) {
    ///     if lent.borrower().due().is_none() {
    ///         lent.close();
    ///     }
    /// }
    /// ```
    pub fn close(mut self) {
        self.purses.purses[self.place.0 as usize].retire();
        self.purses.owner(self.place).store(NOBODY, Ordering::Release);
        *self.book = None;
    }
}

/// Fills the purse.
impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        if let Some(book) = self.book.as_mut() {
            let purse = &self.purses.purses[self.place.0 as usize];
            let is_known = match self.is_refilled {
                true => purse.was_told(),
                false => self.is_tended && book.borrower.is_getting_more(),
            };
            book.filled = purse.fill(&book.borrower, is_known);
        }
    }
}

//! Where what rules say is written.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;
use tollgate_core::Decision;

use crate::engine::ruling::Reserved;
use crate::engine::shared::HeldSlot;
use crate::spending::Each;

/// What came of asking the rules.
pub(super) struct Said {
    /// The numbers of the rules that apply.
    pub(super) rules: SmallVec<[u32; 8]>,
    /// What each of them says.
    pub(super) each: Each<Decision>,
    /// Whether one that is enforced denies.
    pub(super) denied: bool,
    pub(super) reserved: SmallVec<[Reserved; 1]>,
    /// Given back when this is dropped.
    pub(super) held: SmallVec<[HeldSlot; 1]>,
}

impl Said {
    pub(super) fn new() -> Self {
        Self {
            rules: SmallVec::new(),
            each: Each::new(),
            denied: false,
            reserved: SmallVec::new(),
            held: SmallVec::new(),
        }
    }

    /// Where the next decision is to be written.
    #[inline(always)]
    pub(super) fn room(&mut self) -> &mut Decision {
        let at = self.each.len();
        self.each.push(Decision::unlimited());
        &mut self.each[at]
    }

    /// Forgets all of it. Slots are given back.
    #[inline]
    fn clear(&mut self) {
        let Self { rules, each, denied, reserved, held } = self;
        rules.clear();
        each.clear();
        *denied = false;
        reserved.clear();
        held.clear();
    }

    /// Whether it is no larger than when it was new.
    #[inline]
    fn is_small(&self) -> bool {
        let Self { rules, each, reserved, held, .. } = self;
        !(rules.spilled() || each.spilled() || reserved.spilled() || held.spilled())
    }
}

/// A sheet to write on that stays where it is while a ruling is handed on: what is said fills half a
/// kilobyte, and to move that right after it was written takes longer than to write it. Threads keep
/// some that were used, and nearly never need a new one.
pub(super) struct Sheet(Option<Box<Said>>);

thread_local! {
    #[expect(clippy::vec_box, reason = "they stay where they are")]
    static USED: RefCell<Vec<Box<Said>>> = const { RefCell::new(Vec::new()) };
}

impl Sheet {
    /// A thread keeps at most so many. Whoever has more rulings at once gets memory for the others.
    const KEPT: usize = 64;

    /// An empty one.
    #[inline]
    pub(super) fn new() -> Self {
        let used = USED.try_with(|used| used.borrow_mut().pop()).ok().flatten();
        Self(Some(used.unwrap_or_else(|| Box::new(Said::new()))))
    }

    /// One on which this is written.
    pub(super) fn of(said: Said) -> Self {
        let mut sheet = Self::new();
        *sheet = said;
        sheet
    }

    /// Forgets what is written on it, for the next request. Slots are given back.
    #[inline]
    pub(super) fn clear(&mut self) {
        (**self).clear();
    }
}

impl Drop for Sheet {
    #[inline]
    fn drop(&mut self) {
        let Some(mut said) = self.0.take() else { return };
        said.clear();
        if said.is_small() {
            // A thread that ends keeps none.
            let _ = USED.try_with(|used| {
                let mut used = used.borrow_mut();
                if used.len() < Self::KEPT {
                    used.push(said);
                }
            });
        }
    }
}

impl Deref for Sheet {
    type Target = Said;

    #[inline(always)]
    fn deref(&self) -> &Said {
        match &self.0 {
            Some(said) => said,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}

impl DerefMut for Sheet {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Said {
        match &mut self.0 {
            Some(said) => said,
            None => unreachable!("it is there until it is dropped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> usize {
        USED.with_borrow(Vec::len)
    }

    #[test]
    fn a_sheet_is_used_again_and_empty_then() {
        let mut sheet = Sheet::new();
        sheet.rules.push(7);
        sheet.each.push(Decision::unlimited());
        sheet.denied = true;
        let written = std::ptr::from_ref::<Said>(&sheet);
        drop(sheet);
        let sheet = Sheet::new();
        assert!(std::ptr::eq(written, &*sheet), "the same one");
        assert!(sheet.rules.is_empty() && sheet.each.is_empty() && !sheet.denied);
    }

    #[test]
    fn a_thread_keeps_few_and_no_large_ones() {
        let sheets: Vec<_> = (0..2 * Sheet::KEPT).map(|_| Sheet::new()).collect();
        drop(sheets);
        assert_eq!(kept(), Sheet::KEPT);
        let mut sheet = Sheet::new();
        sheet.rules.extend(0..1_000);
        drop(sheet);
        assert_eq!(kept(), Sheet::KEPT - 1, "a large one is not kept");
    }

    #[test]
    fn a_sheet_may_be_dropped_by_another_thread() {
        let sheet = Sheet::new();
        let kept_there = std::thread::spawn(move || {
            drop(sheet);
            kept()
        });
        assert_eq!(kept_there.join().expect("it drops it"), 1);
        assert_eq!(kept(), 0);
    }
}

//! What a node says to a request by itself.

use crate::decision::Decision;

/// What a borrower says to a request.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Tick, lease::{Borrower, Node, Spend, Terms}};
/// let terms = Terms::of_permits(Duration::from_millis(5));
/// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
/// assert_eq!(borrower.spend(Tick::ZERO, 1), Spend::Ask, "it has nothing yet");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    /// It passes.
    Taken(Receipt),
    /// There is too little here, and perhaps enough in the store: ask for this request, with
    /// [`Borrower::ask`](super::Borrower::ask). If an answer is awaited already, wait for it, or ask the store
    /// for this request alone if it [asks apart](super::Borrower::asks_apart).
    Ask,
    /// There is too little here, and was too little in the store a moment ago.
    Short(Decision),
}

/// Says what was taken, and what is left: what [`Borrower::finish`](super::Borrower::finish) needs.
///
/// ```
/// use tollgate_core::lease::{Receipt, Spend};
/// fn receipt(spend: Spend) -> Option<Receipt> {
///     if let Spend::Taken(receipt) = spend { Some(receipt) } else { None }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub(super) cost: u64,
    pub(super) decision: Decision,
}

impl Receipt {
    /// The allowance. What it says is left is what the store said last, and what is held here.
    ///
    /// ```
    /// use tollgate_core::lease::Receipt;
    /// fn left(receipt: &Receipt) -> u64 {
    ///     receipt.decision().remaining()
    /// }
    /// ```
    pub const fn decision(&self) -> Decision {
        self.decision
    }
}

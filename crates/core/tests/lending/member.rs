//! A node in virtual time.

use tollgate_core::Tick;
use tollgate_core::lease::{Borrower, Node, Terms};

use crate::chance::Chance;

/// A node, with a clock of its own.
pub(crate) struct Member {
    pub(crate) borrower: Borrower,
    pub(crate) node: Node,
    /// What the node's clock says at time 0, and how many millionths it gains.
    offset: u64,
    pub(crate) gains: i64,
    pub(crate) asks: u64,
    /// When it wakes next: a wake-up that was moved is none.
    pub(crate) wakes: u64,
    pub(crate) is_alive: bool,
}

impl Member {
    /// A node whose clock is up to `drift` thousandths faster or slower than the store's.
    pub(crate) fn new(node: Node, terms: Terms, drift: u64, chance: &mut Chance) -> Self {
        let drift = drift * 1_000;
        Self {
            borrower: Borrower::new(node, terms),
            node,
            offset: chance.below(1 << 50),
            gains: chance.between((0, 2 * drift)) as i64 - drift as i64,
            asks: 0,
            wakes: u64::MAX,
            is_alive: true,
        }
    }

    pub(crate) fn clock(&self, time: u64) -> Tick {
        let gained = i128::from(time) * i128::from(self.gains) / 1_000_000;
        Tick::from_nanos((i128::from(time) + gained + i128::from(self.offset)) as u64)
    }

    /// The first time at which the clock has come so far, or shortly after.
    pub(crate) fn time_of(&self, tick: Tick) -> u64 {
        let passed = u128::from(tick.as_nanos().saturating_sub(self.offset));
        (passed * 1_000_000 / (1_000_000 + self.gains) as u128) as u64 + 2
    }
}

//! What was lent before it came in.

use super::exchange::Promise;
use super::terms::Terms;
use crate::time::{Tick, nanos};

/// Tokens that a node may use one after the other, as they come in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming {
    pub(super) tokens: u64,
    /// The nanosecond at which the last of them is in, by the node's clock. No tick, because at the
    /// last one a clock stands still, and nothing comes in.
    all_in: u64,
    /// How many nanoseconds it is from one to the next.
    apart: u64,
}

impl Coming {
    pub(super) const NOTHING: Self = Self { tokens: 0, all_in: 0, apart: 1 };

    /// Of so many tokens those that were promised, some moment before `now`.
    pub(super) fn of(tokens: u64, promise: &Promise, now: Tick, terms: &Terms) -> Self {
        // The node's clock may be the faster one.
        let wait = nanos(promise.all_in.saturating_add(promise.all_in / Terms::DRIFT));
        let all_in = now.as_nanos().saturating_add(wait);
        let coming =
            Self { tokens: tokens.min(promise.tokens), all_in, apart: terms.apart(promise.lanes) };
        Self { tokens: coming.left(now), ..coming }
    }

    /// Takes out what is in by now.
    pub(super) fn arrived(&mut self, now: Tick) -> u64 {
        let left = self.left(now);
        let arrived = self.tokens - left;
        self.tokens = left;
        arrived
    }

    fn left(&self, now: Tick) -> u64 {
        let wait = self.all_in.saturating_sub(now.as_nanos());
        if self.tokens == 0 { 0 } else { self.tokens.min(wait.div_ceil(self.apart)) }
    }

    /// When so many of them are in; `None` if they are fewer.
    pub(super) fn in_at(&self, tokens: u64) -> Option<Tick> {
        let behind = self.tokens.checked_sub(tokens)?.saturating_mul(self.apart);
        Some(Tick::from_nanos(self.all_in.saturating_sub(behind)))
    }

    /// When all of them are in: at the beginning of time if there are none.
    pub(super) const fn all_in(&self) -> Tick {
        if self.tokens == 0 { Tick::ZERO } else { Tick::from_nanos(self.all_in) }
    }
}

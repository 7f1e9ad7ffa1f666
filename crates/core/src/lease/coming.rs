//! What was lent before it came in.

use std::time::Duration;

use super::terms::Terms;
use crate::time::{Tick, nanos};

/// Tokens that a node may use one after the other, as they come in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming {
    pub(super) tokens: u64,
    /// The nanosecond at which the last of them is in, by the node's clock. No tick, because at the
    /// last one a clock stands still, and nothing comes in.
    all_in: u64,
}

impl Coming {
    pub(super) const NOTHING: Self = Self { tokens: 0, all_in: 0 };

    /// Of so many tokens the last comes in after that time, from some moment before `now` on. Those that
    /// may be missing still are as many as come in until then: which of them are lent to whom, only
    /// the store knows.
    pub(super) fn of(tokens: u64, all_in: Duration, now: Tick, terms: &Terms) -> Self {
        let tokens = tokens.min(terms.tokens_in(all_in));
        // The node's clock may be the faster one.
        let wait = nanos(all_in + all_in / Terms::DRIFT);
        Self { tokens, all_in: now.as_nanos().saturating_add(wait) }
    }

    /// Takes out what is in by now.
    pub(super) fn arrived(&mut self, now: Tick, terms: &Terms) -> u64 {
        if self.tokens == 0 {
            return 0;
        }
        let wait = Duration::from_nanos(self.all_in.saturating_sub(now.as_nanos()));
        let left = self.tokens.min(terms.tokens_in(wait));
        let arrived = self.tokens - left;
        self.tokens = left;
        arrived
    }

    /// When so many of them are in; `None` if they are fewer.
    pub(super) fn in_at(&self, tokens: u64, terms: &Terms) -> Option<Tick> {
        let behind = nanos(terms.time_for(self.tokens.checked_sub(tokens)?));
        Some(Tick::from_nanos(self.all_in.saturating_sub(behind)))
    }

    /// When all of them are in: at the beginning of time if there are none.
    pub(super) const fn all_in(&self) -> Tick {
        if self.tokens == 0 { Tick::ZERO } else { Tick::from_nanos(self.all_in) }
    }
}

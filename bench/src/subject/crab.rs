//! throttlecrab's library, with its adaptive store.
//!
//! The store is told how many keys to expect, as ours is. Left at its default size it scans the
//! whole map on every decision while it is between three quarters full and full, and filling ten
//! million keys would take hours.

use std::fmt::Write;
use std::hint::black_box;
use std::num::NonZeroU32;

use throttlecrab::{AdaptiveStore, RateLimiter};

use super::{Allowance, Subject};
use crate::stopwatch;

/// A limiter of one thread: its `rate_limit` takes `&mut self`.
pub(crate) struct Throttlecrab {
    limiter: RateLimiter<AdaptiveStore>,
    allowance: Allowance,
    /// Number keys are written out here, because it only knows string keys.
    text: String,
}

impl Throttlecrab {
    pub(crate) fn new(allowance: Allowance, keys: usize) -> Self {
        let store = AdaptiveStore::builder().capacity(keys).build();
        Self { limiter: RateLimiter::new(store), allowance, text: String::new() }
    }

    #[inline]
    fn decide(&mut self, key: u64, cost: NonZeroU32) -> bool {
        self.text.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{key}");
        let burst = i64::from(self.allowance.burst.get());
        let period_s = self.allowance.period.as_secs() as i64;
        let cost = i64::from(cost.get());
        let now = stopwatch::wall_clock();
        let outcome = self.limiter.rate_limit(&self.text, burst, burst, period_s, cost, now);
        black_box(outcome).is_ok_and(|(allowed, _)| allowed)
    }
}

impl Subject<u64> for Throttlecrab {
    #[inline]
    fn check(&mut self, key: &u64) -> bool {
        self.decide(*key, NonZeroU32::MIN)
    }

    fn spend(&mut self, key: &u64, cost: NonZeroU32) -> bool {
        self.decide(*key, cost)
    }
}

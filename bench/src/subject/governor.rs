//! governor, with its default keyed store and its default clock.

use std::hash::Hash;
use std::hint::black_box;
use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock, FakeRelativeClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use super::{Allowance, Subject};
use crate::error::BenchError;

/// A keyed governor that reads its clock `C` once per decision.
pub(crate) struct Governor<K: Hash + Eq + Clone, C: Clock = DefaultClock> {
    limiter: RateLimiter<K, DefaultKeyedStateStore<K>, C, NoOpMiddleware<C::Instant>>,
}

/// A governor whose time is set by the caller, and stands still here.
pub(crate) type FrozenGovernor<K> = Governor<K, FakeRelativeClock>;

impl<K: Hash + Eq + Clone, C: Clock + Default> Governor<K, C> {
    pub(crate) fn new(allowance: Allowance) -> Result<Self, BenchError> {
        let interval = allowance.period / allowance.burst.get();
        let quota = Quota::with_period(interval)
            .ok_or_else(|| BenchError::Quota {
                subject: "governor",
                reason: format!("{allowance:?} refills faster than a token per nanosecond"),
            })?
            .allow_burst(allowance.burst);
        let store = DefaultKeyedStateStore::default();
        Ok(Self { limiter: RateLimiter::new(quota, store, C::default()) })
    }

    #[inline]
    pub(crate) fn check(&self, key: &K) -> bool {
        black_box(self.limiter.check_key(key)).is_ok()
    }
}

impl<K: Hash + Eq + Clone, C: Clock + Default> Subject<K> for Governor<K, C> {
    #[inline]
    fn check(&mut self, key: &K) -> bool {
        Self::check(self, key)
    }

    fn spend(&mut self, key: &K, cost: NonZeroU32) -> bool {
        matches!(self.limiter.check_key_n(key, cost), Ok(Ok(())))
    }
}

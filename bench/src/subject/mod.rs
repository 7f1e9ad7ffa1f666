//! What is measured: Tollgate, its peers, and the memory floor, each used as its documentation
//! shows. Every decision's whole outcome goes through `black_box`, on every side alike.

mod crab;
mod floor;
mod governor;
mod ours;

pub(crate) use crab::Throttlecrab;
pub(crate) use floor::{BATCH, Floor, Folded};
pub(crate) use governor::{FrozenGovernor, Governor};
pub(crate) use ours::{Algorithm, Batch, OurKey, Ours, admissions};

use std::num::NonZeroU32;
use std::time::Duration;

/// A limiter that decides about keys of one type.
pub(crate) trait Subject<K> {
    /// Spends one token, and says whether that was allowed.
    fn check(&mut self, key: &K) -> bool;

    /// Spends several tokens at once, all or nothing.
    fn spend(&mut self, key: &K, cost: NonZeroU32) -> bool;
}

/// The quota that every subject of a row is given: `burst` tokens, refilled evenly over `period`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    pub(crate) burst: NonZeroU32,
    pub(crate) period: Duration,
}

impl Allowance {
    /// So many tokens a day that a key cannot run out within a run unless it is drained on
    /// purpose: a billion visits spread over the keys. The refill gives all drained keys together
    /// about a thousand tokens a second, which is lost among millions of decisions.
    pub(crate) fn ample(keys: usize) -> Self {
        let burst = (1_000_000_000 / keys.max(1)).clamp(1, 1_000_000);
        Self::per_day(NonZeroU32::new(burst as u32).unwrap_or(NonZeroU32::MIN))
    }

    pub(crate) const fn per_day(burst: NonZeroU32) -> Self {
        Self { burst, period: Duration::from_secs(86_400) }
    }

    /// A quota that one key cannot exhaust: a billion tokens a second.
    pub(crate) const ENDLESS: Self =
        Self { burst: NonZeroU32::MIN.saturating_add(999_999_999), period: Duration::from_secs(1) };

    /// A quota that one decision exhausts for the rest of the day.
    pub(crate) const SINGLE: Self = Self::per_day(NonZeroU32::MIN);
}

/// One key in this many is drained, so this is the share of decisions that are denied.
pub(crate) const DRAINED_EVERY: u32 = 10;

/// The share of decisions allowed when one key in ten is drained.
pub(crate) const SHARE_ALLOWED: f64 = 1.0 - 1.0 / DRAINED_EVERY as f64;

/// Makes every key known to the subject, and drains one in ten of them.
pub(crate) fn fill<K, S: Subject<K>>(
    subject: &mut S,
    keys: &[K],
    order: &[u32],
    allowance: Allowance,
) {
    for &index in order {
        let key = &keys[index as usize];
        if index.is_multiple_of(DRAINED_EVERY) {
            drain(subject, key, allowance);
        } else {
            subject.check(key);
        }
    }
}

/// Spends everything a key has. Peers differ by a token in what a burst is, hence the loop; it is
/// bounded because a subject that never denies is found out by the row's allow rate.
pub(crate) fn drain<K, S: Subject<K>>(subject: &mut S, key: &K, allowance: Allowance) {
    subject.spend(key, allowance.burst);
    for _ in 0..allowance.burst.get().saturating_add(2) {
        if !subject.check(key) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    /// Refills so slowly that no drained key gets a token back while a test runs.
    const SLOW: Allowance = Allowance::per_day(NonZeroU32::MIN.saturating_add(99));

    /// At exactly the planned load a key may overflow, and then be denied with others.
    const ROOM: usize = 10_000;

    fn allowed_share<S: Subject<u64>>(mut subject: S) -> f64 {
        let numbers = keys::numbers(1000);
        fill(&mut subject, &numbers, &keys::insertion_order(1000), SLOW);
        let allowed = numbers.iter().filter(|key| subject.check(key)).count();
        allowed as f64 / 1000.0
    }

    #[test]
    fn one_key_in_ten_is_denied_by_every_subject() {
        let ours = Ours::new(Algorithm::TokenBucket, SLOW, ROOM).unwrap();
        assert_eq!(allowed_share(ours), SHARE_ALLOWED);
        assert_eq!(allowed_share(Governor::<u64>::new(SLOW).unwrap()), SHARE_ALLOWED);
        assert_eq!(allowed_share(FrozenGovernor::<u64>::new(SLOW).unwrap()), SHARE_ALLOWED);
        assert_eq!(allowed_share(Throttlecrab::new(SLOW, 1000)), SHARE_ALLOWED);
    }

    #[test]
    fn windows_deny_one_key_in_ten_too() {
        for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingWindow] {
            let ours = Ours::new(algorithm, SLOW, ROOM).unwrap();
            assert_eq!(allowed_share(ours), SHARE_ALLOWED);
        }
    }
}

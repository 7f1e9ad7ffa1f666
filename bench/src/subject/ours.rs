//! Tollgate itself.

use std::borrow::Borrow;
use std::hash::Hash;
use std::hint::black_box;
use std::num::NonZeroU32;

use tollgate::{Clock, Decision, Limit, Limiter, ManualClock, Quota, Tick};

use super::{Allowance, BATCH, Folded, Subject};
use crate::error::BenchError;
use crate::keys;

/// A limiter as `Limiter::builder` makes it, told how many keys to expect.
pub(crate) struct Ours {
    limiter: Limiter,
}

/// Which of our algorithms decides.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Algorithm {
    TokenBucket,
    FixedWindow,
    SlidingWindow,
}

impl Ours {
    pub(crate) fn new(
        algorithm: Algorithm,
        allowance: Allowance,
        keys: usize,
    ) -> Result<Self, BenchError> {
        let limit = limit(algorithm, allowance)?;
        Ok(Self { limiter: Limiter::builder(limit).keys(keys).build()? })
    }

    #[inline]
    pub(crate) fn check<K: OurKey>(&self, key: &K) -> bool {
        used(&self.limiter.check(key))
    }

    /// A reading of the limiter's clock, for [`Ours::check_at`].
    pub(crate) fn now(&self) -> Tick {
        self.limiter.clock().now()
    }

    /// A decision at a time that the caller knows.
    #[inline]
    pub(crate) fn check_at<K: OurKey>(&self, key: &K, now: Tick) -> bool {
        used(&self.limiter.check_at(key, now))
    }

    /// Bytes the limiter has reserved for its counters.
    pub(crate) fn memory(&self) -> usize {
        self.limiter.stats().memory
    }

    /// Decisions made with a count that keys share, for want of a slot. If every key has been
    /// seen once, as many keys.
    pub(crate) fn overflowed(&self) -> u64 {
        self.limiter.stats().overflowed
    }
}

/// Whether the decision is to allow. All of it is taken for used, and so has to be made.
#[inline]
fn used(decision: &Decision) -> bool {
    black_box(decision).is_allowed()
}

impl<K: OurKey> Subject<K> for Ours {
    #[inline]
    fn check(&mut self, key: &K) -> bool {
        Self::check(self, key)
    }

    fn spend(&mut self, key: &K, cost: NonZeroU32) -> bool {
        self.limiter.check_n(key, u64::from(cost.get())).is_allowed()
    }
}

/// Decides in batches, reusing the room for its decisions.
pub(crate) struct Batch<'a> {
    limiter: &'a Limiter,
    decisions: Vec<Decision>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(ours: &'a Ours) -> Self {
        Self { limiter: &ours.limiter, decisions: Vec::with_capacity(BATCH) }
    }

    /// Decides about every key, [`BATCH`] at a time, and counts the allowed ones.
    #[inline]
    pub(crate) fn check<K: OurKey>(&mut self, visits: &[K::Visit<'_>]) -> u64 {
        let mut allowed = 0;
        for batch in visits.chunks(BATCH) {
            self.decisions.clear();
            self.limiter.check_batch(batch, &mut self.decisions);
            let decisions = black_box(self.decisions.as_slice());
            allowed += decisions.iter().filter(|decision| decision.is_allowed()).count() as u64;
        }
        allowed
    }
}

/// A type of keys that every subject can count by.
pub(crate) trait OurKey: tollgate::Key + Hash + Eq + Clone + Send + Sync {
    /// How a key is held in the visiting order: numbers by value, strings by reference.
    type Visit<'a>: Borrow<Self> + tollgate::Key + Folded + Copy + Send + Sync
    where
        Self: 'a;

    const NAME: &'static str;

    /// The name when keys must be fetched from memory first.
    const COLD_NAME: &'static str;

    /// So many different keys.
    fn distinct(count: usize) -> Vec<Self>;

    fn visit(&self) -> Self::Visit<'_>;
}

impl OurKey for u64 {
    type Visit<'a> = Self;

    const NAME: &'static str = "u64";

    /// Numbers are part of the visiting order, and at hand in any case.
    const COLD_NAME: &'static str = Self::NAME;

    fn distinct(count: usize) -> Vec<Self> {
        keys::numbers(count)
    }

    fn visit(&self) -> Self {
        *self
    }
}

impl OurKey for String {
    type Visit<'a> = &'a Self;

    const NAME: &'static str = "string";

    const COLD_NAME: &'static str = "cold string";

    fn distinct(count: usize) -> Vec<Self> {
        keys::texts(count)
    }

    fn visit(&self) -> &Self {
        self
    }
}

/// How often each of `keys` keys was admitted by a limiter planned for `planned`, when keys ask in
/// the given order and time stands still.
pub(crate) fn admissions(
    allowance: Allowance,
    planned: usize,
    keys: usize,
    order: &[u32],
) -> Result<Vec<u32>, BenchError> {
    let limit = limit(Algorithm::TokenBucket, allowance)?;
    let limiter = Limiter::builder(limit).keys(planned).clock(ManualClock::new()).build()?;
    let mut admitted = vec![0; keys];
    for &index in order {
        let decision = limiter.check(&keys::number(index as usize));
        admitted[index as usize] += u32::from(decision.is_allowed());
    }
    Ok(admitted)
}

fn limit(algorithm: Algorithm, allowance: Allowance) -> Result<Limit, BenchError> {
    let quota: Quota =
        format!("{}/{}s", allowance.burst, allowance.period.as_secs()).parse().map_err(refused)?;
    let limit = match algorithm {
        Algorithm::TokenBucket => Limit::token_bucket(quota),
        Algorithm::FixedWindow => Limit::fixed_window(quota),
        Algorithm::SlidingWindow => Limit::sliding_window(quota),
    };
    limit.map_err(refused)
}

fn refused(reason: impl ToString) -> BenchError {
    BenchError::Quota { subject: "tollgate", reason: reason.to_string() }
}

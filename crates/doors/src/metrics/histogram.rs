//! How long something took, in buckets.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::shard::{self, Writer};

/// One thread's part of a histogram.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// How long something took, in all and in buckets.
#[derive(Clone, Debug)]
pub struct Timings {
    /// All of it, in seconds.
    pub sum: f64,
    /// How often.
    pub count: u64,
    /// The upper bound of each bucket in seconds, and how many fell into it and no lower one. The
    /// last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
}

impl Buckets {
    /// So many took so long each.
    #[inline]
    pub(super) fn add(&self, writer: Writer, took: Duration, times: u64) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < nanos);
        writer.add(&self.counts[bucket], times);
        writer.add(&self.nanos, nanos.saturating_mul(times));
    }
}

impl Timings {
    /// What all threads have measured.
    pub(super) fn of<'a, T: 'a>(
        shards: impl IntoIterator<Item = &'a T, IntoIter: Clone>,
        buckets: impl Fn(&T) -> &Buckets,
    ) -> Self {
        let shards = shards.into_iter();
        let bounds = BOUNDS.iter().map(|nanos| *nanos as f64 / 1e9).chain([f64::INFINITY]);
        let count = |at: usize| shard::sum(shards.clone(), |shard| &buckets(shard).counts[at]);
        let buckets_of: Vec<_> = bounds.enumerate().map(|(at, bound)| (bound, count(at))).collect();
        Self {
            sum: shard::sum(shards.clone(), |shard| &buckets(shard).nanos) as f64 / 1e9,
            // Not counted for itself, so that it agrees with the buckets.
            count: buckets_of.iter().map(|(_, count)| count).sum(),
            buckets: buckets_of,
        }
    }
}

/// In nanoseconds: 1 us to 1 s.
const BOUNDS: [u64; 18] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_their_bucket() {
        let buckets = Buckets::default();
        for micros in [0, 1, 2, 3, 1_000_000, 1_000_001] {
            buckets.add(Writer::here(), Duration::from_micros(micros), 1);
        }
        let histogram = Timings::of([&buckets], |it| it);
        let filled: Vec<_> = histogram.buckets.iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [&(1e-6, 2), &(2e-6, 1), &(5e-6, 1), &(1.0, 1), &(f64::INFINITY, 1)]);
        assert_eq!(histogram.count, 6);
        assert!((histogram.sum - 2.000_007).abs() < 1e-9, "{}", histogram.sum);
    }

    #[test]
    fn several_of_one_length_count_as_so_many() {
        let buckets = Buckets::default();
        buckets.add(Writer::here(), Duration::from_millis(2), 3);
        let histogram = Timings::of([&buckets], |it| it);
        assert_eq!(histogram.count, 3);
        assert!((histogram.sum - 0.006).abs() < 1e-9, "{}", histogram.sum);
    }
}

//! Counts that many threads write and hardly anybody reads: each thread has lines of its own.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The place of the thread that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    shard: usize,
    /// Whether no other thread ever writes there: then nothing has to be locked.
    alone: bool,
}

impl Writer {
    /// That of the thread that calls this.
    #[inline]
    pub(crate) fn here() -> Self {
        let shard = SHARD.with(|shard| match shard.get() {
            UNKNOWN => {
                // Only that each number is given once matters. It cannot run over: threads end
                // long before.
                let next = NEXT.fetch_add(1, Ordering::Relaxed).min(SHARDS - 1);
                shard.set(next);
                next
            }
            known => known,
        });
        Self { shard, alone: shard < SHARDS - 1 }
    }

    #[inline]
    pub(super) fn of<T>(self, shards: &[T; SHARDS]) -> &T {
        // It is less than there are; the remainder spares the check.
        &shards[self.shard % SHARDS]
    }

    /// Adds to a count of the thread's own shard.
    #[inline]
    pub(super) fn add(self, count: &AtomicU64, amount: u64) {
        // A number alone: nothing else is published with it.
        if self.alone {
            count.store(count.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
        } else {
            count.fetch_add(amount, Ordering::Relaxed);
        }
    }
}

/// A count that many threads add to.
#[derive(Debug, Default)]
pub(crate) struct Tally([Line; SHARDS]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

impl Tally {
    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        let writer = Writer::here();
        writer.add(&writer.of(&self.0).0, amount);
    }

    pub(crate) fn total(&self) -> u64 {
        sum(&self.0, |line| &line.0)
    }
}

/// What all shards have counted.
pub(super) fn sum<'a, T: 'a>(
    shards: impl IntoIterator<Item = &'a T>,
    count: impl Fn(&T) -> &AtomicU64,
) -> u64 {
    let counts = shards.into_iter().map(|shard| count(shard).load(Ordering::Relaxed));
    counts.fold(0, u64::wrapping_add)
}

/// Threads beyond these share the last one.
pub(super) const SHARDS: usize = 16;

const UNKNOWN: usize = usize::MAX;

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(UNKNOWN) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_however_many_threads_count() {
        let tally = Tally::default();
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| (0..1_000).for_each(|_| tally.add(1)));
            }
        });
        assert_eq!(tally.total(), 40_000);
    }

    #[test]
    fn a_thread_stays_where_it_is() {
        assert_eq!(Writer::here().shard, Writer::here().shard);
    }
}

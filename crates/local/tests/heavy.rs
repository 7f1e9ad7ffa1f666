//! Heavy keys: the heaviest are found, in order and with about the right share.

#![cfg(not(loom))]
#![forbid(unsafe_code)]

use std::thread;

use tollgate_local::{HeavyKey, HeavyKeys, Key, KeyHash, Seed};

const KEYS: usize = 10_000;

/// A stream in which the key of rank `r` comes in proportion to `1 / (r + 1)`.
struct Zipf {
    /// Up to which point of the whole each rank reaches.
    bounds: Vec<f64>,
    state: u64,
}

impl Zipf {
    fn new(seed: u64) -> Self {
        let weights = (0..KEYS).map(|rank| 1.0 / (rank + 1) as f64);
        let mut total = 0.0;
        let bounds = weights.map(|weight| {
            total += weight;
            total
        });
        Self { bounds: bounds.collect(), state: seed }
    }

    fn total(&self) -> f64 {
        self.bounds[KEYS - 1]
    }

    fn share(&self, rank: usize) -> f64 {
        1.0 / (rank + 1) as f64 / self.total()
    }
}

impl Iterator for Zipf {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let point = (self.state >> 11) as f64 / (1u64 << 53) as f64 * self.total();
        Some(self.bounds.partition_point(|bound| *bound <= point).min(KEYS - 1))
    }
}

fn hash(rank: usize) -> KeyHash {
    (rank as u64).hash(&Seed::new(2))
}

fn name(rank: usize) -> String {
    format!("key {rank}")
}

fn count(heavy: &HeavyKeys, rank: usize, denied: bool) {
    heavy.count(denied, || (hash(rank), name(rank)));
}

fn expect_top(top: &[HeavyKey], zipf: &Zipf) {
    for (rank, heavy) in top.iter().enumerate() {
        let share = zipf.share(rank);
        assert_eq!(heavy.key, name(rank), "at rank {rank} of {top:?}");
        assert!((heavy.share / share - 1.0).abs() < 0.3, "{} is not about {share}", heavy.share);
    }
}

#[test]
fn the_heaviest_keys_are_found_in_order_with_their_shares() {
    for (seed, requests) in [(1, 20_000), (2, 200_000), (3, 2_000_000)] {
        let heavy = HeavyKeys::default();
        for rank in Zipf::new(seed).take(requests) {
            count(&heavy, rank, false);
        }
        let top = heavy.top(5);
        assert_eq!(top.len(), 5);
        expect_top(&top, &Zipf::new(seed));
        assert!(heavy.top_denied(5).is_empty());
    }
}

#[test]
fn a_batch_is_counted_as_its_requests_one_by_one() {
    let (one_by_one, batches) = (HeavyKeys::default(), HeavyKeys::default());
    let ranks: Vec<_> = Zipf::new(4).take(300_000).collect();
    for rank in &ranks {
        count(&one_by_one, *rank, rank % 2 == 1);
    }
    // In batches of all lengths, the empty one included.
    let mut rest = &ranks[..];
    let mut len = 0;
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(len.min(rest.len()));
        batches
            .count_batch(batch.len(), |at| (hash(batch[at]), batch[at] % 2 == 1, name(batch[at])));
        (rest, len) = (others, (len + 7) % 101);
    }
    expect_top(&one_by_one.top(5), &Zipf::new(4));
    expect_top(&batches.top(5), &Zipf::new(4));
    let denied = |heavy: &HeavyKeys| -> Vec<_> {
        heavy.top_denied(3).into_iter().map(|heavy| heavy.key).collect()
    };
    assert_eq!(denied(&one_by_one), denied(&batches));
    assert_eq!(denied(&batches), [name(1), name(3), name(5)]);
    let totals = [&one_by_one, &batches].map(|heavy| {
        let top = &heavy.top(1)[0];
        top.count as f64 / top.share
    });
    assert!((totals[0] / totals[1] - 1.0).abs() < 0.05, "{totals:?} requests in all");
}

#[test]
fn those_that_are_denied_have_a_list_of_their_own() {
    let heavy = HeavyKeys::default();
    for rank in Zipf::new(5).take(100_000) {
        // The heaviest key is welcome, and the third is never let in.
        count(&heavy, rank, rank == 2);
    }
    let denied = heavy.top_denied(5);
    assert_eq!(denied.len(), 1, "nobody else was denied");
    assert_eq!(denied[0].key, name(2));
    assert_eq!(denied[0].share, 1.0);
    assert_eq!(heavy.top(3)[2].key, name(2), "it is among all others as well");
}

#[test]
fn the_list_follows_what_happens_now() {
    let heavy = HeavyKeys::default();
    for _ in 0..1_000_000 {
        count(&heavy, 1, false);
    }
    for _ in 0..8_000_000 {
        count(&heavy, 2, false);
    }
    let top = heavy.top(1);
    assert_eq!(top[0].key, name(2), "{:?}", heavy.top(2));
}

#[test]
fn memory_is_bounded_whatever_the_keys_are() {
    let heavy = HeavyKeys::default();
    for rank in 0..100_000 {
        heavy.count(true, || (hash(rank), "é".repeat(10_000)));
    }
    let top = heavy.top(usize::MAX);
    assert!(top.len() <= HeavyKeys::LENGTH, "{}", top.len());
    for heavy in top.iter().chain(&heavy.top_denied(usize::MAX)) {
        assert!(heavy.key.len() <= 256 + '…'.len_utf8(), "{} bytes", heavy.key.len());
        assert!(heavy.key.starts_with('é') && heavy.key.ends_with('…'));
    }
    assert!(heavy.top(0).is_empty());
}

#[test]
fn threads_count_together() {
    let heavy = HeavyKeys::default();
    thread::scope(|scope| {
        for thread in 0..4 {
            let heavy = &heavy;
            scope.spawn(move || {
                for rank in Zipf::new(10 + thread).take(200_000) {
                    count(heavy, rank, false);
                }
            });
        }
    });
    expect_top(&heavy.top(3), &Zipf::new(0));
}

//! Leaky bucket: requests leave at a constant pace. Those that come too early wait in a queue of
//! bounded length ([`Shape`]), or are denied: that is a [`TokenBucket`] that holds one token, or
//! as many as the quota names as its burst.

use crate::algorithm::bucket::{Bucket, Spent};
use crate::algorithm::token_bucket::TokenBucket;
use crate::algorithm::{Loan, Phase, Step, Steps};
use crate::decision::Decision;
use crate::time::Tick;
use crate::word::Word;

/// The bucket holds one request that goes at once, and the queue behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape(pub(crate) Bucket);

impl Steps for Shape {
    #[inline(always)]
    fn step(&self, word: Word, now: Tick, cost: u64, phase: Phase) -> Step {
        let bucket = &self.0;
        match bucket.spend(word, now, cost) {
            Spent::Fits { now, turn, full } if cost > 0 => Step {
                word: bucket.pack(full),
                decision: Decision::allowed_after(bucket.nanos(turn - now), bucket.room(now, full)),
            },
            _ => TokenBucket(self.0).step(word, now, cost, phase),
        }
    }

    /// A place in the queue cannot be given back: others may stand behind it already, and the
    /// next to come would leave together with one of them.
    fn refund(&self, word: Word, _: Tick, _: u64, _: Phase) -> Word {
        word
    }

    fn rested_by(&self, now: Tick) -> Tick {
        self.0.rested_by(now)
    }

    /// Whoever borrows spends at its own pace, and a shaper's whole point is the pace.
    fn lend(&self, _: Word, _: Tick, _: u64, _: Phase) -> Option<Loan> {
        None
    }
}

//! Token bucket: tokens come at a steady rate, a full bucket overflows, a request takes some.

use crate::algorithm::bucket::{Bucket, Spent};
use crate::algorithm::{Loan, Phase, Step, Steps};
use crate::decision::Decision;
use crate::time::Tick;
use crate::word::Word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenBucket(pub(crate) Bucket);

impl Steps for TokenBucket {
    #[inline(always)]
    fn step(&self, word: Word, now: Tick, cost: u64, _: Phase) -> Step {
        let bucket = &self.0;
        match bucket.spend(word, now, cost) {
            Spent::Fits { now, full, .. } => Step {
                word: if cost == 0 { word } else { bucket.pack(full) },
                decision: Decision::allowed(bucket.room(now, full)),
            },
            Spent::Later { now, full, wait } => Step {
                word,
                decision: match cost {
                    0 => Decision::allowed(bucket.room(now, full)),
                    _ => Decision::denied_for(bucket.nanos(wait), bucket.room(now, full)),
                },
            },
            Spent::Never { now, full } => {
                Step { word, decision: Decision::denied_forever(bucket.room(now, full)) }
            }
        }
    }

    fn refund(&self, word: Word, _: Tick, cost: u64, _: Phase) -> Word {
        self.0.refund(word, cost)
    }

    fn undo(&self, word: Word, then: Tick, now: Tick, cost: u64, _: Phase) -> Word {
        self.0.undo(word, then, now, cost)
    }

    fn rested_by(&self, now: Tick) -> Tick {
        self.0.rested_by(now)
    }

    fn lend(&self, word: Word, now: Tick, want: u64, _: Phase) -> Option<Loan> {
        self.0.lend(word, now, want)
    }

    fn held_down(&self, word: Word, now: Tick, tokens: u64) -> Word {
        self.0.held_down(word, now, tokens)
    }

    fn left_ahead(&self, word: Word, now: Tick, ahead: u64, lent: u64) -> u64 {
        self.0.left_ahead(word, now, ahead, lent)
    }

    fn overdraw(&self, word: Word, now: Tick, tokens: u64, _: Phase) -> Word {
        self.0.overdraw(word, now, tokens)
    }

    fn all_in(&self, word: Word, now: Tick) -> u64 {
        self.0.all_in(word, now)
    }

    fn time_of(&self, tokens: u64) -> u64 {
        self.0.time_of(tokens)
    }

    fn tokens_of(&self, nanos: u64) -> u64 {
        self.0.tokens_of(nanos)
    }
}

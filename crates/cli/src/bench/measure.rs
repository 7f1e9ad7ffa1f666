//! Measures decisions: random keys, results used, the median of several rounds.

use std::fmt;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Duration;

use serde::Serialize;
use tollgate::{Clock, Decision, Limit, Limiter};

/// How decisions are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// One by one, the clock read for each.
    Single,
    /// 32 at a time, the clock read once.
    Batch,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Single, Self::Batch];
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Single => "single",
            Self::Batch => "batch of 32",
        })
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) keys: u64,
    pub(crate) threads: u16,
    pub(crate) mode: Mode,
    /// Nanoseconds of one thread for one decision.
    pub(crate) ns_per_decision: f64,
    /// Decisions per second of all threads together.
    pub(crate) decisions_per_s: f64,
    pub(crate) bytes_per_key: f64,
    /// The part of decisions that were allowed, 0 to 1.
    pub(crate) allowed: f64,
}

/// A limiter full of keys.
pub(crate) struct Plan {
    limiter: Limiter,
    keys: u64,
    time: Duration,
    rounds: usize,
}

impl Plan {
    pub(crate) fn try_new(
        limit: &Limit,
        keys: u64,
        time: Duration,
        rounds: usize,
    ) -> Result<Self, tollgate::Error> {
        let limiter = Limiter::builder(limit.clone()).keys(keys as usize).build()?;
        for key in 0..keys {
            let _ = limiter.check(&key);
        }
        Ok(Self { limiter, keys, time, rounds })
    }

    pub(crate) fn measure(&self, threads: u16, mode: Mode) -> Row {
        let mut rounds: Vec<Round> = (0..self.rounds).map(|_| self.round(threads, mode)).collect();
        rounds.sort_by(|a, b| a.ns().total_cmp(&b.ns()));
        let median = &rounds[rounds.len() / 2];
        Row {
            keys: self.keys,
            threads,
            mode,
            ns_per_decision: median.ns() * f64::from(threads),
            decisions_per_s: 1e9 / median.ns(),
            bytes_per_key: self.limiter.stats().memory as f64 / self.keys as f64,
            allowed: median.allowed as f64 / median.decisions as f64,
        }
    }

    fn round(&self, threads: u16, mode: Mode) -> Round {
        let start = Barrier::new(usize::from(threads));
        let run = |thread: u16| {
            start.wait();
            self.decide(Keys::new(self.keys, thread), mode)
        };
        let run = &run;
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
            // A thread that panicked has decided nothing.
            let rounds = threads.into_iter().filter_map(|thread| thread.join().ok());
            rounds.reduce(Round::beside).unwrap_or_default()
        })
    }

    /// Decides until the time is up, and looks at the clock only now and then.
    fn decide(&self, mut keys: Keys, mode: Mode) -> Round {
        const STRETCH: u64 = 32 * 256;
        let clock = self.limiter.clock();
        let begin = clock.now();
        let mut round = Round::default();
        let mut decisions: Vec<Decision> = Vec::with_capacity(32);
        while round.time < self.time {
            match mode {
                Mode::Single => {
                    for _ in 0..STRETCH {
                        let decision = self.limiter.check(&keys.next());
                        round.allowed += u64::from(black_box(decision).is_allowed());
                    }
                }
                Mode::Batch => {
                    for _ in 0..STRETCH / 32 {
                        let batch: [u64; 32] = std::array::from_fn(|_| keys.next());
                        decisions.clear();
                        self.limiter.check_batch(&batch, &mut decisions);
                        let allowed = black_box(&decisions).iter().filter(|it| it.is_allowed());
                        round.allowed += allowed.count() as u64;
                    }
                }
            }
            round.decisions += STRETCH;
            round.time = clock.now().since(begin);
        }
        round
    }
}

/// What threads did together.
#[derive(Clone, Debug, Default)]
struct Round {
    decisions: u64,
    allowed: u64,
    time: Duration,
}

impl Round {
    /// Nanoseconds for one decision of all threads together.
    fn ns(&self) -> f64 {
        self.time.as_nanos() as f64 / self.decisions.max(1) as f64
    }

    fn beside(self, other: Self) -> Self {
        Self {
            decisions: self.decisions + other.decisions,
            allowed: self.allowed + other.allowed,
            time: self.time.max(other.time),
        }
    }
}

/// Random keys, the same in every run.
struct Keys {
    count: u64,
    state: u64,
}

impl Keys {
    fn new(count: u64, thread: u16) -> Self {
        Self { count, state: 0x9E37_79B9_7F4A_7C15 ^ (u64::from(thread) << 32) }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((u128::from(self.state) * u128::from(self.count)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_what_was_decided() {
        let limit = Limit::token_bucket("1/h").unwrap();
        let plan = Plan::try_new(&limit, 10_000, Duration::from_micros(100), 1).unwrap();
        for mode in Mode::ALL {
            let row = plan.measure(2, mode);
            assert_eq!(row.allowed, 0.0, "every key was spent when the table was filled");
            assert!(row.ns_per_decision > 0.0 && row.decisions_per_s > 0.0);
            assert!((23.0..24.0).contains(&row.bytes_per_key), "{}", row.bytes_per_key);
        }
    }

    #[test]
    fn keys_are_within_bounds_and_not_in_order() {
        let mut keys = Keys::new(10, 0);
        let drawn: Vec<u64> = (0..1000).map(|_| keys.next()).collect();
        assert!(drawn.iter().all(|key| *key < 10));
        assert!((0..10).all(|key| drawn.contains(&key)));
        assert!(!drawn.is_sorted());
    }
}

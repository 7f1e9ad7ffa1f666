//! Rounds, medians and the guard that both sides of a row made the same decisions.

use std::hint::black_box;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::error::BenchError;
use crate::progress::Progress;
use crate::stopwatch::Stopwatch;
use crate::subject::Folded;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Rounds per contender; the median counts.
    pub(crate) rounds: usize,
    /// Shortest time a round may take.
    pub(crate) round: Duration,
    /// Where the bytes of a key are when it is decided about.
    pub(crate) keys: Keys,
}

/// Where the bytes of a key are when it is decided about. Numbers are at hand either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// In a cache: whoever asks has just read the key from a request. Keys are touched before the
    /// clock runs, a chunk at a time.
    AtHand,
    /// In memory, in random places. Then fetching the key is part of what is measured, and a loop
    /// over keys that are known ahead hides part of it behind the decision before.
    InMemory,
}

/// One subject of a row, ready to run: it remembers where in the visiting order it stopped.
pub(crate) struct Contender<'a> {
    name: &'static str,
    intended_share: Option<f64>,
    run: Box<dyn FnMut(Effort, Lane) -> Round + 'a>,
}

impl<'a> Contender<'a> {
    /// A contender on this thread. `decide` makes one decision per key of a chunk, and returns how
    /// many were allowed.
    pub(crate) fn new<V: Folded>(
        name: &'static str,
        visits: &'a [V],
        mut decide: impl FnMut(&[V]) -> u64 + 'a,
    ) -> Self {
        let mut cursor = Cursor { visits, at: 0 };
        let run =
            move |effort, lane: Lane| cursor.run(effort, lane.offset(visits.len()), &mut decide);
        Self { name, intended_share: None, run: Box::new(run) }
    }

    /// A contender on several threads at once, each with its own part of the visiting order. Its
    /// figures are those of all threads together.
    pub(crate) fn on_threads<V: Folded + Sync>(
        name: &'static str,
        threads: usize,
        visits: &'a [V],
        decide: impl Fn(&[V]) -> u64 + Sync + 'a,
    ) -> Self {
        let part = visits.len() / threads;
        let mut cursors: Vec<_> =
            (0..threads).map(|thread| Cursor { visits, at: part * thread }).collect();
        let run = move |effort, lane: Lane| {
            run_together(&mut cursors, effort, lane.offset(part), &decide)
        };
        Self { name, intended_share: None, run: Box::new(run) }
    }

    /// States the share of decisions that the row intends to be allowed, between 0 and 1.
    pub(crate) fn intending(self, share: f64) -> Self {
        Self { intended_share: Some(share), ..self }
    }
}

/// What the rounds of one contender came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Median nanoseconds per decision, of all threads together.
    pub(crate) nanos: f64,
    /// Share of decisions allowed, if the row has an intention about it.
    share: Option<f64>,
}

impl Measured {
    /// Millions of decisions per second.
    pub(crate) fn millions_per_second(&self) -> f64 {
        1e3 / self.nanos
    }
}

/// Runs the contenders in turn, round after round, so that a noisy minute hits all of them, and
/// fails if they did not decide as the row intends.
pub(crate) fn interleave<const N: usize>(
    row: &str,
    mut contenders: [Contender<'_>; N],
    effort: Effort,
    progress: &Progress,
) -> Result<[Measured; N], BenchError> {
    let mut rounds: [Vec<Round>; N] = std::array::from_fn(|_| Vec::with_capacity(effort.rounds));
    for round in 1..=effort.rounds {
        progress.say(&format!("{row}: round {round} of {}", effort.rounds));
        for (index, contender) in contenders.iter_mut().enumerate() {
            rounds[index].push((contender.run)(effort, Lane { index, of: N }));
        }
    }
    let measured = std::array::from_fn(|index| summarize(&contenders[index], &rounds[index]));
    check_shares(row, &contenders, &measured)?;
    Ok(measured)
}

/// The middle value; the mean of the two middle ones if their number is even.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.as_slice() {
        [] => f64::NAN,
        values if values.len() % 2 == 1 => values[middle],
        values => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[derive(Debug, Clone, Copy)]
struct Round {
    decisions: u64,
    allowed: u64,
    /// Nanoseconds per decision; with several threads, the inverse of their summed throughput.
    nanos: f64,
}

/// Which part of the visiting order a contender begins with. If all began with the same part, the
/// first would fetch keys from memory, and the next would find them in a cache.
#[derive(Debug, Clone, Copy)]
struct Lane {
    index: usize,
    of: usize,
}

impl Lane {
    fn offset(self, visits: usize) -> usize {
        visits / self.of * self.index
    }
}

/// A place in the visiting order that goes round and round.
struct Cursor<'a, V> {
    visits: &'a [V],
    at: usize,
}

impl<'a, V: Folded> Cursor<'a, V> {
    /// Decides chunk after chunk until the round is over. The clock is read twice per chunk, which
    /// adds a fifth of a nanosecond to a decision, on every side.
    fn run(&mut self, effort: Effort, offset: usize, mut decide: impl FnMut(&[V]) -> u64) -> Round {
        let (mut decisions, mut allowed) = (0, 0);
        let mut elapsed = Duration::ZERO;
        while elapsed < effort.round {
            let chunk = self.next_chunk(offset);
            if effort.keys == Keys::AtHand {
                black_box(chunk.iter().fold(0, |sum, key| sum ^ key.folded()));
            }
            let stopwatch = Stopwatch::start();
            allowed += decide(chunk);
            elapsed += stopwatch.elapsed();
            decisions += chunk.len() as u64;
        }
        Round { decisions, allowed, nanos: elapsed.as_nanos() as f64 / decisions as f64 }
    }

    fn next_chunk(&mut self, offset: usize) -> &'a [V] {
        let length = CHUNK.min(self.visits.len());
        let start = (self.at + offset) % self.visits.len();
        self.at = (self.at + length) % self.visits.len();
        let start = start.min(self.visits.len() - length);
        &self.visits[start..start + length]
    }
}

fn run_together<V: Folded + Sync>(
    cursors: &mut [Cursor<'_, V>],
    effort: Effort,
    offset: usize,
    decide: &(impl Fn(&[V]) -> u64 + Sync),
) -> Round {
    let start = Barrier::new(cursors.len());
    let rounds: Vec<Round> = thread::scope(|scope| {
        let threads: Vec<_> = cursors
            .iter_mut()
            .map(|cursor| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    cursor.run(effort, offset, decide)
                })
            })
            .collect();
        // A panic in a thread is a bug in a subject, and goes on here.
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|round| round.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    Round {
        decisions: rounds.iter().map(|round| round.decisions).sum(),
        allowed: rounds.iter().map(|round| round.allowed).sum(),
        nanos: 1.0 / rounds.iter().map(|round| 1.0 / round.nanos).sum::<f64>(),
    }
}

fn summarize(contender: &Contender<'_>, rounds: &[Round]) -> Measured {
    let decisions: u64 = rounds.iter().map(|round| round.decisions).sum();
    let allowed: u64 = rounds.iter().map(|round| round.allowed).sum();
    Measured {
        nanos: median(rounds.iter().map(|round| round.nanos)),
        share: contender.intended_share.map(|_| allowed as f64 / decisions as f64),
    }
}

/// Sides that decide differently do different work, and then their times say nothing.
fn check_shares(
    row: &str,
    contenders: &[Contender<'_>],
    measured: &[Measured],
) -> Result<(), BenchError> {
    let mut first: Option<(&'static str, f64)> = None;
    for (contender, measured) in contenders.iter().zip(measured) {
        let (Some(intended), Some(share)) = (contender.intended_share, measured.share) else {
            continue;
        };
        if (share - intended).abs() > SHARE_TOLERANCE {
            return Err(BenchError::AllowRate {
                row: row.to_owned(),
                subject: contender.name,
                got: share * 100.0,
                intended: intended * 100.0,
            });
        }
        let &mut (one, one_share) = first.get_or_insert((contender.name, share));
        if (one_share - share).abs() > SHARE_TOLERANCE {
            return Err(BenchError::AllowRatesDiffer {
                row: row.to_owned(),
                one,
                one_share: one_share * 100.0,
                other: contender.name,
                other_share: share * 100.0,
            });
        }
    }
    Ok(())
}

/// Decisions between two looks at the clock: few enough that keys touched before the first are
/// still in a cache near to the core at the last.
const CHUNK: usize = 256;

/// Allow rates may differ by one percentage point, from each other and from the intention.
const SHARE_TOLERANCE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    const BRIEF: Effort = Effort { rounds: 3, round: Duration::from_millis(1), keys: Keys::AtHand };

    /// Allows the given number of decisions out of 1,024.
    fn allowing(allowed: u64, visits: &[u64]) -> Contender<'_> {
        let decide = move |chunk: &[u64]| allowed * chunk.len() as u64 / 1024;
        Contender::new("subject", visits, decide).intending(0.9)
    }

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn equal_allow_rates_pass() {
        let visits = vec![0_u64; 4096];
        let sides = [allowing(922, &visits), allowing(920, &visits)];
        assert!(interleave("row", sides, BRIEF, &Progress::hidden()).is_ok());
    }

    #[test]
    fn unintended_allow_rate_fails() {
        let visits = vec![0_u64; 4096];
        let sides = [allowing(922, &visits), allowing(880, &visits)];
        let outcome = interleave("row", sides, BRIEF, &Progress::hidden());
        assert!(matches!(outcome, Err(BenchError::AllowRate { .. })));
    }

    #[test]
    fn differing_allow_rates_fail() {
        let visits = vec![0_u64; 4096];
        let sides = [allowing(930, &visits), allowing(913, &visits)];
        let outcome = interleave("row", sides, BRIEF, &Progress::hidden());
        assert!(matches!(outcome, Err(BenchError::AllowRatesDiffer { .. })));
    }

    #[test]
    fn threads_count_together() {
        let visits: Vec<u64> = (0..8192).collect();
        let decide = |chunk: &[u64]| chunk.len() as u64;
        let sides = [Contender::on_threads("subject", 2, &visits, decide).intending(1.0)];
        let measured = interleave("row", sides, BRIEF, &Progress::hidden());
        assert!(measured.is_ok_and(|[subject]| subject.nanos > 0.0));
    }
}

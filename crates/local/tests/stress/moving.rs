//! One thread moves the time on while the others spend.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tollgate_core::Limit;
use tollgate_local::{Clock, ManualClock};

use crate::crowd::{Dice, Pass, Subject, crowd};

/// What passed of each key.
pub(crate) type Passes = Vec<Vec<Pass>>;

/// How fast time goes: so far at most in one step, and a thread makes so many requests in it.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    step: Duration,
    requests: usize,
}

/// A fourth of the time that a token takes to come back.
pub(crate) const SLOW: Pace = Pace { step: Duration::from_micros(250), requests: 20 };

/// How much may pass.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    /// In any span of time, the burst and one for every so many nanoseconds.
    Bucket { burst: u64, interval: u64 },
    /// In every window of so many nanoseconds.
    Window { limit: u64, length: u64 },
}

/// A limit of each algorithm, with its bound: a thousand per second, three at once.
pub(crate) fn limits() -> [(Limit, Bound); 5] {
    let bucket = Bound::Bucket { burst: 3, interval: 1_000_000 };
    let window = Bound::Window { limit: 3, length: 3_000_000 };
    [
        (Limit::token_bucket("1000/s burst 3").unwrap(), bucket),
        (Limit::leaky_police("1000/s burst 3").unwrap(), bucket),
        (Limit::leaky_shape("1000/s", 2).unwrap(), bucket),
        (Limit::fixed_window("3/3ms").unwrap(), window),
        (Limit::sliding_window("3/3ms").unwrap(), window),
    ]
}

/// Runs threads that ask for keys which `choose` picks, and one that moves the clock on, step by
/// step. It waits each time until every thread has made a request, so no request takes longer than
/// three steps: where a thread is suspended, time is.
pub(crate) fn run(
    subject: &Subject,
    (threads, requests, keys): (usize, usize, usize),
    pace: Pace,
    choose: impl Fn(&mut Dice) -> usize + Sync,
) -> Passes {
    let steps = Steps::new(pace, threads);
    let passes = crowd(threads + 1, |thread| {
        let mut passes = vec![Vec::new(); keys];
        let mut dice = Dice::new(thread);
        if thread == threads {
            steps.move_on(&subject.clock, requests, &mut dice);
            return passes;
        }
        for request in 1..=requests {
            let key = choose(&mut dice);
            let mut from = subject.clock.now();
            let hash = subject.key(key);
            let decision = subject.counters.check_with(hash, 1, &subject.clock, &mut from);
            if decision.is_allowed() {
                passes[key].push(Pass { from, to: subject.clock.now() });
            }
            steps.made(thread, request);
        }
        passes
    });
    (0..keys).map(|key| passes.iter().flat_map(|passes| passes[key].clone()).collect()).collect()
}

/// Keeps time and requests together.
struct Steps {
    pace: Pace,
    taken: AtomicUsize,
    /// How many requests each thread has made.
    made: Vec<AtomicUsize>,
}

impl Steps {
    fn new(pace: Pace, threads: usize) -> Self {
        let made = (0..threads).map(|_| AtomicUsize::new(0)).collect();
        Self { pace, taken: AtomicUsize::new(0), made }
    }

    fn made(&self, thread: usize, requests: usize) {
        self.made[thread].store(requests, Ordering::Release);
        while self.taken.load(Ordering::Acquire) < requests / self.pace.requests {
            thread::yield_now();
        }
    }

    fn move_on(&self, clock: &ManualClock, requests: usize, dice: &mut Dice) {
        let mut seen = vec![0; self.made.len()];
        while seen.iter().any(|seen| *seen < requests) {
            clock.advance(self.pace.step * dice.below(100) as u32 / 100);
            self.taken.fetch_add(1, Ordering::Release);
            for (made, seen) in self.made.iter().zip(&mut seen) {
                while *seen < requests && made.load(Ordering::Acquire) == *seen {
                    thread::yield_now();
                }
                *seen = made.load(Ordering::Acquire);
            }
        }
        // Nobody waits for a step that does not come any more.
        self.taken.store(usize::MAX, Ordering::Release);
    }
}

/// Fails if more passed of a key than its bound allows.
pub(crate) fn expect_bound(passes: &[Vec<Pass>], bound: Bound, limit: &Limit) {
    for (key, passes) in passes.iter().enumerate() {
        match bound {
            Bound::Bucket { burst, interval } => {
                let excess = bucket_excess(passes, burst, interval);
                assert_eq!(excess, None, "{limit}: key {key}, by tick {excess:?}");
            }
            Bound::Window { limit: max, length } => {
                let most = fullest_window(passes, length);
                assert!(most <= max, "{limit}: key {key} got {most} in one window");
            }
        }
    }
}

/// The moment at which more has passed than a bucket would let pass, which keeps the bound in every
/// span of time at once.
fn bucket_excess(passes: &[Pass], burst: u64, interval: u64) -> Option<u64> {
    let mut ticks: Vec<u64> = passes.iter().map(|pass| pass.from.as_nanos()).collect();
    ticks.sort_unstable();
    let mut full = 0;
    ticks.into_iter().find(|tick| {
        full = full.max(*tick) + interval;
        full > tick + burst * interval
    })
}

/// The most that passed in one window, for certain: one who was decided in a window but comes from
/// the one before belongs to either.
fn fullest_window(passes: &[Pass], length: u64) -> u64 {
    let window = |pass: &Pass| {
        let (from, to) = (pass.from.as_nanos() / length, pass.to.as_nanos() / length);
        (from == to).then_some(from)
    };
    let mut windows: Vec<u64> = passes.iter().filter_map(window).collect();
    windows.sort_unstable();
    windows.chunk_by(|a, b| a == b).map(|window| window.len() as u64).max().unwrap_or(0)
}

#[test]
fn no_key_gets_more_than_its_bound_in_any_span_of_time() {
    for (limit, bound) in limits() {
        for threads in [2, 4, 8] {
            let subject = Subject::new(&limit, 10_000);
            let sizes = (threads, 60_000 / threads, 20);
            let passes = run(&subject, sizes, SLOW, |dice| dice.below(20));
            expect_bound(&passes, bound, &limit);
            assert!(passes.iter().all(|passes| passes.len() > 20), "{limit}: hardly any passed");
        }
    }
}

/// Threads that get into each other's way borrow from limits that are so large, and what they
/// borrowed before must not come on top of what they may have later.
#[test]
fn what_is_lent_is_within_the_bound_as_well() {
    let bucket = Bound::Bucket { burst: 600, interval: 1_000 };
    let window = Bound::Window { limit: 600, length: 1_000_000 };
    let limits = [
        (Limit::token_bucket("1M/s burst 600").unwrap(), bucket),
        (Limit::leaky_police("1M/s burst 600").unwrap(), bucket),
        (Limit::fixed_window("600/ms").unwrap(), window),
        (Limit::sliding_window("600/ms").unwrap(), window),
    ];
    let pace = Pace { step: Duration::from_micros(150), requests: 100 };
    for (limit, bound) in limits {
        for threads in [2, 4] {
            let subject = Subject::new(&limit, 1_000);
            let passes = run(&subject, (threads, 120_000 / threads, 1), pace, |_| 0);
            expect_bound(&passes, bound, &limit);
            assert!(passes[0].len() > 10_000, "{limit}: only {} passed", passes[0].len());
        }
    }
}

#[test]
fn a_bound_that_is_broken_is_noticed() {
    let pass = |millis: u64| {
        let at = tollgate_core::Tick::from_nanos(millis * 1_000_000);
        Pass { from: at, to: at }
    };
    let at_once = [pass(5), pass(5), pass(5)];
    let too_many = [pass(5), pass(6), pass(5), pass(5), pass(5)];
    assert_eq!(bucket_excess(&at_once, 3, 1_000_000), None);
    assert_eq!(bucket_excess(&too_many, 3, 1_000_000), Some(5_000_000));
    assert_eq!(fullest_window(&too_many, 2_000_000), 4);
}

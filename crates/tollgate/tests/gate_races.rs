//! Gates when threads race: what one limit takes back is exactly what a denied request had spent.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tollgate::{Charge, Gate, Limit, ManualClock};

/// Where threads meet before each round, to leave it as close together as can be.
struct Meeting {
    size: usize,
    arrived: AtomicUsize,
}

impl Meeting {
    fn wait(&self) {
        let round = self.arrived.fetch_add(1, Ordering::AcqRel) / self.size;
        while self.arrived.load(Ordering::Acquire) < (round + 1) * self.size {
            thread::yield_now();
        }
    }
}

/// Runs `work` for every round in so many threads at once, and adds up what it returns by round.
fn rounds(threads: usize, rounds: u64, work: impl Fn(u64) -> u64 + Sync) -> Vec<u64> {
    let meeting = Meeting { size: threads, arrived: AtomicUsize::new(0) };
    let (meeting, work) = (&meeting, &work);
    let counts: Vec<Vec<u64>> = thread::scope(|scope| {
        let run = || {
            let round = |round| {
                meeting.wait();
                work(round)
            };
            (0..rounds).map(round).collect()
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (0..rounds as usize).map(|round| counts.iter().map(|count| count[round]).sum()).collect()
}

/// Limits of so many per hour. Below 128 no thread borrows, and so none keeps anything.
fn each_algorithm(count: u64) -> [Limit; 5] {
    let hourly = format!("{count}/h");
    [
        Limit::token_bucket(&*hourly).unwrap(),
        Limit::leaky_police(&*format!("1/h burst {count}")).unwrap(),
        Limit::fixed_window(&*hourly).unwrap(),
        Limit::sliding_window(&*hourly).unwrap(),
        Limit::sliding_log(&*hourly).unwrap(),
    ]
}

#[test]
fn a_limit_that_allows_keeps_only_what_passed() {
    const ROUNDS: u64 = 120;
    for plenty in each_algorithm(100) {
        for scarce in each_algorithm(3) {
            let mut builder = Gate::builder().keys(10_000).clock(ManualClock::new());
            let a = builder.limit("a", plenty.clone());
            let b = builder.limit("b", scarce.clone());
            let gate = builder.build().unwrap();
            let passed = rounds(4, ROUNDS, |round| {
                let request = [a.charge(&round), b.charge(&round)];
                (0..3).filter(|_| gate.check(&request).is_allowed()).count() as u64
            });
            // Where a key was counted in the sketch for a moment, some may be counted twice.
            let stats = gate.stats();
            let is_exact = (stats.overflowed, stats.promoted) == (0, 0);
            for (round, passed) in (0..ROUNDS).zip(passed) {
                let left = gate.peek(&[a.charge(&round)]).decision().remaining();
                assert!(passed <= 3, "{plenty} and {scarce}: {passed} passed");
                assert!(left <= 100 - passed, "{plenty} and {scarce}: {left} left of {passed}");
                if is_exact {
                    assert_eq!(
                        (passed, left),
                        (3, 97),
                        "{plenty} and {scarce} round {round} {:?} {:?}",
                        gate.stats(),
                        gate.peek(&[a.charge(&round), b.charge(&round)])
                    );
                }
            }
        }
    }
}

/// A place in a queue cannot be given back, so it is taken last.
#[test]
fn a_limit_that_shapes_loses_no_place_to_a_denied_request() {
    const ROUNDS: u64 = 400;
    for scarce in each_algorithm(3) {
        let mut builder = Gate::builder().keys(10_000).clock(ManualClock::new());
        let pace = builder.limit("pace", Limit::leaky_shape("1/h", 99).unwrap());
        let few = builder.limit("few", scarce.clone());
        let gate = builder.build().unwrap();
        let passed = rounds(4, ROUNDS, |round| {
            let request = [pace.charge(&round), few.charge(&round)];
            (0..3).filter(|_| gate.check(&request).is_allowed()).count() as u64
        });
        let is_exact = (gate.stats().overflowed, gate.stats().promoted) == (0, 0);
        for (round, passed) in (0..ROUNDS).zip(passed) {
            let places = spent(&gate, pace.charge(&round), 100);
            assert!(passed <= 3 && places >= passed, "{scarce}: {passed} in {places} places");
            assert!(!is_exact || (passed, places) == (3, 3), "{scarce}: {places} places");
        }
    }
}

/// What is gone of a limit.
fn spent(gate: &Gate<ManualClock>, charge: Charge<'_>, limit: u64) -> u64 {
    limit - gate.peek(&[charge]).decision().remaining()
}

#[test]
fn nothing_is_lost_when_all_threads_want_several_keys_of_several_limits() {
    const ROUNDS: u64 = 400;
    let mut builder = Gate::builder().keys(10_000).clock(ManualClock::new());
    let global = builder.limit("global", Limit::token_bucket("100/h").unwrap());
    let user = builder.limit("user", Limit::sliding_window("7/h").unwrap());
    let ip = builder.limit("ip", Limit::fixed_window("5/h").unwrap());
    let gate = builder.build().unwrap();
    let passed = rounds(6, ROUNDS, |round| {
        let pass = |turn: &u64| {
            let (name, address) = ((round, turn % 2), (round, turn % 3));
            let request = [ip.charge(&address), global.charge(&round), user.charge(&name)];
            gate.check(&request).is_allowed()
        };
        (0..6).filter(pass).count() as u64
    });
    for (round, passed) in (0..ROUNDS).zip(passed) {
        let users: u64 = (0..2u64).map(|n| spent(&gate, user.charge(&(round, n)), 7)).sum();
        let ips: u64 = (0..3u64).map(|n| spent(&gate, ip.charge(&(round, n)), 5)).sum();
        let all = spent(&gate, global.charge(&round), 100);
        assert!(passed <= 14, "{passed} passed");
        assert!(all >= passed && users >= passed && ips >= passed, "in round {round}");
        if (gate.stats().overflowed, gate.stats().promoted) == (0, 0) {
            assert_eq!((all, users, ips), (passed, passed, passed), "in round {round}");
            assert!(passed >= 10, "only {passed} passed");
        }
    }
}

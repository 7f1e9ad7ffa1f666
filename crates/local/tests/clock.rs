//! Clocks never run backwards, and what a clock on the wall does moves no window.

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tollgate_core::{Anchor, Limit, Tick, Wall};
use tollgate_local::{Clock, Counters, Key, KeyHash, ManualClock, Seed, SystemClock, Table, Timer};

const SECOND: Duration = Duration::from_secs(1);

fn counters(limit: &Limit, anchor: Anchor) -> Counters {
    let table = Arc::new(Table::with_keys(1_000).unwrap());
    Counters::new(&table, limit, anchor, Seed::new(1).salt(0))
}

fn key() -> KeyHash {
    "alice".hash(&Seed::new(1))
}

fn each_algorithm() -> [Limit; 6] {
    [
        Limit::token_bucket("5/s").unwrap(),
        Limit::leaky_police("5/s burst 5").unwrap(),
        Limit::leaky_shape("5/s", 4).unwrap(),
        Limit::fixed_window("5/s").unwrap(),
        Limit::sliding_window("5/s").unwrap(),
        Limit::sliding_log("5/s").unwrap(),
    ]
}

#[test]
fn the_system_clock_does_not_run_backwards_in_any_thread() {
    let clock = SystemClock::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = clock.now();
                for _ in 0..200_000 {
                    let now = clock.now();
                    assert!(now >= last, "{now} after {last}");
                    last = now;
                }
            });
        }
    });
}

#[test]
fn the_system_clock_does_not_run_backwards_from_thread_to_thread() {
    let clock = SystemClock::new();
    let mut last = clock.now();
    for _ in 0..500 {
        let other = thread::scope(|scope| scope.spawn(|| clock.clone().now()).join().unwrap());
        assert!(other >= last, "{other} in another thread after {last}");
        last = clock.now();
        assert!(last >= other, "{last} after {other} in another thread");
    }
}

/// Only lower bounds: a thread that is suspended in between has taken longer by both clocks.
#[test]
#[expect(clippy::disallowed_methods, reason = "the clock is compared with the system's own")]
fn the_system_clock_goes_as_fast_as_the_systems_own() {
    let (span, most_of_it) = (Duration::from_millis(20), Duration::from_millis(18));
    let (clock, other) = (SystemClock::new(), Instant::now());
    while clock.now().since(Tick::ZERO) < span {
        std::hint::spin_loop();
    }
    assert!(other.elapsed() >= most_of_it, "{:?} too fast", other.elapsed());
    let (begin, other) = (clock.now(), Instant::now());
    while other.elapsed() < span {
        std::hint::spin_loop();
    }
    let passed = clock.now().since(begin);
    assert!(passed >= most_of_it, "{passed:?} too slow");
}

#[test]
fn a_manual_clock_stands_still_until_it_is_told_and_clones_show_the_same_time() {
    let clock = ManualClock::starting_at(Wall::from_unix_seconds(100));
    let clone = clock.clone();
    assert_eq!((clock.now(), clone.now()), (Tick::ZERO, Tick::ZERO));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| clone.advance(Duration::from_millis(1))));
        }
    });
    assert_eq!(clock.now(), Tick::ZERO.after(4 * SECOND), "no step is lost");
    assert_eq!(clock.wall(), Wall::from_unix_seconds(104));
    assert_eq!(clock.anchor(), Anchor { tick: clock.now(), wall: clock.wall() });
    clock.advance(Duration::ZERO);
    assert_eq!(clock.now(), Tick::ZERO.after(4 * SECOND));
}

#[test]
fn a_manual_clock_stops_at_the_last_tick() {
    let clock = ManualClock::new();
    clock.advance(Duration::MAX);
    clock.advance(Duration::MAX);
    clock.advance(SECOND);
    assert_eq!(clock.now(), Tick::MAX);
}

/// Goes back to sleep as soon as it is woken, on the thread that woke it.
struct Sleepy {
    clock: ManualClock,
    woken: AtomicU64,
}

impl Wake for Sleepy {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        let mut sleep = self.clock.sleep(SECOND);
        let waker = Waker::from(self);
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
}

/// Sleepers were woken under the lock that they need to sleep again.
#[test]
fn whoever_a_manual_clock_wakes_may_sleep_again_at_once() {
    let clock = ManualClock::new();
    let sleepy = Arc::new(Sleepy { clock: clock.clone(), woken: AtomicU64::new(0) });
    Arc::clone(&sleepy).wake();
    for woken in 1..5 {
        assert_eq!(sleepy.woken.load(Ordering::Relaxed), woken);
        clock.advance(SECOND);
    }
}

#[test]
fn at_the_last_tick_limits_still_hold() {
    let clock = ManualClock::new();
    clock.advance(Duration::MAX);
    for limit in each_algorithm() {
        let counters = counters(&limit, clock.anchor());
        let passed = (0..20).filter(|_| counters.check(key(), 1, &clock).is_allowed()).count();
        assert_eq!(passed, 5, "{limit}");
    }
}

#[test]
fn time_that_runs_backwards_grants_nothing() {
    let at = |millis| Tick::ZERO.after(Duration::from_millis(millis));
    for limit in each_algorithm() {
        let counters = counters(&limit, Anchor::default());
        let passes = |millis| counters.check_at(key(), 1, at(millis)).is_allowed();
        assert_eq!((0..9).filter(|_| passes(90_500)).count(), 5, "{limit}");
        for millis in [90_499, 90_000, 60_000, 1_000, 0, 90_500] {
            assert!(!passes(millis), "{limit} at {millis}");
            let peek = counters.peek(key(), 1, at(millis));
            assert!(!peek.is_allowed(), "{limit} at {millis}");
        }
        // And it takes nothing either: time that goes on gives back as if nothing had been.
        assert_eq!((0..9).filter(|_| passes(99_000)).count(), 5, "{limit}");
    }
}

/// A clock whose wall can be set, as people do with clocks on the wall.
#[derive(Default)]
struct Stepped {
    clock: ManualClock,
    wall: AtomicU64,
}

impl Clock for Stepped {
    fn now(&self) -> Tick {
        self.clock.now()
    }

    fn wall(&self) -> Wall {
        Wall::from_unix_seconds(self.wall.load(Ordering::Relaxed))
    }
}

#[test]
fn a_step_of_the_wall_clock_moves_no_window() {
    let (hour, begin) = (3_600, 1_700_000_000);
    let limits = [
        Limit::fixed_window("2/h").unwrap(),
        Limit::calendar("2/day", "Europe/Berlin").unwrap(),
        Limit::sliding_window("2/h").unwrap(),
    ];
    for limit in limits {
        let clock = Stepped::default();
        clock.wall.store(begin, Ordering::Relaxed);
        let counters = counters(&limit, clock.anchor());
        let reset = counters.check(key(), 2, &clock).reset_after();
        for wall in [begin + 48 * hour, begin - 48 * hour, 0] {
            clock.wall.store(wall, Ordering::Relaxed);
            let denied = counters.check(key(), 1, &clock);
            assert!(!denied.is_allowed(), "{limit} when the wall says {wall}");
            assert_eq!(denied.reset_after(), reset, "{limit} when the wall says {wall}");
        }
    }
}

#[test]
fn windows_end_when_the_wall_clock_says_so() {
    // A quarter past, at a tick that has nothing to do with it.
    let clock = ManualClock::starting_at(Wall::from_unix_seconds(1_700_000_000 / 3_600 * 3_600));
    clock.advance(900 * SECOND);
    let counters = counters(&Limit::fixed_window("1/h").unwrap(), clock.anchor());
    assert_eq!(counters.check(key(), 1, &clock).reset_after(), 2_700 * SECOND);
    clock.advance(2_700 * SECOND - Duration::from_nanos(1));
    assert!(!counters.check(key(), 1, &clock).is_allowed());
    clock.advance(Duration::from_nanos(1));
    assert!(counters.check(key(), 1, &clock).is_allowed());
}

//! Time stands still, so that a key has exactly its limit to spend.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::Limit;
use tollgate_local::Clock;

use crate::crowd::{CROWDS, Dice, Meeting, Subject, crowd, each_second, hourly, sums};

#[test]
fn a_key_that_all_bring_at_once_gets_its_limit_and_no_more() {
    const LIMIT: u64 = 5;
    for limit in hourly(LIMIT) {
        for threads in CROWDS {
            let (subject, meeting) = (Subject::new(&limit, 10_000), Meeting::of(threads));
            let counts = crowd(threads, |_| {
                let spend = |key| {
                    meeting.wait();
                    (0..LIMIT).filter(|_| subject.check(key)).count() as u64
                };
                (0..150).map(spend).collect()
            });
            expect_limit(&sums(counts), LIMIT, &subject);
        }
    }
}

#[test]
fn one_key_gets_its_limit_and_no_more() {
    // Below 128 nothing is lent, and so nothing can be left over with a thread.
    const LIMIT: u64 = 127;
    for limit in hourly(LIMIT) {
        for threads in CROWDS {
            let subject = Subject::new(&limit, 1_000);
            let counts =
                crowd(threads, |_| vec![(0..LIMIT).filter(|_| subject.check(0)).count() as u64]);
            expect_limit(&sums(counts), LIMIT, &subject);
        }
    }
}

#[test]
fn hundreds_of_keys_get_their_limits_and_no_more() {
    const LIMIT: u64 = 20;
    const KEYS: usize = 300;
    for limit in hourly(LIMIT) {
        for threads in CROWDS {
            let subject = Subject::new(&limit, 10_000);
            let counts = crowd(threads, |number| spend_in_turns(&subject, KEYS, LIMIT, number));
            expect_limit(&sums(counts), LIMIT, &subject);
        }
    }
}

#[test]
fn of_more_keys_than_there_is_room_for_none_gets_more_than_its_limit() {
    const LIMIT: u64 = 5;
    const PLANNED: usize = 500;
    for limit in hourly(LIMIT) {
        for threads in CROWDS {
            let subject = Subject::new(&limit, PLANNED);
            let counts =
                crowd(threads, |number| spend_in_turns(&subject, 4 * PLANNED, LIMIT, number));
            let counts = sums(counts);
            assert!(subject.counters.pressure().overflowed > 0, "there was room for all");
            for (key, count) in counts.iter().enumerate() {
                assert!(*count <= LIMIT, "{limit}, {threads} threads: key {key} got {count}");
            }
            let served = counts.iter().filter(|count| **count == LIMIT).count();
            assert!(served >= PLANNED, "{limit}: only {served} keys got their limit");
        }
    }
}

/// The threads of a crowd borrow from a limit that is so large. All that was borrowed is used in
/// the end, because every thread goes on until it is denied.
#[test]
fn a_large_limit_is_spent_to_the_end() {
    const LIMIT: u64 = 60_000;
    // A bucket that nobody has touched for long is kept from filling for a moment before it lends:
    // 32 us, which is so many tokens at a million per second.
    const HELD_BACK: u64 = 32;
    let limits = [
        (Limit::token_bucket("1M/s burst 60k").unwrap(), HELD_BACK),
        (Limit::leaky_police("1M/s burst 60k").unwrap(), HELD_BACK),
        (Limit::fixed_window("60k/s").unwrap(), 0),
        (Limit::sliding_window("60k/s").unwrap(), 0),
    ];
    for (limit, held_back) in limits {
        for threads in CROWDS {
            let subject = Subject::new(&limit, 1_000);
            let allowed: u64 =
                crowd(threads, |_| (0..LIMIT).take_while(|_| subject.check(0)).count() as u64)
                    .into_iter()
                    .sum();
            assert!(allowed <= LIMIT, "{limit}, {threads} threads: {allowed}");
            assert!(allowed + held_back >= LIMIT, "{limit}, {threads} threads: {allowed}");
        }
    }
}

/// Threads stop in the middle, and some of what they borrowed is left. When they go on, the whole
/// limit is back, and what is left of the old one must not come on top of it.
#[test]
fn what_was_borrowed_is_worth_nothing_once_the_limit_is_full_again() {
    for limit in each_second(LARGE) {
        expect_nothing_left_of_loans(&limit, |subject| {
            subject.clock.advance(Duration::from_secs(2));
        });
    }
}

#[test]
fn what_was_borrowed_is_worth_nothing_after_a_reset() {
    for limit in each_second(LARGE) {
        expect_nothing_left_of_loans(&limit, |subject| {
            let _ = subject.counters.reset(subject.key(0), subject.clock.now());
        });
    }
}

const LARGE: u64 = 16_000;

/// Threads that end, or give back what they took, leave loans behind that nobody uses.
#[test]
fn what_is_lost_with_loans_is_no_more_than_what_was_used() {
    const ASKED: u64 = 100;
    for limit in each_second(1_000_000) {
        let subject = Subject::new(&limit, 1_000);
        let left = || subject.counters.peek(subject.key(0), 1, subject.clock.now()).remaining();
        let mut used = 0;
        for _ in 0..200 {
            let counts = crowd(2, |_| (0..ASKED).filter(|_| subject.check(0)).count() as u64);
            used += counts.into_iter().sum::<u64>();
        }
        let before = left();
        assert!(before + 2 * used >= 1_000_000, "{limit}: {used} used, {before} left");

        let rounds = 2_000;
        crowd(2, |_| {
            for _ in 0..rounds {
                if subject.check(0) {
                    subject.counters.refund(subject.key(0), 1, subject.clock.now());
                }
            }
        });
        let after = left();
        assert!(after + 4 * rounds >= before, "{limit}: {before} before and {after} after refunds");
    }
}

/// A quota that comes back slowly lends nothing: what is lost would be lost for long.
#[test]
fn nothing_is_lost_of_a_slow_limit() {
    for limit in hourly(1_000_000) {
        let subject = Subject::new(&limit, 1_000);
        let mut used = 0;
        for _ in 0..100 {
            let counts = crowd(2, |_| (0..100).filter(|_| subject.check(0)).count() as u64);
            used += counts.into_iter().sum::<u64>();
        }
        let left = subject.counters.peek(subject.key(0), 1, subject.clock.now()).remaining();
        assert_eq!(used + left, 1_000_000, "{limit}");
    }
}

fn expect_nothing_left_of_loans(limit: &Limit, renew: impl Fn(&Subject) + Sync) {
    for threads in [2, 4] {
        let (subject, meeting) = (Subject::new(limit, 1_000), Meeting::of(threads));
        let spent = AtomicU64::new(0);
        let counts = crowd(threads, |thread| {
            let borrow = |_: &usize| {
                let is_lent = spend_a_part(&subject, &meeting, &spent);
                if thread == 0 {
                    spent.store(0, Ordering::Relaxed);
                    renew(&subject);
                }
                meeting.wait();
                is_lent
            };
            // Nobody borrows unless threads get into each other's way, so they try again.
            let borrowed = (0..200).filter(borrow).take(2);
            borrowed.map(|_| (0..LARGE).take_while(|_| subject.check(0)).count()).sum::<usize>()
        });
        let passed = counts.into_iter().sum::<usize>() as u64;
        assert!(passed <= 2 * LARGE, "{limit}: {passed} passed of two times {LARGE}");
    }
}

/// Spends a part of the limit together with the other threads. Whether any of them has borrowed and
/// not used all of it.
fn spend_a_part(subject: &Subject, meeting: &Meeting, spent: &AtomicU64) -> bool {
    meeting.wait();
    let passed = (0..2_000).filter(|_| subject.check(0)).count() as u64;
    spent.fetch_add(passed, Ordering::Relaxed);
    meeting.wait();
    let left = subject.counters.peek(subject.key(0), 1, subject.clock.now()).remaining();
    let is_lent = left + spent.load(Ordering::Relaxed) < LARGE;
    meeting.wait();
    is_lent
}

/// Asks for every key `times` times, in an order of one's own; returns what each key got.
fn spend_in_turns(subject: &Subject, keys: usize, times: u64, thread: usize) -> Vec<u64> {
    let mut counts = vec![0; keys];
    let mut dice = Dice::new(thread);
    for _ in 0..times {
        let start = dice.below(keys);
        for key in (start..keys).chain(0..start) {
            counts[key] += u64::from(subject.check(key));
        }
    }
    counts
}

/// A thread that is suspended while it puts a key into a slot makes others count the key in the
/// sketch, and some of that may be counted twice. Where that happened, there is only the bound.
fn expect_limit(counts: &[u64], limit: u64, subject: &Subject) {
    for (key, count) in counts.iter().enumerate() {
        assert!(*count <= limit, "key {key} got {count} of {limit}");
        assert!(*count == limit || !subject.is_exact(), "key {key} got only {count} of {limit}");
    }
}

//! Permits: never more out than there are, whoever holds them and however they come back.

#![cfg(not(loom))]
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tollgate_core::{Retry, Tick};
use tollgate_local::{Concurrency, Held, Key, KeyHash, Seed};

const MINUTE: Duration = Duration::from_secs(60);
const START: Tick = Tick::ZERO;

fn key(number: u64) -> KeyHash {
    number.hash(&Seed::new(9))
}

#[test]
fn never_more_than_the_maximum_are_out_however_many_threads_want_one() {
    for threads in [2, 4, 8] {
        let (slots, out) = (Concurrency::new(3, 1_000).unwrap(), AtomicUsize::new(0));
        let held = thread::scope(|scope| {
            let work = || (0..3_000).filter(|_| hold_for_a_moment(&slots, &out)).count();
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        });
        assert!(held > 0);
        assert_eq!(slots.out(key(1), START), 0, "all came back");
        let all: Vec<_> = (0..4).filter_map(|_| slots.acquire(key(1), START).ok()).collect();
        assert_eq!(all.len(), 3, "none got lost");
    }
}

fn hold_for_a_moment(slots: &Concurrency, out: &AtomicUsize) -> bool {
    let Ok(held) = slots.acquire(key(1), START) else {
        thread::yield_now();
        return false;
    };
    let others = out.fetch_add(1, Ordering::SeqCst);
    assert!(others < 3, "{others} were out already");
    thread::yield_now();
    out.fetch_sub(1, Ordering::SeqCst);
    drop(held);
    true
}

#[test]
fn a_permit_comes_back_from_a_holder_that_panics() {
    let slots = Concurrency::new(1, 1_000).unwrap();
    let crash = catch_unwind(AssertUnwindSafe(|| {
        let _held = slots.acquire(key(1), START).expect("it is free");
        assert_eq!(slots.out(key(1), START), 1);
        panic!("the request failed");
    }));
    assert!(crash.is_err());
    assert_eq!(slots.out(key(1), START), 0);
    assert!(slots.acquire(key(1), START).is_ok());
}

#[test]
fn a_permit_may_come_back_from_another_thread_and_after_its_home_is_gone() {
    let slots = Concurrency::new(1, 1_000).unwrap();
    let held = slots.acquire(key(1), START).unwrap();
    thread::scope(|scope| scope.spawn(move || drop(held)).join().unwrap());
    let held = slots.acquire(key(1), START).expect("it is back");
    drop(slots);
    drop(held);
}

#[test]
fn clones_give_out_the_same_permits() {
    let slots = Concurrency::new(1, 1_000).unwrap();
    let clone = slots.clone();
    let held = clone.acquire(key(1), START).unwrap();
    assert!(slots.acquire(key(1), START).is_err());
    drop((held, clone));
    assert!(slots.acquire(key(1), START).is_ok());
}

#[test]
fn keys_do_not_take_each_others_permits() {
    let slots = Concurrency::new(2, 100_000).unwrap();
    let held: Vec<Held> =
        (0..2_000).filter_map(|n| slots.acquire(key(n / 2), START).ok()).collect();
    assert_eq!(held.len(), 2_000);
    for n in 0..1_000 {
        let denied = slots.acquire(key(n), START).expect_err("both are out");
        assert_eq!((denied.limit(), denied.remaining()), (2, 0));
        assert_eq!(denied.retry(), Some(Retry::OnReturn));
    }
    drop(held);
    assert!((0..1_000).all(|n| slots.out(key(n), START) == 0));
}

#[test]
fn a_permit_whose_holder_died_expires_on_time() {
    let slots = Concurrency::expiring(2, 1_000, MINUTE).unwrap();
    std::mem::forget(slots.acquire(key(1), START));
    let half = START.after(MINUTE / 2);
    let held = slots.acquire(key(1), half).unwrap();
    let just_before = START.after(MINUTE - Duration::from_nanos(1));
    assert!(slots.acquire(key(1), just_before).is_err());
    assert_eq!(slots.out(key(1), just_before), 2);
    assert_eq!(slots.out(key(1), START.after(MINUTE)), 1, "the second is half a minute younger");
    assert!(slots.acquire(key(1), START.after(MINUTE)).is_ok());
    drop(held);
}

/// A clone could be given a shorter time, which held for all, and left what was given out before
/// in the way of what expired earlier.
#[test]
fn permits_of_all_clones_expire_in_the_order_they_were_given_out() {
    let slots = Concurrency::expiring(100, 1_000, MINUTE).unwrap();
    let clones = [slots.clone(), slots.clone(), slots];
    let second = |n: u64| START.after(Duration::from_secs(n));
    for n in 0..60 {
        std::mem::forget(clones[n as usize % 3].acquire(key(1), second(n)).unwrap());
    }
    for n in 0..60 {
        let out = clones[n as usize % 2].out(key(1), second(60 + n));
        assert_eq!(out, 59 - n as usize, "after {n} seconds more");
    }
}

#[test]
fn permits_that_have_ages_to_expire_are_out_for_years() {
    for slots in [Concurrency::new(1, 10), Concurrency::expiring(1, 10, Duration::MAX)] {
        let slots = slots.unwrap();
        let held = slots.acquire(key(1), START).unwrap();
        let late = START.after(MINUTE * 60 * 24 * 365 * 5);
        assert_eq!(slots.out(key(1), late), 1);
        assert!(slots.acquire(key(1), late).is_err());
        drop(held);
    }
}

#[test]
fn a_permit_that_expired_takes_nobody_elses_with_it_when_it_comes_back_late() {
    let slots = Concurrency::expiring(1, 1_000, MINUTE).unwrap();
    let late = slots.acquire(key(1), START).unwrap();
    let later = START.after(MINUTE);
    let next = slots.acquire(key(1), later).expect("the first one has expired");
    drop(late);
    assert_eq!(slots.out(key(1), later), 1, "the next one is still out");
    assert!(slots.acquire(key(1), later).is_err());
    drop(next);
    assert!(slots.acquire(key(1), later).is_ok());
}

#[test]
fn a_key_that_was_forgotten_does_not_repeat_the_numbers_of_late_permits() {
    let slots = Concurrency::expiring(1, 1_000, MINUTE).unwrap();
    let late = slots.acquire(key(1), START).unwrap();
    let later = START.after(MINUTE);
    // It expires, the next one comes back at once, and nothing is left of the key.
    drop(slots.acquire(key(1), later).unwrap());
    assert_eq!(slots.out(key(1), later), 0);
    let next = slots.acquire(key(1), later).unwrap();
    drop(late);
    assert_eq!(slots.out(key(1), later), 1, "the late one is not this one");
    drop(next);
}

#[test]
fn the_room_for_all_keys_is_bounded_and_whoever_does_not_fit_is_turned_away() {
    let slots = Concurrency::new(1, 640).unwrap();
    let held: Vec<_> = (0..10_000).filter_map(|n| slots.acquire(key(n), START).ok()).collect();
    assert_eq!(held.len(), 640);
    assert_eq!(slots.turned_away(), 10_000 - 640);
    let denied = slots.acquire(key(20_000), START).expect_err("there is no room");
    assert_eq!(denied.retry(), Some(Retry::OnReturn));
    drop(held);
    assert!(slots.acquire(key(20_000), START).is_ok());
}

#[test]
fn the_room_is_for_all_keys_together_however_they_share_it() {
    for (max, room) in [(20_000, 20_000), (5, 12), (1, 1)] {
        let slots = Concurrency::new(max, room).unwrap();
        let one: Vec<_> = (0..30_000).map_while(|_| slots.acquire(key(1), START).ok()).collect();
        assert_eq!(one.len(), room.min(max as usize), "{max} of a key, room for {room}");
        let others = (0..100).filter_map(|n| slots.acquire(key(2 + n), START).ok());
        assert_eq!(others.collect::<Vec<_>>().len(), room - one.len(), "room for {room}");
        drop(one);
        assert_eq!(slots.out(key(1), START), 0);
    }
}

#[test]
fn expired_permits_make_room_for_other_keys() {
    let slots = Concurrency::expiring(1, 640, MINUTE).unwrap();
    for round in 0..5u32 {
        let now = START.after(MINUTE * round);
        let first = u64::from(round) * 10_000;
        let fits = |n: &u64| {
            let held = slots.acquire(key(*n), now);
            let is_held = held.is_ok();
            // Its holder dies, and somebody looks after the key now and then.
            std::mem::forget(held);
            slots.out(key(*n), now) == usize::from(is_held) && is_held
        };
        assert_eq!((first..first + 10_000).filter(fits).count(), 640, "in round {round}");
        let after = START.after(MINUTE * (round + 1));
        assert!((first..first + 10_000).all(|n| slots.out(key(n), after) == 0));
    }
}

/// Nobody looks after the keys whose holders died: whoever finds no room has to.
#[test]
fn permits_that_expired_unseen_make_room() {
    let slots = Concurrency::expiring(1, 64, MINUTE).unwrap();
    for n in 0..64 {
        std::mem::forget(slots.acquire(key(n), START).unwrap());
    }
    assert!(slots.acquire(key(99), START).is_err());
    let later = START.after(2 * MINUTE);
    let again = (0..64).filter(|n| slots.acquire(key(*n), later).is_ok()).count();
    assert!(again > 60, "{again} of 64 found room");
}

#[test]
fn permits_that_expire_at_once_are_refused() {
    assert!(Concurrency::expiring(1, 10, Duration::ZERO).is_err());
}

#[test]
fn no_permits_and_no_room_are_refused() {
    let error = Concurrency::new(0, 100).unwrap_err().to_string();
    assert!(error.contains("permits") && error.contains("from 1"), "{error}");
    let error = Concurrency::new(5, 0).unwrap_err().to_string();
    assert!(error.contains("room") && error.contains("from 1"), "{error}");
    assert!(Concurrency::new(u32::MAX, usize::MAX).is_ok());
}

#[test]
fn permits_that_are_out_count_for_whoever_follows() {
    let ten = Concurrency::new(10, 1_000).unwrap();
    let mut held: Vec<Held> = (0..5).map(|_| ten.acquire(key(1), START).unwrap()).collect();
    let three = ten.resized(3, None).unwrap();
    for out in [5, 4, 3] {
        assert_eq!(three.out(key(1), START), out);
        let denied = three.acquire(key(1), START).expect_err("three are out at least");
        assert_eq!((denied.limit(), denied.remaining()), (3, 0));
        held.pop();
    }
    held.push(three.acquire(key(1), START).expect("two are out"));
    let twenty = three.resized(20, None).unwrap();
    let more: Vec<_> = (0..30).filter_map(|_| twenty.acquire(key(1), START).ok()).collect();
    assert_eq!(more.len(), 17);
    drop(more);
    drop(held);
    assert_eq!([ten, three, twenty].map(|slots| slots.out(key(1), START)), [0, 0, 0]);
}

#[test]
fn the_room_is_shared_with_whoever_follows() {
    let slots = Concurrency::new(1, 10).unwrap();
    let held: Vec<Held> = (0..8).map(|n| slots.acquire(key(n), START).unwrap()).collect();
    let more = slots.resized(5, None).unwrap();
    let others: Vec<_> = (10..20).filter_map(|n| more.acquire(key(n), START).ok()).collect();
    assert_eq!((others.len(), slots.turned_away(), more.turned_away()), (2, 8, 8));
    drop((held, others));
}

#[test]
fn another_time_to_expire_holds_from_when_a_permit_was_given_out() {
    let never = Concurrency::new(1, 64).unwrap();
    std::mem::forget(never.acquire(key(1), START).unwrap());
    let minute = never.resized(1, Some(MINUTE)).unwrap();
    let just_before = START.after(MINUTE - Duration::from_nanos(1));
    assert!(minute.acquire(key(1), just_before).is_err());
    let hour = minute.resized(1, Some(60 * MINUTE)).unwrap();
    assert!(hour.acquire(key(1), START.after(MINUTE)).is_err(), "it was extended");
    let second = hour.resized(1, Some(MINUTE / 60)).unwrap();
    assert!(second.acquire(key(1), START.after(MINUTE)).is_ok(), "it was shortened");
}

/// Whoever shortens the time looks for expired permits as often as the new time asks for.
#[test]
fn permits_that_expired_unseen_make_room_soon_after_the_time_was_shortened() {
    let slow = Concurrency::expiring(1, 1, 1_000 * MINUTE).unwrap();
    std::mem::forget(slow.acquire(key(1), START).unwrap());
    assert!(slow.acquire(key(1), START).is_err(), "this one looks, and finds nothing");
    let fast = slow.resized(1, Some(MINUTE)).unwrap();
    assert!(fast.acquire(key(1), START.after(MINUTE)).is_ok());
}

#[test]
fn successors_without_permits_or_time_are_refused() {
    let slots = Concurrency::new(1, 10).unwrap();
    assert!(slots.resized(0, None).is_err());
    assert!(slots.resized(1, Some(Duration::ZERO)).is_err());
}

//! Models of threads that remember denials of keys of one line, and of one that hears them:
//! `RUSTFLAGS="--cfg loom" cargo test -p tollgate-local --release --test loom_denials`.
#![cfg(loom)]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use tollgate_core::{Decision, Retry, Tick};
use tollgate_local::{Denials, Key, KeyHash, Seed};

const NOW: Tick = Tick::ZERO;

fn key(number: u64) -> KeyHash {
    number.hash(&Seed::new(7))
}

/// A denial all of whose numbers say whose it is.
fn denied(number: u64) -> Decision {
    let time = Duration::from_millis(number);
    Decision::deny(number, number, time, Retry::After(time))
}

fn note(denials: &Arc<Denials>, number: u64) -> impl FnOnce() + 'static {
    let denials = Arc::clone(denials);
    move || denials.note(key(number), number, &denied(number), Duration::MAX, (NOW, NOW))
}

/// What is known of a key is of that key, all of it.
fn assert_whole(denials: &Denials, number: u64) {
    let Some(said) = denials.find(key(number), number, NOW) else { return };
    let numbers = (said.limit(), said.remaining());
    let times = (said.reset_after(), said.retry_after());
    let time = Duration::from_millis(number);
    assert_eq!((numbers, times), ((number, number), (time, Some(time))));
}

#[test]
fn what_is_heard_of_a_denial_is_of_one_denial() {
    loom::model(|| {
        let denials = Arc::new(Denials::new(1));
        note(&denials, 1)();
        let other = thread::spawn(note(&denials, 2));
        (1..=2).for_each(|number| assert_whole(&denials, number));
        other.join().unwrap();
        assert_whole(&denials, 2);
        assert!(denials.find(key(2), 2, NOW).is_some(), "nobody was in its way");
    });
}

#[test]
fn of_two_who_write_at_once_one_is_remembered_as_a_whole() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let denials = Arc::new(Denials::new(1));
        let others = [1, 2].map(|number| thread::spawn(note(&denials, number)));
        assert_whole(&denials, 1);
        others.into_iter().for_each(|other| other.join().unwrap());
        (1..=2).for_each(|number| assert_whole(&denials, number));
        let known = (1..=2).filter(|number| denials.find(key(*number), *number, NOW).is_some());
        assert_eq!(known.count(), 1);
    });
}

/// A denial that was asked for before is on its way when its key is forgotten.
#[test]
fn what_was_asked_for_before_a_key_was_forgotten_is_known_to_nobody_after_that() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let denials = Arc::new(Denials::new(1));
        let other = thread::spawn(note(&denials, 1));
        denials.forget(key(1), NOW);
        other.join().unwrap();
        assert!(denials.find(key(1), 1, NOW).is_none(), "it is over");
        let later = NOW.after(Duration::from_nanos(1));
        denials.note(key(1), 1, &denied(1), Duration::MAX, (later, later));
        assert!(denials.find(key(1), 1, later).is_some());
    });
}

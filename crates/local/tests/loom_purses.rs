//! Models of threads that take from a purse while its borrower is asked:
//! `RUSTFLAGS="--cfg loom" cargo test -p tollgate-local --release --test loom_purses`.
#![cfg(loom)]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use tollgate_core::lease::{Borrower, Lender, Node};
use tollgate_core::{Anchor, Limit, Phase, Tick};
use tollgate_local::{Key, KeyHash, Purses, Seed, Taken};

const NOW: Tick = Tick::ZERO;

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn key() -> KeyHash {
    "hot".hash(&Seed::new(7))
}

/// A purse with so many tokens of a key.
fn purse(tokens: u64) -> Arc<Purses<()>> {
    let limit = Limit::token_bucket("100k/s").unwrap();
    let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
    let mut account = lender.open(NOW, Phase::default());
    let node = Node { number: 1, incarnation: 1 };
    let purses = Arc::new(Purses::new(1));
    let new = || (Borrower::new(node, lender.terms().unwrap()), ());
    let mut lent = purses.open(key(), NOW, new).unwrap();
    lent.borrower().spend(NOW, tokens);
    let exchange = lent.borrower().exchange(NOW).unwrap();
    let grant = lender.exchange(&mut account, NOW, &exchange).unwrap();
    assert!(lent.borrower().answer(NOW, &grant));
    drop(lent);
    purses
}

/// Takes so often, and says how often there was some.
fn take(purses: &Arc<Purses<()>>, times: u64) -> impl FnOnce() -> u64 + 'static {
    let purses = Arc::clone(purses);
    move || {
        let passes = |_: &u64| matches!(purses.take(key(), NOW, 1), Taken::Spent { .. });
        (0..times).filter(passes).count() as u64
    }
}

fn left(purses: &Purses<()>) -> u64 {
    purses.known(key(), NOW).unwrap().borrower().tokens(NOW)
}

#[test]
fn threads_take_no_more_than_there_is() {
    explore(3, || {
        let purses = purse(2);
        let others = [(); 2].map(|()| thread::spawn(take(&purses, 2)));
        let passed: u64 = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!((passed, left(&purses)), (2, 0));
    });
}

#[test]
fn whatever_is_taken_while_the_borrower_is_asked_is_booked() {
    explore(3, || {
        let purses = purse(10);
        let other = thread::spawn(take(&purses, 2));
        let between = left(&purses);
        let passed = other.join().unwrap();
        let end = left(&purses);
        assert_eq!(passed + end, 10, "{between} were left meanwhile");
    });
}

#[test]
fn what_lies_in_pockets_is_spent_once_or_lost() {
    explore(2, || {
        let purses = purse(40_000);
        let others = [(); 2].map(|()| thread::spawn(take(&purses, 2)));
        let between = left(&purses);
        let passed: u64 = others.into_iter().map(|other| other.join().unwrap()).sum();
        let end = left(&purses);
        assert!(passed + end <= 40_000 && end <= between, "{passed}, {between}, {end}");
        // Two threads have a pocket each.
        assert!(passed + end >= 40_000 - 2 * 16, "{passed}, {between}, {end}");
    });
}

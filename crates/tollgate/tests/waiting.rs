//! Requests that wait for their turn.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::{Clock, Limit, Limiter, ManualClock, WaitError};

fn limiter(limit: Limit, waiting: usize) -> (Limiter<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    let limiter = Limiter::builder(limit).waiting(waiting).clock(clock.clone()).build().unwrap();
    (limiter, clock)
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn those_who_wait_are_served_in_the_order_they_came() {
    let (limiter, clock) = limiter(Limit::token_bucket("1/s").unwrap(), 10);
    let limiter = Arc::new(limiter);
    let served = Arc::new(Mutex::new(Vec::new()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut waiters = Vec::new();
        for number in 0..5 {
            let (limiter, clock, served) = (limiter.clone(), clock.clone(), served.clone());
            waiters.push(tokio::spawn(async move {
                limiter.wait("legacy").await.unwrap();
                served.lock().unwrap().push((number, clock.now().as_nanos() / 1_000_000));
            }));
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            clock.advance(Duration::from_millis(50));
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
        for waiter in waiters {
            waiter.await.unwrap();
        }
    });
    let served = served.lock().unwrap();
    assert_eq!(*served, [(0, 0), (1, 1000), (2, 2000), (3, 3000), (4, 4000)]);
    assert_eq!(limiter.stats().waiting, 0);
}

#[test]
fn a_shaped_stream_leaves_at_a_constant_pace() {
    let (limiter, clock) = limiter(Limit::leaky_shape("10/s", 50).unwrap(), 50);
    for turn in 0..5 {
        let mut wait = pin!(limiter.wait("legacy"));
        while poll(wait.as_mut()).is_pending() {
            clock.advance(Duration::from_millis(1));
        }
        assert_eq!(clock.now().as_nanos(), turn * 100_000_000);
    }
}

#[test]
fn a_queue_is_bounded() {
    let (limiter, _clock) = limiter(Limit::token_bucket("1/h").unwrap(), 2);
    assert!(matches!(poll(pin!(limiter.wait("a"))), Poll::Ready(Ok(_))));
    let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(limiter.wait("a"))).collect();
    for wait in &mut waiting {
        assert!(poll(wait.as_mut()).is_pending());
    }
    let full = poll(pin!(limiter.wait("a")));
    assert!(matches!(full, Poll::Ready(Err(WaitError::QueueFull { max: 2 }))), "{full:?}");
    assert!(matches!(poll(pin!(limiter.wait("b"))), Poll::Ready(Ok(_))), "another key");
    drop(waiting);
    assert_eq!(limiter.stats().waiting, 0);
    assert!(poll(pin!(limiter.wait("a"))).is_pending(), "there is room again");
}

#[test]
fn whoever_gives_up_waiting_has_spent_nothing_and_those_behind_move_up() {
    for gives_up in 0..3 {
        let (limiter, clock) = limiter(Limit::token_bucket("1/s").unwrap(), 10);
        assert!(limiter.check("a").is_allowed());
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(limiter.wait("a"))).collect();
        for wait in &mut waiting {
            assert!(poll(wait.as_mut()).is_pending());
        }
        drop(waiting.remove(gives_up));
        for (place, wait) in waiting.iter_mut().enumerate() {
            clock.advance(Duration::from_secs(1));
            assert!(poll(wait.as_mut()).is_ready(), "{gives_up} gave up, {place} has its turn");
        }
        assert!(!limiter.check("a").is_allowed(), "both turns were taken");
        clock.advance(Duration::from_secs(1));
        assert!(limiter.check("a").is_allowed(), "and nothing else was spent");
    }
}

#[test]
fn what_never_fits_is_not_waited_for() {
    let (limiter, _clock) = limiter(Limit::token_bucket("2/s").unwrap(), 10);
    let never = poll(pin!(limiter.wait_n("a", 3)));
    assert!(matches!(never, Poll::Ready(Err(WaitError::NeverFits))));
}

#[cfg(feature = "tokio")]
#[test]
fn with_tokio_a_free_turn_is_taken_at_once_and_a_dropped_future_spends_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let limiter = Limiter::new("10/h").unwrap();
        for _ in 0..10 {
            assert!(poll(pin!(limiter.wait("a"))).is_ready());
        }
        for _ in 0..3 {
            assert!(poll(pin!(limiter.wait("a"))).is_pending(), "and dropped");
        }
        assert_eq!(limiter.peek("a").remaining(), 0);
        assert_eq!(limiter.stats().waiting, 0);
    });
}

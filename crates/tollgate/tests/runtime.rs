//! Waiting with a runtime's own timers, and giving up by its means.

#![cfg(feature = "tokio")]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Clock, Limit, Limiter, ManualClock};

#[tokio::test]
async fn a_request_that_times_out_has_spent_nothing() {
    let clock = ManualClock::new();
    let limit = Limit::token_bucket("2/s burst 1").unwrap();
    let limiter = Limiter::builder(limit).clock(clock.clone()).build().unwrap();
    limiter.wait("alice").await.unwrap();
    let impatient = tokio::time::timeout(Duration::ZERO, limiter.wait("alice")).await;
    assert!(impatient.is_err());
    assert_eq!(limiter.stats().waiting, 0);
    clock.advance(Duration::from_millis(500));
    assert!(limiter.check("alice").is_allowed());
}

#[tokio::test]
async fn the_real_clock_wakes_those_who_wait() {
    let limiter = Arc::new(Limiter::new("1000/s burst 1").unwrap());
    let begin = limiter.clock().now();
    let wait = || {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move { limiter.wait("alice").await.is_ok() })
    };
    let tasks: Vec<_> = (0..6).map(|_| wait()).collect();
    for task in tasks {
        assert!(task.await.unwrap());
    }
    // Only a lower bound: five intervals lie between six requests.
    let passed = limiter.clock().now().since(begin);
    assert!(passed >= Duration::from_millis(5), "{passed:?}");
    assert_eq!(limiter.stats().waiting, 0);
}

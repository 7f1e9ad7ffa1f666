//! Limits that come with the requests: as redis-cell has them, and never more than any allows.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod crowds;
mod model;
mod traces;

use std::time::Duration;

use tollgate::{ManualClock, Period, Quota, Throttle, Unit};

const SECOND: Duration = Duration::from_secs(1);

/// The limit of `CL.THROTTLE key max_burst count period`.
fn quota(max_burst: u64, count: u64, seconds: u32) -> Quota {
    let period = Period::new(seconds, Unit::Second).unwrap();
    Quota::new(count, period).unwrap().with_burst(max_burst + 1).unwrap()
}

fn throttle(keys: usize) -> (Throttle<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (Throttle::builder().keys(keys).clock(clock.clone()).build().unwrap(), clock)
}

#[test]
fn what_is_given_back_is_there_again_and_never_more() {
    let (throttle, clock) = throttle(100);
    let ten = quota(9, 10, 100);
    assert_eq!(throttle.check("a", ten, 8).unwrap().remaining(), 2);
    throttle.refund("a", ten, 3).unwrap();
    assert_eq!(throttle.check("a", ten, 0).unwrap().remaining(), 5);
    throttle.refund("a", ten, 6).unwrap();
    assert_eq!(throttle.check("a", ten, 0).unwrap().remaining(), 10, "five were lacking");
    assert!(!throttle.check("a", ten, 11).unwrap().is_allowed());
    throttle.refund("b", ten, 3).unwrap();
    assert_eq!(throttle.check("b", ten, 10).unwrap().remaining(), 0, "it had everything");
    clock.advance(10 * SECOND);
    throttle.refund("b", ten, 9).unwrap();
    assert_eq!(throttle.check("b", ten, 0).unwrap().remaining(), 10, "one had come back");
    let never = quota(1_000_000, 1, 31_622_400);
    assert!(throttle.refund("a", never, 1).is_err(), "there is no such limit");
}

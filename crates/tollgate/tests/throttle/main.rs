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

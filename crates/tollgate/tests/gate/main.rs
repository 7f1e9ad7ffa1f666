//! Several limits for one request: all of them or none, and an answer that says what decided.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod charges;
mod interleaved;
mod races;

use tollgate::{Charge, Clock, Gate, Limit};

/// A limit of each algorithm that holds `count` and gives nothing back for an hour.
fn each_algorithm(count: u64) -> [Limit; 7] {
    let hourly = format!("{count}/h");
    [
        Limit::token_bucket(&hourly).unwrap(),
        Limit::leaky_police(format!("1/h burst {count}")).unwrap(),
        Limit::leaky_shape("1/h", count - 1).unwrap(),
        Limit::fixed_window(&hourly).unwrap(),
        Limit::sliding_window(&hourly).unwrap(),
        Limit::sliding_log(&hourly).unwrap(),
        Limit::calendar(format!("{count}/day"), "UTC").unwrap(),
    ]
}

/// Those of them that can give back what was spent.
fn each_that_gives_back(count: u64) -> impl Iterator<Item = Limit> {
    each_algorithm(count).into_iter().filter(|limit| !limit.shapes())
}

fn left<C: Clock>(gate: &Gate<C>, charge: Charge<'_>) -> u64 {
    gate.peek(&[charge.cost(0)]).decision().remaining()
}

//! Limits that change while they are in force: what was spent before is not forgotten, and keeps
//! nobody out for longer than the new limit would.
//!
//! Reading order: [`swap`] (one limit after another), [`exact`] (against slow models), [`bounds`]
//! (what holds for all limits, also where there is no room), [`life`] (how long the past is asked).

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod bounds;
mod exact;
mod life;
mod swap;

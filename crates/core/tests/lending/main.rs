//! The laws of lending, one by one. Those of whole fleets, in virtual time and in all kinds of
//! trouble, are tests of the simulator.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod ahead;
mod apart;
mod carried;
mod costs;
mod long;
mod memory;
mod promises;
mod records;
mod repeats;
mod shares;
mod silences;
mod turns;
mod undo;

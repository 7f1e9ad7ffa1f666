//! The laws of lending, as properties of whole fleets in virtual time.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod bound;
mod ends;
mod recovery;
mod yields;

//! The laws of lending, as properties of whole fleets in virtual time: many nodes, one store, and
//! between them a network that loses, delays, repeats and reorders.
//!
//! Reading order: [`fleet`] (the runner), [`audit`] (what is right), then one file per law. A run
//! is a function of its [`Plan`](fleet::Plan): a failure prints it, and so its seed.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod audit;
mod bound;
mod chance;
mod ends;
mod fleet;
mod member;
mod memory;
mod plan;
mod recovery;
mod repeats;
mod shares;
mod yields;

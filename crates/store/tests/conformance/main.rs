//! One suite for all stores: what each of them owes to whoever asks.
//!
//! [`suite`] holds the facts. Each store is a [`Bench`](bench::Bench) to it: a way to let time pass
//! and to lose the memory.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

mod bench;
mod carried;
mod carrying;
mod memory;
#[path = "../support/process.rs"]
mod process;
mod redis;
mod suite;

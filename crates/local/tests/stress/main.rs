//! Many threads against an exact model: whatever they do at once, no key gets more than its limit,
//! and where nothing had to be counted together, none gets less.
//!
//! Reading order: [`crowd`] (threads and what they ask), [`frozen`] (time stands still), [`moving`]
//! (one thread moves it on), [`takeover`] (keys come to rest, lose their slots, and come back),
//! [`changed`] (the limit was another one before).

#![cfg(not(loom))]
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod changed;
mod crowd;
mod frozen;
mod moving;
mod takeover;

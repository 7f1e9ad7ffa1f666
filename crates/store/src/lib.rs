//! Stores: who lends the budget of a limit to the nodes of a fleet.
//!
//! A [`Store`] has one verb, [`exchange`](Store::exchange): settle what was used, hand back what was
//! not, ask for more. A decision by the store alone is an exchange that wants nothing but its cost.
//! What the messages mean, and why the limit holds whatever is lost, stands in
//! [`tollgate_core::lease`]; here are the places that keep the books:
//!
//! * [`MemoryStore`], in this process: the reference, and a fleet of one.
//! * [`RedisStore`], in Redis or Valkey, alone, behind Sentinel, or as a Cluster.
//!
//! [`AnyStore`] holds whichever it is. [`Carrying`] stands before one, and finds out what keys had spent of
//! limits that have changed.
//!
//! All of them pass one suite (`tests/conformance`), and give the same answers to the same
//! questions at the same time.
//!
//! Being over the limit is a decision. A [`StoreError`] means that the store could not decide, and
//! says why, and what to do about it.
//!
//! Reading order: [`Budget`], [`Ask`], [`Store`], [`MemoryStore`], [`RedisStore`],
//! [`AnyStore`].

#![forbid(unsafe_code)]

mod any;
mod ask;
mod budget;
mod carry;
mod error;
mod loss;
mod memory;
mod redis;
mod store;

pub use any::AnyStore;
pub use ask::Ask;
pub use budget::Budget;
pub use carry::{Before, Carrying};
pub use error::StoreError;
pub use loss::{Extent, Loss, Losses};
pub use memory::MemoryStore;
pub use redis::{IdentityError, RedisConfig, RedisIdentity, RedisStore, RedisVisit};
pub use store::{Pulse, Store};
pub use tollgate_core::lease::Grant;

//! Counters in one process: bounded memory, no lock on the way to a decision, no limit passed.
//!
//! This crate keeps the states that `tollgate-core` computes. It decides nothing by itself: what
//! a limit allows is the core's business, where the state of a key lives is this crate's.
//!
//! Reading order: [`Table`] (the memory of all counters whose state is one word), [`Counters`]
//! (the counters of one limit), [`Past`] (what they know of the limit before), [`Key`] and [`Seed`]
//! (how keys become hashes), [`Clock`]. Beside them [`Concurrency`] for limits on what is under way
//! at once, [`Purses`] for keys whose budget a store lends and [`Denials`] for those whose budget it does not,
//! [`WaitingRoom`] for requests that wait for their turn, [`HeavyKeys`] for a look at who asks most.
//!
//! Most users want the `tollgate` crate, which puts these together.
//!
//! # Unsafe code
//!
//! Three modules need it, one expression each: `memory` (a table mapped and not allocated),
//! `prefetch` (a hint to the processor) and `table::tags` (four tags compared in one instruction).
//! What threads do to each other goes through atomics, in safe code but for that comparison, and is
//! checked by models in `tests/loom.rs`.

#![deny(unsafe_code)]

mod buckets;
mod clock;
mod counter;
mod counters;
mod denials;
mod key;
mod key_map;
mod lately;
mod loan;
mod logs;
mod memory;
mod past;
mod permits;
mod prefetch;
mod purses;
mod shards;
mod shelf;
mod sketch;
mod sync;
mod table;
mod top;
mod wait;

pub use buckets::{Buckets, Draw};
pub use clock::{Clock, ManualClock, Sleep, SystemClock, Timer};
pub use counter::Prepared;
pub use counters::{Counters, CountersBuilder, Due, Pressure};
pub use denials::Denials;
pub use key::{Half, Key, KeyHash, Seed};
pub use key_map::KeyMap;
pub use lately::Lately;
pub use past::Past;
pub use permits::{Concurrency, Held};
pub use purses::{Lent, Place, Purses, Taken};
pub use shards::{ByHash, Hashed};
pub use table::{Table, TableError};
pub use top::{HeavyKey, HeavyKeys};
pub use wait::{WaitError, WaitingRoom};

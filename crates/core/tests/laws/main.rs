//! The laws of every algorithm, as properties, against slow and obvious models; worked examples
//! from the literature; the calendar; and what errors say.
//!
//! Reading order: [`subject`] (which limits), [`trace`] (which requests), [`model`] (what is
//! right), then one file per law.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod agreement;
mod backwards;
mod bound;
mod calendar;
mod decision;
mod denial;
mod drift;
mod errors;
mod extremes;
mod fraction;
mod join;
mod lend;
mod log;
mod model;
mod permits;
mod rebase;
mod refund;
mod rest;
mod shape;
mod subject;
mod trace;
mod undo;
mod worked;

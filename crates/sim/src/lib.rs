//! Fleets of nodes that share limits, in one thread and in virtual time.
//!
//! A [`Fleet`] is many nodes (core's `Borrower`), one store (core's `Lender`) and a network between
//! them that loses, delays, repeats and reorders; clocks are apart and run at different speeds, nodes
//! die, freeze and are cut off, the store starts again and forgets, or a replica takes over that had not
//! heard of everything. An [`Audit`] counts what really
//! passes and compares it with the limit, in exact numbers and without asking the code under test.
//!
//! A run is a function of its [`Plan`], and [`Plan::troubled`] is a function of a seed: [`schedule`]
//! runs one, and what it reports of a [`Failure`] is enough to see it again.
//!
//! [`figures`] are measurements of fleets in good health: how few questions the store is asked, and
//! how close what passes comes to what may.
//!
//! It refuses to know about real time, threads and sockets: fleets of processes are tests of the
//! server.
//!
//! Reading order: [`Plan`], [`Fleet`], [`Audit`], [`schedule`], then [`figures`].

#![forbid(unsafe_code)]

mod audit;
mod chance;
pub mod figures;
mod fleet;
mod ideal;
mod member;
mod outcome;
mod plan;
mod schedule;
mod subject;
mod trouble;

pub use audit::Audit;
pub use chance::Chance;
pub use fleet::Fleet;
pub use member::Member;
pub use outcome::Outcome;
pub use plan::{Loss, MILLI, Pace, Plan, SECOND};
pub use schedule::{Broken, Failure, schedule, trace};
pub use subject::Subject;

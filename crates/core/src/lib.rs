//! The pure core of Tollgate: what a limit is, and what it decides.
//!
//! Nothing here reads a clock, waits, allocates on the way to a decision, or talks to anybody:
//! time is an argument, and a decision is a function of it. The same machines run in the counters
//! of one process, in the store of a fleet, and in simulations, and therefore agree.
//!
//! Reading order: [`Quota`] (how much, per how long), [`Limit`] (a quota with an algorithm),
//! [`Machine`] (a limit ready to decide), [`Word`] (the state of one key), [`Decision`] (the
//! answer). [`Log`] and [`Permits`] are the two algorithms whose state does not fit a word. How a
//! store lends the budget of a limit to many nodes is in [`lease`].
//!
//! ```
//! use std::time::Duration;
//! use tollgate_core::{Anchor, Limit, Phase, Tick, Word};
//!
//! let limit = Limit::token_bucket("100/min burst 2")?;
//! let machine = limit.machine(Anchor::default()).expect("a token bucket fits a word");
//! let mut word = Word::REST;
//! for _ in 0..2 {
//!     let step = machine.step(word, Tick::ZERO, 1, Phase::default());
//!     assert!(step.decision.is_allowed());
//!     word = step.word;
//! }
//! let denied = machine.step(word, Tick::ZERO, 1, Phase::default()).decision;
//! assert_eq!(denied.retry_after(), Some(Duration::from_millis(600)));
//! # Ok::<(), tollgate_core::LimitError>(())
//! ```
//!
//! # Laws
//!
//! Each is held by a property test in `tests/laws`, for every algorithm, against a slow and
//! obvious model:
//!
//! * never more is admitted than the algorithm's bound;
//! * a denial spends nothing, and earns nothing;
//! * `retry_after` is exact: denied one nanosecond before, allowed at it;
//! * `remaining` is what would be allowed now;
//! * time that stands still or runs backwards adds no budget;
//! * a state at rest equals no state at all.

#![forbid(unsafe_code)]

mod algorithm;
mod decision;
mod error;
pub mod lease;
mod limit;
mod quota;
mod time;
mod word;

pub use algorithm::{
    BoundStep, CommonBucket, Loan, Log, LogRule, Machine, Permit, Permits, Phase, Plan, State,
    Step, StepUser, Usual, UsualAsk,
};
pub use decision::{Decision, Retry, Verdict};
pub use error::{LimitError, QuotaError};
pub use limit::Limit;
pub use quota::{Period, Quota, Rate, Unit};
pub use time::{Anchor, Tick, Wall};
pub use word::Word;

//! A rate limiter that decides in one memory access and never exceeds its limit.
//!
//! # One limit
//!
//! ```
//! use tollgate::Limiter;
//!
//! let limiter = Limiter::new("100/min")?;
//! if limiter.check("alice").is_allowed() {
//!     // Serve the request.
//! }
//! # Ok::<(), tollgate::Error>(())
//! ```
//!
//! A [`Decision`] knows more than yes or no: how much is [left](Decision::remaining), when the
//! whole limit is [back](Decision::reset_after), and when exactly a denied request is worth trying
//! [again](Decision::retry_after).
//!
//! # Several limits per request
//!
//! ```
//! use std::net::IpAddr;
//! use tollgate::{Gate, Limit};
//!
//! let mut builder = Gate::builder().keys(1_000_000);
//! let per_key = builder.limit("per-key", Limit::token_bucket("1000/min burst 50")?);
//! let per_ip = builder.limit("per-ip", Limit::sliding_window("600/min")?);
//! let logins = builder.limit("logins", Limit::sliding_log("10/15min")?);
//! let monthly = builder.limit("monthly", Limit::calendar("10k/month", "Europe/Berlin")?);
//! let gate = builder.build()?;
//!
//! let (api_key, ip) = ("k-123", "192.0.2.7".parse::<IpAddr>().expect("an address"));
//! let answer = gate.check(&[
//!     per_key.charge(api_key),
//!     per_ip.charge(&ip),
//!     logins.charge(&(ip, "alice")),
//!     monthly.charge(api_key).cost(3),
//! ]);
//! if !answer.is_allowed() {
//!     println!("denied by {}: {:?}", gate.name(answer.limit()), answer.decision().verdict());
//! }
//! # Ok::<(), tollgate::Error>(())
//! ```
//!
//! All limits must allow a request; one that is denied by any of them spends nothing from the
//! others.
//!
//! # Which algorithm?
//!
//! | you want | take |
//! |---|---|
//! | a rate with bursts, the usual case | [`Limit::token_bucket`] |
//! | a constant pace, those too early wait | [`Limit::leaky_shape`], with [`Limiter::wait`] |
//! | a constant pace, those too early are denied | [`Limit::leaky_police`] |
//! | so many per clock hour | [`Limit::fixed_window`] |
//! | so many per day, week or month of a calendar | [`Limit::calendar`], [`Limit::billing_month`] |
//! | no double burst at the window's edge, still cheap | [`Limit::sliding_window`] |
//! | exactly so many in any window: logins, payments | [`Limit::sliding_log`] |
//! | so many at once | [`Slots`] |
//!
//! # Memory
//!
//! Counters live in a table whose size is chosen at the start, under 24 bytes for each key that is
//! live at the same time; keys that have their whole budget back take no room. If more keys are
//! live than planned, the excess is counted together, too high and never too low: see
//! [`Stats::overflowed`]. Each further limit of a gate adds about 0.23 bytes a key, and a sliding
//! log up to four times the table; whoever has so many bytes and no more says so with
//! [`LimiterBuilder::memory`] or [`GateBuilder::memory`].
//!
//! # Time
//!
//! Decisions are made on a monotonic clock; what happens to the clock on the wall grants nobody
//! anything. Tests inject a [`ManualClock`].

#![forbid(unsafe_code)]

#[cfg(feature = "rules")]
mod engine;
mod error;
mod gate;
mod limiter;
#[cfg(feature = "rules")]
mod sharing;
mod size;
mod slots;
mod spending;
mod stats;
mod throttle;

#[cfg(feature = "rules")]
pub use engine::{
    Engine, EngineBuilder, EngineStats, Expectation, Failure, KeyState, NewStart, Rehearsal,
    RuleDecision, Ruling, ToldBy, Under, UnderWay,
};
pub use error::Error;
pub use gate::{Answer, Charge, Gate, GateBuilder, KeyRef, LimitId};
pub use limiter::{Limiter, LimiterBuilder};
#[cfg(feature = "rules")]
pub use sharing::{Health, Lapse, Reserve, SharingConfig, SharingStats, Wait};
pub use slots::{Slots, SlotsBuilder};
pub use stats::Stats;
pub use throttle::{Ask, Throttle, ThrottleBuilder};
pub use tollgate_core::{
    Anchor, Decision, Limit, LimitError, Period, Quota, QuotaError, Rate, Retry, Tick, Unit,
    Verdict, Wall,
};
pub use tollgate_local::{
    Clock, HeavyKey, Held, Key, KeyHash, ManualClock, Seed, Sleep, SystemClock, TableError, Timer,
    WaitError,
};

/// Rules in all detail: reading, checking and matching them.
#[cfg(feature = "rules")]
pub use tollgate_rules as rules;
#[cfg(feature = "rules")]
pub use tollgate_rules::{Mode, Outcome, Request, RuleSet};

/// Stores: who lends the budget of limits to many nodes.
#[cfg(feature = "rules")]
pub use tollgate_store as store;

/// The examples of the README run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// And so do those of the quick start.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/quick-start.md")]
struct QuickStart;

/// And so do those of the guide to rules.
#[cfg(all(doctest, feature = "rules"))]
#[doc = include_str!("../../../docs/rules/guide.md")]
struct Guide;

/// And so do those of sharing limits.
#[cfg(all(doctest, feature = "rules"))]
#[doc = include_str!("../../../docs/sharing.md")]
struct SharingLimits;

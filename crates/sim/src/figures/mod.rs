//! Measurements of fleets in good health: how few questions the store is asked ([`crowd`], [`hot`]),
//! and how close what passes comes to what may ([`accuracy`]), beside the usual way of sharing a
//! counter ([`CounterSync`], of nodes that are [`Counting`]).
//!
//! All are functions of a seed: the same figures on every machine. They take seconds in a release
//! build; each has a smaller size for those who only want to see it run.

mod accuracy;
mod counter_sync;
mod counting;
mod crowd;
mod hot;

pub use accuracy::{Accuracy, Course, Load, Sharing, accuracy};
pub use counter_sync::CounterSync;
pub use counting::Counting;
pub use crowd::{Crowd, CrowdFigures, Decisions, Limits, crowd};
pub use hot::{Hot, HotFigures, hot};

//! What a fleet goes through.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::lease::Lender;
use tollgate_core::{Anchor, Limit};

pub(crate) const MILLI: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MILLI;
const DAY: u64 = 86_400 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Bucket(&'static str),
    Police(&'static str),
    Fixed(&'static str),
    Jittered(&'static str),
    Daily(&'static str),
    Sliding(&'static str),
    Permits(u32),
}

/// All that a run depends on. Times are in nanoseconds, chances in thousandths.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) subject: Subject,
    pub(crate) nodes: u64,
    pub(crate) lasts: u64,
    /// The pause between two requests to one node, at least and at most.
    pub(crate) pause: (u64, u64),
    pub(crate) most_cost: u64,
    /// Nodes are busy and quiet in turns of this length.
    pub(crate) turns: Option<u64>,
    pub(crate) delay: (u64, u64),
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    /// How far clocks of nodes may be from the store's, in thousandths.
    pub(crate) drift: u64,
    /// A node dies about every so often, and another takes its place.
    pub(crate) deaths: Option<u64>,
    /// The store starts again about every so often, and forgets in every other case.
    pub(crate) restarts: Option<u64>,
}

impl Subject {
    pub(crate) fn limit(self) -> Option<Limit> {
        Some(match self {
            Self::Bucket(quota) => Limit::token_bucket(quota).unwrap(),
            Self::Police(quota) => Limit::leaky_police(quota).unwrap(),
            Self::Fixed(quota) => Limit::fixed_window(quota).unwrap(),
            Self::Jittered(quota) => Limit::fixed_window(quota).unwrap().jittered().unwrap(),
            Self::Daily(quota) => Limit::calendar(quota, "UTC").unwrap(),
            Self::Sliding(quota) => Limit::sliding_window(quota).unwrap(),
            Self::Permits(_) => return None,
        })
    }

    pub(crate) fn lender(self, round_trip: Duration) -> Lender {
        match self {
            Self::Permits(max) => Lender::of_permits(NonZeroU32::new(max).unwrap(), round_trip),
            _ => Lender::new(&self.limit().unwrap(), Anchor::default(), round_trip).unwrap(),
        }
    }

    pub(crate) fn capacity(self) -> u64 {
        match self {
            Self::Permits(max) => max.into(),
            _ => self.limit().unwrap().capacity().unwrap(),
        }
    }

    /// A run begins three seconds before midnight, when more than one kind of window ends.
    pub(crate) const START: u64 = 2 * DAY - 3 * SECOND;
}

impl Plan {
    /// A fleet without trouble, each node of which is asked about once in `pause`.
    pub(crate) const fn calm(seed: u64, subject: Subject, nodes: u64, pause: u64) -> Self {
        Self {
            seed,
            subject,
            nodes,
            lasts: 10 * SECOND,
            pause: (pause / 2, pause * 3 / 2),
            most_cost: 1,
            turns: None,
            delay: (MILLI, 2 * MILLI),
            lost: 0,
            repeated: 0,
            drift: 0,
            deaths: None,
            restarts: None,
        }
    }

    pub(crate) fn round_trip(&self) -> Duration {
        // The usual one: the longest would be no surprise to anybody.
        Duration::from_nanos(2 * self.delay.0)
    }
}

/// Fleets in all kinds of trouble.
pub(crate) fn troubled(subjects: &'static [Subject]) -> impl Strategy<Value = Plan> {
    let subject = prop::sample::select(subjects);
    let load = (1..=12u64, 0..6u32, 1..=6u64, prop::option::of(50 * MILLI..3 * SECOND));
    let network = (0..20 * MILLI, prop_oneof![0..5 * MILLI, 0..600 * MILLI], 0..300u64, 0..300u64);
    let fate = (
        0..=10u64,
        prop::option::of(200 * MILLI..4 * SECOND),
        prop::option::of(300 * MILLI..5 * SECOND),
    );
    (any::<u64>(), subject, load, network, fate).prop_map(|(seed, subject, load, network, fate)| {
        let pause = (100_000 * MILLI / subject.capacity().min(20_000)) >> load.1;
        Plan {
            lasts: 6 * SECOND,
            pause: (pause / 4, pause + 1),
            most_cost: load.2,
            turns: load.3,
            delay: (network.0, network.0 + network.1),
            lost: network.2,
            repeated: network.3,
            drift: fate.0,
            deaths: fate.1,
            restarts: fate.2,
            ..Plan::calm(seed, subject, load.0, pause)
        }
    })
}

//! How much a node had better hold: what it is asked for lately, and more if that was too little.

use std::time::Duration;

use crate::time::{Tick, nanos};

#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// For how long the tokens of one grant should last.
    horizon: u64,
    /// Whoever is asked less often than once in so long has no use for a lease.
    idle: u64,
    /// What was asked for since the last exchange, had or not, and in how many requests.
    asked: u64,
    requests: u64,
    /// When that was; `None` before the first.
    since: Option<Tick>,
    /// What to hold after an exchange.
    target: u64,
    /// The most that one request needed and did not find, since the last exchange.
    missed: u64,
}

impl Demand {
    /// Of leases that last for `hold`. A grant is to last for a quarter of that, so that it is
    /// neither out of date when it is used nor asked for all the time.
    pub(super) fn new(hold: Duration, idle: Duration) -> Self {
        let horizon = nanos((hold / 4).min(Duration::from_secs(1)));
        let (asked, requests, target, missed) = (0, 0, 0, 0);
        Self { horizon, idle: nanos(idle), asked, requests, since: None, target, missed }
    }

    pub(super) const fn asked(&mut self, cost: u64) {
        self.asked = self.asked.saturating_add(cost);
        self.requests += 1;
    }

    pub(super) fn missed(&mut self, cost: u64) {
        self.missed = self.missed.max(cost);
    }

    /// A request that asks the store itself is no reason to borrow.
    pub(super) const fn is_served_otherwise(&mut self) {
        self.missed = 0;
    }

    /// What one request needs that finds too little, or 0.
    pub(super) const fn unmet(&self) -> u64 {
        self.missed
    }

    pub(super) const fn target(&self) -> u64 {
        self.target
    }

    /// What to hold from now on: as much as was asked for, in proportion to time, and a quarter
    /// more; growing by no more than a doubling each time, and shrinking by half.
    pub(super) fn begin_anew(&mut self, now: Tick) {
        let passed = self.since.map_or(u128::MAX, |since| now.since(since).as_nanos());
        let is_often = u128::from(self.requests) * u128::from(self.idle) >= passed;
        let in_horizon =
            u128::from(self.asked) * u128::from(self.horizon) / passed.max(SHORTEST_LOOK);
        let lately = u64::try_from(in_horizon * 5 / 4).unwrap_or(u64::MAX);
        let most = self.target.saturating_add(self.asked).saturating_mul(2);
        self.target = if is_often { lately.clamp(self.target / 2, most) } else { 0 };
        (self.asked, self.requests, self.missed, self.since) = (0, 0, 0, Some(now));
    }
}

/// A shorter time says nothing about what is usual, in nanoseconds.
const SHORTEST_LOOK: u128 = 1_000_000;

//! How much a node had better hold: what it is asked for lately, and more if that was too little.

use std::time::Duration;

use super::terms::{LONGEST_USUAL, Terms};
use crate::time::{Tick, nanos};

#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    hold: u64,
    /// For how long the tokens of one grant should last at least.
    least_horizon: u64,
    /// What was asked for since somebody began to count, had or not, and in how many requests.
    asked: u64,
    requests: u64,
    /// When that was; `None` before the first exchange.
    since: Option<Tick>,
    /// How long it was from one request to the next until then.
    before: u64,
    /// The same up to the last exchange.
    gap: u64,
    /// What to hold after an exchange, and what to ask for more below of.
    target: u64,
    low: u64,
    /// The most that one request needed and did not find, since the last exchange.
    missed: u64,
    /// What to hold before what was held went back, because nobody came; `None` if somebody has come since.
    usual: Option<u64>,
    /// How long nobody came then, if that was short: the next time it is waited for.
    silence: u64,
}

impl Demand {
    /// Of leases on such terms. A grant is to last for a quarter of the lease, so that it is
    /// neither out of date when it is used nor asked for all the time; of short leases for up to a half.
    pub(super) fn new(terms: Terms) -> Self {
        let hold = nanos(terms.hold());
        let quarter = (terms.hold() / 4).min(LONGEST_USUAL);
        let usual = quarter.max(LEAST_USUAL).max(terms.round_trip() * 4);
        Self {
            hold,
            least_horizon: nanos(usual).min(hold / 2),
            asked: 0,
            requests: 0,
            since: None,
            before: cold(hold),
            gap: cold(hold),
            target: 0,
            low: 0,
            missed: 0,
            usual: None,
            silence: 0,
        }
    }

    /// So much was asked for, in so many requests.
    pub(super) const fn asked(&mut self, cost: u64, requests: u64) {
        self.asked = self.asked.saturating_add(cost);
        self.requests = self.requests.saturating_add(requests);
    }

    pub(super) fn missed(&mut self, cost: u64) {
        self.missed = self.missed.max(cost);
    }

    /// A request that asks the store itself is no reason to borrow.
    pub(super) const fn is_served_otherwise(&mut self) {
        self.missed = 0;
    }

    /// How long it is from one request to the next.
    pub(super) const fn gap(&self) -> Duration {
        Duration::from_nanos(self.gap)
    }

    /// What one request needs that finds too little, or 0.
    pub(super) const fn unmet(&self) -> u64 {
        self.missed
    }

    pub(super) const fn target(&self) -> u64 {
        self.target
    }

    /// With less than this it is time to ask for more.
    pub(super) const fn low(&self) -> u64 {
        self.low
    }

    /// After so long without a request, what is held is not needed: a few times as long as it
    /// usually is from one to the next, and a little longer than silences were, if it can wait for that.
    pub(super) fn idle(&self, can_wait: bool) -> Duration {
        let most = (self.hold / 4 * 3).max(LEAST_IDLE);
        let silence = if can_wait { self.silence.saturating_mul(5) / 4 } else { 0 };
        let some = self.gap.saturating_mul(8).max(silence);
        Duration::from_nanos(some.clamp(LEAST_IDLE, most))
    }

    /// For how long the tokens of one grant should last: for some requests, if they are rare, but
    /// well within the lease.
    pub(super) fn horizon(&self) -> Duration {
        let some = self.gap.saturating_mul(REQUESTS).min(self.hold / 2);
        Duration::from_nanos(some.max(self.least_horizon))
    }

    /// When a lease is renewed at the latest: later than its tokens should last.
    pub(super) fn renewal(&self) -> Duration {
        let quarter = Duration::from_nanos(self.hold / 4);
        (self.horizon() * 3 / 2).clamp(quarter, quarter * 3)
    }

    /// Somebody comes after a silence in which what was held went back. If that was soon, it was too soon: it
    /// is waited for longer from now on, and what was held is worth asking for.
    fn resume(&mut self, silence: Duration) -> u64 {
        let Some(usual) = self.usual.take() else { return 0 };
        let silence = nanos(silence);
        let is_short = silence <= SHORT_SILENCE;
        self.silence = if is_short { self.silence.max(silence) } else { 0 };
        if is_short { usual } else { 0 }
    }

    /// What to hold from now on: as much as was asked for, in proportion to time, and a quarter
    /// more; growing by no more than a doubling each time, and shrinking by half. Nothing if it is
    /// not wanted just now, or if there are not two requests in a lease.
    pub(super) fn begin_anew(&mut self, now: Tick, is_wanted: bool, silence: Duration) {
        self.missed = 0;
        if !is_wanted {
            // How long the silence was counts when it is over, and does not prolong itself.
            self.usual = self.usual.max(Some(self.target));
            (self.target, self.low) = (0, 0);
            return;
        }
        let usual = self.resume(silence);
        let passed = self.since.map_or(u64::MAX, |since| nanos(now.since(since)));
        self.gap = match self.requests {
            few @ 0..ENOUGH => passed.saturating_add(self.before) / (few + 1),
            many => passed / many,
        };
        let is_often = self.gap < cold(self.hold);
        let in_horizon = u128::from(self.asked) * u128::from(nanos(self.horizon()))
            / u128::from(self.gap.max(1))
            / u128::from(self.requests.max(1));
        let lately = u64::try_from(in_horizon * 5 / 4).unwrap_or(u64::MAX);
        let most = self.target.saturating_add(self.asked).saturating_mul(2);
        self.target = if is_often { lately.clamp(self.target / 2, most) } else { 0 };
        self.target = self.target.max(usual / 2);
        // To be in time for one or two requests would take as many exchanges as to ask for them.
        let worth_it = self.asked.saturating_mul(4) <= self.target.saturating_mul(self.requests);
        self.low = if worth_it { self.target / 3 } else { 0 };
        if self.requests >= ENOUGH || passed >= self.hold / 2 {
            self.before = self.gap.min(cold(self.hold));
            (self.asked, self.requests, self.since) = (0, 0, Some(now));
        }
    }
}

/// How long it is between requests if there are not two in a lease.
const fn cold(hold: u64) -> u64 {
    hold / 2 + 1
}

/// However short a lease is, a busy node asks again after about so long, if that is within half of it.
const LEAST_USUAL: Duration = Duration::from_millis(120);

/// The tokens of one grant should last for so many requests.
const REQUESTS: u64 = 16;

/// So many requests say how long it is between them. With fewer, what was before counts as well.
const ENOUGH: u64 = 8;

/// A node that has passed nothing for less than this is not idle, in nanoseconds.
const LEAST_IDLE: u64 = 50_000_000;

/// After a longer silence than this what was before it says nothing, in nanoseconds.
const SHORT_SILENCE: u64 = 400_000_000;

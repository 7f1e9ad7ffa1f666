//! A limit that several share: who has how much of it, as pure arithmetic.
//!
//! A share is a token bucket that somebody far away fills and empties. A bucket that is replaced
//! begins full again. So it is not enough that all shares together are no faster than the limit:
//! the tokens that they begin with must come from somewhere. The pool keeps the tokens that nobody
//! holds, and knows from reports how many are left in each share:
//!
//! ```text
//!   tokens nobody holds + tokens left in all shares + tokens spent  <=  burst + rate * time
//! ```
//!
//! What a share begins with is taken from the pool. If others have everything, the pool may owe as
//! much as one second gives, so that shares can still move; until that is back nothing changes.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::Tick;

use crate::grpc::rlqs::fill::Fill;

/// What all shares together may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Budget {
    /// Tokens per second.
    pub(super) rate: f64,
    /// Tokens at once.
    pub(super) burst: f64,
}

/// A token bucket that somebody else keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) fill: Fill,
    /// What it holds, and begins with.
    pub(super) tokens: u32,
}

/// What a holder did since the last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) allowed: u64,
    pub(super) denied: u64,
}

/// A limit that several share.
#[derive(Debug)]
pub(super) struct Pool {
    budget: Budget,
    /// What nobody holds. Below zero it is owed.
    tokens: f64,
    settled: Tick,
    holders: BTreeMap<u64, Holder>,
    /// Shares that ended because nobody reported in time.
    expired: u64,
}

#[derive(Debug)]
struct Holder {
    /// Requests per second, lately.
    demand: f64,
    reported: Tick,
    share: Option<Held>,
    /// It does not report any more, and may still spend until its share ends.
    is_gone: bool,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    share: Share,
    /// What it has at most, and what it may have spent since it reported: what comes in while it is
    /// full is lost, but only its next report says whether it was full.
    left: f64,
    until: Tick,
}

impl Held {
    /// What it has at most, now.
    fn level(&self) -> f64 {
        self.left.min(self.share.tokens.into())
    }
}

impl Pool {
    pub(super) const fn new(budget: Budget, now: Tick) -> Self {
        let holders = BTreeMap::new();
        Self { budget, tokens: budget.burst, settled: now, holders, expired: 0 }
    }

    pub(super) const fn budget(&self) -> Budget {
        self.budget
    }

    /// How many have, or want, a share.
    pub(super) fn len(&self) -> usize {
        self.holders.len()
    }

    /// How many shares have ended, since this was last asked, because nobody reported in time.
    pub(super) const fn take_expired(&mut self) -> u64 {
        std::mem::replace(&mut self.expired, 0)
    }

    /// Whether it is as good as a new one.
    pub(super) fn is_at_rest(&self) -> bool {
        self.holders.is_empty() && self.tokens >= self.budget.burst
    }

    /// Changes the limit. What is spent stays spent.
    pub(super) fn change(&mut self, budget: Budget, now: Tick) {
        self.settle(now);
        self.tokens += budget.burst - self.budget.burst;
        self.budget = budget;
        self.settle(now);
    }

    /// Takes a report; the first one makes a holder.
    pub(super) fn report(&mut self, who: u64, usage: Usage, now: Tick) {
        self.settle(now);
        let requests = usage.allowed.saturating_add(usage.denied) as f64;
        let rate = |since: Duration| requests / since.max(SECOND).as_secs_f64();
        let holder = self.holders.entry(who).or_insert_with(|| Holder {
            demand: rate(SECOND),
            reported: now,
            share: None,
            is_gone: false,
        });
        holder.demand = f64::midpoint(holder.demand, rate(now.since(holder.reported)));
        holder.reported = now;
        // What it could not hold comes back. What it has allowed beyond its share, or without one,
        // nobody else can have any more.
        let beyond = match &mut holder.share {
            Some(held) => {
                let after = held.left - usage.allowed as f64;
                held.left = after.clamp(0.0, held.share.tokens.into());
                after - held.left
            }
            None => -(usage.allowed as f64),
        };
        let most = self.budget.burst + self.most_owed();
        self.tokens = (self.tokens + beyond).max(-most);
        self.settle(now);
    }

    /// How fast the share of a holder should be, in tokens per second: in proportion to what it
    /// wants, as far as others have not got it.
    pub(super) fn rate_for(&self, who: u64) -> f64 {
        let least = self.budget.rate * LEAST_WEIGHT;
        let present = self.holders.values().filter(|holder| !holder.is_gone);
        let all: f64 = present.map(|holder| holder.demand + least).sum();
        let Some(holder) = self.holders.get(&who) else { return 0.0 };
        let others: f64 = self.others(who).map(|held| held.share.fill.rate()).sum();
        let is_alone = self.holders.len() == 1;
        // What is held back pays for changes.
        let all_rate = self.budget.rate * if is_alone { 1.0 } else { SHARED_OUT };
        let fair = all_rate * (holder.demand + least) / all;
        fair.min(all_rate - others).max(0.0)
    }

    /// How many tokens a new share of this rate may begin with; `None` if there are none.
    pub(super) fn tokens_for(&self, who: u64, rate: f64) -> Option<u32> {
        let own = self.holders.get(&who).and_then(|holder| holder.share);
        let have = self.tokens + own.map_or(0.0, |held| held.left);
        let most = (self.budget.burst * (rate / self.budget.rate).min(1.0)).floor().max(1.0);
        let least = rate.clamp(1.0, most);
        let tokens = have.clamp(least, most).floor().min(f64::from(u32::MAX));
        // At least one, and no more than fit.
        (have - tokens >= -self.most_owed()).then_some(tokens as u32)
    }

    /// Gives a holder this share until then, in the place of what it had.
    pub(super) fn give(&mut self, who: u64, share: Share, until: Tick) {
        let Some(holder) = self.holders.get_mut(&who) else { return };
        let left = holder.share.map_or(0.0, |held| held.left);
        let tokens = f64::from(share.tokens);
        holder.share = Some(Held { share, left: tokens, until });
        self.tokens += left - tokens;
    }

    /// Lets a holder keep what it has until then.
    pub(super) fn renew(&mut self, who: u64, until: Tick) {
        if let Some(held) = self.holders.get_mut(&who).and_then(|holder| holder.share.as_mut()) {
            held.until = until;
        }
    }

    /// Takes back what a holder has, who knows that.
    pub(super) fn take_back(&mut self, who: u64) {
        if let Some(held) = self.holders.get_mut(&who).and_then(|holder| holder.share.take()) {
            self.tokens += held.left;
        }
    }

    /// A holder wants nothing any more, and knows that it has nothing.
    pub(super) fn remove(&mut self, who: u64) {
        self.take_back(who);
        self.holders.remove(&who);
    }

    /// A holder does not report any more. It may spend until its share ends.
    pub(super) fn leave(&mut self, who: u64) {
        if let Some(holder) = self.holders.get_mut(&who) {
            holder.is_gone = true;
        }
    }

    /// Brings everything to this time: shares fill and end.
    pub(super) fn settle(&mut self, now: Tick) {
        let time = now.since(self.settled).as_secs_f64();
        self.settled = self.settled.max(now);
        let (mut filled, mut left) = (0.0, 0.0);
        self.holders.retain(|_, holder| {
            if let Some(held) = &mut holder.share {
                let fill = held.share.fill.rate() * time;
                held.left += fill;
                filled += fill;
                match now >= held.until {
                    // All that it had may be spent: nobody will tell.
                    true => {
                        self.expired += 1;
                        (holder.share, holder.demand) = (None, 0.0);
                    }
                    false => left += held.level(),
                }
            }
            let is_heard_of = !holder.is_gone && now.since(holder.reported) < STALE;
            holder.share.is_some() || is_heard_of
        });
        self.tokens += self.budget.rate * time - filled;
        self.tokens = self.tokens.min(self.budget.burst - left);
    }

    fn others(&self, who: u64) -> impl Iterator<Item = &Held> {
        let others = self.holders.iter().filter(move |(other, _)| **other != who);
        others.filter_map(|(_, holder)| holder.share.as_ref())
    }

    /// What may be owed: as much as one second gives.
    const fn most_owed(&self) -> f64 {
        self.budget.rate.max(1.0)
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// What somebody gets who wants nothing, as a part of the limit: the next request should not find
/// nothing at all.
const LEAST_WEIGHT: f64 = 0.05;

/// How much of a limit is given out if there are several.
const SHARED_OUT: f64 = 15.0 / 16.0;

/// Whoever has no share and does not report for so long is forgotten.
const STALE: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests;

//! The home of sliding logs, whose states grow with the limit: bounded all the same.
//!
//! Logs are locked, a shard at a time: their state is many words, and they guard logins and
//! payments, not every request. Where the memory is used up, keys that have a log go on in the
//! entries they have, and new keys share one log per shard. Both count too high, never too low.

use tollgate_core::{Decision, Log, LogRule, Tick};

use crate::counter::Refresh;
use crate::counters::Pressure;
use crate::key::KeyHash;
use crate::shards::{ByHash, Shards};

pub(crate) struct Logs {
    rule: LogRule,
    salt: u64,
    shards: Shards<Shard>,
}

#[derive(Default)]
struct Shard {
    logs: ByHash<Log>,
    /// For keys that found no room.
    common: Log,
    /// Entries of all logs but the common one, and one for each log.
    used: usize,
    max: usize,
    /// When it is worth looking for logs at rest again.
    next_sweep: Tick,
    overflowed: u64,
    promoted: u64,
}

const SHARDS: usize = 64;

impl Logs {
    /// Logs of at most `entries` requests in all.
    pub(crate) fn new(rule: LogRule, entries: usize, salt: u64) -> Self {
        let max = (entries / SHARDS).max(Self::MIN_ENTRIES);
        let shards = Shards::new(SHARDS, || Shard { max, ..Shard::default() });
        Self { rule, salt, shards }
    }

    const MIN_ENTRIES: usize = 16;

    /// Moves `now` on to what it has seen, if the key has no log.
    pub(crate) fn check(
        &self,
        key: KeyHash,
        cost: u64,
        now: &mut Tick,
        refresh: Refresh<'_>,
    ) -> Decision {
        let key = key.salted(self.salt);
        let mut shard = self.shards.of(key);
        // The log may have been dropped at rest since the caller looked at its clock: without one,
        // the time is taken while nobody can drop any.
        if !shard.logs.contains_key(&key) {
            *now = refresh().max(*now);
        }
        shard.check(self.rule, key, cost, *now)
    }

    pub(crate) fn peek(&self, key: KeyHash, cost: u64, now: Tick) -> Decision {
        let mut decision = None;
        self.change(key, |log| decision = Some(log.peek(self.rule, now, cost)));
        decision.unwrap_or_else(|| {
            self.shards.of(key.salted(self.salt)).common.peek(self.rule, now, cost)
        })
    }

    pub(crate) fn refund(&self, key: KeyHash, cost: u64) {
        self.change(key, |log| log.refund(cost));
    }

    pub(crate) fn undo(&self, key: KeyHash, cost: u64, then: Tick) {
        let found = self.change(key, |log| log.undo(then, cost));
        if !found {
            // Requests of one moment are alike, so the common log can give one back.
            self.shards.of(key.salted(self.salt)).common.undo(then, cost);
        }
    }

    pub(crate) fn reset(&self, key: KeyHash, now: Tick) -> bool {
        let found = self.change(key, |log| *log = Log::default());
        found || self.shards.of(key.salted(self.salt)).common.is_at_rest(self.rule, now)
    }

    pub(crate) fn pressure(&self) -> Pressure {
        let mut pressure = Pressure::default();
        for shard in self.shards.iter() {
            pressure.overflowed += shard.overflowed;
            pressure.promoted += shard.promoted;
            pressure.memory += shard.used * size_of::<(u64, u64)>();
        }
        pressure
    }

    /// Changes the log of a key in a way that frees memory, if at all. `false` if it has none.
    fn change(&self, key: KeyHash, change: impl FnOnce(&mut Log)) -> bool {
        let key = key.salted(self.salt);
        let mut shard = self.shards.of(key);
        let Some(log) = shard.logs.get_mut(&key) else { return false };
        let before = log.entries();
        change(log);
        let freed = before - log.entries();
        shard.used -= freed;
        true
    }
}

impl Shard {
    fn check(&mut self, rule: LogRule, key: KeyHash, cost: u64, now: Tick) -> Decision {
        if self.used >= self.max && now >= self.next_sweep {
            self.sweep(rule, now);
        }
        let full = self.used >= self.max;
        if let Some(log) = self.logs.get_mut(&key) {
            let before = log.entries();
            let decision = match full {
                true => log.step_in_place(rule, now, cost),
                false => log.step(rule, now, cost),
            };
            self.used = self.used + log.entries() - before;
            return decision;
        }
        if full {
            self.overflowed += 1;
            return self.common.step_in_place(rule, now, cost);
        }
        // A key that shared the common log takes along what that knows.
        let mut log = Log::default();
        if !self.common.is_at_rest(rule, now) {
            log = self.common.clone();
            self.promoted += 1;
        }
        let decision = log.step(rule, now, cost);
        if log.entries() > 0 {
            self.used += log.entries() + 1;
            self.logs.insert(key, log);
        }
        decision
    }

    /// Drops the logs at rest. Where that frees little, the next look waits, so that a shard full
    /// of live logs is not searched for every request.
    fn sweep(&mut self, rule: LogRule, now: Tick) {
        let Self { logs, used, .. } = self;
        logs.retain(|_, log| {
            let keep = !log.is_at_rest(rule, now);
            if !keep {
                *used -= log.entries() + 1;
            }
            keep
        });
        self.next_sweep = match self.used > self.max / 2 {
            true => now.after(rule.window() / 16),
            false => now,
        };
    }
}

//! The home of sliding logs, whose states grow with the limit: bounded all the same.
//!
//! Logs are locked, a shard at a time: their state is many words, and they guard logins and
//! payments, not every request. All shards share one allowance of bytes. Where it is used up, keys
//! that have a log go on in the entries they have, and new keys share one log per shard. Both
//! count too high, never too low.
//!
//! A key that has no log begins with what its [past](crate::past) tells: with the log it had, or as
//! if it had spent at one moment what it had spent in another way. That is asked for while the shard
//! is locked, so that nobody can reset the key in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_core::{Decision, Log, LogRule, Tick};

use crate::counter::Refresh;
use crate::counters::Pressure;
use crate::key::{KeyHash, Salt, Salted};
use crate::past::Before;
use crate::shards::Shards;
use crate::shelf::{ALLOCATION, At, Bytes, Shelf, ring_bytes};

pub(crate) struct Logs {
    rule: LogRule,
    salt: Salt,
    shards: Shards<Shard>,
    bytes: Arc<Bytes>,
    /// The shard that is searched next for logs at rest when memory is short.
    next: AtomicUsize,
    /// What keys had spent before the limit was this one.
    before: Option<Before>,
}

struct Shard {
    logs: Shelf,
    /// For keys that found no room. It never has more than one entry, whose memory it has from
    /// the beginning.
    common: Log,
    bytes: Arc<Bytes>,
    /// When a log was dropped last.
    dropped: Option<Tick>,
    overflowed: u64,
    promoted: u64,
}

const SHARDS: usize = 64;

impl Logs {
    /// The logs of one of so many limits beside a table of so many bytes.
    pub(crate) fn new(
        rule: LogRule,
        table: usize,
        among: usize,
        salt: Salt,
        before: Option<Before>,
    ) -> Self {
        let among = among.max(1);
        let shards = (SHARDS / among).max(1);
        let least = (shards * Self::MIN_BYTES / SHARDS).max(Self::MIN_BYTES_OF_MANY);
        let max = (table.saturating_mul(Self::PER_TABLE_BYTE) / among).max(least);
        let bytes = Arc::new(Bytes::new(Self::fixed_bytes(shards), max));
        let shards = Shards::new(shards, || Shard::new(&bytes));
        Self { rule, salt, shards, bytes, next: AtomicUsize::new(0), before }
    }

    /// The most memory that logs take, for each byte of the table. A key with few requests takes
    /// 120 to 200 bytes here and 23.5 in a table: this is room for about half of the keys that the
    /// table was planned for, if all of them have logs and are live at once.
    const PER_TABLE_BYTE: usize = 4;

    /// So much is allowed beside the smallest table.
    const MIN_BYTES: usize = 64 << 10;

    /// And so much to one of many limits.
    const MIN_BYTES_OF_MANY: usize = 4 << 10;

    /// What logs take before there is any: shards, with the common log of each, and a copy of
    /// that for the key that takes it along.
    const fn fixed_bytes(shards: usize) -> usize {
        size_of::<Self>()
            + Shards::<Shard>::bytes(shards)
            + shards * 2 * ring_bytes(1)
            + Bytes::SIZE
            + 3 * ALLOCATION
    }

    /// Moves `now` on to what it has seen, if the key has no log.
    pub(crate) fn check(
        &self,
        key: KeyHash,
        cost: u64,
        now: &mut Tick,
        refresh: Refresh<'_>,
    ) -> Decision {
        let Salted { key, hash } = Salted::new(key, self.salt);
        if self.bytes.are_short() {
            self.search_next(*now);
        }
        let mut shard = self.shards.of(hash);
        if shard.logs.find(hash).is_some() {
            return shard.check(self.rule, hash, cost, *now, Log::default);
        }
        // The log may have been dropped at rest since the caller looked at its clock: without one,
        // the time is taken while nobody can drop any.
        *now = refresh().max(*now);
        let decision = shard.check(self.rule, hash, cost, *now, || self.base(key, *now));
        drop(shard);
        if let Some(before) = &self.before {
            before.end(*now);
        }
        decision
    }

    pub(crate) fn peek(&self, key: KeyHash, cost: u64, now: Tick) -> Decision {
        let Salted { key, hash } = Salted::new(key, self.salt);
        self.shards.of(hash).peek(self.rule, hash, cost, now, || self.base(key, now))
    }

    pub(crate) fn refund(&self, key: KeyHash, cost: u64, now: Tick) {
        let Salted { key, hash } = Salted::new(key, self.salt);
        let mut shard = self.shards.of(hash);
        if self.before.is_some() && shard.logs.find(hash).is_none() {
            // A decision that costs nothing gives it a log with what it spent in the past.
            shard.check_new(self.rule, hash, 0, now, self.base(key, now));
        }
        if let Some((at, log)) = shard.find(hash) {
            log.refund(cost);
            shard.logs.trim(at);
        }
    }

    /// What is known of a key at `at`.
    pub(crate) fn log_of(&self, key: KeyHash, at: Tick) -> Log {
        let Salted { key, hash } = Salted::new(key, self.salt);
        let mut shard = self.shards.of(hash);
        let mut log = match shard.find(hash) {
            Some((_, log)) => log.clone(),
            None => shard.known(self.rule, at, self.base(key, at)),
        };
        log.forget(self.rule, at);
        log
    }

    pub(crate) fn rested_by(&self, now: Tick) -> Tick {
        now.after(self.rule.window())
    }

    pub(crate) const fn before(&self) -> Option<&Before> {
        self.before.as_ref()
    }

    /// The log with which a key begins that has none: what it spent in the past, if that matters.
    fn base(&self, key: KeyHash, now: Tick) -> Log {
        let base = self.before.as_ref().and_then(|before| {
            before.ask(now, |past| match past.log(key, before.since) {
                Some(mut log) => {
                    log.rebase(self.rule, before.since);
                    log
                }
                None => {
                    let spent = past.spent(key, before.since).min(self.rule.limit());
                    let mut log = Log::default();
                    log.step(self.rule, before.since, spent);
                    log
                }
            })
        });
        base.filter(|log| !log.is_at_rest(self.rule, now)).unwrap_or_default()
    }

    pub(crate) fn undo(&self, key: KeyHash, cost: u64, then: Tick) {
        let key = key.salted(self.salt);
        let mut shard = self.shards.of(key);
        if let Some((at, log)) = shard.find(key) {
            log.undo(then, cost);
            shard.logs.trim(at);
        } else if shard.dropped.is_none_or(|dropped| then > dropped) {
            // Requests of one moment are alike, so the common log can give one back. A request in
            // a log of its own that was dropped since would take it from somebody else.
            shard.common.undo(then, cost);
        }
    }

    pub(crate) fn reset(&self, key: KeyHash, now: Tick) -> bool {
        let Salted { key, hash } = Salted::new(key, self.salt);
        let mut shard = self.shards.of(hash);
        let forgotten = self.before.as_ref().is_none_or(|before| before.forget(key, now));
        match shard.logs.find(hash) {
            // It stays, to say that the key has spent nothing of what the common log counts.
            Some(at) => shard.logs.clear(at),
            None => return forgotten && shard.common.is_at_rest(self.rule, now),
        }
        forgotten
    }

    pub(crate) fn pressure(&self) -> Pressure {
        let mut pressure = Pressure { memory: self.bytes.held(), ..Pressure::default() };
        for shard in self.shards.iter() {
            pressure.overflowed += shard.overflowed;
            pressure.promoted += shard.promoted;
        }
        pressure
    }

    /// Looks for logs at rest in one shard after the other: memory that is short here may lie
    /// idle in a shard that nobody asks for.
    fn search_next(&self, now: Tick) {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(mut shard) = self.shards.try_nth(next) {
            shard.drop_at_rest(self.rule, now, Shard::MANY_PLACES);
        }
    }
}

impl Shard {
    fn new(bytes: &Arc<Bytes>) -> Self {
        let mut common = Log::default();
        common.set_capacity(1);
        let logs = Shelf::new(Arc::clone(bytes));
        let bytes = Arc::clone(bytes);
        Self { logs, common, bytes, dropped: None, overflowed: 0, promoted: 0 }
    }

    /// A key that is new begins with `base`.
    fn check(
        &mut self,
        rule: LogRule,
        key: KeyHash,
        cost: u64,
        now: Tick,
        base: impl FnOnce() -> Log,
    ) -> Decision {
        let is_new = self.logs.find(key).is_none();
        let places = if is_new { Self::MANY_PLACES } else { Self::FEW_PLACES };
        self.drop_at_rest(rule, now, places);
        let Some((at, log)) = self.find(key) else {
            return self.check_new(rule, key, cost, now, base());
        };
        log.forget(rule, now);
        let has_room = self.logs.make_room(at, longest(rule));
        let decision = match self.logs.log(at) {
            Some(log) if has_room => log.step(rule, now, cost),
            Some(log) => log.step_in_place(rule, now, cost),
            None => return self.common.step_in_place(rule, now, cost),
        };
        self.tidy(at, rule, now);
        decision
    }

    fn check_new(
        &mut self,
        rule: LogRule,
        key: KeyHash,
        cost: u64,
        now: Tick,
        base: Log,
    ) -> Decision {
        let shares = !self.common.is_at_rest(rule, now);
        let has_past = base.entries() > 0;
        let mut log = self.known(rule, now, base);
        let decision = log.peek(rule, now, cost);
        let is_fresh = log.entries() == 0;
        if is_fresh && (cost == 0 || !decision.is_allowed()) {
            return decision;
        }
        let entries = (log.entries() + 1).min(longest(rule));
        let from_past = has_past.then(|| log.clone());
        let at = self.logs.insert(key, log, entries);
        let Some(log) = at.and_then(|at| self.logs.log(at)) else {
            self.overflowed += 1;
            if let Some(log) = from_past {
                self.common.forget(rule, now);
                self.common.join_in_place(&log);
            }
            return self.common.step_in_place(rule, now, cost);
        };
        self.promoted += u64::from(shares);
        log.step(rule, now, cost)
    }

    fn peek(
        &mut self,
        rule: LogRule,
        key: KeyHash,
        cost: u64,
        now: Tick,
        base: impl FnOnce() -> Log,
    ) -> Decision {
        let Some((at, log)) = self.find(key) else {
            return self.known(rule, now, base()).peek(rule, now, cost);
        };
        let decision = log.peek(rule, now, cost);
        self.tidy(at, rule, now);
        decision
    }

    fn find(&mut self, key: KeyHash) -> Option<(At, &mut Log)> {
        let at = self.logs.find(key)?;
        self.logs.log(at).map(|log| (at, log))
    }

    /// What is known about a key that has no log: that it has spent nothing, or, if it may have
    /// shared the common log, no more than that; and in the past, what `base` says.
    fn known(&self, rule: LogRule, now: Tick, mut base: Log) -> Log {
        if self.common.is_at_rest(rule, now) {
            return base;
        }
        if base.entries() == 0 {
            return self.common.clone();
        }
        base.forget(rule, now);
        base.join_in_place(&self.common);
        base
    }

    /// Gives back the memory that a log has and does not need.
    fn tidy(&mut self, at: At, rule: LogRule, now: Tick) {
        let is_at_rest = self.logs.log(at).is_some_and(|log| log.is_at_rest(rule, now));
        if is_at_rest && self.common.is_at_rest(rule, now) {
            self.logs.drop_log(at);
            self.dropped = self.dropped.max(Some(now));
        } else {
            self.logs.trim(at);
        }
    }

    /// Drops the logs at rest at some places.
    fn drop_at_rest(&mut self, rule: LogRule, now: Tick, places: usize) {
        // While the common log counts, one at rest is worth its memory, if there is enough:
        // without it, its key would be held to what the common log says.
        if (self.common.is_at_rest(rule, now) || self.bytes.are_short())
            && self.logs.drop_at_rest(rule, now, places) > 0
        {
            self.dropped = self.dropped.max(Some(now));
        }
    }

    /// How many places are searched for logs at rest by a decision on a key that has a log.
    const FEW_PLACES: usize = 2;

    /// And for each log that is added. Of a shelf to which keys come once and not again, one place
    /// in so many is taken by a log at rest, few enough for the shelf to become smaller.
    const MANY_PLACES: usize = 16;
}

/// The most entries a log can have: each counts one at least.
fn longest(rule: LogRule) -> usize {
    usize::try_from(rule.limit()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;
    use std::time::Duration;

    use tollgate_core::Limit;

    use super::*;

    impl Logs {
        /// The memory that is held, found by looking at all of it.
        fn measured(&self) -> usize {
            let shards = self.shards.iter().map(|shard| {
                size_of::<Mutex<Shard>>() + shard.common.capacity() * 16 + shard.logs.measured()
            });
            size_of::<Self>() + shards.sum::<usize>()
        }
    }

    fn logs(quota: &str, table: usize) -> Logs {
        let rule = Limit::sliding_log(quota).unwrap().log_rule().unwrap();
        Logs::new(rule, table, 1, Salt::new(KeyHash(7)), None)
    }

    fn spend(logs: &Logs, key: u64, now: Tick) {
        logs.check(KeyHash(key), 1, &mut { now }, &|| now);
    }

    /// What is reported is between what is held and what may be held, and not far above the former.
    fn expect_honest(logs: &Logs, max: usize) {
        let (reported, measured) = (logs.pressure().memory, logs.measured());
        assert!((measured..=max).contains(&reported), "{reported} of {max}, really {measured}");
        let notes = reported - measured;
        assert!(notes <= 7_000 + measured / 4, "{reported} bytes, really {measured}");
    }

    #[test]
    fn memory_is_what_is_held_by_many_keys_and_by_few() {
        let max = 4 * 50_000;
        for (quota, keys) in [("2/s", 10_000), ("50k/s", 3), ("100/s", 700)] {
            let logs = logs(quota, 50_000);
            for request in 0..60_000u64 {
                let now = Tick::ZERO.after(Duration::from_micros(request * 20));
                spend(&logs, request % keys, now);
                if request % 64 == 0 {
                    expect_honest(&logs, max);
                }
            }
        }
    }

    #[test]
    fn memory_is_what_is_held_when_threads_are_done() {
        let logs = logs("20/s", 50_000);
        thread::scope(|scope| {
            for thread in 0..4u64 {
                let logs = &logs;
                scope.spawn(move || {
                    for request in 0..20_000u64 {
                        let now = Tick::ZERO.after(Duration::from_micros(request * 100));
                        spend(logs, (request * (thread + 1)) % 3_000, now);
                        assert!(logs.bytes.held() <= 4 * 50_000);
                    }
                });
            }
        });
        expect_honest(&logs, 4 * 50_000);
    }

    #[test]
    fn the_smallest_table_leaves_room_for_some_logs() {
        let logs = logs("2/s", 1);
        expect_honest(&logs, Logs::MIN_BYTES / 2);
        for key in 0..1_000 {
            spend(&logs, key, Tick::ZERO);
        }
        expect_honest(&logs, Logs::MIN_BYTES);
        assert!(logs.pressure().overflowed < 800, "{:?}", logs.pressure());
    }
}

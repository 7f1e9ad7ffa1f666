//! Sliding window log: every request of the last window is remembered, so the count is exact.

use std::collections::VecDeque;
use std::time::Duration;

use crate::decision::{Decision, Room};
use crate::time::Tick;

/// What a [`Log`] is held to: so many in any window of this length. See
/// [`Limit::log_rule`](crate::Limit::log_rule).
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::Limit;
/// let rule = Limit::sliding_log("10/15min")?.log_rule().expect("it is a log");
/// assert_eq!((rule.limit(), rule.window()), (10, Duration::from_secs(900)));
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRule {
    pub(crate) limit: u64,
    pub(crate) window: u64,
}

impl LogRule {
    /// The longest log.
    pub(crate) const MAX_LIMIT: u64 = 100_000;

    /// How many requests any window may hold.
    ///
    /// ```
    /// # use tollgate_core::Limit;
    /// assert_eq!(Limit::sliding_log("3/s")?.log_rule().map(|rule| rule.limit()), Some(3));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The length of a window.
    ///
    /// ```
    /// # use tollgate_core::Limit;
    /// # use std::time::Duration;
    /// let rule = Limit::sliding_log("3/s")?.log_rule().expect("it is a log");
    /// assert_eq!(rule.window(), Duration::from_secs(1));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn window(&self) -> Duration {
        Duration::from_nanos(self.window)
    }
}

/// The requests of one key within the last window, at most as many as the limit.
///
/// A request at `t` counts at every moment from `t` up to, and not including, `t + window`.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Limit, Log, Tick};
///
/// let rule = Limit::sliding_log("2/s")?.log_rule().expect("it is a log");
/// let at = |millis| Tick::ZERO.after(Duration::from_millis(millis));
/// let mut log = Log::default();
/// assert!(log.step(rule, at(0), 1).is_allowed());
/// assert!(log.step(rule, at(900), 1).is_allowed());
/// assert_eq!(log.step(rule, at(950), 1).retry_after(), Some(Duration::from_millis(50)));
/// assert!(log.step(rule, at(1000), 1).is_allowed());
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Oldest first; requests of one moment share an entry.
    entries: VecDeque<Entry>,
    spent: u64,
    /// The latest moment the log has seen. Time that runs backwards stands still here instead: what
    /// was forgotten since is not there to be counted any more.
    latest: u64,
    /// No request from this moment on has been forgotten.
    kept_from: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    cost: u64,
}

impl Log {
    /// Spends `cost` if no window comes to hold more than the limit.
    ///
    /// ```
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("5/s")?.log_rule().expect("it is a log");
    /// assert_eq!(Log::default().step(rule, Tick::ZERO, 2).remaining(), 3);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn step(&mut self, rule: LogRule, now: Tick, cost: u64) -> Decision {
        self.forget(rule, now);
        if cost <= rule.limit.saturating_sub(self.spent) {
            self.record(cost);
            return Decision::allowed(self.room(rule, now));
        }
        self.denied(rule, now, cost)
    }

    /// As [`step`](Self::step), in the memory the log has already: what is spent joins the
    /// latest request, which then counts from now on. That is too high, never too low.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("5/s")?.log_rule().expect("it is a log");
    /// let mut log = Log::default();
    /// log.step(rule, Tick::ZERO, 1);
    /// log.step_in_place(rule, Tick::ZERO.after(Duration::from_millis(600)), 1);
    /// assert_eq!(log.entries(), 1);
    /// let later = Tick::ZERO.after(Duration::from_millis(1500));
    /// assert_eq!(log.peek(rule, later, 1).remaining(), 3, "both count until 1600 ms");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn step_in_place(&mut self, rule: LogRule, now: Tick, cost: u64) -> Decision {
        self.forget(rule, now);
        if let Some(last) = self.entries.back_mut()
            && (1..=rule.limit.saturating_sub(self.spent)).contains(&cost)
        {
            last.at = self.latest;
        }
        self.step(rule, now, cost)
    }

    /// What [`step`](Self::step) would answer, without spending.
    ///
    /// ```
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("5/s")?.log_rule().expect("it is a log");
    /// let mut log = Log::default();
    /// assert_eq!(log.peek(rule, Tick::ZERO, 1).remaining(), 5);
    /// assert!(log.is_at_rest(rule, Tick::ZERO));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn peek(&mut self, rule: LogRule, now: Tick, cost: u64) -> Decision {
        self.forget(rule, now);
        match cost <= rule.limit.saturating_sub(self.spent) {
            true => Decision::allowed(self.room(rule, now)),
            false => self.denied(rule, now, cost),
        }
    }

    /// Gives back `cost`, the latest requests first.
    ///
    /// ```
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("5/s")?.log_rule().expect("it is a log");
    /// let mut log = Log::default();
    /// log.step(rule, Tick::ZERO, 4);
    /// log.refund(3);
    /// assert_eq!(log.peek(rule, Tick::ZERO, 1).remaining(), 4);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn refund(&mut self, cost: u64) {
        let mut left = cost;
        while let Some(last) = self.entries.back_mut() {
            let back = left.min(last.cost);
            last.cost -= back;
            self.spent -= back;
            left -= back;
            if last.cost > 0 || self.entries.pop_back().is_none() || left == 0 {
                break;
            }
        }
    }

    /// Takes back `cost` that was spent at `then`, as if it had never been. Nothing happens if it
    /// may not be in the log any more.
    ///
    /// ```
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("5/s")?.log_rule().expect("it is a log");
    /// let mut log = Log::default();
    /// log.step(rule, Tick::ZERO, 4);
    /// log.undo(Tick::ZERO, 4);
    /// assert!(log.is_at_rest(rule, Tick::ZERO));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn undo(&mut self, then: Tick, cost: u64) {
        let then = then.as_nanos();
        if then < self.kept_from {
            return;
        }
        // It was counted at `then`, or later if the log had seen a later time. In that case this
        // may take from somebody else who is forgotten sooner, which favours nobody.
        let first = self.entries.partition_point(|entry| entry.at < then);
        let Some(entry) = self.entries.get_mut(first) else { return };
        let back = cost.min(entry.cost);
        entry.cost -= back;
        self.spent -= back;
        if entry.cost == 0 {
            self.entries.remove(first);
        }
    }

    /// Holds the log to another rule from `now` on: of what it knows it keeps the latest, as much as
    /// that rule allows.
    ///
    /// ```
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let (rule, less) = (Limit::sliding_log("9/s")?.log_rule(), Limit::sliding_log("5/s")?.log_rule());
    /// let (rule, less) = (rule.expect("it is a log"), less.expect("it is a log"));
    /// let mut log = Log::default();
    /// log.step(rule, Tick::ZERO, 7);
    /// log.rebase(less, Tick::ZERO);
    /// assert_eq!(log.peek(less, Tick::ZERO, 0).remaining(), 0);
    /// assert_eq!(log.peek(rule, Tick::ZERO, 0).remaining(), 4, "five are left");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn rebase(&mut self, rule: LogRule, now: Tick) {
        self.forget(rule, now);
        while let Some(first) = self.entries.front_mut()
            && self.spent > rule.limit
        {
            let excess = (self.spent - rule.limit).min(first.cost);
            // Also where a part of it stays: nobody can tell which.
            self.kept_from = first.at + 1;
            self.spent -= excess;
            first.cost -= excess;
            if first.cost == 0 {
                self.entries.pop_front();
            }
        }
    }

    /// Makes the log, in the memory of one entry, as strict as `other` is as well: for a log that
    /// several keys share, one of which brings what it has spent elsewhere.
    ///
    /// ```
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("9/s")?.log_rule().expect("it is a log");
    /// let (mut common, mut own) = (Log::default(), Log::default());
    /// common.step(rule, Tick::ZERO, 2);
    /// own.step(rule, Tick::ZERO, 3);
    /// common.join_in_place(&own);
    /// assert_eq!(common.peek(rule, Tick::ZERO, 0).remaining(), 6);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn join_in_place(&mut self, other: &Self) {
        let Some(last) = other.entries.back() else { return };
        let at = self.entries.back().map_or(last.at, |own| own.at.max(last.at));
        self.latest = self.latest.max(other.latest);
        self.spent = self.spent.max(other.spent);
        self.entries.clear();
        self.entries.push_back(Entry { at, cost: self.spent });
        self.kept_from = at + 1;
    }

    /// Whether the log grants no less than an empty one would.
    ///
    /// ```
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("5/s")?.log_rule().expect("it is a log");
    /// assert!(Log::default().is_at_rest(rule, Tick::ZERO));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn is_at_rest(&self, rule: LogRule, now: Tick) -> bool {
        let now = now.as_nanos();
        let gone = self.entries.back().is_none_or(|last| last.at + rule.window <= now);
        gone && self.latest <= now
    }

    /// The latest moment the log has seen: when the last request was counted, if it was.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("5/s")?.log_rule().expect("it is a log");
    /// let (mut log, later) = (Log::default(), Tick::ZERO.after(Duration::from_secs(1)));
    /// log.step(rule, later, 1);
    /// log.step(rule, Tick::ZERO, 1);
    /// assert_eq!(log.latest(), later, "time does not run backwards");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn latest(&self) -> Tick {
        Tick::from_nanos(self.latest)
    }

    /// How many entries the log holds: requests of one moment share one.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Log::default().entries(), 0);
    /// ```
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// How many entries there is memory for, at [`ENTRY_BYTES`](Self::ENTRY_BYTES) each. A log
    /// that has as many takes more at the next request, and gives none back by itself.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Log::default().capacity(), 0);
    /// ```
    pub fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// The memory of one entry.
    ///
    /// ```
    /// assert_eq!(tollgate_core::Log::ENTRY_BYTES, 16);
    /// ```
    pub const ENTRY_BYTES: usize = size_of::<Entry>();

    /// Takes or gives back memory, such that there is some for `entries` entries, or for those
    /// that are there if they are more.
    ///
    /// ```
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("5/s")?.log_rule().expect("it is a log");
    /// let mut log = Log::default();
    /// log.set_capacity(3);
    /// log.step(rule, Tick::ZERO, 1);
    /// assert_eq!(log.capacity(), 3);
    /// log.set_capacity(0);
    /// assert_eq!(log.capacity(), 1);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn set_capacity(&mut self, entries: usize) {
        self.entries.shrink_to(entries);
        self.entries.reserve_exact(entries.saturating_sub(self.entries.len()));
    }

    /// Forgets the requests that are over at `now`. All that asks the log for a decision does so
    /// first.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate_core::{Limit, Log, Tick};
    /// let rule = Limit::sliding_log("5/s")?.log_rule().expect("it is a log");
    /// let mut log = Log::default();
    /// log.step(rule, Tick::ZERO, 1);
    /// log.forget(rule, Tick::ZERO.after(Duration::from_secs(1)));
    /// assert_eq!(log.entries(), 0);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn forget(&mut self, rule: LogRule, now: Tick) {
        self.latest = self.latest.max(now.as_nanos());
        while let Some(first) = self.entries.front() {
            if first.at + rule.window > self.latest {
                break;
            }
            self.kept_from = first.at + 1;
            self.spent -= first.cost;
            self.entries.pop_front();
        }
    }

    fn record(&mut self, cost: u64) {
        if cost == 0 {
            return;
        }
        let at = self.latest;
        self.spent += cost;
        match self.entries.back_mut() {
            Some(last) if last.at == at => last.cost += cost,
            _ => self.entries.push_back(Entry { at, cost }),
        }
    }

    fn denied(&self, rule: LogRule, now: Tick, cost: u64) -> Decision {
        let room = self.room(rule, now);
        let Some(spare) = rule.limit.checked_sub(cost) else {
            return Decision::denied_forever(room);
        };
        let mut spent = self.spent;
        for entry in &self.entries {
            spent -= entry.cost;
            if spent <= spare {
                return Decision::denied_for(entry.at + rule.window - now.as_nanos(), room);
            }
        }
        // Not reached: without any entry nothing is spent, and `cost` fits into an empty log.
        Decision::denied_for(0, room)
    }

    fn room(&self, rule: LogRule, now: Tick) -> Room {
        let reset = self.entries.back().map_or(0, |last| last.at + rule.window - now.as_nanos());
        let left = rule.limit.saturating_sub(self.spent);
        Room::Tokens { limit: rule.limit, left, reset }
    }
}

//! What the driver of a store, its tasks and those who ask all know.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tollgate_core::{Tick, Wall};
use tollgate_local::Clock;

use crate::redis::answer::Age;
use crate::redis::form::{Past, Seen};
use crate::redis::name::{self, SLOTS};
use crate::redis::noticed::Noticed;
use crate::redis::restart::Losses;
use crate::redis::slots::Slots;

/// What the driver, its tasks and those who ask all know.
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) is_cluster: bool,
    /// Nanoseconds by which the store's clock is ahead of ours.
    ahead: AtomicI64,
    /// The latest memory.
    epoch: AtomicU64,
    /// What was seen of each slot; without slots, the first one for all.
    seen: Mutex<Box<[Option<Seen>]>>,
    /// What processes of a Cluster have lost.
    losses: Losses,
    /// Where slots lie, as far as is known.
    slots: Mutex<Slots>,
    /// The process that was linked to last, by the name of its server. At most [`MOST_PROCESSES`].
    processes: Mutex<BTreeMap<String, String>>,
    /// Processes that had slots and are primaries no more, and when that was found out. At most
    /// [`MOST_LOSSES`].
    gone: Mutex<BTreeMap<String, Tick>>,
    /// Processes that had slots and do not say what has become of those, and since when. At most
    /// [`MOST_LOSSES`].
    silent: Mutex<BTreeMap<String, Tick>>,
    /// The latest mark that was seen of each slot that was moved.
    ages: Mutex<BTreeMap<u16, Age>>,
    /// What is said of losses.
    pub(super) noticed: Noticed,
}

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>, is_cluster: bool) -> Self {
        let seen = vec![None; if is_cluster { usize::from(SLOTS) } else { 1 }];
        let (ahead, epoch) = (AtomicI64::new(0), AtomicU64::new(0));
        Self {
            clock,
            is_cluster,
            ahead,
            epoch,
            seen: Mutex::new(seen.into()),
            losses: Losses::default(),
            slots: Mutex::default(),
            processes: Mutex::default(),
            gone: Mutex::default(),
            silent: Mutex::default(),
            ages: Mutex::default(),
            noticed: Noticed::new(is_cluster),
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub(super) fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// What is known of the memory of that slot, before it is asked for in that process.
    pub(super) fn past(&self, slot: u16, process: &str) -> Past {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner)[self.place_of(slot)];
        match (seen, self.losses.of(slot, process)) {
            // What was seen of one slot is older than what is known of all that the process had.
            (Some(Seen { at, .. }), lost @ Past::Lost(micros)) if at < micros => lost,
            (Some(seen), _) => Past::Seen(seen),
            (None, lost) => lost,
        }
    }

    /// The process of a server has begun with nothing: whatever was seen of these slots is there no more.
    pub(super) fn learn_start(&self, process: &str, slots: &[u16], micros: u64) {
        if micros > 0 {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            slots.iter().for_each(|slot| seen[self.place_of(*slot)] = None);
            drop(seen);
            self.losses.learn(process, micros, || slots.to_vec());
        }
    }

    /// The process of a server that has lost one slot, not long ago, has lost all it had.
    pub(super) fn learn_loss(&self, node: &str, process: &str, micros: u64) {
        if micros > 0 && self.is_cluster {
            let slots = || self.slots.lock().unwrap_or_else(PoisonError::into_inner).of(node);
            self.losses.learn(process, micros, slots);
        }
    }

    pub(super) fn learn_slots(&self, slots: &Slots) {
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = slots.clone();
    }

    /// Whether a server was another process when it was linked to before.
    pub(super) fn is_another_process(&self, node: &str, process: &str) -> bool {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.get(node).is_some_and(|before| before != process)
    }

    pub(super) fn learn_process(&self, node: &str, process: &str) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        if processes.len() >= MOST_PROCESSES && !processes.contains_key(node) {
            processes.clear();
        }
        processes.insert(node.to_owned(), process.to_owned());
    }

    /// Whether a process was found to be gone not long ago. One that takes over has many slots.
    pub(super) fn is_gone(&self, process: &str) -> bool {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.get(process).is_some_and(|then| self.clock.now().since(*then) < GONE_FOR)
    }

    pub(super) fn learn_gone(&self, process: &str) {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        if gone.len() >= MOST_LOSSES {
            gone.clear();
        }
        gone.insert(process.to_owned(), self.clock.now());
    }

    /// Takes note that a process which was asked about a slot has not answered. Says whether that has been so
    /// for long enough to count as gone: slots of one that is never heard of again are asked for as well.
    pub(super) fn learn_silence(&self, process: &str) -> bool {
        let now = self.clock.now();
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        if silent.len() >= MOST_LOSSES && !silent.contains_key(process) {
            silent.clear();
        }
        let since = silent.entry(process.to_owned()).or_insert(now);
        // Nobody has asked it for a while, and it may have been well.
        if now.since(*since) > SILENT_FOR + GONE_FOR {
            *since = now;
        }
        now.since(*since) >= SILENT_FOR
    }

    /// Takes note that it has answered.
    pub(super) fn learn_voice(&self, process: &str) {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner).remove(process);
    }

    /// Takes note of a mark that was answered by.
    pub(super) fn learn_age(&self, slot: u16, age: Age) {
        if age.moves > 0 {
            let mut ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
            let latest = ages.entry(slot % SLOTS).or_insert(age);
            *latest = age.max(*latest);
        }
    }

    /// Whether a later mark of a slot was seen than this one: it was lost, and what was spent under it.
    pub(super) fn is_outdated(&self, slot: u16, age: Age) -> bool {
        let ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        ages.get(&(slot % SLOTS)).is_some_and(|latest| age < *latest)
    }

    /// Some of these slots that were seen, those first that were answered last.
    pub(super) fn seen_among(&self, slots: &[u16]) -> Vec<(u16, Seen)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |slot: &u16| seen[self.place_of(*slot)].map(|seen| (*slot, seen));
        let mut among: Vec<_> = slots.iter().filter_map(of).collect();
        among.sort_by_key(|(_, seen)| Reverse(seen.at));
        among.truncate(MOST_LOOKED_AT);
        among
    }

    pub(super) fn learn(&self, slot: u16, now: Wall, answered: Seen) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // Answers that cross each other make nothing unseen. One that is nothing is less than any.
        let last = &mut seen[self.place_of(slot)];
        *last = Some(answered).max(*last);
        drop(seen);
        self.epoch.fetch_max(answered.epoch, Ordering::Relaxed);
        self.learn_time(now);
    }

    pub(super) fn learn_time(&self, now: Wall) {
        let ours = self.clock.wall().as_unix_nanos();
        // Both end in 2262, within what an i64 holds.
        let ahead = now.as_unix_nanos() as i64 - ours as i64;
        self.ahead.store(ahead, Ordering::Relaxed);
    }

    pub(super) fn mark(&self, slot: u16) -> String {
        match self.is_cluster {
            true => name::mark_of(slot),
            false => name::MARK.into(),
        }
    }

    pub(super) fn wall(&self) -> Wall {
        let ours = self.clock.wall().as_unix_nanos();
        Wall::from_unix_nanos(ours.saturating_add_signed(self.ahead()))
    }

    const fn place_of(&self, slot: u16) -> usize {
        if self.is_cluster { (slot % SLOTS) as usize } else { 0 }
    }
}

/// More processes than a Cluster has servers that are started again while somebody looks.
pub(super) const MOST_LOSSES: usize = 1_024;

/// So long nobody asks about a process again.
const GONE_FOR: Duration = Duration::from_secs(10);

/// So long a process may be silent before it counts as gone. Longer than it takes to give away large keys,
/// which holds it up; and all the time there is no answer about slots that it had, from whoever has them now.
const SILENT_FOR: Duration = Duration::from_secs(5);

/// More servers than a Cluster has: a thousand are the most that is recommended.
const MOST_PROCESSES: usize = 2_048;

/// Enough marks to know what has become of all of them.
const MOST_LOOKED_AT: usize = 64;

#[cfg(test)]
mod tests {
    use tollgate_local::ManualClock;

    use super::*;

    #[test]
    fn a_process_that_stays_silent_is_given_up_at_last() {
        let clock = ManualClock::new();
        let shared = Shared::new(Arc::new(clock.clone()), true);
        let silence = |pause: u64| {
            clock.advance(Duration::from_secs(pause));
            shared.learn_silence("p")
        };
        assert_eq!([0, 4, 1, 1].map(silence), [false, false, true, true]);
        shared.learn_voice("p");
        assert_eq!([0, 4].map(silence), [false, false]);
        // It may have been well all the time.
        assert_eq!([60, 4, 1].map(silence), [false, false, true]);
    }
}

//! What is said to whoever runs a store about losses of its memory.
//!
//! Every answer names its memory. Another one than before in the same slot says that something was lost. In a
//! Cluster each slot has a mark, and all that one process has lost is found out bit by bit, as its slots are
//! asked about. That is one loss: of a process that has lost something, a slot tells something new only if
//! its memory had begun after that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::loss::{Extent, Loss, Losses};
use crate::redis::answer::wall;
use crate::redis::name::SLOTS;
use crate::redis::shared::MOST_LOSSES;

/// What was found to be lost.
pub(super) struct Noticed {
    /// The latest memory of each slot, 0 if none was seen; without slots, of all.
    epochs: Box<[AtomicU64]>,
    known: Mutex<Known>,
    told: watch::Sender<Losses>,
}

#[derive(Default)]
struct Known {
    /// When this client was first answered, in microseconds of the store's clock.
    began: Option<u64>,
    /// Processes that have lost something, the memory in which that was found out, and how much it was. At
    /// most [`MOST_LOSSES`].
    processes: BTreeMap<String, (u64, Extent)>,
}

/// What an answer says about the memory that it is from. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) server: &'a str,
    pub(super) process: &'a str,
    pub(super) slot: u16,
    pub(super) now: u64,
    pub(super) epoch: u64,
    /// When the process lost all that was before; 0 if it did not.
    pub(super) lost: u64,
}

impl Noticed {
    pub(super) fn new(is_cluster: bool) -> Self {
        let slots = if is_cluster { SLOTS } else { 1 };
        let epochs = (0..slots).map(|_| AtomicU64::new(0)).collect();
        Self { epochs, known: Mutex::default(), told: watch::Sender::default() }
    }

    pub(super) fn losses(&self) -> watch::Receiver<Losses> {
        self.told.subscribe()
    }

    /// Takes note of an answer. Nearly all are from the memory that the one before was from.
    pub(super) fn learn(&self, word: Word<'_>) {
        let latest = &self.epochs[usize::from(word.slot) % self.epochs.len()];
        // The lock orders what is written. Who reads an old number looks again behind it.
        if latest.load(Ordering::Relaxed) == word.epoch {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = latest.load(Ordering::Relaxed);
        // Answers that cross each other make no loss.
        if word.epoch <= before {
            return;
        }
        latest.store(word.epoch, Ordering::Relaxed);
        let Some((extent, is_found)) = known.weigh(before, word) else { return };
        let at = wall(if word.lost > 0 { word.lost } else { word.epoch });
        let (server, process) = (word.server.to_owned(), word.process.to_owned());
        self.told.send_modify(|losses| {
            losses.found += u64::from(is_found);
            losses.latest = Some(Loss { at, extent, server, process });
        });
    }
}

impl Known {
    /// How much was lost, if that is news, and whether it happened while this client was there.
    fn weigh(&mut self, before: u64, word: Word<'_>) -> Option<(Extent, bool)> {
        let began = *self.began.get_or_insert(word.now);
        let extent = match (word.lost, before) {
            // The first that is seen of a memory in which nothing was lost.
            (0, 0) => return None,
            (0, _) => Extent::LastMoments,
            _ => Extent::Everything,
        };
        let known = self.processes.get(word.process);
        if known.is_some_and(|(since, known)| before < *since && extent <= *known) {
            return None;
        }
        if self.processes.len() >= MOST_LOSSES && known.is_none() {
            self.processes.clear();
        }
        self.processes.insert(word.process.to_owned(), (word.epoch, extent));
        let is_found = before > 0 || word.lost > began;
        let matters = is_found || word.now.saturating_sub(word.lost) < MATTERS_FOR;
        matters.then_some((extent, is_found))
    }
}

/// What was lost before this client was there is of interest for as long, in microseconds: a limit of a month may
/// be used up because of it.
const MATTERS_FOR: u64 = 31 * 86_400 * 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400 * 1_000_000;

    fn word(process: &str, slot: u16, epoch: u64, lost: u64) -> Word<'_> {
        Word { server: "host:1", process, slot, now: 100 * DAY + epoch, epoch, lost }
    }

    fn found(noticed: &Noticed) -> (u64, Option<(Extent, String)>) {
        let losses = noticed.told.borrow();
        let latest = losses.latest.as_ref();
        (losses.found, latest.map(|loss| (loss.extent, loss.process.clone())))
    }

    #[test]
    fn a_store_that_is_new_has_lost_nothing() {
        let noticed = Noticed::new(false);
        noticed.learn(word("p", 7, 5, 0));
        noticed.learn(word("p", 8, 5, 0));
        assert_eq!(found(&noticed), (0, None));
    }

    #[test]
    fn every_memory_after_the_first_is_a_loss_that_is_told_once() {
        let noticed = Noticed::new(false);
        noticed.learn(word("p", 0, 5, 0));
        let everything = |process: &str| Some((Extent::Everything, process.to_owned()));
        for _ in 0..2 {
            noticed.learn(word("p", 0, 9, 9));
            noticed.learn(word("p", 0, 5, 0));
            assert_eq!(found(&noticed), (1, everything("p")));
        }
        noticed.learn(word("p", 0, 11, 11));
        assert_eq!(found(&noticed), (2, everything("p")), "it was emptied once more");
        noticed.learn(word("q", 0, 12, 0));
        assert_eq!(found(&noticed), (3, Some((Extent::LastMoments, "q".into()))));
    }

    #[test]
    fn what_a_server_of_a_cluster_loses_is_one_loss_however_many_slots_it_has() {
        let noticed = Noticed::new(true);
        (0..9).for_each(|slot| noticed.learn(word("p", slot, 5 + u64::from(slot), 0)));
        for slot in 0..9 {
            noticed.learn(word("q", slot, 20 + u64::from(slot), 20 + u64::from(slot)));
        }
        // One that was not asked about before.
        noticed.learn(word("q", 77, 60, 20));
        assert_eq!(found(&noticed).0, 1);
        // It was emptied, and then another was.
        (0..9).for_each(|slot| noticed.learn(word("q", slot, 70 + u64::from(slot), 70)));
        assert_eq!(found(&noticed).0, 2);
        noticed.learn(word("r", 4, 90, 0));
        noticed.learn(word("r", 5, 91, 0));
        assert_eq!(found(&noticed), (3, Some((Extent::LastMoments, "r".into()))));
        noticed.learn(word("r", 6, 92, 92));
        assert_eq!(found(&noticed), (4, Some((Extent::Everything, "r".into()))), "worse");
    }

    #[test]
    fn what_was_lost_before_is_told_as_long_as_it_matters_and_never_counted() {
        for (age, latest) in [(30, Some((Extent::Everything, "p".to_owned()))), (31, None)] {
            let noticed = Noticed::new(false);
            let now = 100 * DAY;
            noticed.learn(Word { now, lost: now - age * DAY, ..word("p", 0, 5, 1) });
            assert_eq!(found(&noticed), (0, latest), "{age} days");
        }
    }

    #[test]
    fn so_many_processes_are_remembered_and_others_are_told_all_the_same() {
        let noticed = Noticed::new(false);
        noticed.learn(word("p", 0, 1, 0));
        let times = MOST_LOSSES as u64 + 5;
        for epoch in 2..times + 2 {
            noticed.learn(word(&epoch.to_string(), 0, epoch, 0));
        }
        assert_eq!(noticed.told.borrow().found, times);
        assert!(noticed.known.lock().unwrap().processes.len() <= MOST_LOSSES);
    }
}

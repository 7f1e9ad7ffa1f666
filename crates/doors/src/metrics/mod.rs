//! What is counted about decisions and doors.
//!
//! Whoever decides writes to lines of memory that no other thread writes to, without a lock; whoever
//! reads adds them up.

mod family;
mod histogram;
mod page;
mod quotas;
mod series;
mod shard;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use tollgate::{RuleSet, Ruling, Wall};

use crate::door::{Name, Places};
use crate::grpc::Desk;
use crate::metrics::histogram::Buckets;
use crate::metrics::series::Series;
use crate::metrics::shard::{SHARDS, Writer};
use crate::tickets::Tickets;
use crate::tls::Tls;

pub use crate::metrics::family::{Family, Labels, Samples};
pub use crate::metrics::histogram::Timings;
pub(crate) use crate::metrics::shard::Tally;

/// What is counted about decisions and doors.
#[derive(Debug)]
pub(crate) struct Metrics {
    shards: Box<[Shard; SHARDS]>,
    series: ArcSwap<Series>,
    /// Of the doors that are open.
    places: [OnceLock<Arc<Places>>; Name::ALL.len()],
    tickets: OnceLock<Arc<Tickets>>,
    /// By door.
    wrong_secrets: [AtomicU64; Name::ALL.len()],
    tls: OnceLock<Arc<Tls>>,
    quotas: OnceLock<Arc<Desk>>,
    rules_refused: AtomicU64,
    rules_swapped: AtomicU64,
    /// In nanoseconds since 1970.
    last_swap: AtomicU64,
    began: Wall,
}

/// What one thread has counted.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard {
    /// Decisions since the last that was timed.
    untimed: AtomicU64,
    /// By door: allowed, and denied.
    decisions: [[AtomicU64; 2]; Name::ALL.len()],
    /// By those who bring their limits themselves: allowed, and denied.
    throttled: [AtomicU64; 2],
    deciding: Buckets,
    /// By door.
    serving: [Buckets; Name::ALL.len()],
}

impl Metrics {
    /// For these rules.
    pub(crate) fn new(rules: &Arc<RuleSet>, now: Wall) -> Self {
        Self {
            shards: Box::default(),
            series: ArcSwap::from_pointee(Series::new(rules, None)),
            places: Default::default(),
            tickets: OnceLock::new(),
            wrong_secrets: Default::default(),
            tls: OnceLock::new(),
            quotas: OnceLock::new(),
            rules_refused: AtomicU64::new(0),
            rules_swapped: AtomicU64::new(0),
            last_swap: AtomicU64::new(now.as_unix_nanos()),
            began: now,
        }
    }

    /// When counting began.
    pub(crate) const fn began(&self) -> Wall {
        self.began
    }

    /// Counts a decision.
    #[inline]
    pub(crate) fn decided(&self, door: Name, ruling: &Ruling) {
        self.counting(door).decided(ruling);
    }

    /// Counts decisions that are made one after the other: where they are counted is found out once.
    pub(crate) fn counting(&self, door: Name) -> Counting<'_> {
        let writer = Writer::here();
        let outcomes = &writer.of(&self.shards).decisions[door as usize];
        Counting { writer, outcomes, series: self.series.load() }
    }

    /// Counts decisions by limits that clients brought themselves.
    #[inline]
    pub(crate) fn throttled(&self, door: Name, allowed: u64, denied: u64) {
        let writer = Writer::here();
        let shard = writer.of(&self.shards);
        for (outcome, count) in [allowed, denied].into_iter().enumerate() {
            writer.add(&shard.decisions[door as usize][outcome], count);
            writer.add(&shard.throttled[outcome], count);
        }
    }

    /// For how many of the next decisions it is their turn to be timed. Two looks at the clock would
    /// be a good part of what most of them take.
    #[inline]
    pub(crate) fn times_of_next(&self, decisions: usize) -> u64 {
        let writer = Writer::here();
        let untimed = &writer.of(&self.shards).untimed;
        // No batch has more than fit.
        writer.add(untimed, decisions as u64);
        let now = untimed.load(Ordering::Relaxed);
        now / TIMED_OF - now.saturating_sub(decisions as u64) / TIMED_OF
    }

    /// So many decisions took so long each.
    pub(crate) fn decided_in(&self, took: Duration, decisions: u64) {
        let writer = Writer::here();
        writer.of(&self.shards).deciding.add(writer, took, decisions);
    }

    /// What was read at a door was answered after so long.
    #[inline]
    pub(crate) fn served_in(&self, door: Name, took: Duration) {
        let writer = Writer::here();
        writer.of(&self.shards).serving[door as usize].add(writer, took, 1);
    }

    /// A door is open, and these are its places.
    pub(crate) fn opened(&self, door: Name, places: &Arc<Places>) {
        // Each is opened once.
        let _ = self.places[door as usize].set(Arc::clone(places));
    }

    /// Whether a door is open.
    pub(crate) fn is_open(&self, door: Name) -> bool {
        self.places[door as usize].get().is_some()
    }

    /// These are the requests under way whose end is still to be told.
    pub(crate) fn follow(&self, tickets: &Arc<Tickets>) {
        // There is one of them.
        let _ = self.tickets.set(Arc::clone(tickets));
    }

    /// Somebody has said a wrong password, or a wrong token.
    pub(crate) fn wrong_secret(&self, door: Name) {
        self.wrong_secrets[door as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// This is what connections are kept from being read with.
    pub(crate) fn follow_tls(&self, tls: &Arc<Tls>) {
        // There is one of it.
        let _ = self.tls.set(Arc::clone(tls));
    }

    /// This is where quotas are given out.
    pub(crate) fn follow_quotas(&self, desk: &Arc<Desk>) {
        // There is one of it.
        let _ = self.quotas.set(Arc::clone(desk));
    }

    /// Rules are not put in force.
    pub(crate) fn rules_refused(&self) {
        self.rules_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Other rules were given, and are in force.
    pub(crate) fn rules_swapped(&self, now: Wall) {
        self.rules_swapped.fetch_add(1, Ordering::Relaxed);
        self.last_swap.store(now.as_unix_nanos(), Ordering::Relaxed);
    }

    /// Rules are put in force by `exchange`. Series of rules that stay, by name, go on; the
    /// others leave.
    pub(crate) fn exchange<E>(
        &self,
        rules: &Arc<RuleSet>,
        exchange: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let old = self.series.load_full();
        // First: so nothing that new rules say is missed.
        self.series.store(Arc::new(Series::new(rules, Some(&old))));
        exchange().inspect_err(|_| self.series.store(old))
    }
}

/// Counts decisions of one thread. It is not to be kept for longer than they take: counts of rules
/// that come into force meanwhile are looked for by name.
pub(crate) struct Counting<'m> {
    writer: Writer,
    /// Allowed, and denied.
    outcomes: &'m [AtomicU64; 2],
    series: Guard<Arc<Series>>,
}

impl Counting<'_> {
    /// Counts a decision.
    #[inline]
    pub(crate) fn decided(&self, ruling: &Ruling) {
        let denied = usize::from(!ruling.is_allowed());
        self.writer.add(&self.outcomes[denied], 1);
        self.series.count(self.writer, ruling);
    }
}

/// One decision in so many is timed.
const TIMED_OF: u64 = 64;

#[cfg(test)]
mod tests;

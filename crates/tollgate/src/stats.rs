//! Numbers about a limiter for its operator.

use tollgate_core::Tick;
use tollgate_local::{Counters, Pressure, Table};

/// How the counters of a [`Limiter`](crate::Limiter), a [`Gate`](crate::Gate) or an `Engine` are
/// doing.
///
/// ```
/// use tollgate::Limiter;
/// let stats = Limiter::new("1/h")?.stats();
/// assert!(stats.keys >= 100_000);
/// assert!(stats.memory < 2_400_000);
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// How many keys can be live at once before the excess is counted too high.
    pub keys: usize,
    /// Memory of all counters in bytes: of the table and what belongs to it, in use or not, and
    /// of sliding logs what they hold now.
    pub memory: usize,
    /// The part of the slots that are in use, 0 to 1, estimated from a sample. The planned number
    /// of keys fills 0.56 of them.
    pub occupancy: f64,
    /// Decisions that were made with a count shared between keys, and so too strictly, because
    /// there was no slot for the key. If this rises, plan for more keys.
    pub overflowed: u64,
    /// Keys that came from a shared count to a slot of their own.
    pub promoted: u64,
    /// Requests that are waiting for their turn.
    pub waiting: usize,
}

impl Stats {
    pub(crate) fn new<'a>(
        table: &Table,
        counters: impl IntoIterator<Item = &'a Counters>,
        waiting: usize,
        now: Tick,
    ) -> Self {
        Self::of(table, counters.into_iter().map(Counters::pressure), waiting, now)
    }

    pub(crate) fn of(
        table: &Table,
        pressures: impl IntoIterator<Item = Pressure>,
        waiting: usize,
        now: Tick,
    ) -> Self {
        let mut stats = Self {
            keys: table.keys(),
            memory: table.memory(),
            occupancy: table.occupancy(now),
            overflowed: 0,
            promoted: 0,
            waiting,
        };
        for pressure in pressures {
            stats.memory += pressure.memory;
            stats.overflowed += pressure.overflowed;
            stats.promoted += pressure.promoted;
        }
        stats
    }
}

//! Counters as the past of those that follow them.

use tollgate_core::{Log, Tick};

use crate::counters::{Counters, Home};
use crate::key::KeyHash;
use crate::past::{Before, Past};

impl Counters {
    /// When everything that can be spent at `now` is back at the latest.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use std::time::Duration;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Seed, Table};
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// let limit = Limit::sliding_log("2/min").expect("a valid quota");
    /// let counters = Counters::new(&table, &limit, Anchor::default(), Seed::random().salt(0));
    /// assert_eq!(counters.rested_by(Tick::ZERO).since(Tick::ZERO), Duration::from_secs(60));
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn rested_by(&self, now: Tick) -> Tick {
        match &self.home {
            Home::Table(counter) => counter.rested_by(now),
            Home::Unlimited => now,
            Home::Logs(logs) => logs.rested_by(now),
        }
    }

    /// The log of a key, if this limit is a sliding log.
    pub(crate) fn log_of(&self, key: KeyHash, at: Tick) -> Option<Log> {
        match &self.home {
            Home::Logs(logs) => Some(logs.log_of(key, at)),
            Home::Unlimited | Home::Table(_) => None,
        }
    }

    /// The past, if there was one.
    pub(crate) fn before(&self) -> Option<&Before> {
        match &self.home {
            Home::Table(counter) => counter.before(),
            Home::Unlimited => None,
            Home::Logs(logs) => logs.before(),
        }
    }
}

impl Past for Counters {
    /// As [`peek`](Counters::peek) tells. Keys that these counters do not know are looked for in
    /// their own past.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Past, Seed, Table};
    /// # let seed = Seed::random();
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// let bob = "bob".hash(&seed);
    /// counters.check_at(bob, 4, Tick::ZERO);
    /// assert_eq!(counters.spent(bob, Tick::ZERO), 4);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    fn spent(&self, key: KeyHash, at: Tick) -> u64 {
        let peek = self.peek(key, 0, at);
        peek.limit().saturating_sub(peek.remaining())
    }

    fn forget(&self, key: KeyHash, at: Tick) -> bool {
        self.reset(key, at)
    }

    fn log(&self, key: KeyHash, at: Tick) -> Option<Log> {
        self.log_of(key, at)
    }

    fn shorten(&self, changes: usize, at: Tick) {
        if let Some(before) = self.before() {
            before.shorten(changes, at);
        }
    }
}

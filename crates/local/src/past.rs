//! What keys had spent before their limit changed.
//!
//! ```text
//!        old limit          since             new limit               until
//!   -------------------------|-------------------------------------------|-----> time
//!    spends 7 of 10          |<- as if it had spent min(7, all) here ->| at rest
//! ```
//!
//! Counters of a changed limit begin with an empty table. A key that they do not know begins where
//! it would stand had it spent at `since`, under the new limit, what it had spent by then under the
//! old one. From there on its state is as any other: it comes to rest, and is dropped. Whoever asks
//! the past once more gets the same state or an earlier one, which is at rest as well.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tollgate_core::{Log, Tick};

use crate::key::KeyHash;

/// Somebody who knows what keys had spent before a limit changed, as the
/// [`Counters`](crate::Counters) of the old limit do.
///
/// It is asked in the middle of decisions, only for keys that are new, and must not ask the counters
/// that ask it.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::{Anchor, Limit, Tick};
/// use tollgate_local::{Counters, Key, KeyHash, Past, Seed, Table};
///
/// struct Same(u64);
/// impl Past for Same {
///     fn spent(&self, _: KeyHash, _: Tick) -> u64 {
///         self.0
///     }
///     fn forget(&self, _: KeyHash, _: Tick) -> bool {
///         false
///     }
/// }
///
/// let (seed, now) = (Seed::random(), Tick::ZERO);
/// let table = Arc::new(Table::with_keys(1000)?);
/// let limit = Limit::token_bucket("5/s").expect("a valid quota");
/// let counters = Counters::builder(&table, &limit, Anchor::default(), seed.salt(0))
///     .following(Arc::new(Same(3)), now)
///     .build();
/// assert_eq!(counters.peek("bob".hash(&seed), 1, now).remaining(), 2);
/// # Ok::<(), tollgate_local::TableError>(())
/// ```
pub trait Past: Send + Sync {
    /// What the key had spent of its budget at that time, and had not got back.
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
    fn spent(&self, key: KeyHash, at: Tick) -> u64;

    /// Makes the key one that had spent nothing at that time. `false` if that cannot be done.
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
    /// assert!(counters.forget(bob, Tick::ZERO));
    /// assert_eq!(counters.spent(bob, Tick::ZERO), 0);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    fn forget(&self, key: KeyHash, at: Tick) -> bool;

    /// The log of the key at that time, if the old limit was a sliding log as well: then its
    /// requests go on counting from when they were made.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Past, Seed, Table};
    /// # let seed = Seed::random();
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// let limit = Limit::sliding_log("5/s").expect("a valid quota");
    /// let counters = Counters::new(&table, &limit, Anchor::default(), seed.salt(0));
    /// let bob = "bob".hash(&seed);
    /// counters.check_at(bob, 4, Tick::ZERO);
    /// assert_eq!(counters.log(bob, Tick::ZERO).map(|log| log.entries()), Some(1));
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    fn log(&self, _key: KeyHash, _at: Tick) -> Option<Log> {
        None
    }

    /// Others follow, and will ask for this time. Drops what is known from more than so many changes
    /// before this one, or from one that does not matter any more at that time.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Past, Seed, Table};
    /// # let (seed, now) = (Seed::random(), Tick::ZERO);
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("5/s").expect("a valid quota");
    /// let old = Arc::new(Counters::new(&table, &limit, Anchor::default(), seed.salt(0)));
    /// let builder = Counters::builder(&table, &limit, Anchor::default(), seed.salt(1));
    /// let new = builder.following(Arc::<Counters>::clone(&old), now).build();
    /// new.shorten(0, now);
    /// assert_eq!(Arc::strong_count(&old), 1, "nobody else knows it any more");
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    fn shorten(&self, _changes: usize, _at: Tick) {}
}

/// The past of counters, and how long it matters.
pub(crate) struct Before {
    past: RwLock<Option<Arc<dyn Past>>>,
    /// Whether there is no past any more.
    over: AtomicBool,
    /// Whether these counters are a past themselves: then they are asked for the time of that change,
    /// at which their own past may matter, whatever the time is by then.
    followed: AtomicBool,
    pub(crate) since: Tick,
    until: Tick,
}

impl Before {
    /// The most changes of a limit that are remembered at once. Of a limit that changes more often
    /// than that before a key has everything back, the oldest spending is forgotten.
    pub(crate) const MOST_CHANGES: usize = 16;

    pub(crate) fn new(past: Arc<dyn Past>, since: Tick, until: Tick) -> Self {
        past.shorten(Self::MOST_CHANGES - 1, since);
        let (over, followed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { past: RwLock::new(Some(past)), over, followed, since, until }
    }

    /// Asks the past, if it still matters at `now`.
    pub(crate) fn ask<T>(&self, now: Tick, question: impl FnOnce(&dyn Past) -> T) -> Option<T> {
        if now >= self.until {
            return None;
        }
        // Whoever drops the past waits for nobody, so this waits for a moment at most.
        let past = self.past.read().unwrap_or_else(PoisonError::into_inner);
        past.as_deref().map(question)
    }

    /// What the key had spent when the limit changed, if that still matters.
    pub(crate) fn spent(&self, key: KeyHash, now: Tick) -> Option<u64> {
        self.ask(now, |past| past.spent(key, self.since)).filter(|spent| *spent > 0)
    }

    /// Makes the past forget a key.
    pub(crate) fn forget(&self, key: KeyHash, now: Tick) -> bool {
        self.ask(now, |past| past.forget(key, self.since)).unwrap_or(true)
    }

    /// Gives the memory of the past back, if it does not matter any more. To be told the time by
    /// those who spend, and not by those who ask for another time than the present.
    pub(crate) fn end(&self, now: Tick) {
        // Relaxed: whoever does not see that it is over tries in vain, and whoever does not see that
        // others follow might as well have come before them.
        let is_over = || self.over.load(Ordering::Relaxed) || self.followed.load(Ordering::Relaxed);
        if now >= self.until && !is_over() {
            self.drop_past();
        }
    }

    pub(crate) fn shorten(&self, changes: usize, at: Tick) {
        self.followed.store(true, Ordering::Relaxed);
        match changes.checked_sub(1) {
            Some(changes) if at < self.until => {
                self.ask(at, |past| past.shorten(changes, self.since));
            }
            _ => self.drop_past(),
        }
    }

    /// Unless somebody is asking it just now: then another time.
    fn drop_past(&self) {
        let past = self.past.try_write().ok().and_then(|mut past| past.take());
        if past.is_some() {
            self.over.store(true, Ordering::Relaxed);
        }
    }
}

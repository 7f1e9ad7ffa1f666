//! Making counters that share a table with many others, or that follow others.

use std::sync::Arc;

use tollgate_core::{Anchor, Limit, Tick};

use crate::counter::Counter;
use crate::counters::{Counters, Home};
use crate::key::{KeyHash, Salt};
use crate::logs::Logs;
use crate::past::{Before, Past};
use crate::table::Table;

/// Makes [`Counters`].
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::{Anchor, Limit};
/// use tollgate_local::{Counters, Seed, Table};
///
/// let table = Arc::new(Table::with_keys(1000)?);
/// let limit = Limit::token_bucket("2/min").expect("a valid quota");
/// let salt = Seed::random().salt(0);
/// let counters = Counters::builder(&table, &limit, Anchor::default(), salt).among(5_000).build();
/// # Ok::<(), tollgate_local::TableError>(())
/// ```
#[must_use = "a builder makes nothing until `build`"]
pub struct CountersBuilder<'a> {
    table: &'a Arc<Table>,
    limit: &'a Limit,
    anchor: Anchor,
    salt: Salt,
    beside: Option<Salt>,
    among: usize,
    past: Option<(Arc<dyn Past>, Tick)>,
    until: Tick,
}

impl Counters {
    /// Starts to make counters: [`Counters::new`] says what of.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit};
    /// # use tollgate_local::{Counters, Seed, Table};
    /// let table = Arc::new(Table::with_keys(1000)?);
    /// let limit = Limit::sliding_log("2/min").expect("a valid quota");
    /// let salt = Seed::random().salt(0);
    /// let counters = Counters::builder(&table, &limit, Anchor::default(), salt).build();
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn builder<'a>(
        table: &'a Arc<Table>,
        limit: &'a Limit,
        anchor: Anchor,
        salt: KeyHash,
    ) -> CountersBuilder<'a> {
        let (salt, beside) = (Salt::new(salt), None);
        let (among, past, until) = (1, None, Tick::MAX);
        CountersBuilder { table, limit, anchor, salt, beside, among, past, until }
    }
}

impl CountersBuilder<'_> {
    /// How many limits have their counters in the table: 1 unless this says otherwise.
    ///
    /// Beside the table, each has memory for keys that find no room there. That of all together is
    /// about what one limit alone would have, but each has room for 16 shared counts, or 4 KiB of
    /// sliding logs. With too high a number, keys that find no room are counted together with more
    /// others, and more strictly; with too low a one, limits take more memory.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit};
    /// # use tollgate_local::{Counters, Seed, Table};
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// # let limit = Limit::token_bucket("2/min").expect("a valid quota");
    /// # let salt = Seed::random().salt(0);
    /// let builder = Counters::builder(&table, &limit, Anchor::default(), salt);
    /// assert_eq!(builder.among(10_000).build().pressure().memory, 16 * 8);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn among(self, limits: usize) -> Self {
        Self { among: limits, ..self }
    }

    /// Has every key stand in the memory in which it would stand for `other`, which must be in the
    /// same table, as another key: for limits of which a key has one, of which it is not known yet
    /// which. Whoever [prefetches](Counters::prefetch) what one of them needs has most of what all of
    /// them need. All that are beside the same counters must have different numbers, from 1 to
    /// 2,147,483,647.
    ///
    /// Keys that are counted by several of them at once take each other's room: this is for those that
    /// are not.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let (seed, anchor, now) = (Seed::random(), Anchor::default(), Tick::ZERO);
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// let five = Limit::token_bucket("5/s").expect("a valid quota");
    /// let usual = Counters::new(&table, &five, anchor, seed.salt(0));
    /// let nine = Limit::token_bucket("9/s").expect("a valid quota");
    /// let more = Counters::builder(&table, &nine, anchor, seed.salt(1)).beside(&usual, 1).build();
    /// let bob = "bob".hash(&seed);
    /// usual.check_at(bob, 3, now);
    /// assert_eq!(more.peek(bob, 1, now).remaining(), 9);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn beside(self, other: &Counters, number: u32) -> Self {
        let beside = match &other.home {
            Home::Table(counter) => Some(counter.salt().beside(number)),
            Home::Unlimited | Home::Logs(_) => None,
        };
        Self { beside, ..self }
    }

    /// The limit took the place of another one at `since`: what a key had spent by then, `past`
    /// knows. A key that these counters do not know begins as if it had spent that at `since`, or
    /// all that the limit allows if that is less. So a change gives nobody a second budget, and
    /// keeps nobody out for longer than the new limit keeps out those who have spent everything.
    ///
    /// The past is asked until that time is over, and then dropped. Its keys are found by the same
    /// hashes; the salt of these counters must be another one than theirs. Of a limit that changes
    /// more than 16 times meanwhile, the last 16 changes count.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// let (seed, anchor, now) = (Seed::random(), Anchor::default(), Tick::ZERO);
    /// let table = Arc::new(Table::with_keys(1000)?);
    /// let hundred = Limit::token_bucket("100/min").expect("a valid quota");
    /// let old = Arc::new(Counters::new(&table, &hundred, anchor, seed.salt(0)));
    /// let bob = "bob".hash(&seed);
    /// old.check_at(bob, 4, now);
    ///
    /// let ten = Limit::fixed_window("10/min").expect("a valid quota");
    /// let new = Counters::builder(&table, &ten, anchor, seed.salt(1)).following(old, now).build();
    /// assert_eq!(new.peek(bob, 1, now).remaining(), 6);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn following(self, past: Arc<dyn Past>, since: Tick) -> Self {
        Self { past: Some((past, since)), ..self }
    }

    /// From this time on the past is not asked any more, if it would still be: as when all that
    /// was spent under the old limit would be back there, which its counters tell by
    /// [`rested_by`](Counters::rested_by).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit, Tick};
    /// # use tollgate_local::{Counters, Key, Seed, Table};
    /// # let (seed, anchor, now) = (Seed::random(), Anchor::default(), Tick::ZERO);
    /// # let table = Arc::new(Table::with_keys(1000)?);
    /// let fast = Limit::token_bucket("10/s").expect("a valid quota");
    /// let old = Arc::new(Counters::new(&table, &fast, anchor, seed.salt(0)));
    /// let bob = "bob".hash(&seed);
    /// old.check_at(bob, 4, now);
    ///
    /// let slow = Limit::token_bucket("10/h").expect("a valid quota");
    /// let until = old.rested_by(now);
    /// let builder = Counters::builder(&table, &slow, anchor, seed.salt(1));
    /// let new = builder.following(old, now).until(until).build();
    /// assert_eq!(new.peek(bob, 1, now).remaining(), 6);
    /// assert_eq!(new.peek(bob, 1, until).remaining(), 10);
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn until(self, until: Tick) -> Self {
        Self { until, ..self }
    }

    /// Makes the counters.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::{Anchor, Limit};
    /// # use tollgate_local::{Counters, Seed, Table};
    /// let table = Arc::new(Table::with_keys(1000)?);
    /// let limit = Limit::leaky_shape("2/s", 5).expect("a valid quota");
    /// let salt = Seed::random().salt(0);
    /// assert!(Counters::builder(&table, &limit, Anchor::default(), salt).build().shapes());
    /// # Ok::<(), tollgate_local::TableError>(())
    /// ```
    pub fn build(self) -> Counters {
        let Self { table, limit, anchor, salt, beside, among, past, until } = self;
        let before = |rested_by: &dyn Fn(Tick) -> Tick| {
            past.map(|(past, since)| Before::new(past, since, until.min(rested_by(since))))
        };
        let home = match (limit.log_rule(), limit.machine(anchor)) {
            (Some(rule), _) => {
                let before = before(&|since| since.after(rule.window()));
                Home::Logs(Box::new(Logs::new(rule, table.memory(), among, salt, before)))
            }
            (None, Some(machine)) if !machine.is_unlimited() => {
                let before = before(&|since| machine.rested_by(since));
                let salt = beside.unwrap_or(salt);
                Home::Table(Box::new(Counter::new(table, machine, among, salt, before)))
            }
            (None, _) => Home::Unlimited,
        };
        Counters { home, shapes: limit.shapes() }
    }
}

impl std::fmt::Debug for CountersBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("CountersBuilder");
        debug.field("limit", self.limit).field("among", &self.among).finish_non_exhaustive()
    }
}

//! Making counters that share a table with many others.

use std::sync::Arc;

use tollgate_core::{Anchor, Limit};

use crate::counter::Counter;
use crate::counters::{Counters, Home};
use crate::key::KeyHash;
use crate::logs::Logs;
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
    salt: KeyHash,
    among: usize,
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
        CountersBuilder { table, limit, anchor, salt, among: 1 }
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
        let Self { table, limit, anchor, salt, among } = self;
        let home = match (limit.log_rule(), limit.machine(anchor)) {
            (Some(rule), _) => Home::Logs(Box::new(Logs::new(rule, table.memory(), among, salt.0))),
            (None, Some(machine)) if !machine.is_unlimited() => {
                Home::Table(Box::new(Counter::new(table, machine, among, salt.0)))
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

//! How much memory counters get.

use std::sync::Arc;

use tollgate_core::Limit;
use tollgate_local::{Table, TableError};

/// The memory of counters, as the one who makes them thinks of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    /// So many keys in the table; what limits have beside it is not counted.
    Keys(usize),
    /// So many bytes for everything.
    Memory(usize),
}

impl Default for Size {
    /// Under 2.4 MB with one limit.
    fn default() -> Self {
        Self::Keys(100_000)
    }
}

impl Size {
    /// The table in which these limits have their counters.
    pub(crate) fn table<'a>(
        self,
        limits: impl IntoIterator<Item = &'a Limit>,
    ) -> Result<Arc<Table>, TableError> {
        Ok(Arc::new(match self {
            Self::Keys(keys) => Table::with_keys(keys)?,
            Self::Memory(bytes) => Table::with_memory(Beside::of(limits).leaves(bytes))?,
        }))
    }
}

/// What limits have beside their table. It grows with the table, in steps.
#[derive(Default)]
struct Beside {
    sketches: usize,
    logs: usize,
}

impl Beside {
    fn of<'a>(limits: impl IntoIterator<Item = &'a Limit>) -> Self {
        let mut beside = Self::default();
        for limit in limits {
            match (limit.log_rule(), limit.quota().rate()) {
                (Some(_), _) => beside.logs += 1,
                (None, Some(_)) => beside.sketches += 1,
                // Without a limit there is nothing to count.
                (None, None) => {}
            }
        }
        beside
    }

    /// The bytes of the largest table with which everything together fits into `bytes`. If none
    /// does, those of the smallest; of too few even for that, the table itself will say so.
    fn leaves(&self, bytes: usize) -> usize {
        let (mut fits, mut exceeds) = (SMALLEST_TABLE / LINE, bytes / LINE + 1);
        if exceeds <= fits {
            return bytes;
        }
        while fits + 1 < exceeds {
            let lines = usize::midpoint(fits, exceeds);
            match self.with_table(lines) <= bytes {
                true => fits = lines,
                false => exceeds = lines,
            }
        }
        fits * LINE
    }

    /// The most bytes that a table of so many lines takes, with everything beside it.
    fn with_table(&self, lines: usize) -> usize {
        let table = lines.saturating_mul(LINE);
        let sketch = (lines.saturating_mul(SLOTS) / SLOTS_PER_CELL).max(FEWEST_CELLS) * CELL;
        let log = table.saturating_mul(LOG_BYTES_PER_TABLE_BYTE).max(FEWEST_LOG_BYTES);
        let sketches = self.sketches.saturating_mul(sketch);
        let logs = self.logs.saturating_mul(log);
        table.saturating_add(sketches).saturating_add(logs)
    }
}

// What `tollgate_local` makes of a table and its limits. If it were to change its mind, the tests
// of memory here would fail.

/// The bytes of a line, and its slots.
const LINE: usize = 64;
const SLOTS: usize = 5;
const SMALLEST_TABLE: usize = 2 * LINE;

/// A sketch has a cell for so many slots of the table, and so many at least.
const SLOTS_PER_CELL: usize = 64;
const FEWEST_CELLS: usize = 512;
const CELL: usize = size_of::<u64>();

/// The most memory that the sliding logs of a limit take.
const LOG_BYTES_PER_TABLE_BYTE: usize = 4;
const FEWEST_LOG_BYTES: usize = 64 << 10;

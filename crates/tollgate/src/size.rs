//! How much memory counters get.

use std::sync::Arc;

use tollgate_local::{Table, TableError};

/// The memory of counters, as the one who makes them thinks of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    Keys(usize),
    Memory(usize),
}

impl Default for Size {
    /// 2.3 MB.
    fn default() -> Self {
        Self::Keys(100_000)
    }
}

impl Size {
    pub(crate) fn table(self) -> Result<Arc<Table>, TableError> {
        Ok(Arc::new(match self {
            Self::Keys(keys) => Table::with_keys(keys)?,
            Self::Memory(bytes) => Table::with_memory(bytes)?,
        }))
    }
}

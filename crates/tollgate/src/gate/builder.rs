//! Making a gate.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Limit;
use tollgate_local::{Clock, Counters, HeavyKeys, Seed, SystemClock};

use crate::error::Error;
use crate::gate::charge::LimitId;
use crate::gate::{Entry, Gate};
use crate::size::Size;

/// Makes a [`Gate`].
///
/// ```
/// use tollgate::{Gate, Limit, ManualClock};
/// let mut builder = Gate::builder().keys(1_000_000).clock(ManualClock::new());
/// let per_user = builder.limit("per-user", Limit::token_bucket("100/min")?);
/// let gate = builder.build()?;
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct GateBuilder<C = SystemClock> {
    /// Of the gate to be: its limits are told from those of others by it.
    number: u64,
    limits: Vec<(String, Limit)>,
    size: Size,
    seed: Option<Seed>,
    clock: C,
}

impl Gate {
    /// Starts to make a gate. There is room for 100,000 live keys of all limits together, in
    /// 2.4 MB with one limit, unless [`GateBuilder::keys`] says otherwise.
    ///
    /// ```
    /// use tollgate::{Error, Gate};
    /// assert!(matches!(Gate::builder().build(), Err(Error::NoLimits)));
    /// ```
    pub fn builder() -> GateBuilder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        GateBuilder {
            // Only that no two are the same matters, and nothing else is published with it.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            limits: Vec::new(),
            size: Size::default(),
            seed: None,
            clock: SystemClock::new(),
        }
    }
}

impl<C: Clock> GateBuilder<C> {
    /// Adds a limit under a name for people. What it returns is good for the gate that this
    /// builder makes, and no other.
    ///
    /// ```
    /// use tollgate::{Gate, Limit};
    /// let mut builder = Gate::builder();
    /// let per_user = builder.limit("per-user", Limit::token_bucket("100/min")?);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn limit(&mut self, name: impl Into<String>, limit: Limit) -> LimitId {
        self.limits.push((name.into(), limit));
        LimitId { gate: self.number, index: self.limits.len() - 1 }
    }

    /// Room for this many live keys of all limits together. With one limit they take under 24
    /// bytes each, and about 0.23 bytes more with each further one. A limit with a sliding log
    /// takes up to four times the table's memory beside that, as its keys come.
    ///
    /// ```
    /// let builder = tollgate::Gate::builder().keys(1_000_000);
    /// ```
    pub fn keys(self, keys: usize) -> Self {
        Self { size: Size::Keys(keys), ..self }
    }

    /// Room for as many live keys as fit into this many bytes, with all that belongs to them and
    /// to all limits: [`Stats::memory`](crate::Stats::memory) never says more. The least there can
    /// be is 128 bytes and, beside them, 4 KiB for each limit, or 64 KiB if it has a sliding log:
    /// so much is taken if less is given, but less than 128 bytes are refused.
    ///
    /// ```
    /// # use tollgate::{Gate, Limit};
    /// let mut builder = Gate::builder().memory(1 << 20);
    /// builder.limit("per-user", Limit::token_bucket("100/min")?);
    /// builder.limit("logins", Limit::sliding_log("10/15min")?);
    /// assert!(builder.build()?.stats().memory <= 1 << 20);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn memory(self, bytes: usize) -> Self {
        Self { size: Size::Memory(bytes), ..self }
    }

    /// A fixed seed for the hash of keys, in place of a secret one: see
    /// [`LimiterBuilder::seed`](crate::LimiterBuilder::seed).
    ///
    /// ```
    /// let builder = tollgate::Gate::builder().seed(tollgate::Seed::new(1));
    /// ```
    pub fn seed(self, seed: Seed) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Another clock.
    ///
    /// ```
    /// let builder = tollgate::Gate::builder().clock(tollgate::ManualClock::new());
    /// ```
    pub fn clock<D: Clock>(self, clock: D) -> GateBuilder<D> {
        let Self { number, limits, size, seed, .. } = self;
        GateBuilder { number, limits, size, seed, clock }
    }

    /// Makes the gate.
    ///
    /// ```
    /// use tollgate::{Error, Gate, Limit};
    /// let mut builder = Gate::builder();
    /// builder.limit("a", Limit::token_bucket("1/s")?);
    /// builder.limit("a", Limit::token_bucket("2/s")?);
    /// assert!(matches!(builder.build(), Err(Error::SameName { .. })));
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn build(self) -> Result<Gate<C>, Error> {
        let Self { number, limits, size, seed, clock } = self;
        if limits.is_empty() {
            return Err(Error::NoLimits);
        }
        let table = size.table(limits.iter().map(|(_, limit)| limit))?;
        let seed = seed.unwrap_or_else(Seed::random);
        let anchor = clock.anchor();
        let mut entries: Vec<Entry> = Vec::with_capacity(limits.len());
        for (index, (name, limit)) in limits.into_iter().enumerate() {
            if entries.iter().any(|entry| entry.name == name) {
                return Err(Error::SameName { name });
            }
            let counters = Counters::new(&table, &limit, anchor, seed.salt(index as u64));
            entries.push(Entry { name, limit, counters, heavy: HeavyKeys::default() });
        }
        Ok(Gate { number, limits: entries.into(), table, seed, clock })
    }
}

//! A store in the memory of this process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tollgate_core::lease::{Account, Grant, LeaseId, Lender};
use tollgate_core::{Anchor, Decision, Log, LogRule, Tick, Wall};
use tollgate_local::Clock;

use crate::ask::Ask;
use crate::budget::Kind;
use crate::error::StoreError;
use crate::store::{Pulse, Store};

/// Keeps the books in this process: the reference for all other stores, and enough for nodes that
/// live in one process.
///
/// It holds so many keys and no more. Keys that have their whole budget back make room; where there
/// are none, new keys are answered with [`StoreError::OutOfMemory`], and known ones as ever.
///
/// ```
/// use tollgate_local::SystemClock;
/// let store = tollgate_store::MemoryStore::new(SystemClock::new(), 100_000);
/// assert_eq!(store.keys(), 0);
/// ```
#[derive(Debug)]
pub struct MemoryStore<C> {
    clock: C,
    anchor: Anchor,
    shards: Box<[Mutex<Shard>]>,
    /// Keys in all shards.
    keys: AtomicUsize,
    max_keys: usize,
    memory: Mutex<Memory>,
}

/// What the store remembers since when.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    epoch: u64,
    lost: Option<Wall>,
}

#[derive(Debug, Default)]
struct Shard {
    books: BTreeMap<Name, Books>,
    /// When it is worth looking again for keys that are at rest.
    next_sweep: Tick,
}

/// The rule, its limit, and the key.
type Name = (Box<str>, Box<str>, Arc<[u8]>);

/// What is kept of one key.
#[derive(Debug)]
enum Books {
    Account(Box<Lender>, Account),
    Log(LogRule, Log),
    Unlimited,
}

impl<C: Clock> MemoryStore<C> {
    /// A store of at most so many keys.
    ///
    /// ```
    /// use tollgate_local::ManualClock;
    /// let store = tollgate_store::MemoryStore::new(ManualClock::new(), 1_000);
    /// # let _ = store;
    /// ```
    pub fn new(clock: C, max_keys: usize) -> Self {
        let anchor = clock.anchor();
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let (keys, memory) = (AtomicUsize::new(0), Mutex::default());
        Self { clock, anchor, shards, keys, max_keys, memory }
    }

    /// How many keys it holds.
    ///
    /// ```
    /// # use tollgate_local::ManualClock;
    /// assert_eq!(tollgate_store::MemoryStore::new(ManualClock::new(), 1_000).keys(), 0);
    /// ```
    pub fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Forgets everything, as a store does that is started again without its data. What it has lent
    /// and seen spent before, it takes for all there was: see [`Lender::after_loss`].
    ///
    /// ```
    /// # use tollgate_local::ManualClock;
    /// tollgate_store::MemoryStore::new(ManualClock::new(), 1_000).lose_memory();
    /// ```
    pub fn lose_memory(&self) {
        // All shards at once: nobody gets in between with an account of the old memory.
        let mut shards: Vec<_> = self.shards.iter().map(lock).collect();
        let mut memory = lock(&self.memory);
        *memory = Memory { epoch: memory.epoch + 1, lost: Some(self.wall()) };
        for shard in &mut shards {
            let books = std::mem::take(&mut shard.books);
            self.keys.fetch_sub(books.len(), Ordering::Relaxed);
        }
    }

    fn wall(&self) -> Wall {
        self.anchor.wall_at(self.clock.now())
    }

    fn answer(&self, ask: &Ask) -> Result<Grant, StoreError> {
        let mut shard = lock(self.shard_of(ask));
        let memory = *lock(&self.memory);
        let now = ask.budget().tick_at(self.wall()).ok_or(StoreError::Clock)?;
        let budget = ask.budget();
        let name = (budget.rule().into(), budget.to_string().into(), Arc::clone(ask.shared_key()));
        if let Some(books) = shard.books.get_mut(&name) {
            return books.answer(ask, memory, now);
        }
        self.make_room(&mut shard, now)?;
        self.keys.fetch_add(1, Ordering::Relaxed);
        shard
            .books
            .entry(name)
            .or_insert_with(|| Books::open(ask, memory, now))
            .answer(ask, memory, now)
    }

    fn shard_of(&self, ask: &Ask) -> &Mutex<Shard> {
        &self.shards[ask.phase().0 as usize % SHARDS]
    }

    fn make_room(&self, shard: &mut Shard, now: Tick) -> Result<(), StoreError> {
        let is_full = || self.keys() >= self.max_keys;
        if is_full() && shard.next_sweep <= now {
            let before = shard.books.len();
            shard.books.retain(|_, books| !books.is_at_rest(now));
            self.keys.fetch_sub(before - shard.books.len(), Ordering::Relaxed);
            shard.next_sweep = now.after(SWEEP);
        }
        match is_full() {
            true => Err(StoreError::OutOfMemory { reason: format!("{} keys", self.max_keys) }),
            false => Ok(()),
        }
    }
}

impl<C: Clock> Store for MemoryStore<C> {
    async fn exchange(&self, asks: &[Ask]) -> Vec<Result<Grant, StoreError>> {
        asks.iter().map(|ask| self.answer(ask)).collect()
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        let epoch = lock(&self.memory).epoch;
        Ok(Pulse { wall: self.wall(), round_trip: Duration::ZERO, epoch })
    }
}

impl Books {
    fn open(ask: &Ask, memory: Memory, now: Tick) -> Self {
        let budget = ask.budget();
        let lost = memory.lost.and_then(|lost| budget.tick_at(lost));
        match budget.kind() {
            Kind::Lent(lender) => {
                let lender = match lost {
                    Some(lost) => Box::new(Lender::clone(lender).after_loss(memory.epoch, lost)),
                    None => lender.clone(),
                };
                let account = lender.open(now, ask.phase());
                Self::Account(lender, account)
            }
            Kind::Log(rule) => {
                let mut log = Log::default();
                // A log that was lost is taken for full at that moment.
                if let Some(lost) = lost {
                    log.step(*rule, lost, rule.limit());
                }
                Self::Log(*rule, log)
            }
            Kind::Unlimited => Self::Unlimited,
        }
    }

    fn answer(&mut self, ask: &Ask, memory: Memory, now: Tick) -> Result<Grant, StoreError> {
        let exchange = ask.exchange();
        match self {
            Self::Account(lender, account) => {
                lender.exchange(account, now, exchange).ok_or(StoreError::Overtaken)
            }
            Self::Log(rule, log) => {
                Ok(unremembered(ask, memory.epoch, log.step(*rule, now, exchange.cost)))
            }
            Self::Unlimited => Ok(unremembered(ask, memory.epoch, Decision::unlimited())),
        }
    }

    fn is_at_rest(&mut self, now: Tick) -> bool {
        match self {
            Self::Account(lender, account) => lender.is_at_rest(account, now),
            Self::Log(rule, log) => log.is_at_rest(*rule, now),
            Self::Unlimited => true,
        }
    }
}

/// The answer of a log or of no limit at all, which lend nothing and remember nobody.
pub(crate) const fn unremembered(ask: &Ask, epoch: u64, decision: Decision) -> Grant {
    let sequence = ask.exchange().sequence;
    let lease = LeaseId { epoch, began: sequence };
    Grant { sequence, lease, tokens: 0, span: Duration::ZERO, decision }
}

/// What is locked is a plain value: whoever panicked left it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks: more than there are threads to meet at one.
const SHARDS: usize = 64;

/// A full store looks for keys at rest so often, in each shard.
const SWEEP: Duration = Duration::from_millis(100);

//! A store in the memory of this process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tollgate_core::lease::{Account, Carried, Exchange, Grant, LeaseId, Lender, Promise};
use tollgate_core::{Anchor, Decision, Log, LogRule, Tick, Wall};
use tollgate_local::Clock;

use crate::ask::Ask;
use crate::budget::{Budget, Kind};
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
    next_sweep: Wall,
}

/// The rule, what it is kept as, and the key.
type Name = (Box<str>, Box<str>, Arc<[u8]>);

/// What is kept of one key.
#[derive(Clone, Debug)]
enum Books {
    /// With the budget by whose origin time is counted: that of whoever asked first.
    Account(Arc<Budget>, Box<Lender>, Account),
    Log(Arc<Budget>, LogRule, Log),
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
        let (memory, wall) = (*lock(&self.memory), self.wall());
        let name = name_of(ask);
        let is_look = ask.exchange().is_look();
        if let Some(books) = shard.books.get_mut(&name) {
            let Some(carried) = ask.carried().filter(|carried| carried.of_known) else {
                return books.answer(ask, memory, wall);
            };
            if is_look {
                let mut books = books.clone();
                books.carry(carried, wall)?;
                return books.answer(ask, memory, wall);
            }
            books.carry(carried, wall)?;
            return books.answer(ask, memory, wall);
        }
        if !is_look {
            self.make_room(&mut shard, wall)?;
        }
        let mut books = Books::open(ask, memory, wall)?;
        if let Some(carried) = ask.carried() {
            books.carry(carried, wall)?;
        }
        let answer = books.answer(ask, memory, wall);
        if !is_look && !books.is_at_rest(wall) {
            self.keys.fetch_add(1, Ordering::Relaxed);
            shard.books.insert(name, books);
        }
        answer
    }

    fn forget_key(&self, ask: &Ask) -> Result<bool, StoreError> {
        let mut shard = lock(self.shard_of(ask));
        let (memory, wall) = (*lock(&self.memory), self.wall());
        let was_known = shard.books.remove(&name_of(ask)).is_some();
        self.keys.fetch_sub(usize::from(was_known), Ordering::Relaxed);
        if memory.lost.is_some() {
            // A key that is not there would be taken for one that was lost.
            self.make_room(&mut shard, wall)?;
            let books = Books::open_whole(ask, memory, wall)?;
            self.keys.fetch_add(1, Ordering::Relaxed);
            shard.books.insert(name_of(ask), books);
        }
        Ok(was_known || memory.lost.is_some())
    }

    fn shard_of(&self, ask: &Ask) -> &Mutex<Shard> {
        &self.shards[ask.phase().0 as usize % SHARDS]
    }

    fn make_room(&self, shard: &mut Shard, wall: Wall) -> Result<(), StoreError> {
        let is_full = || self.keys() >= self.max_keys;
        if is_full() && shard.next_sweep <= wall {
            let before = shard.books.len();
            shard.books.retain(|_, books| !books.is_at_rest(wall));
            self.keys.fetch_sub(before - shard.books.len(), Ordering::Relaxed);
            shard.next_sweep = Wall::from_unix_nanos(wall.as_unix_nanos() + SWEEP);
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

    async fn forget(&self, budget: &Arc<Budget>, key: &[u8]) -> Result<bool, StoreError> {
        self.forget_key(&Ask::new(Arc::clone(budget), key, Exchange::once(0)))
    }

    async fn ping(&self) -> Result<Pulse, StoreError> {
        let epoch = lock(&self.memory).epoch;
        Ok(Pulse { wall: self.wall(), round_trip: Duration::ZERO, epoch })
    }
}

impl Books {
    /// Of a key that is not known.
    fn open(ask: &Ask, memory: Memory, wall: Wall) -> Result<Self, StoreError> {
        Self::open_as(ask, memory, wall, memory.lost)
    }

    /// Of one that has its whole budget for sure.
    fn open_whole(ask: &Ask, memory: Memory, wall: Wall) -> Result<Self, StoreError> {
        Self::open_as(ask, memory, wall, None)
    }

    fn open_as(
        ask: &Ask,
        memory: Memory,
        wall: Wall,
        lost: Option<Wall>,
    ) -> Result<Self, StoreError> {
        let budget = Arc::clone(ask.budget());
        let now = budget.tick_at(wall).ok_or(StoreError::Clock)?;
        let lost = lost.and_then(|lost| budget.tick_at(lost));
        Ok(match budget.kind() {
            Kind::Lent(lender) => {
                let after_loss = |lost| Lender::clone(lender).after_loss(memory.epoch, lost);
                // Leases are named after the memory even if nothing is known to be lost.
                let account = lost.map_or_else(
                    || lender.open(now, ask.phase()),
                    |lost| after_loss(lost).open(now, ask.phase()),
                );
                let lender = Box::new(after_loss(lost.unwrap_or(Tick::ZERO)));
                Self::Account(budget, lender, account)
            }
            Kind::Log(rule) => {
                let carried = ask.carried().map(|carried| (carried.since(now), carried.spent));
                let (rule, log) = (*rule, open_log(*rule, lost, carried));
                Self::Log(budget, rule, log)
            }
            Kind::Unlimited => Self::Unlimited,
        })
    }

    /// What the key brings along. A log has it from the beginning, or not at all.
    fn carry(&mut self, carried: &Carried, wall: Wall) -> Result<(), StoreError> {
        if let Self::Account(budget, lender, account) = self {
            let now = budget.tick_at(wall).ok_or(StoreError::Clock)?;
            lender.carry(account, now, carried);
        }
        Ok(())
    }

    fn answer(&mut self, ask: &Ask, memory: Memory, wall: Wall) -> Result<Grant, StoreError> {
        let exchange = ask.exchange();
        match self {
            Self::Account(budget, lender, account) => {
                let now = budget.tick_at(wall).ok_or(StoreError::Clock)?;
                if let Kind::Lent(asked) = ask.budget().kind()
                    && let Some(max) = asked.permits()
                {
                    lender.resize(max);
                }
                lender.exchange(account, now, exchange).ok_or(StoreError::Overtaken)
            }
            Self::Log(budget, rule, log) => {
                let now = budget.tick_at(wall).ok_or(StoreError::Clock)?;
                Ok(answer_of_log(log, *rule, budget, now, ask, memory.epoch))
            }
            Self::Unlimited => Ok(unremembered(ask, memory.epoch, Decision::unlimited(), wall)),
        }
    }

    fn is_at_rest(&mut self, wall: Wall) -> bool {
        match self {
            Self::Account(budget, lender, account) => {
                budget.tick_at(wall).is_some_and(|now| lender.is_at_rest(account, now))
            }
            Self::Log(budget, rule, log) => {
                budget.tick_at(wall).is_some_and(|now| log.is_at_rest(*rule, now))
            }
            Self::Unlimited => true,
        }
    }
}

/// The log of a key that is not known. One that was lost is taken for full at that moment. What the
/// key brings along was spent when its limit changed, and is a part of that if it was later.
pub(crate) fn open_log(rule: LogRule, lost: Option<Tick>, carried: Option<(Tick, u64)>) -> Log {
    let mut log = Log::default();
    let carried = carried.filter(|(since, _)| lost.is_none_or(|lost| lost <= *since));
    let spent = carried.map_or(0, |(_, spent)| spent.min(rule.limit()));
    if let Some(lost) = lost {
        log.step(rule, lost, rule.limit() - spent);
    }
    if let Some((since, _)) = carried {
        log.step(rule, since, spent);
    }
    log
}

/// What a log says to a question.
pub(crate) fn answer_of_log(
    log: &mut Log,
    rule: LogRule,
    budget: &Budget,
    now: Tick,
    ask: &Ask,
    epoch: u64,
) -> Grant {
    let exchange = ask.exchange();
    log.forget(rule, now);
    if let Some(undo) = exchange.undo.filter(|undo| undo.cost <= rule.limit())
        && let Some(then) = budget.tick_at(undo.at)
        && then.after(rule.window()) > log.latest()
        && exchange.sequence == 0
    {
        log.undo(then, undo.cost);
    }
    let decision = log.step(rule, now, exchange.cost);
    let at = Wall::from_unix_nanos(budget.unix_nanos(log.latest()));
    unremembered(ask, epoch, decision, at)
}

/// The answer of a log or of no limit at all, which lend nothing and remember nobody.
pub(crate) const fn unremembered(ask: &Ask, epoch: u64, decision: Decision, at: Wall) -> Grant {
    let sequence = ask.exchange().sequence;
    let lease = LeaseId { epoch, began: at.as_unix_nanos() / 1_000 };
    let (span, turn) = (Duration::ZERO, Duration::ZERO);
    Grant { sequence, lease, tokens: 0, span, promise: Promise::NOTHING, turn, decision, at }
}

fn name_of(ask: &Ask) -> Name {
    let budget = ask.budget();
    (budget.rule().into(), budget.kept_as().into(), Arc::clone(ask.shared_key()))
}

/// What is locked is a plain value: whoever panicked left it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks: more than there are threads to meet at one.
const SHARDS: usize = 64;

/// A full store looks for keys at rest so often, in each shard: nanoseconds.
const SWEEP: u64 = 100_000_000;

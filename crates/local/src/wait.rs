//! Waiting rooms: requests that wait for their turn, first come, first served.
//!
//! Those who wait hold nothing: the one at the head of a key's queue spends when its time has
//! come, and only then. So whoever gives up waiting has spent nothing, and those behind move up.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use tollgate_core::{Decision, Tick};

use crate::clock::Timer;
use crate::counters::{Counters, Due};
use crate::key::KeyHash;
use crate::shards::{ByHash, Shards};

/// Why a request was not let through in the end. It has spent nothing.
///
/// ```
/// use tollgate_local::WaitError;
/// assert!(WaitError::QueueFull { max: 5 }.to_string().contains('5'));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// As many as may wait for this key are waiting already.
    #[error("{max} requests are waiting already; try again later")]
    QueueFull {
        /// How many may wait.
        max: usize,
    },
    /// As many as may wait for all keys together are waiting already.
    #[error("{max} requests of all keys are waiting already; try again later")]
    RoomFull {
        /// How many may wait.
        max: usize,
    },
    /// The request costs more than the limit can ever hold.
    #[error("the request costs more than the limit can ever hold: waiting does not help")]
    NeverFits,
    /// The clock has reached its last tick, and the time of the request will not come.
    #[error("the clock stands still at its last tick: waiting does not help")]
    ClockEnded,
}

/// Those who wait for the counters of one limit.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::Limit;
/// use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table, WaitingRoom};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let (clock, seed) = (ManualClock::new(), Seed::random());
/// let table = Arc::new(Table::with_keys(1000).expect("some memory"));
/// let limit = Limit::token_bucket("2/min").expect("a valid quota");
/// let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
/// let room = WaitingRoom::new(10);
/// assert!(room.wait(&counters, "alice".hash(&seed), 1, &clock).await.is_ok());
/// # });
/// ```
#[derive(Debug)]
pub struct WaitingRoom {
    /// How many may wait for one key.
    max: usize,
    /// How many wait, over all keys.
    waiting: AtomicUsize,
    queues: Shards<ByHash<Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    waiters: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    /// Set while it waits for its turn.
    waker: Option<Waker>,
}

/// A place in a queue, given up when dropped.
struct Ticket<'a> {
    room: &'a WaitingRoom,
    key: KeyHash,
    number: u64,
}

const SHARDS: usize = 16;

impl WaitingRoom {
    /// At most `max` requests wait for one key, and [`WaitingRoom::MAX_WAITING`] for all.
    ///
    /// ```
    /// assert_eq!(tollgate_local::WaitingRoom::new(10).waiting(), 0);
    /// ```
    pub fn new(max: usize) -> Self {
        let queues = Shards::new(SHARDS, ByHash::default);
        Self { max, waiting: AtomicUsize::new(0), queues }
    }

    /// The most requests that wait for all keys together.
    ///
    /// ```
    /// assert_eq!(tollgate_local::WaitingRoom::MAX_WAITING, 100_000);
    /// ```
    pub const MAX_WAITING: usize = 100_000;

    /// How many requests are waiting, over all keys.
    ///
    /// ```
    /// assert_eq!(tollgate_local::WaitingRoom::new(10).waiting(), 0);
    /// ```
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Ends when `cost` was spent: at once if nobody waits and the limit allows it, otherwise
    /// when all who came before are through and the limit allows it. A future that is dropped
    /// before has spent nothing.
    ///
    /// Those who have to wait are woken by the clock's timer, which with tokio means to the next
    /// millisecond: the queue of a key whose limit shapes moves once per millisecond at the most.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate_core::Limit;
    /// # use tollgate_local::{Clock, Counters, Key, ManualClock, Seed, Table, WaitError, WaitingRoom};
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let (clock, seed) = (ManualClock::new(), Seed::random());
    /// # let table = Arc::new(Table::with_keys(1000).expect("some memory"));
    /// # let limit = Limit::token_bucket("2/min").expect("a valid quota");
    /// # let counters = Counters::new(&table, &limit, clock.anchor(), seed.salt(0));
    /// # let room = WaitingRoom::new(10);
    /// let never = room.wait(&counters, "alice".hash(&seed), 3, &clock).await;
    /// assert_eq!(never, Err(WaitError::NeverFits));
    /// # });
    /// ```
    pub async fn wait(
        &self,
        counters: &Counters,
        key: KeyHash,
        cost: u64,
        clock: &impl Timer,
    ) -> Result<Decision, WaitError> {
        let ticket = self.join(key)?;
        std::future::poll_fn(|context| ticket.poll_head(context)).await;
        loop {
            let now = clock.now();
            match counters.due(key, cost, now) {
                Due::Never => return Err(WaitError::NeverFits),
                // There is no later moment to wake up at: this would go round for ever.
                Due::After(_) if now == Tick::MAX => return Err(WaitError::ClockEnded),
                Due::After(span) => clock.sleep(span).await,
                Due::Now => {
                    // Somebody who does not queue may take the turn at the last moment. Then this
                    // has spent nothing, and waits for the next one.
                    let decision = counters.check_at_once(key, cost, clock);
                    if decision.is_allowed() && decision.delay().is_zero() {
                        return Ok(decision);
                    }
                }
            }
        }
    }

    fn join(&self, key: KeyHash) -> Result<Ticket<'_>, WaitError> {
        let mut queues = self.queues.of(key);
        let waiters = queues.get(&key).map_or(0, |queue| queue.waiters.len());
        // One is always let in: it may not have to wait at all.
        if waiters >= self.max.max(1) {
            return Err(WaitError::QueueFull { max: self.max });
        }
        if self.waiting() >= Self::MAX_WAITING {
            return Err(WaitError::RoomFull { max: Self::MAX_WAITING });
        }
        let queue = queues.entry(key).or_default();
        let number = queue.next;
        queue.next += 1;
        queue.waiters.push_back(Waiter { number, waker: None });
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Ok(Ticket { room: self, key, number })
    }
}

impl Ticket<'_> {
    fn poll_head(&self, context: &Context<'_>) -> Poll<()> {
        let mut queues = self.room.queues.of(self.key);
        let Some(queue) = queues.get_mut(&self.key) else { return Poll::Ready(()) };
        match queue.waiters.binary_search_by_key(&self.number, |waiter| waiter.number) {
            Ok(0) | Err(_) => Poll::Ready(()),
            Ok(place) => {
                queue.waiters[place].waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut queues = self.room.queues.of(self.key);
        self.room.waiting.fetch_sub(1, Ordering::Relaxed);
        let Some(queue) = queues.get_mut(&self.key) else { return };
        if let Ok(place) = queue.waiters.binary_search_by_key(&self.number, |it| it.number) {
            queue.waiters.remove(place);
        }
        let next = match queue.waiters.front_mut() {
            Some(head) => head.waker.take(),
            None => queues.remove(&self.key).and(None),
        };
        drop(queues);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

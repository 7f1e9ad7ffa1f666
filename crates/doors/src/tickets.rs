//! Requests under way whose end somebody will tell us: what they hold is kept under a ticket.
//!
//! A ticket is kept for a time, and there are so many of them: whoever never says how a request
//! ended leaves nothing behind. Nobody has to clean up: whoever asks first after a ticket's time
//! throws it away, a few at once.

mod kept;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher as _;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::{Request, Tick, UnderWay};

use crate::connection::Limits;
use crate::service::Service;

pub(crate) use self::kept::Kept;

/// Requests under way, by their tickets.
pub(crate) struct Tickets {
    shards: [Shard; SHARDS],
    /// How many there are, and how many bytes they take: read before anything is locked.
    count: AtomicUsize,
    bytes: AtomicUsize,
    most: usize,
    time: Duration,
    /// Tickets are numbers under this key, so that nobody can guess one.
    secret: Secret,
    next: AtomicU64,
}

#[expect(clippy::disallowed_types, reason = "a keyed hash of a counter: nothing depends on order")]
type Secret = std::hash::RandomState;

/// What a request under way is called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    /// When it ends, in nanoseconds of our clock. In front, so that tickets are in this order.
    end: u64,
    secret: u128,
}

#[derive(Default)]
struct Shard {
    kept: Mutex<BTreeMap<Ticket, Kept>>,
    /// When the first of them ends. Written under the lock, and read without: nothing else is
    /// published with it.
    soonest: AtomicU64,
}

impl Tickets {
    #[expect(clippy::disallowed_methods, reason = "tickets must not be guessed from outside")]
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard { soonest: NEVER.into(), ..Shard::default() }),
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            most: limits.tickets,
            time: limits.ticket_time,
            secret: Secret::new(),
            next: AtomicU64::new(0),
        }
    }

    /// Whether there is room for so many more. Threads that ask at the same time may all hear that
    /// there is, so there can be more of them by what each then [puts](Self::put).
    pub(crate) fn has_room(&self, more: usize, now: Tick) -> bool {
        self.fits(more) || {
            self.sweep(now);
            self.fits(more)
        }
    }

    /// Whether there is room for those of these requests whose end will be told. It is found out
    /// before anything is spent.
    pub(crate) fn have_room_for(
        &self,
        requests: &[Request<'_>],
        service: &Service,
        now: Tick,
    ) -> bool {
        self.has_room(requests.len(), now) || {
            let engine = service.engine();
            let needed = requests.iter().filter(|request| engine.will_need_report(request)).count();
            needed == 0 || self.has_room(needed, now)
        }
    }

    /// Throws away tickets whose time is over, a few at once: their slots are free again, and what
    /// was reserved for them is spent. To be called before something is decided.
    pub(crate) fn sweep(&self, now: Tick) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        for shard in &self.shards {
            if shard.soonest.load(Ordering::Relaxed) <= now.as_nanos() {
                let ended = shard.take_ended(now);
                ended.iter().for_each(|kept| self.forget(kept));
            }
        }
    }

    /// A ticket that is not in use, for a request that is under way from now on.
    pub(crate) fn draw(&self, now: Tick) -> Ticket {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let half = |part: u8| u128::from(self.secret.hash_one((number, part)));
        Ticket { end: now.after(self.time).as_nanos(), secret: half(0) << 64 | half(1) }
    }

    /// Keeps what a request under way holds.
    pub(crate) fn put(&self, ticket: Ticket, under_way: UnderWay, request: &Request<'_>) {
        let kept = Kept::new(under_way, request);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(kept.bytes(), Ordering::Relaxed);
        let shard = self.shard(ticket);
        let mut all = shard.lock();
        all.insert(ticket, kept);
        shard.note_soonest(&all);
    }

    /// Takes what is kept under a ticket, unless its time is over.
    pub(crate) fn take(&self, ticket: Ticket, now: Tick) -> Option<Kept> {
        let shard = self.shard(ticket);
        let mut all = shard.lock();
        let kept = all.remove(&ticket)?;
        shard.note_soonest(&all);
        drop(all);
        self.forget(&kept);
        (ticket.end > now.as_nanos()).then_some(kept)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many there can be.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    fn fits(&self, more: usize) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let count = self.count().saturating_add(more);
        count <= self.most && bytes < self.most.saturating_mul(BYTES_EACH)
    }

    fn forget(&self, kept: &Kept) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(kept.bytes(), Ordering::Relaxed);
    }

    fn shard(&self, ticket: Ticket) -> &Shard {
        &self.shards[(ticket.secret % SHARDS as u128) as usize]
    }
}

impl Shard {
    /// Nothing is left half done under the lock.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Ticket, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Some whose time is over. They are dropped by the caller, when nobody waits for the lock.
    fn take_ended(&self, now: Tick) -> SmallVec<[Kept; STEP]> {
        let mut ended = SmallVec::new();
        let mut all = self.lock();
        while ended.len() < STEP
            && let Some(first) = all.first_entry()
            && first.key().end <= now.as_nanos()
        {
            ended.push(first.remove());
        }
        self.note_soonest(&all);
        ended
    }

    fn note_soonest(&self, all: &BTreeMap<Ticket, Kept>) {
        let soonest = all.first_key_value().map_or(NEVER, |(ticket, _)| ticket.end);
        self.soonest.store(soonest, Ordering::Relaxed);
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("count", &self.count()).finish_non_exhaustive()
    }
}

/// As it is handed out: 48 hexadecimal digits.
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:032x}", self.end, self.secret)
    }
}

/// It is as good as a key.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Ticket(..)")
    }
}

/// This is no ticket, and never was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoTicket;

impl FromStr for Ticket {
    type Err = NoTicket;

    fn from_str(text: &str) -> Result<Self, NoTicket> {
        let digits = text.len() == 48 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (end, secret) = text.split_at_checked(16).filter(|_| digits).ok_or(NoTicket)?;
        let end = u64::from_str_radix(end, 16).map_err(|_| NoTicket)?;
        let secret = u128::from_str_radix(secret, 16).map_err(|_| NoTicket)?;
        Ok(Self { end, secret })
    }
}

/// Locks that tickets are spread over.
const SHARDS: usize = 16;

/// How many tickets of a shard are thrown away at once: nobody has to wait for thousands.
const STEP: usize = 4;

/// What all requests may take on average.
const BYTES_EACH: usize = 1024;

/// Later than any tick.
const NEVER: u64 = u64::MAX;

#[cfg(test)]
mod tests;

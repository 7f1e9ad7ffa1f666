//! What this node holds of keys whose budget a store lends.
//!
//! A [`Borrower`] knows the rules of lending, and is asked about every request under a lock. For a
//! key that is hot that would be too slow, so the borrower lends once more: all it holds lies in a
//! [`Purse`], from which threads take with one compare-and-swap. Whoever needs the borrower itself,
//! to exchange with the store or because the purse is empty, [locks](Purses::lock) it: then what was
//! taken is booked, and when the lock is left the purse is filled anew. Threads that fight for a purse
//! take handfuls from it, into [pockets](pocket).
//!
//! ```text
//!   take      owners (one line: whose purses are these eight?) -> purse (one line: swap)
//!   lock      purse emptied -> Borrower books, spends, exchanges, is answered -> purse filled
//! ```
//!
//! There are so many purses and no more. A key that finds no place is decided by the store each
//! time, which is slower, and as exact; unless it comes so often that the idlest other key has to
//! [make room](Purses::make_room) for it.

mod lent;
mod pocket;
mod purse;

pub use lent::Lent;
pub use purse::Taken;

use std::sync::atomic::{AtomicU64 as Count, Ordering as Counting};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use tollgate_core::lease::Borrower;
use tollgate_core::{Decision, Tick};

use crate::key::KeyHash;
use crate::prefetch::prefetch;
use crate::purses::purse::{Purse, Whose};
use crate::shards::lock;
use crate::sync::{AtomicU64, Ordering};

/// What this node holds of many keys, each with something of its owner's, `T`, beside it.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Anchor, Limit, Phase, Tick};
/// use tollgate_core::lease::{Borrower, Lender, Node, Spend};
/// use tollgate_local::{Key, Purses, Seed, Taken};
///
/// let limit = Limit::token_bucket("1k/s")?;
/// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
/// let mut account = lender.open(Tick::ZERO, Phase::default());
/// let node = Node { number: 1, incarnation: 1 };
/// let terms = lender.terms().expect("it is lent");
///
/// let purses = Purses::new(1_000);
/// let (alice, now) = ("alice".hash(&Seed::random()), Tick::ZERO);
/// let mut lent = purses.open(alice, now, || (Borrower::new(node, terms), ())).expect("there is room");
/// let borrower = lent.borrower();
/// assert_eq!(borrower.spend(now, 8), Spend::Ask);
/// let exchange = borrower.exchange(now).expect("it has nothing");
/// let grant = lender.exchange(&mut account, now, &exchange).expect("nothing overtakes it");
/// borrower.answer(now, &grant);
/// drop(lent);
///
/// assert!(matches!(purses.take(alice, now, 8), Taken::Spent { .. }), "nobody was asked");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Debug)]
pub struct Purses<T> {
    /// Theirs alone in this process.
    id: u64,
    owners: Box<[Owners]>,
    purses: Box<[Purse]>,
    books: Box<[Mutex<Kept<T>>]>,
    /// Requests that were answered from purses, as far as that is booked: those that passed, and those
    /// that were denied.
    spent: AtomicU64,
    denied: AtomicU64,
    /// One for each set of purses, for whoever looks for a place in it.
    claims: Box<[Mutex<()>]>,
}

/// Where a purse lies.
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_local::{Place, Purses};
/// fn is_mine(purses: &Purses<String>, place: Place, now: Tick) -> bool {
///     purses.lock(place, now).is_some_and(|lent| lent.beside() == "mine")
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub(crate) u32);

/// Whose purses the eight of a set are.
#[derive(Debug)]
#[repr(align(64))]
struct Owners([AtomicU64; WAYS]);

/// What belongs to a purse, and is not needed on the way of most decisions.
#[derive(Debug)]
struct Book<T> {
    owner: u64,
    borrower: Borrower,
    /// What lies in the purse since it was filled.
    filled: u64,
    beside: T,
}

/// Nothing, where nobody's purse lies.
type Kept<T> = Option<Box<Book<T>>>;

const WAYS: usize = if cfg!(loom) { 1 } else { 8 };

/// Nobody.
const NOBODY: u64 = 0;

impl<T> Purses<T> {
    /// Room for at least so many keys, up to a million: 88 bytes each, and some hundreds more for each
    /// that is lent to.
    ///
    /// ```
    /// use tollgate_local::Purses;
    /// assert_eq!(Purses::<()>::new(1_000).room(), 1_024);
    /// ```
    pub fn new(keys: usize) -> Self {
        let sets = keys.div_ceil(WAYS).clamp(1, MOST / WAYS).next_power_of_two();
        let places = sets * WAYS;
        Self {
            id: NEXT.fetch_add(1, Counting::Relaxed),
            owners: (0..sets).map(|_| Owners::default()).collect(),
            purses: (0..places).map(|_| Purse::default()).collect(),
            books: (0..places).map(|_| Mutex::new(None)).collect(),
            spent: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            claims: (0..sets.min(CLAIMS)).map(|_| Mutex::new(())).collect(),
        }
    }

    /// How many keys can be lent to at once.
    ///
    /// ```
    /// use tollgate_local::Purses;
    /// assert!(Purses::<()>::new(10).room() >= 10);
    /// ```
    pub const fn room(&self) -> usize {
        self.purses.len()
    }

    /// Spends from the key's purse, if there is enough in it. No lock is taken.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// use tollgate_local::{Key, Purses, Seed, Taken};
    /// let purses = Purses::<()>::new(10);
    /// let taken = purses.take("alice".hash(&Seed::random()), Tick::ZERO, 1);
    /// assert!(matches!(taken, Taken::Unknown), "nothing was lent");
    /// ```
    pub fn take(&self, key: KeyHash, now: Tick, cost: u64) -> Taken {
        let mut said = Decision::unlimited();
        self.take_to(key, now, cost, &mut said).saying(said)
    }

    /// The same, with the decision written to where it is needed, if there is one.
    ///
    /// ```
    /// use tollgate_core::{Decision, Tick};
    /// use tollgate_local::{Key, Purses, Seed, Taken};
    /// let (purses, mut decision) = (Purses::<()>::new(10), Decision::unlimited());
    /// let taken = purses.take_to("alice".hash(&Seed::random()), Tick::ZERO, 1, &mut decision);
    /// assert!(matches!(taken, Taken::Unknown), "nothing was lent");
    /// ```
    #[inline]
    pub fn take_to(&self, key: KeyHash, now: Tick, cost: u64, said: &mut Decision) -> Taken<()> {
        match self.whose(key) {
            Some(whose) => self.purses[whose.place.0 as usize].take(whose, now, cost, said),
            None => Taken::Unknown,
        }
    }

    /// Spends a `sum` for so many requests at once, or nothing.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// use tollgate_local::{Key, Purses, Seed, Taken};
    /// let purses = Purses::<()>::new(10);
    /// let taken = purses.take_sum("alice".hash(&Seed::random()), Tick::ZERO, 10, 2);
    /// assert!(matches!(taken, Taken::Unknown), "nothing was lent");
    /// ```
    pub fn take_sum(&self, key: KeyHash, now: Tick, sum: u64, requests: u64) -> Taken {
        let Some(whose) = self.whose(key) else { return Taken::Unknown };
        let (purse, mut said) = (&self.purses[whose.place.0 as usize], Decision::unlimited());
        purse.take_sum(whose, now, (sum, requests), &mut said).saying(said)
    }

    /// Starts to load what [`take`](Self::take) will need.
    ///
    /// ```
    /// use tollgate_local::{Key, Purses, Seed};
    /// Purses::<()>::new(10).prefetch("alice".hash(&Seed::random()));
    /// ```
    #[inline]
    pub fn prefetch(&self, key: KeyHash) {
        if let Some(place) = self.place_of(key) {
            prefetch(&self.purses[place.0 as usize]);
        }
    }

    /// What the key's purse would say, without spending.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// use tollgate_local::{Key, Purses, Seed, Taken};
    /// let purses = Purses::<()>::new(10);
    /// assert!(matches!(purses.look("alice".hash(&Seed::random()), Tick::ZERO, 1), Taken::Unknown));
    /// ```
    pub fn look(&self, key: KeyHash, now: Tick, cost: u64) -> Taken {
        let Some(place) = self.place_of(key) else { return Taken::Unknown };
        self.purses[place.0 as usize].look(place, now, cost)
    }

    /// Puts back what was just taken, because the request did not pass after all. If the purse was
    /// filled anew since, it is lost.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// use tollgate_local::{KeyHash, Purses, Taken};
    /// fn change_of_mind(purses: &Purses<()>, key: KeyHash, now: Tick) {
    ///     if let Taken::Spent { place, filling, .. } = purses.take(key, now, 1) {
    ///         purses.put_back(place, filling, 1);
    ///     }
    /// }
    /// ```
    pub fn put_back(&self, place: Place, filling: u32, cost: u64) {
        self.purses[place.0 as usize].put_back(filling, cost);
    }

    /// A request that was just denied is not counted, because it is decided once more. If the purse was filled anew
    /// since, it is.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// use tollgate_local::{KeyHash, Purses, Taken};
    /// fn is_short(purses: &Purses<()>, key: KeyHash, now: Tick) -> bool {
    ///     let is_short = matches!(purses.take(key, now, 1), Taken::Short(_));
    ///     if is_short {
    ///         purses.uncount_denied(key);
    ///     }
    ///     is_short
    /// }
    /// ```
    pub fn uncount_denied(&self, key: KeyHash) {
        if let Some(place) = self.place_of(key) {
            self.purses[place.0 as usize].uncount_denied();
        }
    }

    /// The borrower behind the key's purse, or a new one in a free place. `None` if there is no
    /// place: then the store decides.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::{Borrower, Node, Terms}};
    /// use tollgate_local::{Key, Purses, Seed};
    /// let (purses, key) = (Purses::new(10), "alice".hash(&Seed::random()));
    /// let node = Node { number: 1, incarnation: 1 };
    /// let borrower = || (Borrower::new(node, Terms::of_permits(Duration::ZERO)), "alice");
    /// let lent = purses.open(key, Tick::ZERO, borrower).expect("there is room");
    /// assert_eq!(lent.beside(), &"alice");
    /// ```
    pub fn open(
        &self,
        key: KeyHash,
        now: Tick,
        new: impl FnOnce() -> (Borrower, T),
    ) -> Option<Lent<'_, T>> {
        let owner = owner_of(key);
        if let Some(lent) = self.known(key, now) {
            return Some(lent);
        }
        let set = self.set_of(key);
        let claim = lock(&self.claims[set % self.claims.len()]);
        if let Some(lent) = self.known(key, now) {
            return Some(lent);
        }
        let places = (set * WAYS..(set + 1) * WAYS).map(|place| Place(place as u32));
        let (place, mut book) = places.into_iter().find_map(|place| {
            let book = self.try_book(place)?;
            book.is_none().then_some((place, book))
        })?;
        let (borrower, beside) = new();
        *book = Some(Box::new(Book { owner, borrower, filled: 0, beside }));
        self.owner(place).store(owner, Ordering::Release);
        drop(claim);
        Some(Lent { purses: self, place, book, is_tended: false, is_refilled: false })
    }

    /// Frees a place for a key that has none, if all that it could have are taken: of those whose borrowers can
    /// [quit](Borrower::quit), that of the one which nobody has asked for longest, if that is as long as `least`. What
    /// it has to tell the store is heard by `quits`. Whether the key has a place now, or finds one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::Exchange};
    /// use tollgate_local::{KeyHash, Purses};
    /// fn make_room(purses: &Purses<()>, key: KeyHash, now: Tick, last: &mut Vec<Exchange>) -> bool {
    ///     let second = Duration::from_secs(1);
    ///     purses.make_room(key, now, second, |idlest| last.extend(idlest.borrower().quit(now)))
    /// }
    /// ```
    pub fn make_room(
        &self,
        key: KeyHash,
        now: Tick,
        least: Duration,
        quits: impl FnOnce(&mut Lent<'_, T>),
    ) -> bool {
        let set = self.set_of(key);
        // One after the other, so that several requests of a key take one place.
        let _claim = lock(&self.claims[set % self.claims.len()]);
        let is_free = |owner: &AtomicU64| owner.load(Ordering::Relaxed) == NOBODY;
        if self.place_of(key).is_some() || self.owners[set].0.iter().any(is_free) {
            return true;
        }
        let idlest = self.idlest(set, now, least).map(|mut idlest| {
            quits(&mut idlest);
            idlest.close();
        });
        idlest.is_some()
    }

    fn idlest(&self, set: usize, now: Tick, least: Duration) -> Option<Lent<'_, T>> {
        let places = (set * WAYS..(set + 1) * WAYS).map(|place| Place(place as u32));
        // Only looked at, so that nobody who takes from a purse finds it empty because of that.
        let silent = places.filter_map(|place| {
            let book = self.try_book(place)?;
            let Book { borrower, filled, .. } = book.as_deref()?;
            let is_silent = self.purses[place.0 as usize].is_untouched(*filled);
            Some((borrower.silence(now).filter(|_| is_silent)?, place))
        });
        let (_, place) = silent.max()?;
        let book = self.try_book(place)?;
        let lent = book.is_some().then(|| self.opened(place, book, now))?;
        let silence = lent.book.as_ref()?.borrower.silence(now);
        silence.is_some_and(|silence| silence >= least).then_some(lent)
    }

    /// The borrower behind a purse, if somebody's lies there.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// use tollgate_local::{Place, Purses};
    /// fn forget(purses: &Purses<()>, place: Place, now: Tick) {
    ///     if let Some(lent) = purses.lock(place, now) {
    ///         lent.close();
    ///     }
    /// }
    /// ```
    pub fn lock(&self, place: Place, now: Tick) -> Option<Lent<'_, T>> {
        let book = lock(&self.books[place.0 as usize]);
        book.is_some().then(|| self.opened(place, book, now))
    }

    /// How many requests passed and how many were denied with what lies in purses, or hardly more: a
    /// purse is counted when its borrower is next asked.
    ///
    /// ```
    /// assert_eq!(tollgate_local::Purses::<()>::new(10).counts(), (0, 0));
    /// ```
    pub fn counts(&self) -> (u64, u64) {
        (self.spent.load(Ordering::Relaxed), self.denied.load(Ordering::Relaxed))
    }

    /// All places that are taken, one after the other.
    ///
    /// ```
    /// use tollgate_local::Purses;
    /// assert_eq!(Purses::<()>::new(10).places().count(), 0);
    /// ```
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let owners = self.owners.iter().flat_map(|owners| &owners.0);
        let taken = owners.enumerate().filter(|(_, owner)| owner.load(Ordering::Relaxed) != NOBODY);
        taken.map(|(place, _)| Place(place as u32))
    }

    /// The borrower behind the key's purse, if it has one.
    ///
    /// ```
    /// use tollgate_core::Tick;
    /// use tollgate_local::{Key, Purses, Seed};
    /// assert!(Purses::<()>::new(10).known("alice".hash(&Seed::random()), Tick::ZERO).is_none());
    /// ```
    pub fn known(&self, key: KeyHash, now: Tick) -> Option<Lent<'_, T>> {
        let place = self.place_of(key)?;
        let book = lock(&self.books[place.0 as usize]);
        // It may have passed to somebody else meanwhile.
        let is_his = book.as_ref().is_some_and(|book| book.owner == owner_of(key));
        is_his.then(|| self.opened(place, book, now))
    }

    fn opened<'a>(
        &'a self,
        place: Place,
        mut book: MutexGuard<'a, Kept<T>>,
        now: Tick,
    ) -> Lent<'a, T> {
        if let Some(book) = book.as_mut() {
            let purse = &self.purses[place.0 as usize];
            let (spent, denied) = purse.empty_into(&mut book.borrower, &mut book.filled, now);
            self.spent.fetch_add(spent, Ordering::Relaxed);
            self.denied.fetch_add(denied, Ordering::Relaxed);
        }
        Lent { purses: self, place, book, is_tended: false, is_refilled: false }
    }

    fn try_book(&self, place: Place) -> Option<MutexGuard<'_, Kept<T>>> {
        match self.books[place.0 as usize].try_lock() {
            Ok(book) => Some(book),
            Err(TryLockError::Poisoned(book)) => Some(book.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    fn place_of(&self, key: KeyHash) -> Option<Place> {
        let (set, owner) = (self.set_of(key), owner_of(key));
        let owners = &self.owners[set].0;
        let way = owners.iter().position(|known| known.load(Ordering::Acquire) == owner)?;
        Some(Place((set * WAYS + way) as u32))
    }

    #[inline]
    fn whose(&self, key: KeyHash) -> Option<Whose<'_>> {
        let place = self.place_of(key)?;
        Some(Whose { purses: self.id, place, key: owner_of(key), owner: self.owner(place) })
    }

    #[inline]
    fn owner(&self, place: Place) -> &AtomicU64 {
        let place = place.0 as usize;
        &self.owners[place / WAYS].0[place % WAYS]
    }

    #[inline]
    fn set_of(&self, key: KeyHash) -> usize {
        // There are a power of two of them. The upper bits choose places elsewhere.
        (key.0 as usize) & (self.owners.len() - 1)
    }
}

impl Default for Owners {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(NOBODY)))
    }
}

/// A key has this number. One of 2^64 keys shares it with another.
#[inline]
const fn owner_of(key: KeyHash) -> u64 {
    if key.0 == NOBODY { 1 } else { key.0 }
}

/// What the next purses are told from others by.
static NEXT: Count = Count::new(1);

const MOST: usize = 1 << 20;

/// Whoever looks for a place seldom meets somebody who does the same.
const CLAIMS: usize = 256;

#[cfg(test)]
mod tests;

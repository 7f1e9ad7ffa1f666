//! One purse: what threads take from without a lock.

use std::time::Duration;

use tollgate_core::lease::Borrower;
use tollgate_core::{Decision, Retry, Tick};

use crate::purses::Place;
use crate::purses::pocket::Pocket;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What a purse says to a request.
///
/// ```
/// use tollgate_local::Taken;
/// fn passes(taken: &Taken) -> bool {
///     matches!(taken, Taken::Spent { .. })
/// }
/// ```
///
/// Without decisions, `D` being nothing, where these are [written](crate::Purses::take_to) elsewhere.
#[derive(Clone, Copy, Debug)]
pub enum Taken<D = Decision> {
    /// It passes.
    Spent {
        /// What is said of it. What is left is what the store said last, and what is held here.
        decision: D,
        /// Whether the purse is nearly empty, and nobody was told yet: ask for more.
        is_low: bool,
        /// Where the purse lies.
        place: Place,
        /// Which filling it was taken from, of all there ever were of this purse.
        filling: u32,
    },
    /// There is too little here, and was too little in the store a moment ago.
    Short(D),
    /// The borrower has to be asked.
    Locked(Place),
    /// Nothing is lent to the key.
    Unknown,
}

impl Taken<()> {
    /// The same with a decision.
    pub(super) fn saying(self, decision: Decision) -> Taken {
        match self {
            Self::Spent { is_low, place, filling, .. } => {
                Taken::Spent { decision, is_low, place, filling }
            }
            Self::Short(()) => Taken::Short(decision),
            Self::Locked(place) => Taken::Locked(place),
            Self::Unknown => Taken::Unknown,
        }
    }
}

/// One line of memory.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Purse {
    /// Tokens, how many requests took some, and which filling this is, in one word: a swap finds all
    /// of them unchanged, or none.
    word: AtomicU64,
    /// When what is in it is worth nothing any more.
    until: AtomicU64,
    /// Until when a request that finds too little is denied.
    short_until: AtomicU64,
    /// What the store last said is left, and for how long it is not all.
    left: AtomicU64,
    reset: AtomicU64,
    limit: AtomicU64,
    /// Fewer than this, and more is asked for.
    low: AtomicU32,
    /// How many were denied since the purse was filled.
    denied: AtomicU32,
    /// Whether somebody was told that it is low.
    told: AtomicBool,
    /// How often it was closed: the number of its filling, of which the word has the end.
    closed: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Purse>() == 64, "a decision touches one line");
const _: () = assert!(numbered(255, 0) == 256 && numbered(256, 255) == 255);

/// The parts of a word.
const TOKEN_BITS: u32 = 36;
const REQUEST_BITS: u32 = 20;
const FILLING: u32 = TOKEN_BITS + REQUEST_BITS;
const TOKENS: u64 = (1 << TOKEN_BITS) - 1;
const REQUEST: u64 = 1 << TOKEN_BITS;
const REQUESTS: u64 = (1 << REQUEST_BITS) - 1;

const fn tokens(word: u64) -> u64 {
    word & TOKENS
}

const fn requests(word: u64) -> u64 {
    (word >> TOKEN_BITS) & REQUESTS
}

const fn filling(word: u64) -> u8 {
    (word >> FILLING) as u8
}

/// The number of a filling, of which the end stands in a word that was found after the purse was closed so
/// often. If it was closed many times in between it is that of one before, which nothing is put back into.
const fn numbered(closed: u32, end: u8) -> u32 {
    closed.wrapping_add_signed(end.wrapping_sub(closed as u8) as i8 as i32)
}

/// So many requests more, as far as there is room to count them.
const fn counted(word: u64, more: u64) -> u64 {
    let room = REQUESTS - requests(word);
    REQUEST * if more < room { more } else { room }
}

/// Whose purse is taken from, and where it lies.
#[derive(Clone, Copy)]
pub(super) struct Whose<'a> {
    /// Which purses it is one of.
    pub(super) purses: u64,
    pub(super) place: Place,
    /// Who takes, and whose it is.
    pub(super) key: u64,
    pub(super) owner: &'a AtomicU64,
}

impl Purse {
    /// Spends if there is enough, and the purse still belongs to whoever asks.
    ///
    /// Here and below, the decision is written to where it is to stay: to move it right after it was
    /// written in pieces takes longer than all the rest.
    #[inline]
    pub(super) fn take(
        &self,
        whose: Whose<'_>,
        now: Tick,
        cost: u64,
        said: &mut Decision,
    ) -> Taken<()> {
        match Pocket::of(whose.purses, whose.place) {
            Some(pocket) => self.take_with(whose, now, cost, pocket, said),
            None => self
                .take_one(whose, now, cost, said)
                .unwrap_or_else(|| self.take_handful(whose, now, cost, None, said)),
        }
    }

    /// The same for a thread that has, or had, something of it in its pocket.
    #[inline(never)]
    fn take_with(
        &self,
        whose: Whose<'_>,
        now: Tick,
        cost: u64,
        mut pocket: Pocket,
        said: &mut Decision,
    ) -> Taken<()> {
        // Before what is published with it. Whoever closes the purse from here on counts as spent
        // what is spent below.
        let word = self.word.load(Ordering::Acquire);
        let is_same = self.is_filling(word, pocket.filling) && now < pocket.until;
        match u64::from(pocket.left).checked_sub(cost) {
            Some(left) if is_same && cost > 0 => {
                // Less than it was.
                pocket.left = left as u32;
                pocket.keep();
                *said = self.seen(tokens(word).saturating_add(left));
                let (place, filling) = (whose.place, pocket.filling);
                Taken::Spent { decision: (), is_low: false, place, filling }
            }
            None if is_same => self.take_handful(whose, now, cost, Some(pocket), said),
            _ => self
                .take_one(whose, now, cost, said)
                .unwrap_or_else(|| self.take_handful(whose, now, cost, Some(pocket), said)),
        }
    }

    /// Takes for one request. `None` if somebody else was faster.
    #[inline]
    fn take_one(
        &self,
        whose: Whose<'_>,
        now: Tick,
        cost: u64,
        said: &mut Decision,
    ) -> Option<Taken<()>> {
        let closed = self.closed.load(Ordering::Relaxed);
        let word = self.word.load(Ordering::Acquire);
        if let Some(taken) = self.without(word, whose, now, cost, said) {
            return Some(taken);
        }
        let next = word - cost + counted(word, 1);
        let swapped =
            self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire);
        swapped.is_ok().then(|| self.spent(whose.place, (closed, next), 0, said))
    }

    /// Others take at the same time. If there is plenty, this thread takes a handful, and does not
    /// write to the line for a while.
    #[cold]
    #[inline(never)]
    pub(super) fn take_handful(
        &self,
        whose: Whose<'_>,
        now: Tick,
        cost: u64,
        before: Option<Pocket>,
        said: &mut Decision,
    ) -> Taken<()> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if let Some(taken) = self.without(word, whose, now, cost, said) {
                return taken;
            }
            let closed = self.closed.load(Ordering::Relaxed);
            let requests = Pocket::handful(before, cost, tokens(word));
            let taken = requests * cost;
            let pocket = Pocket {
                purses: whose.purses,
                place: whose.place.0,
                filling: numbered(closed, filling(word)),
                // A handful is a small part of what fits into a word. One request's is not kept.
                taken: taken as u32,
                left: (taken - cost) as u32,
                until: Tick::from_nanos(self.until.load(Ordering::Relaxed)),
            };
            let next = word - taken + counted(word, requests);
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    if requests > 1 {
                        pocket.keep();
                    }
                    return self.spent(whose.place, (closed, next), taken - cost, said);
                }
                Err(current) => word = current,
            }
        }
    }

    /// Spends for several requests at once, or for none of them.
    pub(super) fn take_sum(
        &self,
        whose: Whose<'_>,
        now: Tick,
        (sum, of): (u64, u64),
        said: &mut Decision,
    ) -> Taken<()> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let closed = self.closed.load(Ordering::Relaxed);
            if let Some(taken) = self.without(word, whose, now, sum, said) {
                return taken;
            }
            let next = word - sum + counted(word, of);
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return self.spent(whose.place, (closed, next), 0, said),
                Err(current) => word = current,
            }
        }
    }

    /// What is said if nothing is taken from this word. It was read before anything that is published
    /// with it.
    #[inline]
    fn without(
        &self,
        word: u64,
        whose: Whose<'_>,
        now: Tick,
        cost: u64,
        said: &mut Decision,
    ) -> Option<Taken<()>> {
        if whose.owner.load(Ordering::Acquire) != whose.key {
            return Some(Taken::Unknown);
        }
        if now.as_nanos() >= self.until.load(Ordering::Relaxed) || cost == 0 {
            return Some(Taken::Locked(whose.place));
        }
        (tokens(word) < cost).then(|| self.short(whose.place, now, tokens(word), said))
    }

    /// How often the purse was closed is known from before the word was changed. `pocket` is what this
    /// thread has of it besides.
    #[inline]
    fn spent(
        &self,
        place: Place,
        (closed, word): (u32, u64),
        pocket: u64,
        said: &mut Decision,
    ) -> Taken<()> {
        let left = tokens(word);
        *said = self.seen(left.saturating_add(pocket));
        let is_low = left < u64::from(self.low.load(Ordering::Relaxed))
            && !self.told.load(Ordering::Relaxed)
            && !self.told.swap(true, Ordering::Relaxed);
        Taken::Spent { decision: (), is_low, place, filling: numbered(closed, filling(word)) }
    }

    /// Whether a word is that of the filling of this number: the end of it comes again.
    #[inline]
    fn is_filling(&self, word: u64, number: u32) -> bool {
        filling(word) == number as u8 && self.closed.load(Ordering::Relaxed) == number
    }

    #[inline]
    fn short(&self, place: Place, now: Tick, held: u64, said: &mut Decision) -> Taken<()> {
        let until = Tick::from_nanos(self.short_until.load(Ordering::Relaxed));
        if now >= until {
            return Taken::Locked(place);
        }
        // What is wanted and not had is a reason to ask for more.
        self.denied.fetch_add(1, Ordering::Relaxed);
        *said = self.denial(held, until.since(now));
        Taken::Short(())
    }

    fn denial(&self, held: u64, wait: Duration) -> Decision {
        let (limit, reset) =
            (self.limit.load(Ordering::Relaxed), self.reset.load(Ordering::Relaxed));
        let reset = Duration::from_nanos(reset).max(wait);
        Decision::deny(limit, held, reset, Retry::After(wait))
    }

    #[inline]
    fn seen(&self, held: u64) -> Decision {
        let left = self.left.load(Ordering::Relaxed).saturating_add(held);
        let reset = self.reset.load(Ordering::Relaxed);
        Decision::allow_resetting(self.limit.load(Ordering::Relaxed), left, reset)
    }

    pub(super) fn look(&self, place: Place, now: Tick, cost: u64) -> Taken {
        let word = self.word.load(Ordering::Acquire);
        let until = self.until.load(Ordering::Relaxed);
        let short_until = Tick::from_nanos(self.short_until.load(Ordering::Relaxed));
        // As when something is taken: whoever was told otherwise would find that it is not so.
        if now.as_nanos() >= until {
            return Taken::Locked(place);
        }
        if tokens(word) >= cost {
            let decision = self.seen(tokens(word));
            let filling = numbered(self.closed.load(Ordering::Relaxed), filling(word));
            return Taken::Spent { decision, is_low: false, place, filling };
        }
        match now < short_until {
            true => Taken::Short(self.denial(tokens(word), short_until.since(now))),
            false => Taken::Locked(place),
        }
    }

    /// Whether somebody was told that it is low since it was filled.
    pub(super) fn was_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    /// Whether nobody has taken anything, or was denied, since so much was put in.
    pub(super) fn is_untouched(&self, filled: u64) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        tokens(word) == filled && self.denied.load(Ordering::Relaxed) == 0
    }

    pub(super) fn put_back(&self, from: u32, cost: u64) {
        let mut word = self.word.load(Ordering::Acquire);
        while self.is_filling(word, from) && cost <= TOKENS - tokens(word) {
            let counted = if requests(word) > 0 { REQUEST } else { 0 };
            let next = word + cost - counted;
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(current) => word = current,
            }
        }
    }

    /// One that was denied is to be denied once more, and counts then.
    pub(super) fn uncount_denied(&self) {
        let less = |denied: u32| denied.checked_sub(1);
        let _ = self.denied.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Takes everything out, and tells the borrower what was spent. From here on nobody finds
    /// anything, until it is [filled](Self::fill). How many requests passed and were denied.
    pub(super) fn empty_into(
        &self,
        borrower: &mut Borrower,
        filled: &mut u64,
        now: Tick,
    ) -> (u64, u64) {
        let word = self.close();
        let spent = std::mem::take(filled).saturating_sub(tokens(word));
        let denied = self.denied.swap(0, Ordering::Relaxed).into();
        borrower.book(now, spent, requests(word));
        borrower.book_denied(now, denied);
        (requests(word), denied)
    }

    /// Nobody's any more: it is empty, and says nothing.
    pub(super) fn retire(&self) {
        self.until.store(0, Ordering::Relaxed);
        self.short_until.store(0, Ordering::Relaxed);
    }

    /// Takes everything out, and says what was in it.
    pub(super) fn close(&self) -> u64 {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let next = u64::from(filling(word).wrapping_add(1)) << FILLING;
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(current) => word = current,
            }
        }
        // The end of the number comes again, and what is in pockets, or is put back, is told from that of a later
        // filling by all of it. Whoever reads this too early takes what it took for an older filling's, and loses
        // it: nobody finds anything to take before it is filled, which comes after this.
        self.closed.fetch_add(1, Ordering::Relaxed);
        word
    }

    /// Puts everything in that the borrower holds, and says how much that is. If somebody knows already that
    /// more is needed nobody is told.
    pub(super) fn fill(&self, borrower: &Borrower, is_known: bool) -> u64 {
        let tokens = borrower.held_tokens().min(TOKENS);
        if let Some(seen) = borrower.seen() {
            self.left.store(seen.remaining(), Ordering::Relaxed);
            self.limit.store(seen.limit(), Ordering::Relaxed);
            let reset = u64::try_from(seen.reset_after().as_nanos()).unwrap_or(u64::MAX);
            self.reset.store(reset, Ordering::Relaxed);
        }
        self.until.store(borrower.until().as_nanos(), Ordering::Relaxed);
        self.short_until.store(borrower.short_until().as_nanos(), Ordering::Relaxed);
        self.low.store(u32::try_from(borrower.low()).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.told.store(is_known, Ordering::Relaxed);
        // Nobody changes a purse that is closed, so its filling is known.
        let word = self.word.load(Ordering::Relaxed);
        self.word.store((word & !(TOKENS | (REQUESTS << TOKEN_BITS))) | tokens, Ordering::Release);
        tokens
    }
}

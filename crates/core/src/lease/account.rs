//! The store's books on one key: what is left, and who holds how much until when.

use std::time::Duration;

use super::budget::{Balance, Budget};
use super::exchange::{Exchange, Grant, LeaseId, Node, Promise};
use super::lanes::{Filled, Lanes};
use crate::time::{Tick, nanos};

/// What a store knows of one key of one limit: see [`Lender::open`](super::Lender::open).
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Anchor, Limit, Phase, Tick, lease::Lender};
/// let limit = Limit::token_bucket("1k/s")?;
/// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
/// let account = lender.open(Tick::ZERO, Phase::default());
/// assert_eq!((account.escrow(), account.leases()), (0, 0));
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Account {
    pub(super) balance: Balance,
    /// The latest time there was: a clock that runs backwards stands still.
    latest: Tick,
    /// At most [`Account::MAX_LEASES`].
    pub(super) leases: Vec<Lease>,
    /// What of all that is lent comes in when.
    pub(super) lanes: Lanes,
    /// The nanosecond at which the last of those who wait for more asks again.
    pub(super) turn: u64,
}

/// What one node holds, and what it was told last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) node: Node,
    pub(super) id: LeaseId,
    /// What was granted since it began, and what the node has told of since.
    pub(super) granted: u64,
    used: u64,
    returned: u64,
    /// The nanosecond at which it is over. No tick, because at the last one nothing may end.
    until: u64,
    /// Whether it is over. The next exchange begins another.
    pub(super) is_over: bool,
    /// The nanosecond at which the answer below is forgotten as well.
    forgotten: u64,
    /// Whether the node asked for more when it was last heard of.
    pub(super) is_hungry: bool,
    /// What of it was promised last, and the nanosecond at which all of that is in.
    promised: u64,
    all_in: u64,
    lanes: u64,
    /// When it asks again.
    pub(super) turn: u64,
    /// The answer to its latest exchange.
    pub(super) answer: Grant,
}

impl Account {
    /// So many nodes are remembered at a time; others are answered, and lent nothing.
    ///
    /// ```
    /// assert_eq!(tollgate_core::lease::Account::MAX_LEASES, 256);
    /// ```
    pub const MAX_LEASES: usize = 256;

    pub(super) const fn new(balance: Balance, now: Tick) -> Self {
        Self { balance, latest: now, leases: Vec::new(), lanes: Lanes::until(0), turn: 0 }
    }

    /// All that is lent and not settled, when somebody last looked.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick};
    /// use tollgate_core::lease::{Exchange, Lender, Node};
    /// let limit = Limit::token_bucket("1k/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// let ask = Exchange { want: 100, ..Exchange::strict(Node { number: 1, incarnation: 1 }, 0) };
    /// lender.exchange(&mut account, Tick::ZERO, &ask);
    /// assert_eq!(account.escrow(), 100);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn escrow(&self) -> u64 {
        self.balance.escrow
    }

    /// How many nodes are remembered: what they cost in memory.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick};
    /// use tollgate_core::lease::{Exchange, Lender, Node};
    /// let limit = Limit::token_bucket("1k/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// lender.exchange(&mut account, Tick::ZERO, &Exchange::strict(Node { number: 1, incarnation: 1 }, 1));
    /// assert_eq!(account.leases(), 1);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    /// The same books in other hands: another machine has taken over what it knows of them, and lends anew.
    /// The leases in them are over, and what they held counts as used. That is for windows, of which it
    /// makes no difference until they end; a bucket would fill beside what nodes still hold.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick};
    /// use tollgate_core::lease::{Exchange, Lender, Node};
    /// let limit = Limit::sliding_window("1k/h")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// let ask = Exchange { want: 100, ..Exchange::strict(Node { number: 1, incarnation: 1 }, 0) };
    /// lender.exchange(&mut account, Tick::ZERO, &ask);
    /// let mut account = account.taken_over();
    /// assert_eq!((lender.left(&mut account, Tick::ZERO), account.escrow()), (900, 0));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[must_use]
    pub fn taken_over(self) -> Self {
        let balance = Balance { escrow: 0, ..self.balance };
        Self::new(balance, self.latest)
    }

    /// Lets time pass: leases end, each at its moment, and the balance has grown as far as it could
    /// beside them. Returns the time that counts.
    pub(super) fn advance(&mut self, budget: &Budget, now: Tick) -> Tick {
        self.latest = self.latest.max(now);
        let next = |lease: &Lease| if lease.is_over { lease.forgotten } else { lease.until };
        let is_due = |lease: &Lease| next(lease) <= self.latest.as_nanos();
        while let Some(first) = (0..self.leases.len())
            .filter(|place| is_due(&self.leases[*place]))
            .min_by_key(|place| next(&self.leases[*place]))
        {
            if self.leases[first].is_over {
                self.leases.swap_remove(first);
                continue;
            }
            let lease = &mut self.leases[first];
            (lease.is_over, lease.is_hungry) = (true, false);
            // Until its very end it kept the balance down, and then it counts as used.
            budget.hold_down(&mut self.balance, Tick::from_nanos(lease.until));
            self.balance.escrow -= lease.out();
            lease.used += lease.out();
        }
        budget.hold_down(&mut self.balance, self.latest);
        self.latest
    }

    pub(super) fn place_of(&self, node: Node) -> Option<usize> {
        self.leases.iter().position(|lease| lease.node == node)
    }

    /// Takes note of what a node has used and returned, as far as it holds so much. A lease that is
    /// over makes room for a new one, and so does one of which nothing is held by a node that knows of
    /// none: it has let it go.
    pub(super) fn settle(
        &mut self,
        budget: &Budget,
        place: usize,
        exchange: &Exchange,
        next: LeaseId,
    ) {
        let lease = &mut self.leases[place];
        if lease.is_over || exchange.lease.is_none() && lease.out() == 0 {
            *lease = Lease::new(lease.node, next, lease.answer);
        }
        if exchange.lease != Some(lease.id) {
            return;
        }
        if matches!(budget, Budget::Tokens(_)) {
            let used = exchange.used.saturating_sub(lease.used).min(lease.out());
            lease.used += used;
            self.balance.escrow -= used;
        }
        let returned = exchange.returned.saturating_sub(lease.returned).min(lease.out());
        lease.returned += returned;
        budget.take_back(&mut self.balance, self.latest, returned);
        let unpromised = returned.min(lease.still_promised(self.latest));
        if unpromised > 0 {
            lease.promised -= unpromised;
            // Rounded down, as what is promised must not become less than what is missing.
            let time = budget.time_of(unpromised).saturating_sub(1);
            self.lanes.drain(self.latest.as_nanos(), time);
        }
    }

    /// Says when a node asks again that found too little, as one of so many: one after the other, evenly.
    /// Then each finds as much, and as little as can be is left over. Who asks before its turn keeps it, if
    /// that is not too soon.
    pub(super) fn take_turn(&mut self, now: Tick, place: usize, pause: u64, nodes: u64) {
        let (now, lease) = (now.as_nanos(), &mut self.leases[place]);
        let next = if lease.turn > now { lease.turn } else { self.turn + pause / nodes };
        lease.turn = next.clamp(now + pause, now + 2 * pause);
        self.turn = self.turn.max(lease.turn);
    }

    /// A place for a node that has none: a free one, or that of the node that was not heard of for
    /// longest of those who hold nothing.
    pub(super) fn admit(&mut self, lease: Lease) -> Option<usize> {
        if self.leases.len() < Self::MAX_LEASES {
            self.leases.push(lease);
            return Some(self.leases.len() - 1);
        }
        let idle = (0..self.leases.len()).filter(|place| self.leases[*place].out() == 0);
        let place = idle.min_by_key(|place| self.leases[*place].until)?;
        self.leases[place] = lease;
        Some(place)
    }
}

impl Lease {
    pub(super) const fn new(node: Node, id: LeaseId, answer: Grant) -> Self {
        Self {
            node,
            id,
            granted: 0,
            used: 0,
            returned: 0,
            until: 0,
            is_over: false,
            forgotten: 0,
            is_hungry: false,
            promised: 0,
            all_in: 0,
            lanes: 0,
            turn: 0,
            answer,
        }
    }

    /// What the node holds, as far as is known.
    pub(super) const fn out(&self) -> u64 {
        self.granted - self.used - self.returned
    }

    /// What of it may not be in yet, at most.
    fn still_promised(&self, now: Tick) -> u64 {
        if self.all_in > now.as_nanos() { self.promised } else { 0 }
    }

    /// Promises tokens that come in later. Whoever waits for others still is told of all of them as one,
    /// which are the last of all that come in by then: it may or may not have heard of the others.
    pub(super) fn promise(&mut self, now: Tick, tokens: u64, filled: Filled) {
        let before = self.still_promised(now);
        self.lanes = if before > 0 { Promise::LANES } else { filled.lanes };
        self.promised = before + tokens;
        self.all_in = if before > 0 { self.all_in.max(filled.end) } else { filled.end };
    }

    /// What the node is told of that.
    pub(super) fn told(&self, now: Tick) -> Promise {
        match self.still_promised(now) {
            0 => Promise::NOTHING,
            tokens => Promise {
                tokens,
                all_in: Duration::from_nanos(self.all_in - now.as_nanos()),
                lanes: self.lanes,
            },
        }
    }

    /// Keeps what the node holds for `hold`, and remembers what it was told for `memory`.
    pub(super) fn keep_for(&mut self, now: Tick, hold: Duration, memory: Duration) {
        self.until = now.as_nanos().saturating_add(nanos(hold));
        self.forgotten = now.as_nanos().saturating_add(nanos(memory)).max(self.until);
    }
}

//! A node in virtual time.

use std::time::Duration;

use tollgate_core::Tick;
use tollgate_core::lease::{Borrower, Exchange, Node, Terms};

use crate::chance::Chance;

/// A node, with a clock of its own.
#[derive(Debug)]
pub struct Member {
    /// What it holds; `None` if nothing is lent.
    pub borrower: Option<Borrower>,
    /// Which life of which node it is.
    pub node: Node,
    /// What the node's clock says at time 0, and how many millionths it gains.
    offset: u64,
    gains: i64,
    /// Requests that asked the store for themselves.
    pub(crate) asks: u64,
    /// When it wakes next: a wake-up that was moved is none.
    pub(crate) wakes: u64,
    pub(crate) is_alive: bool,
    /// Until when it does nothing.
    pub(crate) frozen: u64,
    /// Until when nothing gets through.
    pub(crate) cut: u64,
    pub(crate) permits: Running,
    /// Requests that wait for what the node has asked for: their costs, and since when.
    pub(crate) waiting: Vec<(u64, u64)>,
}

/// What a node does with permits, seen from outside.
#[derive(Debug, Default)]
pub(crate) struct Running {
    /// Permits that requests have which are under way, whoever lends them.
    pub(crate) running: u64,
    /// The number of the latest exchange, and when it was first sent.
    pub(crate) sent: (u64, u64),
    /// When the latest was sent that was answered, and when it was answered.
    pub(crate) touched: u64,
    pub(crate) answered: u64,
    /// When something was first sent since.
    pub(crate) tried: Option<u64>,
    /// From when on it may have more under way than is lent, one after the other: a store can forget
    /// again before the node has what it needs.
    excuses: Vec<Excuse>,
}

/// Why a node may have more under way than is lent.
#[derive(Clone, Copy, Debug)]
struct Excuse {
    from: u64,
    /// What the store has lent since.
    lent: Option<u64>,
}

impl Running {
    /// What is under way may not be lent any more from that time on.
    pub(crate) fn excuse(&mut self, from: u64) {
        self.excuses.push(Excuse { from, lent: None });
    }

    /// The store has lent so many.
    pub(crate) fn lend(&mut self, permits: u64) {
        self.excuses.iter_mut().for_each(|excuse| excuse.lent = Some(permits));
        self.settle();
    }

    /// Whoever has no more under way than it was lent needs no excuse.
    pub(crate) fn settle(&mut self) {
        self.excuses.retain(|excuse| excuse.lent.is_none_or(|lent| self.running > lent));
    }

    pub(crate) fn is_excused(&self, now: u64) -> bool {
        self.excuses.iter().any(|excuse| excuse.from <= now)
    }
}

impl Member {
    /// A node whose clock is up to `drift` thousandths faster or slower than the store's.
    ///
    /// ```
    /// use tollgate_core::lease::Node;
    /// use tollgate_sim::{Chance, Member};
    /// let member = Member::new(Node { number: 1, incarnation: 1 }, None, 0, &mut Chance(7));
    /// assert_eq!(member.clock(9).since(member.clock(2)).as_nanos(), 7);
    /// ```
    pub fn new(node: Node, terms: Option<Terms>, drift: u64, chance: &mut Chance) -> Self {
        let drift = drift * 1_000;
        let gains = chance.between((0, 2 * drift)) as i64 - drift as i64;
        Self {
            borrower: terms.map(|terms| Borrower::new(node, terms)),
            node,
            offset: chance.below(1 << 50),
            gains,
            asks: 0,
            wakes: u64::MAX,
            is_alive: true,
            frozen: 0,
            cut: 0,
            permits: Running::default(),
            waiting: Vec::new(),
        }
    }

    /// What it knows of a key that went cold is forgotten: whoever comes next finds another borrower.
    pub(crate) fn forget_if_cold(&mut self, now: Tick, terms: Option<Terms>) {
        let is_cold = |lent: &Borrower| lent.due().is_none() && lent.cold_from() <= now;
        if let (Some(lent), Some(terms)) = (&mut self.borrower, terms)
            && is_cold(lent)
        {
            self.node.incarnation += 1;
            *lent = Borrower::new(self.node, terms);
            self.permits.sent = (0, 0);
        }
    }

    /// Another key takes its place, if it can quit: whoever comes next finds another borrower. What it has
    /// to tell the store before.
    pub(crate) fn quit(&mut self, now: Tick, terms: Option<Terms>) -> Option<Exchange> {
        let (lent, terms) = (self.borrower.as_mut()?, terms?);
        lent.silence(now)?;
        let last = lent.quit(now);
        self.node.incarnation += 1;
        *lent = Borrower::new(self.node, terms);
        self.permits.sent = (0, 0);
        last
    }

    /// The same with a clock that gains so many millionths.
    ///
    /// ```
    /// use tollgate_core::lease::Node;
    /// use tollgate_sim::{Chance, Member};
    /// let member = Member::new(Node { number: 1, incarnation: 1 }, None, 0, &mut Chance(7));
    /// let slow = member.gaining(-10_000);
    /// assert_eq!(slow.clock(1_000).since(slow.clock(0)).as_nanos(), 990);
    /// ```
    #[must_use]
    pub fn gaining(self, millionths: i64) -> Self {
        Self { gains: millionths, ..self }
    }

    /// What its clock says.
    ///
    /// ```
    /// use tollgate_core::lease::Node;
    /// use tollgate_sim::{Chance, Member};
    /// let member = Member::new(Node { number: 1, incarnation: 1 }, None, 0, &mut Chance(7));
    /// assert!(member.clock(0) < member.clock(1));
    /// ```
    pub fn clock(&self, time: u64) -> Tick {
        let gained = i128::from(time) * i128::from(self.gains) / 1_000_000;
        Tick::from_nanos((i128::from(time) + gained + i128::from(self.offset)) as u64)
    }

    /// The first time at which the clock has come so far, or shortly after.
    pub(crate) fn time_of(&self, tick: Tick) -> u64 {
        let passed = u128::from(tick.as_nanos().saturating_sub(self.offset));
        (passed * 1_000_000 / (1_000_000 + self.gains) as u128) as u64 + 2
    }

    /// How much time passes from one to the other by its clock, if any does.
    pub(crate) fn passes(&self, from: u64, to: u64) -> Duration {
        self.clock(to).since(self.clock(from))
    }

    /// Whether the lease is over that the latest answer was about.
    pub(crate) fn is_out_of_touch(&self, now: u64, terms: &Terms) -> bool {
        self.passes(self.permits.touched, now) >= terms.hold() - terms.hold() / 50
    }

    pub(crate) fn is(&self, node: Node) -> bool {
        self.is_alive && self.node == node
    }

    /// A name that no other request has.
    pub(crate) const fn strict(&mut self) -> Node {
        self.asks += 1;
        Node { incarnation: (self.node.incarnation << 32) + self.asks, ..self.node }
    }
}

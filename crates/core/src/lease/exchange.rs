//! The messages: what a node tells and asks, and what the store answers.

use std::time::Duration;

use crate::decision::Decision;
use crate::time::Wall;

/// One life of one node. A node that starts again has another `incarnation`, so that nothing it
/// said in its former life is taken for news.
///
/// ```
/// use tollgate_core::lease::Node;
/// assert_ne!(Node { number: 1, incarnation: 1 }, Node { number: 1, incarnation: 2 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Which node.
    pub number: u64,
    /// Which of its lives: anything it has never used before, such as the time of its start.
    pub incarnation: u64,
}

/// Names a lease of one node: when it began, and the memory that the store had then. An exchange about
/// another lease than the one the store knows of settles nothing.
///
/// ```
/// use tollgate_core::lease::LeaseId;
/// assert_ne!(LeaseId { epoch: 1, began: 7 }, LeaseId { epoch: 2, began: 7 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId {
    /// The store's memory: another one after it was lost.
    pub epoch: u64,
    /// When that was, by the store's clock, in microseconds since 1970. A message that comes so late that
    /// the store has forgotten its sender can begin a lease, and that is not the one it was about.
    pub began: u64,
}

/// What a node tells and asks about one key of one limit.
///
/// Whatever was used and returned is told as a sum since the lease began. So a message that is lost
/// takes nothing with it: the next one says it all.
///
/// ```
/// use tollgate_core::lease::{Exchange, Node};
/// let strict = Exchange::strict(Node { number: 1, incarnation: 99 }, 3);
/// assert_eq!((strict.cost, strict.want), (3, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Who asks.
    pub node: Node,
    /// One more than in this node's last exchange about the key, except if it is that one again. 0
    /// for one that is never sent again: see [`once`](Self::once).
    pub sequence: u64,
    /// The lease that `used` and `returned` are about; `None` before the first, and after one that the
    /// node has let go.
    pub lease: Option<LeaseId>,
    /// What of the lease was used since it began. Means nothing for permits, which stay lent.
    pub used: u64,
    /// What of the lease was not used since it began, and will not be.
    pub returned: u64,
    /// To be spent at once, all or nothing: the cost of a request that waits for the answer. For
    /// permits it is lent like the rest, because it comes back.
    pub cost: u64,
    /// How many more tokens the node would like to hold.
    pub want: u64,
    /// Fewer than this are of no use to it.
    pub least: u64,
    /// What is taken back first, in an exchange without a number: see [`undo`](Self::undo). One with
    /// a number takes nothing back.
    pub undo: Option<Undo>,
}

/// Something that a store has spent and that turned out to be in vain.
///
/// ```
/// use tollgate_core::lease::{Grant, Undo};
/// fn undo(cost: u64, grant: &Grant) -> Undo {
///     Undo { cost, at: grant.at }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undo {
    /// What was spent.
    pub cost: u64,
    /// When, by the store's clock: [`Grant::at`].
    pub at: Wall,
}

impl Exchange {
    /// A decision by the store alone: nothing is lent. Whoever has several under way at once gives
    /// each an incarnation of its own.
    ///
    /// ```
    /// use tollgate_core::lease::{Exchange, Node};
    /// assert_eq!(Exchange::strict(Node { number: 1, incarnation: 7 }, 1).sequence, 1);
    /// ```
    pub const fn strict(node: Node, cost: u64) -> Self {
        let (lease, used, returned, want, least, undo) = (None, 0, 0, 0, 0, None);
        Self { node, sequence: 1, lease, used, returned, cost, want, least, undo }
    }

    /// A decision by the store alone that is asked for once, so that nobody has to remember who
    /// asked: the cheapest there is. If it came again it would be decided again. Nothing is lent,
    /// and so it gets no permits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, lease::{Exchange, Lender}};
    /// let limit = Limit::token_bucket("1k/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// let grant = lender.exchange(&mut account, Tick::ZERO, &Exchange::once(7)).expect("it is new");
    /// assert_eq!((grant.decision.remaining(), account.leases()), (993, 0));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn once(cost: u64) -> Self {
        Self { sequence: 0, ..Self::strict(Node { number: 0, incarnation: 0 }, cost) }
    }

    /// Takes back what the store has spent for a request that does not count after all. It is sent
    /// once and never again: if it came twice, it would be taken back twice. The answer says what is
    /// left.
    ///
    /// Only what is left of it comes back. A bucket keeps as much as time has given back since, or
    /// else those who came in between, and whoever comes now, could pass the limit together; a window
    /// that has ended keeps all of it. Permits come back with their lease, and a place in the queue
    /// of a shaper not at all.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, lease::{Exchange, Lender}};
    /// let limit = Limit::token_bucket("10/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// let grant = lender.exchange(&mut account, Tick::ZERO, &Exchange::once(8)).expect("it is new");
    /// let later = Tick::ZERO.after(Duration::from_millis(300));
    /// let undo = Exchange::undo(8, grant.at);
    /// let grant = lender.exchange(&mut account, later, &undo).expect("it is new");
    /// assert_eq!(grant.decision.remaining(), 10, "three by time, and the other five");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn undo(cost: u64, at: Wall) -> Self {
        Self { undo: Some(Undo { cost, at }), ..Self::once(0) }
    }

    /// Whether it asks what is left and changes nothing, so that a store does not have to write
    /// anything down.
    ///
    /// ```
    /// use tollgate_core::{Wall, lease::Exchange};
    /// assert!(Exchange::once(0).is_look());
    /// assert!(!Exchange::once(1).is_look());
    /// assert!(!Exchange::undo(1, Wall::default()).is_look());
    /// ```
    pub const fn is_look(&self) -> bool {
        !self.is_numbered() && self.cost == 0 && self.undo.is_none()
    }

    /// Whether the store is to remember who asked.
    pub(super) const fn is_numbered(&self) -> bool {
        self.sequence > 0
    }
}

/// What the store answers.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Anchor, Limit, Phase, Tick};
/// use tollgate_core::lease::{Exchange, Lender, Node};
/// let limit = Limit::token_bucket("1k/s")?;
/// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
/// let mut account = lender.open(Tick::ZERO, Phase::default());
/// let ask = Exchange { want: 100, ..Exchange::strict(Node { number: 1, incarnation: 1 }, 1) };
/// let grant = lender.exchange(&mut account, Tick::ZERO, &ask).expect("it is the first");
/// assert!(grant.decision.is_allowed());
/// assert_eq!((grant.tokens, grant.decision.remaining()), (100, 899));
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The exchange that this answers.
    pub sequence: u64,
    /// The lease that the node has from now on.
    pub lease: LeaseId,
    /// All that the node holds of it, less what it has used or returned since it sent the exchange.
    pub tokens: u64,
    /// How long it may use them, from the moment at which it first sent the exchange.
    pub span: Duration,
    /// Which of them are not in yet, and may not be used before they are.
    pub promise: Promise,
    /// After so long it is the node's turn to ask again for what the store did not have; at any time if
    /// that is nothing.
    pub turn: Duration,
    /// What the store says to the request that waits; without one, what is left in the store.
    pub decision: Decision,
    /// When that was, by the store's clock: what [`Exchange::undo`] wants to know. Says nothing of
    /// permits.
    pub at: Wall,
}

/// What is lent of what comes in next.
///
/// ```
/// use tollgate_core::lease::Promise;
/// assert_eq!(Promise::default().tokens, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// How many tokens: the last that come in to the node, one after the other.
    pub tokens: u64,
    /// In how long the last of them comes in, by the store's clock.
    pub all_in: Duration,
    /// So many [lanes](Self::LANES) of what comes in are the node's: with all of them it is one token
    /// in each [interval](super::Terms), with fewer it takes longer from one to the next.
    pub lanes: u64,
}

impl Promise {
    /// All that is lent is in.
    ///
    /// ```
    /// use tollgate_core::lease::Promise;
    /// assert_eq!(Promise::NOTHING, Promise::default());
    /// ```
    pub const NOTHING: Self = Self { tokens: 0, all_in: Duration::ZERO, lanes: 0 };

    /// What comes in is shared out in so many parts, to be used by several nodes at the same time.
    ///
    /// ```
    /// assert_eq!(tollgate_core::lease::Promise::LANES, 4);
    /// ```
    pub const LANES: u64 = 4;
}

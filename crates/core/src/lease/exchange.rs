//! The messages: what a node tells and asks, and what the store answers.

use std::time::Duration;

use crate::decision::Decision;

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

/// Names a lease of one node: the exchange that it began with, and the memory that the store had
/// then. An exchange about another lease than the one the store knows of settles nothing.
///
/// ```
/// use tollgate_core::lease::LeaseId;
/// assert_ne!(LeaseId { epoch: 1, began: 7 }, LeaseId { epoch: 2, began: 7 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId {
    /// The store's memory: another one after it was lost.
    pub epoch: u64,
    /// The number of the first exchange.
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
    /// The lease that `used` and `returned` are about; `None` before the first.
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
        let (lease, used, returned) = (None, 0, 0);
        Self { node, sequence: 1, lease, used, returned, cost, want: 0, least: 0 }
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
    /// What the store says to the request that waits; without one, what is left in the store.
    pub decision: Decision,
}

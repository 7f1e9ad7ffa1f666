//! The store's side: one operation, the exchange.

use std::cmp::Ordering;
use std::num::NonZeroU32;
use std::time::Duration;

use super::account::{Account, Lease};
use super::budget::{Balance, Budget};
use super::exchange::{Exchange, Grant, LeaseId, Node, Promise};
use super::lanes::Lanes;
use super::terms::Terms;
use crate::algorithm::Phase;
use crate::decision::Decision;
use crate::limit::Limit;
use crate::time::{Anchor, Tick};
use crate::word::Word;

/// Lends the budget of one limit, key by key.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Anchor, Limit, Phase, Tick};
/// use tollgate_core::lease::{Exchange, Lender, Node};
///
/// let limit = Limit::token_bucket("1k/s")?;
/// let lender = Lender::new(&limit, Anchor::default(), Duration::from_millis(5)).expect("it is no log");
/// let mut account = lender.open(Tick::ZERO, Phase::default());
/// let ask = Exchange { want: 100, ..Exchange::strict(Node { number: 1, incarnation: 1 }, 0) };
/// let grant = lender.exchange(&mut account, Tick::ZERO, &ask).expect("it is the first");
/// assert_eq!((grant.tokens, account.escrow()), (100, 100));
///
/// // Sixty were used, forty come back.
/// let done = Exchange { sequence: 2, lease: Some(grant.lease), used: 60, returned: 40, want: 0, ..ask };
/// lender.exchange(&mut account, Tick::ZERO, &done);
/// assert_eq!((lender.left(&mut account, Tick::ZERO), account.escrow()), (940, 0));
/// assert_eq!(lender.exchange(&mut account, Tick::ZERO, &ask), None, "it was overtaken");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lender {
    pub(super) budget: Budget,
    pub(super) terms: Option<Terms>,
    /// What time is called by others.
    pub(super) anchor: Anchor,
    epoch: u64,
    /// When the memory of an earlier life was lost.
    lost: Option<Tick>,
    longest_hold: Duration,
}

impl Lender {
    /// Lends a limit to nodes that are `round_trip` away. A limit without [`Terms`] is decided
    /// request by request. `None` for a sliding log, which keeps more than an account does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, lease::Lender};
    /// let lender = |limit: &Limit| Lender::new(limit, Anchor::default(), Duration::from_millis(5));
    /// assert!(lender(&Limit::sliding_log("1k/s")?).is_none());
    /// assert!(lender(&Limit::leaky_shape("1k/s", 5)?).is_some_and(|lender| lender.terms().is_none()));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn new(limit: &Limit, anchor: Anchor, round_trip: Duration) -> Option<Self> {
        let budget = Budget::Tokens(limit.machine(anchor)?);
        let terms = Terms::of(limit, round_trip);
        // The nearer, the longer.
        let longest_hold =
            Terms::of(limit, Duration::ZERO).map_or(Duration::ZERO, |near| near.hold());
        Some(Self { budget, terms, anchor, epoch: 0, lost: None, longest_hold })
    }

    /// Lends permits, of which at most `max` are out at once.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use tollgate_core::{Phase, Tick, lease::Lender};
    /// let max = NonZeroU32::new(20).expect("not zero");
    /// let lender = Lender::of_permits(max, Duration::from_millis(5));
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// assert_eq!(lender.left(&mut account, Tick::ZERO), 20);
    /// ```
    pub fn of_permits(max: NonZeroU32, round_trip: Duration) -> Self {
        let terms = Terms::of_permits(round_trip);
        let (budget, anchor, longest_hold) =
            (Budget::Permits(max), Anchor::default(), terms.hold());
        Self { budget, terms: Some(terms), anchor, epoch: 0, lost: None, longest_hold }
    }

    /// From now on so many permits may be out at once. Those who hold more keep them, and nobody gets
    /// another one until there are fewer. To a lender of tokens it means nothing.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use tollgate_core::{Phase, Tick, lease::{Exchange, Lender, Node}};
    /// let max = |max| NonZeroU32::new(max).expect("not zero");
    /// let mut lender = Lender::of_permits(max(5), Duration::from_millis(5));
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// let ask = Exchange::strict(Node { number: 1, incarnation: 1 }, 4);
    /// lender.exchange(&mut account, Tick::ZERO, &ask);
    /// lender.resize(max(3));
    /// assert_eq!((lender.left(&mut account, Tick::ZERO), account.escrow()), (0, 4));
    /// lender.resize(max(6));
    /// assert_eq!(lender.left(&mut account, Tick::ZERO), 2);
    /// ```
    pub const fn resize(&mut self, max: NonZeroU32) {
        if let Budget::Permits(known) = &mut self.budget {
            *known = max;
        }
    }

    /// The same with a memory that began empty at `at`, where there was another before: the store
    /// started again, was flushed, or another machine took over. `epoch` is a number that no
    /// earlier memory had.
    ///
    /// What was spent and lent before is not known, so all of it counts as both. A bucket has
    /// nothing until the leases of its former life are over, and then begins to fill; a window has
    /// nothing until it ends. Without that a client would get a burst for every restart.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, lease::Lender};
    /// let limit = Limit::token_bucket("1k/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let lender = lender.after_loss(1, Tick::ZERO);
    /// let left_after = |millis| {
    ///     let now = Tick::ZERO.after(Duration::from_millis(millis));
    ///     lender.left(&mut lender.open(now, Phase::default()), now)
    /// };
    /// assert_eq!((left_after(0), left_after(500), left_after(600)), (0, 0, 100));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[must_use]
    pub fn after_loss(self, epoch: u64, at: Tick) -> Self {
        Self { epoch, lost: Some(at), ..self }
    }

    /// What borrowers have to know; `None` if nothing is lent.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, lease::{Lender, Terms}};
    /// let (limit, round_trip) = (Limit::token_bucket("1k/s")?, Duration::from_millis(5));
    /// let lender = Lender::new(&limit, Anchor::default(), round_trip).expect("it is no log");
    /// assert_eq!(lender.terms(), Terms::of(&limit, round_trip));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn terms(&self) -> Option<Terms> {
        self.terms
    }

    /// For how long a lease that a former memory has lent may last, whoever holds it: nodes that take
    /// themselves for nearer to the store hold theirs for longer, and where nothing is lent to a node because
    /// it is too far away, others may hold some all the same. Permits are held for as long as here: only
    /// where the store is half a second away or more is that longer than elsewhere.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, lease::Lender};
    /// let limit = Limit::token_bucket("1k/s")?;
    /// let lender = |trip| Lender::new(&limit, Anchor::default(), Duration::from_millis(trip));
    /// let holds = |trip| lender(trip).map(|lender| (lender.terms().map(|terms| terms.hold()), lender.longest_hold()));
    /// let half = Duration::from_millis(500);
    /// assert_eq!(holds(5), Some((Some(Duration::from_millis(490)), half)));
    /// assert_eq!(holds(300), Some((None, half)));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn longest_hold(&self) -> Duration {
        self.longest_hold
    }

    /// The account of a key that the store knows nothing of.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, lease::Lender};
    /// let limit = Limit::token_bucket("1k/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// assert_eq!(lender.left(&mut account, Tick::ZERO), 1_000);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn open(&self, now: Tick, phase: Phase) -> Account {
        let balance = Balance { word: Word::REST, phase, escrow: 0 };
        let mut account = Account::new(balance, now);
        let Some(lost) = self.lost else { return account };
        let hold = self.longest_hold;
        match &self.budget {
            // A lease ends with its window, so all that is lent of this one is spent in it.
            Budget::Tokens(machine) if machine.window_end(lost, phase).is_some() => {
                account.balance.word = machine.rebased(lost, u64::MAX, phase);
            }
            Budget::Tokens(machine) => {
                account.balance.word = machine.rebased(lost.after(hold), u64::MAX, phase);
            }
            Budget::Permits(max) => {
                let mut unknown = self.new_lease(UNKNOWN, 0, lost);
                unknown.granted = max.get().into();
                unknown.keep_for(lost, hold, hold);
                account.balance.escrow = unknown.granted;
                account.leases.push(unknown);
            }
        }
        account
    }

    /// Settles what was used, takes back what was not, and lends more. `None`, and nothing is
    /// changed, if a later exchange of the same node came before. An exchange that comes again is
    /// answered as it was at first, and changes nothing.
    ///
    /// A node is remembered for twice the time of a lease, and for a second if it has none; and
    /// always while it holds something. To one that finds no place ([`Account::MAX_LEASES`]) nothing is lent; its cost is decided all the same,
    /// but spent once more if it asks again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick};
    /// use tollgate_core::lease::{Exchange, Lender, Node};
    /// let limit = Limit::fixed_window("1k/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// let strict = Exchange::strict(Node { number: 1, incarnation: 1 }, 7);
    /// let first = lender.exchange(&mut account, Tick::ZERO, &strict);
    /// assert_eq!(lender.exchange(&mut account, Tick::ZERO, &strict), first);
    /// assert_eq!(lender.left(&mut account, Tick::ZERO), 993);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn exchange(&self, account: &mut Account, now: Tick, exchange: &Exchange) -> Option<Grant> {
        let now = self.advance(account, now);
        if account.leases.is_empty() {
            // What is missing then is nobody's: it was lent by a memory that is lost.
            let missing = self.budget.all_in(&account.balance, now);
            (account.lanes, account.turn) =
                (Lanes::until(now.as_nanos().saturating_add(missing)), 0);
        }
        let known = account.place_of(exchange.node).filter(|_| exchange.is_numbered());
        if let Some(place) = known {
            let answer = &account.leases[place].answer;
            match exchange.sequence.cmp(&answer.sequence) {
                Ordering::Less => return None,
                Ordering::Equal => return Some(*answer),
                Ordering::Greater => {
                    account.settle(&self.budget, place, exchange, self.lease_id(now));
                }
            }
        }
        if let Some(undo) = exchange.undo.filter(|_| !exchange.is_numbered())
            && let Some(then) = self.anchor.tick_at(undo.at)
        {
            self.budget.undo(&mut account.balance, then, now, undo.cost);
        }
        let new = || self.new_lease(exchange.node, exchange.sequence, now);
        let place = match exchange.is_numbered() {
            true => known.or_else(|| account.admit(new())),
            false => None,
        };
        let decision = match self.budget {
            Budget::Tokens(_) => {
                let decision = self.budget.spend(&mut account.balance, now, exchange.cost);
                match self.lend(account, now, place, exchange.want, exchange.least) {
                    0 => decision,
                    _ => {
                        decision.with_remaining_of(self.budget.spend(&mut account.balance, now, 0))
                    }
                }
            }
            Budget::Permits(_) => {
                let want = exchange.want.saturating_add(exchange.cost);
                let lent = self.lend(account, now, place, want, exchange.least.max(exchange.cost));
                // More than there are, a denial, if it was not lent.
                let beyond = if lent < exchange.cost { u64::MAX } else { 0 };
                self.budget.spend(&mut account.balance, now, beyond)
            }
        };
        Some(self.answer(account, now, place, exchange, decision))
    }

    /// What is left to lend or to spend.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, lease::Lender};
    /// let limit = Limit::sliding_window("1k/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// assert_eq!(lender.left(&mut account, Tick::ZERO), 1_000);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn left(&self, account: &mut Account, now: Tick) -> u64 {
        let now = self.advance(account, now);
        self.budget.left(&account.balance, now)
    }

    /// Whether the account says no more than one that was just [opened](Self::open), so that it can
    /// be forgotten.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, lease::Lender};
    /// let limit = Limit::token_bucket("1k/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// assert!(lender.is_at_rest(&mut lender.open(Tick::ZERO, Phase::default()), Tick::ZERO));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn is_at_rest(&self, account: &mut Account, now: Tick) -> bool {
        let now = account.advance(&self.budget, now);
        account.leases.is_empty() && account.balance.word.is_at_rest(now)
    }

    /// For how long the answer to a node that holds nothing is kept, in case it asks again.
    ///
    /// ```
    /// use std::time::Duration;
    /// assert_eq!(tollgate_core::lease::Lender::STRICT_MEMORY, Duration::from_secs(1));
    /// ```
    pub const STRICT_MEMORY: Duration = Duration::from_secs(1);

    /// Lets time pass. What was lent of permits before the memory was lost is as many as there are, and
    /// that may be more than whoever asked first knew of.
    fn advance(&self, account: &mut Account, now: Tick) -> Tick {
        let now = account.advance(&self.budget, now);
        if let Budget::Permits(max) = &self.budget
            && let Some(place) = account.place_of(UNKNOWN)
            && let more = u64::from(max.get()).saturating_sub(account.leases[place].out())
            && !account.leases[place].is_over
        {
            account.leases[place].granted += more;
            account.balance.escrow += more;
        }
        now
    }

    fn answer(
        &self,
        account: &mut Account,
        now: Tick,
        place: Option<usize>,
        exchange: &Exchange,
        decision: Decision,
    ) -> Grant {
        let hold = self.terms.map(|terms| self.hold(account, now, terms));
        let Some(place) = place else {
            let lease = self.new_lease(exchange.node, exchange.sequence, now);
            return Grant { decision, ..lease.answer };
        };
        let lease = &mut account.leases[place];
        lease.is_hungry = exchange.want > 0 || lease.out() > 0;
        let memory = match (self.terms, lease.is_hungry) {
            (Some(terms), true) => terms.hold() * 2,
            _ => Self::STRICT_MEMORY,
        };
        lease.keep_for(now, hold.unwrap_or_default(), memory);
        lease.answer = Grant {
            sequence: exchange.sequence,
            lease: lease.id,
            tokens: lease.out(),
            span: hold.map_or(Duration::ZERO, Terms::span_of),
            promise: lease.told(now),
            turn: Duration::from_nanos(lease.turn.saturating_sub(now.as_nanos())),
            decision,
            at: self.anchor.wall_at(now),
        };
        lease.answer
    }

    /// The name of a lease that begins now.
    pub(super) fn lease_id(&self, now: Tick) -> LeaseId {
        LeaseId { epoch: self.epoch, began: self.anchor.wall_at(now).as_unix_nanos() / 1_000 }
    }

    fn new_lease(&self, node: Node, sequence: u64, now: Tick) -> Lease {
        let id = self.lease_id(now);
        let (span, promise, decision) = (Duration::ZERO, Promise::NOTHING, Decision::unlimited());
        let at = self.anchor.wall_at(now);
        let turn = Duration::ZERO;
        Lease::new(
            node,
            id,
            Grant { sequence, lease: id, tokens: 0, span, promise, turn, decision, at },
        )
    }
}

/// Who holds what a store has lent before it lost its memory.
const UNKNOWN: Node = Node { number: u64::MAX, incarnation: u64::MAX };

#[cfg(test)]
mod tests {
    use super::*;

    /// A node nearby has borrowed everything. The store forgets, and is asked first by somebody farther away,
    /// whose own leases would be over sooner, or to whom nothing is lent at all.
    #[test]
    fn what_was_lent_to_a_node_nearby_is_over_before_a_bucket_that_was_lost_fills() {
        let limit = Limit::token_bucket("1k/s").unwrap();
        let lender =
            |trip| Lender::new(&limit, Anchor::default(), Duration::from_millis(trip)).unwrap();
        let near = lender(1);
        let mut account = near.open(Tick::ZERO, Phase::default());
        let all = Exchange {
            want: 1_000,
            least: 1_000,
            ..Exchange::strict(Node { number: 1, incarnation: 1 }, 0)
        };
        assert_eq!(near.exchange(&mut account, Tick::ZERO, &all).unwrap().tokens, 1_000);
        let over = Tick::ZERO.after(near.terms().unwrap().hold());
        for trip in [1, 50, 100, 300] {
            let far = lender(trip).after_loss(1, Tick::ZERO);
            let mut account = far.open(Tick::ZERO, Phase::default());
            assert_eq!(far.left(&mut account, over), 0, "{trip} ms away");
        }
    }
}

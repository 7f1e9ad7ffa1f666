//! The node's side: spends what it was lent. When it asks for more stands in [`renewal`](super::renewal).

use std::time::Duration;

use super::coming::Coming;
use super::demand::Demand;
use super::exchange::{LeaseId, Node};
use super::pace::Pace;
use super::renewal::{Pending, UNPAID_FOR_MORE};
use super::spend::{Receipt, Spend};
use super::terms::Terms;
use crate::decision::{Decision, Retry};
use crate::time::Tick;

/// What a node holds of one key of one limit.
///
/// Time is the node's own. The owner asks [`spend`](Self::spend) for every request, sends what
/// [`exchange`](Self::exchange) says at the time that [`due`](Self::due) says, and hands answers to
/// [`answer`](Self::answer).
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Anchor, Limit, Phase, Tick};
/// use tollgate_core::lease::{Borrower, Lender, Node, Spend};
///
/// let limit = Limit::token_bucket("1k/s")?;
/// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
/// let mut account = lender.open(Tick::ZERO, Phase::default());
/// let terms = lender.terms().expect("it is lent");
/// let mut node = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
///
/// let mut local = 0;
/// for millis in 0..100 {
///     let now = Tick::ZERO.after(Duration::from_millis(millis));
///     let exchange = match node.spend(now, 1) {
///         Spend::Taken(_) => { local += 1; node.exchange(now) }
///         Spend::Ask => node.ask(now, 1),
///         Spend::Short(_) => None,
///     };
///     if let Some(exchange) = exchange {
///         let grant = lender.exchange(&mut account, now, &exchange).expect("nothing overtakes it");
///         node.answer(now, &grant);
///     }
/// }
/// assert!(local >= 95, "{local} of a hundred were decided here");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Borrower {
    pub(super) node: Node,
    pub(super) terms: Terms,
    pub(super) sequence: u64,
    pub(super) pending: Option<Pending>,
    pub(super) lease: Option<LeaseId>,
    /// What can be spent, until a moment by the node's clock.
    pub(super) tokens: u64,
    /// What can be spent later, and until the same moment.
    pub(super) coming: Coming,
    pub(super) until: Tick,
    /// Since the lease began; of permits, those in use, whichever lease they were of.
    pub(super) used: u64,
    /// Permits that are lent, in use or not, and the most that were in use since the last exchange.
    pub(super) permits: u64,
    pub(super) peak: u64,
    pub(super) returned: u64,
    /// Permits that go back to the store when they are free, and whether some went since it was told.
    pub(super) owed: u64,
    pub(super) gives: bool,
    /// When some were last given up for others.
    pub(super) made_way: Tick,
    /// What of `used` the last exchange has told.
    pub(super) told: u64,
    /// The same of `returned`, whichever lease that was of.
    pub(super) told_returned: u64,
    pub(super) demand: Demand,
    /// When a request last passed, and when tokens last came.
    pub(super) last_spend: Tick,
    pub(super) last_gain: Tick,
    /// When the last exchange was sent, and when another may be.
    pub(super) last_sent: Tick,
    pub(super) ready: Tick,
    pub(super) pace: Pace,
    /// The store had too little for requests of this cost or more when it last answered.
    pub(super) short_of: Option<u64>,
    /// What the store last said is left.
    pub(super) seen: Option<Decision>,
    pub(super) latest: Tick,
}

impl Borrower {
    /// A node that holds nothing yet.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of_permits(Duration::from_millis(5));
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// assert_eq!(borrower.tokens(Tick::ZERO), 0);
    /// ```
    pub fn new(node: Node, terms: Terms) -> Self {
        Self {
            node,
            terms,
            sequence: 0,
            pending: None,
            lease: None,
            tokens: 0,
            coming: Coming::NOTHING,
            until: Tick::ZERO,
            used: 0,
            permits: 0,
            peak: 0,
            returned: 0,
            owed: 0,
            gives: false,
            made_way: Tick::ZERO,
            told: 0,
            told_returned: 0,
            demand: Demand::new(terms),
            last_spend: Tick::ZERO,
            last_gain: Tick::ZERO,
            last_sent: Tick::ZERO,
            ready: Tick::ZERO,
            pace: Pace::of(&terms),
            short_of: None,
            seen: None,
            latest: Tick::ZERO,
        }
    }

    /// Spends what the node holds, if it is enough.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::{Borrower, Node, Spend, Terms}};
    /// let terms = Terms::of_permits(Duration::from_millis(5));
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// assert_eq!(borrower.spend(Tick::ZERO, 1), Spend::Ask);
    /// ```
    pub fn spend(&mut self, now: Tick, cost: u64) -> Spend {
        let now = self.advance(now);
        self.demand.asked(cost, 1);
        if let Some(seen) = self.seen
            && cost <= self.tokens
            && now < self.until
        {
            self.tokens -= cost;
            self.used = self.used.saturating_add(cost);
            self.peak = if self.terms.is_reusable() { self.peak.max(self.used) } else { 0 };
            self.last_spend = now;
            let decision = seen.with_extra(self.tokens);
            return Spend::Taken(Receipt { cost, decision });
        }
        self.demand.missed(cost);
        let waits = self.pending.is_some() || self.gives || now < self.asks_from();
        match self.seen {
            Some(seen) if waits && self.is_short(cost, now) => {
                let retry =
                    Retry::After(self.more_at(cost).since(now).max(self.terms.round_trip()));
                let (limit, reset) = (seen.limit(), seen.reset_after());
                Spend::Short(Decision::deny(limit, self.tokens, reset, retry))
            }
            _ => Spend::Ask,
        }
    }

    /// Whether the store had too little for a request of that cost when it last answered. It may have enough for
    /// those that cost less than the one it was short of: they ask, until enough has been asked.
    fn is_short(&self, cost: u64, now: Tick) -> bool {
        let has_asked_enough = now < self.pace.leaves(UNPAID_FOR_MORE);
        self.short_of.is_some_and(|least| cost >= least || has_asked_enough)
    }

    /// A request that held permits has ended, and they are free for others.
    ///
    /// ```
    /// use tollgate_core::{Tick, lease::{Borrower, Spend}};
    /// fn serve(borrower: &mut Borrower, now: Tick) {
    ///     if let Spend::Taken(permit) = borrower.spend(now, 1) {
    ///         // ... the request is served, and then:
    ///         borrower.finish(now, permit);
    ///     }
    /// }
    /// ```
    pub fn finish(&mut self, now: Tick, receipt: Receipt) {
        if self.terms.is_reusable() {
            self.used = self.used.saturating_sub(receipt.cost);
            self.tokens = self.permits.saturating_sub(self.used);
            self.give_up();
        }
        self.advance(now);
    }

    /// What can be spent now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of_permits(Duration::from_millis(5));
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// assert_eq!(borrower.tokens(Tick::ZERO), 0);
    /// ```
    pub fn tokens(&mut self, now: Tick) -> u64 {
        self.advance(now);
        self.tokens
    }

    /// What is lent to the node now, of permits also those in use.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of_permits(Duration::from_millis(5));
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// assert_eq!(borrower.held(Tick::ZERO), 0);
    /// ```
    pub fn held(&mut self, now: Tick) -> u64 {
        let is_live = self.advance(now) < self.until;
        match self.terms.is_reusable() {
            true if is_live => self.permits,
            true => 0,
            false => self.all_tokens(),
        }
    }

    /// From when on nothing that the borrower knows of the key is worth keeping, if nothing
    /// [is due](Self::due) then: nobody was let pass and nobody asked for longer than it remembers.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::ZERO).expect("it is lent");
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// let now = Tick::from_nanos(7_000_000_000);
    /// assert!(borrower.ask(now, 1).is_some());
    /// assert_eq!(borrower.cold_from().since(now), Duration::from_secs(1));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn cold_from(&self) -> Tick {
        self.last_spend.max(self.last_sent).after(self.terms.hold().max(REMEMBERED))
    }

    /// For how long nobody was let pass, nobody asked, and nothing came in. `None` if the borrower cannot
    /// [quit](Self::quit) now: an answer is on its way to it, or it is about to ask for one that somebody waits for, or
    /// permits that it lent are in use.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::ZERO).expect("it is lent");
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// let ask = borrower.ask(Tick::ZERO, 1).expect("nothing is under way");
    /// let later = Tick::ZERO.after(Duration::from_secs(1));
    /// assert_eq!(borrower.silence(later), None);
    /// borrower.abandon(ask.sequence);
    /// assert_eq!(borrower.silence(later), Some(Duration::from_secs(1)));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn silence(&self, now: Tick) -> Option<Duration> {
        let is_used = self.terms.is_reusable() && self.used > 0;
        let is_needed = self.pending.is_some() || self.gives || is_used;
        (!is_needed).then(|| now.since(self.last_spend.max(self.last_sent).max(self.last_gain)))
    }

    /// What can be spent now or later.
    pub(super) const fn all_tokens(&self) -> u64 {
        self.tokens + self.coming.tokens
    }

    /// From when on a request asks that finds too little. Where they come so often that one has found too
    /// little before, the node asks for more by itself, and that is waited for: hardly any has to wait for
    /// the store because it came a moment before that. Permits may have come back.
    pub(super) fn asks_from(&self) -> Tick {
        let is_often = self.demand.gap() <= self.terms.pause() / 4;
        match is_often && !self.terms.is_reusable() {
            true => self.more_from().after(MOMENT),
            false => self.more_from(),
        }
    }

    /// When a request of that cost may find more than it does now.
    fn more_at(&self, cost: u64) -> Tick {
        let lacks = cost.saturating_sub(self.tokens);
        let more = self.more_from();
        self.coming.in_at(lacks).map_or(more, |at| at.min(more))
    }

    /// Lets time pass. What has come in can be spent. What cannot be used any more goes back with the
    /// next exchange.
    pub(super) fn advance(&mut self, now: Tick) -> Tick {
        self.latest = self.latest.max(now);
        self.tokens += self.coming.arrived(self.latest);
        if self.latest >= self.until {
            self.give_back();
        }
        self.latest
    }

    pub(super) fn give_back(&mut self) {
        // The store had too little because it was here.
        if self.all_tokens() > 0 {
            self.short_of = None;
        }
        self.returned = self.returned.saturating_add(self.all_tokens());
        self.permits = self.permits.saturating_sub(self.tokens);
        (self.tokens, self.coming, self.owed) = (0, Coming::NOTHING, 0);
    }
}

/// How a key came is remembered for so long at least: how long silences were, and how often it was asked about.
const REMEMBERED: Duration = Duration::from_secs(1);

/// By so much may a node be late that asks for more.
const MOMENT: Duration = Duration::from_millis(3);

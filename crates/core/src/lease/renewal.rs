//! When a node asks for more, gives back, and tells what it has used.

use std::time::Duration;

use super::borrower::Borrower;
use super::exchange::{Exchange, Grant};
use crate::decision::Decision;
use crate::time::Tick;

/// An exchange that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    exchange: Exchange,
    /// When it was sent for the first time: the lease counts from there.
    sent: Tick,
    again: Tick,
}

impl Borrower {
    /// When [`exchange`](Self::exchange) has something to say, if nothing happens before; `None` if
    /// it has nothing.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of_permits(Duration::from_millis(5));
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// assert_eq!(borrower.due(), None, "nobody asked for anything");
    /// borrower.spend(Tick::ZERO, 1);
    /// assert_eq!(borrower.due(), Some(Tick::ZERO));
    /// ```
    pub fn due(&self) -> Option<Tick> {
        if let Some(pending) = &self.pending {
            return Some(pending.again);
        }
        let is_idle = self.tokens > 0 || self.told < self.used;
        let idle = is_idle.then(|| self.idle_from());
        // Before half of the lease is over, and often enough for the store to know what is used.
        let renewal = (is_idle || self.used > 0 && self.terms.is_reusable())
            .then(|| self.last_sent.after(self.terms.hold() / 4));
        let more = (self.unmet() > 0 || self.is_low()).then_some(self.ready);
        [idle, renewal, more].into_iter().flatten().min()
    }

    /// The exchange to send now, if one is [due](Self::due): the last one again if it was not
    /// answered, or a new one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of_permits(Duration::from_millis(5));
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// borrower.spend(Tick::ZERO, 1);
    /// let exchange = borrower.exchange(Tick::ZERO).expect("somebody wants a permit");
    /// assert_eq!((exchange.sequence, exchange.want), (1, 1));
    /// assert_eq!(borrower.exchange(Tick::ZERO), None, "it is under way");
    /// let later = Tick::ZERO.after(Duration::from_secs(1));
    /// assert_eq!(borrower.exchange(later), Some(exchange), "it was lost, or its answer");
    /// ```
    pub fn exchange(&mut self, now: Tick) -> Option<Exchange> {
        let now = self.advance(now);
        self.due().filter(|due| *due <= now)?;
        let patience = self.patience();
        match &mut self.pending {
            // What an answer would lend now is over soon.
            Some(pending) if now.since(pending.sent) > self.terms.hold() / 2 => {
                self.pending = None;
                Some(self.send(now, 0))
            }
            Some(pending) => {
                pending.again = now.after(patience);
                Some(pending.exchange)
            }
            None => Some(self.send(now, 0)),
        }
    }

    /// An exchange that lets the store decide on a request of that cost. `None` if one is under way
    /// already. The answer is for that request alone.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::ZERO).expect("it is lent");
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// assert_eq!(borrower.ask(Tick::ZERO, 3).map(|ask| (ask.cost, ask.want)), Some((3, 0)));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn ask(&mut self, now: Tick, cost: u64) -> Option<Exchange> {
        let now = self.advance(now);
        if self.pending.is_some() {
            return None;
        }
        self.demand.is_served_otherwise();
        Some(self.send(now, cost))
    }

    /// Takes an answer: the first to the latest exchange, and no other. Whether it was that.
    ///
    /// ```
    /// use tollgate_core::{Tick, lease::{Borrower, Grant}};
    /// fn received(borrower: &mut Borrower, now: Tick, grant: &Grant) {
    ///     if borrower.answer(now, grant) {
    ///         // Whoever waits for `grant.decision` has it now.
    ///     }
    /// }
    /// ```
    pub fn answer(&mut self, now: Tick, grant: &Grant) -> bool {
        let now = self.advance(now);
        let is_awaited = |pending: &Pending| pending.exchange.sequence == grant.sequence;
        let Some(Pending { exchange, sent, .. }) = self.pending.take_if(|one| is_awaited(one))
        else {
            return false;
        };
        if self.lease != Some(grant.lease) {
            (self.lease, self.returned, self.told) = (Some(grant.lease), 0, 0);
            self.used = if self.terms.is_reusable() { self.used } else { 0 };
        }
        let is_same = exchange.lease == self.lease;
        let (used, returned) = if is_same { (exchange.used, exchange.returned) } else { (0, 0) };
        let held = self.tokens;
        // Less what was used or returned while the answer was on its way.
        let lent = grant.tokens.saturating_sub(self.returned - returned);
        self.tokens = if self.terms.is_reusable() {
            self.permits = lent;
            // Those in use since before the lease count as well: they are not over yet.
            lent.saturating_sub(self.used)
        } else {
            lent.saturating_sub(self.used - used)
        };
        self.until = sent.after(grant.span);
        let got = self.tokens.saturating_sub(held);
        self.last_gain = if got > 0 { now } else { self.last_gain };
        // At the end of a window nothing is lent, however much is left: what comes then asks.
        let is_over_soon = grant.span <= self.terms.round_trip();
        let is_less = got < exchange.want && !is_over_soon;
        self.is_short = is_less || !grant.decision.is_allowed();
        self.ready = match self.is_short {
            true => now.after(self.pause()),
            false if is_over_soon => now.max(self.until),
            false => now,
        };
        let said = grant.decision;
        self.seen = Some(Decision::allow(said.limit(), said.remaining(), said.reset_after()));
        self.advance(now);
        true
    }

    /// What a request needed that is not here now either.
    const fn unmet(&self) -> u64 {
        if self.demand.unmet() > self.tokens { self.demand.unmet() } else { 0 }
    }

    /// When what is held is not needed.
    fn idle_from(&self) -> Tick {
        self.last_spend.max(self.last_gain).after(IDLE)
    }

    /// Whether it is time to ask for more, ahead of need.
    fn is_low(&self) -> bool {
        let target = self.demand.target();
        self.tokens < target.div_ceil(2) && self.latest < self.last_spend.after(IDLE)
    }

    fn send(&mut self, now: Tick, cost: u64) -> Exchange {
        let unmet = self.unmet();
        self.demand.begin_anew(now);
        if now >= self.idle_from() && unmet == 0 {
            self.give_back();
        }
        let is_wanted = unmet > 0 || cost > 0 || now < self.last_spend.after(IDLE);
        let target = if is_wanted { self.demand.target() } else { 0 };
        let (want, least) = match unmet {
            0 => (target.saturating_sub(self.tokens), 0),
            _ => (target.max(unmet) - self.tokens, unmet - self.tokens),
        };
        // Permits in use that no lease covers, because the store has forgotten.
        let uncovered = match self.terms.is_reusable() {
            true => self.used.saturating_sub(self.permits),
            false => 0,
        };
        let want = want.saturating_add(uncovered);
        self.sequence += 1;
        self.told = self.used;
        self.last_sent = now;
        let exchange = Exchange {
            node: self.node,
            sequence: self.sequence,
            lease: self.lease,
            used: self.used,
            returned: self.returned,
            cost,
            want,
            least,
        };
        self.pending = Some(Pending { exchange, sent: now, again: now.after(self.patience()) });
        exchange
    }

    /// When to send again what was not answered.
    fn patience(&self) -> Duration {
        LEAST_PATIENCE.max(self.terms.round_trip() * 4)
    }

    /// Before asking again for what the store did not have: not all nodes at once.
    fn pause(&self) -> Duration {
        let mixed = (self.node.number ^ self.sequence.rotate_left(32)).wrapping_mul(GOLDEN) >> 40;
        PAUSE + PAUSE.mul_f64(mixed as f64 / (1u64 << 24) as f64)
    }
}

/// The shortest pause after a grant that fell short; the longest is twice that.
const PAUSE: Duration = Duration::from_millis(25);

const LEAST_PATIENCE: Duration = Duration::from_millis(50);

/// An odd number near 2^64 divided by the golden ratio: multiples of it are spread evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A node that has passed nothing for so long gives back what it holds.
pub(super) const IDLE: Duration = Duration::from_millis(50);

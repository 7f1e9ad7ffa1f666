//! When a node asks for more, gives back, and tells what it has used.

use std::time::Duration;

use super::borrower::Borrower;
use super::coming::Coming;
use super::exchange::{Exchange, Grant};
use crate::decision::Decision;
use crate::time::Tick;

/// An exchange that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    exchange: Exchange,
    /// When it was sent for the first time: the lease counts from there.
    sent: Tick,
    pub(super) again: Tick,
    /// Whether it gives up permits for others.
    gives: bool,
    /// Whether the store may learn from it that something was given back.
    returns: bool,
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
        let is_idle = self.all_tokens() > 0 || self.told < self.used;
        let idle = is_idle.then(|| match self.all_tokens() {
            // There is nothing to give back. What was used is told when it is time to ask again.
            0 => self.idle_from().max(self.more_from()),
            _ => {
                let paid = match (self.terms.is_reusable(), self.is_plenty_left()) {
                    // A permit that is not needed here is missing elsewhere until its lease is over.
                    (true, _) => Tick::ZERO,
                    (false, true) => self.pace.leaves(UNPAID_TO_GIVE_BACK),
                    (false, false) => self.pace.leaves(UNPAID_TO_GIVE_BACK_SOON),
                };
                self.idle_from().max(self.last_sent.after(LEAST_KEPT)).max(paid)
            }
        });
        // Long before the lease is over, and often enough for the store to know what is used. Permits
        // that are in use when it is over are lent to others as well: there is time to try again.
        let is_reusable = self.terms.is_reusable();
        let most = if is_reusable { self.terms.hold() / 2 } else { Duration::MAX };
        let renewal = (is_idle || self.used > 0 && is_reusable)
            .then(|| self.last_sent.after(self.demand.renewal().min(most)));
        let more = (self.unmet() > 0 || self.is_low()).then(|| self.more_from());
        // What is given up is free one after the other, and goes together.
        let turn = self.gives.then(|| self.latest.max(self.last_sent.after(SHORT_PAUSE)));
        [idle, renewal, more, turn].into_iter().flatten().min()
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
    /// already, or is to give up permits first. The answer is for that request alone.
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
        if self.pending.is_some() || self.gives {
            return None;
        }
        self.demand.is_served_otherwise();
        Some(self.send(now, cost))
    }

    /// The last exchange of a borrower that another key's is to take the place of: all that it holds goes back.
    /// `None` if there is nothing to tell, or it [cannot quit](Self::silence). It is sent until it is answered, by
    /// whoever has it then: what is lent to somebody who is not heard of any more counts as used.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Anchor, Limit, Phase, Tick, lease::{Borrower, Lender, Node}};
    /// let limit = Limit::token_bucket("1k/s")?;
    /// let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).expect("it is no log");
    /// let mut account = lender.open(Tick::ZERO, Phase::default());
    /// let node = Node { number: 1, incarnation: 1 };
    /// let mut borrower = Borrower::new(node, lender.terms().expect("it is lent"));
    /// borrower.spend(Tick::ZERO, 100);
    /// let more = borrower.exchange(Tick::ZERO).expect("it lacks a hundred");
    /// borrower.answer(Tick::ZERO, &lender.exchange(&mut account, Tick::ZERO, &more).expect("it is new"));
    /// assert_eq!(lender.left(&mut account, Tick::ZERO), 900);
    /// let last = borrower.quit(Tick::ZERO).expect("it holds a hundred");
    /// lender.exchange(&mut account, Tick::ZERO, &last).expect("it is new");
    /// assert_eq!(lender.left(&mut account, Tick::ZERO), 1_000);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn quit(&mut self, now: Tick) -> Option<Exchange> {
        let now = self.advance(now);
        self.silence(now)?;
        self.give_back();
        let is_told = self.told == self.used && self.told_returned == self.returned;
        (!is_told).then(|| Exchange { want: 0, least: 0, ..self.send(now, 0) })
    }

    /// Whether an answer is awaited, which may bring something.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of_permits(Duration::from_millis(5));
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// assert!(!borrower.is_waiting());
    /// assert!(borrower.ask(Tick::ZERO, 1).is_some() && borrower.is_waiting());
    /// ```
    pub const fn is_waiting(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether a request for tokens that finds too little, while an answer is awaited, asks the store for
    /// itself, and is no reason to borrow then: what is awaited is for another request alone, and no more
    /// than a few have asked for themselves. Anything else is worth waiting for: it brings what all need, or
    /// tells the store of what is given back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::ZERO).expect("it is lent");
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// borrower.spend(Tick::ZERO, 1);
    /// let ask = borrower.ask(Tick::ZERO, 1).expect("nothing is under way");
    /// assert_eq!(ask.want, 0, "one request says nothing about the next");
    /// borrower.spend(Tick::ZERO, 1);
    /// assert!(borrower.ask(Tick::ZERO, 1).is_none() && borrower.asks_apart(Tick::ZERO));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn asks_apart(&mut self, now: Tick) -> bool {
        let is_for_one = |Pending { exchange, returns, .. }: &Pending| {
            exchange.cost > 0 && exchange.want == 0 && !returns
        };
        let now = self.advance(now);
        let is_apart = self.pending.as_ref().is_none_or(is_for_one)
            && self.pace.leaves(UNPAID_TO_ASK_APART) <= now;
        if is_apart {
            self.pace.asks(now);
            self.demand.is_served_otherwise();
        }
        is_apart
    }

    /// Nobody waits any more for what the store decides in the exchange of this number: it is not sent
    /// again. The next one tells all that it told, and learns what it brought, if it got there.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::ZERO).expect("it is lent");
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// let ask = borrower.ask(Tick::ZERO, 3).expect("nothing is under way");
    /// borrower.abandon(ask.sequence);
    /// let later = Tick::ZERO.after(Duration::from_secs(1));
    /// assert_eq!(borrower.exchange(later), None, "there is nothing to say");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn abandon(&mut self, sequence: u64) {
        if self.pending.take_if(|pending| pending.exchange.sequence == sequence).is_some() {
            // Nobody knows whether the store has heard of what it gave back.
            self.told_returned = u64::MAX;
        }
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
        let Some(Pending { exchange, sent, gives, .. }) =
            self.pending.take_if(|one| is_awaited(one))
        else {
            return false;
        };
        if self.lease != Some(grant.lease) {
            (self.lease, self.returned, self.told, self.owed) = (Some(grant.lease), 0, 0, 0);
            self.used = if self.terms.is_reusable() { self.used } else { 0 };
        }
        let is_same = exchange.lease == self.lease;
        let (used, returned) = if is_same { (exchange.used, exchange.returned) } else { (0, 0) };
        let held = self.all_tokens();
        // Less what was used or returned while the answer was on its way.
        let lent = grant.tokens.saturating_sub(self.returned - returned);
        let all = if self.terms.is_reusable() {
            self.permits = lent;
            // Those in use since before the lease count as well: they are not over yet.
            lent.saturating_sub(self.used)
        } else {
            lent.saturating_sub(self.used - used)
        };
        self.coming = Coming::of(all, &grant.promise, now, &self.terms);
        self.tokens = all - self.coming.tokens;
        self.until = sent.after(grant.span);
        let got = all.saturating_sub(held);
        self.last_gain = if got > 0 { now } else { self.last_gain };
        // At the end of a window nothing is lent, however much is left: what comes then asks.
        let is_over_soon = grant.span <= self.terms.round_trip();
        let is_less = (got < exchange.want || self.coming.tokens > 0) && !is_over_soon;
        let pause = self.pause(grant);
        // It may have more, and lend no more of it to one node at once.
        let is_little = self.terms.time_for(grant.decision.remaining()) < pause;
        let is_denied = !grant.decision.is_allowed();
        // Of permits nothing comes in by itself.
        let is_last = self.terms.is_reusable() && grant.decision.remaining() == 0;
        self.short_of = match is_less || is_denied {
            _ if gives || is_last => Some(1),
            true if is_little => Some(1),
            true if is_denied => Some(exchange.cost),
            true if got < exchange.least => Some(exchange.least),
            _ => None,
        };
        self.ready = match self.short_of {
            // Until everybody has asked who waits for it.
            Some(_) if gives => now.after(self.terms.longest_pause()),
            Some(_) => now.after(pause),
            None if is_over_soon => now.max(self.until),
            None if is_less => now.after(pause.min(SHORT_PAUSE)),
            None => now,
        };
        let said = grant.decision;
        self.seen = Some(Decision::allow(said.limit(), said.remaining(), said.reset_after()));
        if self.is_long() && is_same && grant.tokens == 0 {
            (self.lease, self.used, self.returned, self.told) = (None, 0, 0, 0);
        }
        self.advance(now);
        true
    }

    /// From when on the node asks for more. Tokens that the store did not have are asked for when it may have
    /// them, and that is a while from each time to the next. Permits that it did not have may be free at any
    /// moment; while it has some, each that is missing is asked for.
    pub(super) fn more_from(&self) -> Tick {
        match self.short_of.is_some() == self.terms.is_reusable() {
            true => self.ready.max(self.pace.leaves(UNPAID_FOR_MORE)),
            false => self.ready,
        }
    }

    /// What a request needed that is not here now either.
    const fn unmet(&self) -> u64 {
        if self.demand.unmet() > self.tokens { self.demand.unmet() } else { 0 }
    }

    /// After so long without a request, what is held is not needed. Where there is plenty, or of permits, it is
    /// kept in silences that are as short as others were; where there is little it is missing elsewhere.
    fn idle(&self) -> Duration {
        self.demand.idle(self.terms.is_reusable() || self.is_plenty_left())
    }

    /// When what is held is not needed.
    fn idle_from(&self) -> Tick {
        let last = self.last_spend.max(self.last_gain).max(self.coming.all_in());
        last.after(self.idle())
    }

    /// Whether it is time to ask for more, ahead of need. Permits are asked for when they are needed.
    pub(super) fn is_low(&self) -> bool {
        !self.terms.is_reusable()
            && self.all_tokens() < self.low()
            && self.latest < self.last_spend.after(self.idle())
    }

    /// Whether the store had plenty left when it last answered.
    fn is_plenty_left(&self) -> bool {
        self.seen.is_some_and(|seen| seen.remaining() >= seen.limit().div_ceil(2))
    }

    /// How much a node had better have that nobody uses yet. Of tokens what it is asked for in a while. Of
    /// permits, which come back, as many as it had in use at once, and some more where there are plenty, or
    /// somebody found none: what lies with one node is missing at another.
    fn spare(&self, is_missed: bool) -> u64 {
        match (self.terms.is_reusable(), self.demand.target()) {
            (false, target) => target,
            (true, 0) => 0,
            (true, _) => {
                let left = self.seen.map_or(1, |seen| seen.remaining().div_ceil(SHARE));
                let more = match self.is_plenty_left() {
                    _ if is_missed => self.peak.min(left),
                    true => self.peak.div_ceil(SHARE).max(1),
                    false => 0,
                };
                (self.peak + more).saturating_sub(self.used)
            }
        }
    }

    /// Whether so much was used or returned since the lease began that it is let go, and another
    /// begins: a store may count in numbers that are exact up to some size only.
    const fn is_long(&self) -> bool {
        !self.terms.is_reusable() && self.used.saturating_add(self.returned) >= MOST_TOLD
    }

    fn send(&mut self, now: Tick, cost: u64) -> Exchange {
        // That the store had too little was long ago if nobody has asked since then.
        if now >= self.ready.after(self.terms.longest_pause()) {
            self.short_of = None;
        }
        let (unmet, is_long) = (self.unmet(), self.is_long());
        if now >= self.idle_from() && unmet == 0 || is_long {
            self.give_back();
        }
        let is_busy = now < self.last_spend.after(self.idle());
        let is_wanted = unmet > 0 || cost > 0 || is_busy;
        self.demand.begin_anew(now, is_wanted, now.since(self.last_spend));
        let target = self.spare(unmet > 0);
        // What a request asks for comes on top of what is here.
        if self.terms.is_reusable() && cost == 0 && self.tokens > target.max(unmet) {
            let back = self.tokens - target.max(unmet);
            (self.tokens, self.permits) = (self.tokens - back, self.permits - back);
            self.returned = self.returned.saturating_add(back);
        }
        let held = self.all_tokens();
        self.peak = self.used;
        self.make_way(now, unmet > 0 || cost > 0);
        let gives = std::mem::take(&mut self.gives);
        let (want, least) = match is_long || gives {
            true => (0, 0),
            false => (target.max(unmet).saturating_sub(held), unmet.saturating_sub(held)),
        };
        // Permits in use that no lease covers, because the store has forgotten or the lease is over.
        let uncovered = match self.terms.is_reusable() {
            true if now >= self.until => self.used,
            true => self.used.saturating_sub(self.permits),
            false => 0,
        };
        let want = want.saturating_add(uncovered);
        self.sequence += 1;
        self.pace.asks(now);
        self.told = self.used;
        let returns = std::mem::replace(&mut self.told_returned, self.returned) != self.returned;
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
            undo: None,
        };
        let again = now.after(self.patience());
        self.pending = Some(Pending { exchange, sent: now, again, gives, returns });
        exchange
    }

    /// Where there are fewer permits than are asked for, a node that uses its own again and again would
    /// keep them for ever, and others would get none. So now and then it gives up some of them, those
    /// that are free next.
    fn make_way(&mut self, now: Tick, is_more_wanted: bool) {
        let is_short = self.terms.is_reusable() && is_more_wanted && self.short_of.is_some();
        if is_short && self.owed == 0 && now.since(self.made_way) >= self.terms.hold() * 2 {
            (self.owed, self.made_way) = (self.permits.div_ceil(SHARE), now);
        }
    }

    /// Gives up what is owed, as far as it is free.
    pub(super) fn give_up(&mut self) {
        let back = self.owed.min(self.tokens);
        (self.owed, self.tokens) = (self.owed - back, self.tokens - back);
        (self.permits, self.returned) = (self.permits - back, self.returned + back);
        self.gives |= back > 0;
    }

    /// When to send again what was not answered.
    fn patience(&self) -> Duration {
        LEAST_PATIENCE.max(self.terms.round_trip() * 4)
    }

    /// Before asking again for what the store did not have: not all nodes at once, but all when a
    /// window ends. The store knows whose turn is when, if there is more soon.
    fn pause(&self, grant: &Grant) -> Duration {
        if !grant.turn.is_zero() {
            return grant.turn.min(self.terms.pause() * 2);
        }
        let (least, more) = self.terms.pauses();
        let mixed = (self.node.number ^ self.sequence.rotate_left(32)).wrapping_mul(GOLDEN) >> 40;
        let chance = mixed as f64 / (1u64 << 24) as f64;
        let pause = least + more.mul_f64(chance);
        match grant.decision.reset_after() {
            Duration::ZERO => pause,
            reset => pause.min(reset),
        }
    }
}

/// Of so many permits one is given up for others.
const SHARE: u64 = 8;

/// No sum that is told is larger than this and the most that a limit can have, together.
const MOST_TOLD: u64 = 1 << 48;

/// The pause after a grant that was less than was wanted, where there is more; and from one question to the
/// next that only gives up permits.
const SHORT_PAUSE: Duration = Duration::from_millis(25);

/// So many questions may be unpaid when one is sent only to give back, where there is plenty and where it is
/// missing elsewhere; when a request asks apart; and when a node asks for more: at the beginning of a burst it
/// does so again and again until it knows what it needs.
const UNPAID_TO_GIVE_BACK: u32 = 3;
const UNPAID_TO_GIVE_BACK_SOON: u32 = 6;
const UNPAID_TO_ASK_APART: u32 = 4;
pub(super) const UNPAID_FOR_MORE: u32 = 8;

/// Nothing is sent only to give back sooner than this after the last exchange: where several requests come in
/// the time of a pause, one that is late would have a node give back, ask for itself, and borrow anew.
const LEAST_KEPT: Duration = Duration::from_millis(120);

const LEAST_PATIENCE: Duration = Duration::from_millis(50);

/// An odd number near 2^64 divided by the golden ratio: multiples of it are spread evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

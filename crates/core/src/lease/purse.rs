//! For whoever spends on a borrower's behalf: what it holds, in a form that many threads can share.

use std::time::Duration;

use super::borrower::Borrower;
use crate::decision::Decision;
use crate::time::Tick;

/// A borrower is asked by one thread at a time. Whoever lets several spend what it holds takes note of
/// what they do, and tells it here before anything else happens to it.
impl Borrower {
    /// So many requests have spent so much in all of what is [held](Self::held_tokens), since the
    /// borrower was last asked anything. Whoever lost count of them says how much it was all the same.
    ///
    /// ```
    /// use tollgate_core::{Tick, lease::Borrower};
    /// fn settle(borrower: &mut Borrower, now: Tick, lent: u64, left: u64, requests: u64) {
    ///     borrower.book(now, lent - left, requests);
    /// }
    /// ```
    pub fn book(&mut self, now: Tick, spent: u64, requests: u64) {
        let spent = spent.min(self.tokens);
        if requests > 0 || spent > 0 {
            self.demand.asked(spent, requests.max(1));
            self.tokens -= spent;
            self.used = self.used.saturating_add(spent);
            // It was spent in time, however late that is told.
            let last = Tick::from_nanos(self.until.as_nanos().saturating_sub(1));
            self.last_spend = self.last_spend.max(self.latest.max(now).min(last));
        }
        self.advance(now);
    }

    /// So many requests of cost 1 found too little, and were told so.
    ///
    /// ```
    /// use tollgate_core::{Tick, lease::Borrower};
    /// fn settle(borrower: &mut Borrower, now: Tick, denied: u64) {
    ///     borrower.book_denied(now, denied);
    /// }
    /// ```
    pub fn book_denied(&mut self, now: Tick, requests: u64) {
        if requests > 0 {
            self.demand.asked(requests, requests);
            self.demand.missed(1);
        }
        self.advance(now);
    }

    /// What was held when the borrower was last asked anything.
    ///
    /// ```
    /// use tollgate_core::lease::Borrower;
    /// fn is_empty(borrower: &Borrower) -> bool {
    ///     borrower.held_tokens() == 0
    /// }
    /// ```
    pub const fn held_tokens(&self) -> u64 {
        self.tokens
    }

    /// When that is worth nothing any more, by the node's clock.
    ///
    /// ```
    /// use tollgate_core::{Tick, lease::Borrower};
    /// fn is_live(borrower: &Borrower, now: Tick) -> bool {
    ///     now < borrower.until()
    /// }
    /// ```
    pub const fn until(&self) -> Tick {
        self.until
    }

    /// Until when a request of any cost that finds too little is denied without a question to the
    /// store or to the borrower, for which something may have come in then.
    ///
    /// ```
    /// use tollgate_core::{Tick, lease::Borrower};
    /// fn denies(borrower: &Borrower, now: Tick) -> bool {
    ///     now < borrower.short_until()
    /// }
    /// ```
    pub fn short_until(&self) -> Tick {
        match (self.short_of, self.seen) {
            (Some(0..=1), Some(_)) => {
                let ready = self.asks_from().max(self.answer_awaited_until());
                let some_in = self.coming.in_at(1).unwrap_or(ready);
                some_in.max(self.latest.after(SIP)).min(ready)
            }
            _ => Tick::ZERO,
        }
    }

    /// Who finds too little while more is asked for is denied, as when it is too early to ask. Permits may
    /// come back at any time, and are waited for.
    fn answer_awaited_until(&self) -> Tick {
        match &self.pending {
            Some(pending) if !self.terms.is_reusable() => pending.again,
            _ => Tick::ZERO,
        }
    }

    /// If fewer tokens are left, an exchange is due.
    ///
    /// ```
    /// use tollgate_core::{Tick, lease::Borrower};
    /// fn asks(borrower: &Borrower) -> bool {
    ///     borrower.held_tokens() < borrower.low()
    /// }
    /// ```
    pub const fn low(&self) -> u64 {
        self.demand.low()
    }

    /// Whether it has asked, or asks as soon as it may: whoever has seen when it [is due](Self::due) need
    /// not hear that the purse runs low.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, Tick, lease::{Borrower, Node, Terms}};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::ZERO).expect("it is lent");
    /// let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    /// assert!(!borrower.is_getting_more());
    /// assert!(borrower.ask(Tick::ZERO, 1).is_some() && borrower.is_getting_more());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn is_getting_more(&self) -> bool {
        self.is_waiting() || self.is_low()
    }

    /// What the store last said is left.
    ///
    /// ```
    /// use tollgate_core::lease::Borrower;
    /// fn left(borrower: &Borrower) -> Option<u64> {
    ///     borrower.seen().map(|decision| decision.remaining())
    /// }
    /// ```
    pub const fn seen(&self) -> Option<Decision> {
        self.seen
    }
}

/// What comes in is not looked for more often than this: each look takes a lock.
const SIP: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decision::Retry;
    use crate::lease::{Grant, Lender, Node, Promise, Spend};
    use crate::{Anchor, Limit, Phase, Wall};

    /// A node that holds a hundred tokens until 490 ms after the beginning.
    fn lent() -> Borrower {
        let limit = Limit::token_bucket("1k/s").unwrap();
        let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
        let mut account = lender.open(Tick::ZERO, Phase::default());
        let node = Node { number: 1, incarnation: 1 };
        let mut borrower = Borrower::new(node, lender.terms().unwrap());
        borrower.spend(Tick::ZERO, 100);
        let ask = borrower.exchange(Tick::ZERO).unwrap();
        let grant = lender.exchange(&mut account, Tick::ZERO, &ask).unwrap();
        assert!(borrower.answer(Tick::ZERO, &grant));
        assert_eq!((borrower.tokens, borrower.until), (100, after(490)));
        borrower
    }

    fn after(millis: u64) -> Tick {
        Tick::ZERO.after(Duration::from_millis(millis))
    }

    proptest! {
        #[test]
        fn what_is_booked_is_as_if_it_had_been_spent(
            rounds in prop::collection::vec(
                (0..200u64, prop::collection::vec(0..10u64, 0..12)), 0..8
            ),
        ) {
            let (mut spends, mut books) = (lent(), lent());
            let mut now = Tick::ZERO;
            for (pause, costs) in rounds {
                now = now.after(Duration::from_millis(pause));
                let spent = costs.iter().sum::<u64>();
                if now >= spends.until() || spent > spends.tokens(now) {
                    break;
                }
                for cost in &costs {
                    prop_assert!(matches!(spends.spend(now, *cost), Spend::Taken(_)));
                }
                books.book(now, spent, costs.len() as u64);
                books.advance(now);
                prop_assert_eq!(format!("{books:?}"), format!("{spends:?}"));
            }
            let end = now.after(Duration::from_secs(1));
            prop_assert_eq!(books.exchange(end), spends.exchange(end));
        }
    }

    /// A node that was told at 2 ms that there is nothing, and asks again at 92.
    fn denied() -> Borrower {
        let mut borrower = lent();
        borrower.book(after(1), 100, 100);
        assert!(matches!(borrower.spend(after(1), 1), Spend::Ask));
        let asks = borrower.exchange(after(1)).unwrap();
        let nothing = Grant {
            sequence: asks.sequence,
            lease: borrower.lease.unwrap(),
            tokens: 0,
            span: Duration::from_millis(490),
            promise: Promise::NOTHING,
            turn: Duration::from_millis(90),
            decision: Decision::deny(1_000, 0, Duration::from_secs(1), Retry::Never),
            at: Wall::default(),
        };
        assert!(borrower.answer(after(2), &nothing));
        borrower
    }

    /// The borrower and the purse in front of it deny the same.
    #[test]
    fn who_finds_too_little_while_more_is_asked_for_is_denied_by_the_purse_too() {
        let mut borrower = denied();
        assert_eq!(borrower.short_until(), after(95), "a moment after it is to ask");
        assert!(matches!(borrower.clone().spend(after(95), 1), Spend::Ask));
        assert!(matches!(borrower.spend(after(50), 1), Spend::Short(_)));
        assert!(borrower.exchange(after(92)).is_some());
        assert!(matches!(borrower.spend(after(96), 1), Spend::Short(_)));
        assert!(borrower.short_until() > after(96), "until it is answered");
    }

    /// All that there is was lent to one node, which gives it back because nobody comes. Who comes while that is
    /// on its way is not denied because nothing was left when it was lent.
    #[test]
    fn what_is_on_its_way_back_denies_nobody() {
        let limit = Limit::token_bucket("750/day").unwrap();
        let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
        let mut account = lender.open(Tick::ZERO, Phase::default());
        let terms = lender.terms().unwrap();
        let mut borrower = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
        let mut exchange = |borrower: &mut Borrower, now| {
            let ask = borrower.exchange(now).expect("there is something to say");
            (ask, lender.exchange(&mut account, now, &ask).unwrap())
        };
        borrower.spend(Tick::ZERO, 750);
        let (_, grant) = exchange(&mut borrower, Tick::ZERO);
        assert!(borrower.answer(Tick::ZERO, &grant));
        // There is nothing more, and it is said so.
        borrower.book(after(1), 700, 700);
        assert!(matches!(borrower.spend(after(1), 100), Spend::Ask));
        let (_, grant) = exchange(&mut borrower, after(1));
        assert!(borrower.answer(after(1), &grant));
        assert!(matches!(borrower.clone().spend(after(2), 100), Spend::Short(_)));
        let idle = borrower.due().unwrap();
        let (ask, grant) = exchange(&mut borrower, idle);
        assert!(ask.returned > 0, "{ask:?}");
        assert!(matches!(borrower.spend(idle, 1), Spend::Ask), "it may ask for it again");
        assert_eq!(borrower.short_until(), Tick::ZERO);
        assert!(borrower.answer(idle, &grant));
        assert!(matches!(borrower.spend(idle, 1), Spend::Ask));
    }

    #[test]
    fn what_the_store_had_long_ago_denies_nobody() {
        let mut borrower = denied();
        assert!(matches!(borrower.spend(after(400), 1), Spend::Ask));
        assert!(borrower.ask(after(400), 1).is_some());
        assert!(borrower.short_until() <= after(400), "there may be some by now");
        assert!(matches!(borrower.spend(after(401), 1), Spend::Ask));
    }

    #[test]
    fn what_was_spent_in_time_and_booked_late_is_used_and_not_returned() {
        let mut borrower = lent();
        borrower.book(after(1_000), 60, 20);
        let told = borrower.exchange(after(1_000)).unwrap();
        assert_eq!((told.used, told.returned), (60, 40));
    }
}

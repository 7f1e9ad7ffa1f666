//! Requests that cost different amounts: what is too little for one is enough for another.

use std::time::Duration;

use tollgate_core::lease::{Account, Borrower, Exchange, Lender, Node, Spend};
use tollgate_core::{Anchor, Limit, Phase, Tick};

/// A node in overload, with a store whose answers take two milliseconds.
struct Overload {
    node: Borrower,
    lender: Lender,
    account: Account,
    now: Tick,
    /// What is on its way to the store, when it gets there, and whom else it is asked for.
    under_way: Option<(Exchange, Tick, Vec<u64>)>,
    chance: u64,
    questions: u64,
    passed: u64,
}

impl Overload {
    fn new(quota: &str) -> Self {
        let limit = Limit::token_bucket(quota).unwrap();
        let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
        let node = Borrower::new(Node { number: 1, incarnation: 1 }, lender.terms().unwrap());
        let now = Tick::from_nanos(1 << 40);
        let account = lender.open(now, Phase::default());
        let chance = 0x9E37_79B9_7F4A_7C15;
        let (under_way, questions, passed) = (None, 0, 0);
        Self { node, lender, account, now, under_way, chance, questions, passed }
    }

    /// From 1 to `most`, in no order.
    fn cost(&mut self, most: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        1 + (self.chance >> 33) % most
    }

    fn sends(&mut self, exchange: Exchange) {
        self.questions += 1;
        self.under_way = Some((exchange, self.now.after(WAY), Vec::new()));
    }

    /// The store answers what has come to it, and who waits for that asks again.
    fn is_answered(&mut self) {
        let has_come = |(_, at, _): &mut (Exchange, Tick, Vec<u64>)| *at <= self.now;
        let Some((exchange, _, waiting)) = self.under_way.take_if(has_come) else { return };
        let grant = self.lender.exchange(&mut self.account, self.now, &exchange).unwrap();
        self.passed += if grant.decision.is_allowed() { exchange.cost } else { 0 };
        self.node.answer(self.now, &grant);
        waiting.into_iter().for_each(|cost| self.is_asked(cost));
    }

    fn is_asked(&mut self, cost: u64) {
        match self.node.spend(self.now, cost) {
            Spend::Taken(_) => self.passed += cost,
            Spend::Short(_) => {}
            Spend::Ask => match self.node.ask(self.now, cost) {
                Some(exchange) => self.sends(exchange),
                None if self.node.asks_apart(self.now) => {
                    self.questions += 1;
                    let apart = Exchange::once(cost);
                    let grant = self.lender.exchange(&mut self.account, self.now, &apart).unwrap();
                    self.passed += if grant.decision.is_allowed() { cost } else { 0 };
                }
                None => self.under_way.iter_mut().for_each(|(.., waiting)| waiting.push(cost)),
            },
        }
    }

    /// Three requests in a millisecond, for twenty seconds.
    fn runs(&mut self, most: u64) {
        let end = self.now.after(TIME);
        while self.now < end {
            self.now = self.now.after(Duration::from_millis(1));
            self.is_answered();
            if let Some(exchange) = self.node.exchange(self.now) {
                self.sends(exchange);
            }
            for _ in 0..3 {
                let cost = self.cost(most);
                self.is_asked(cost);
            }
        }
    }
}

#[test]
fn requests_of_many_costs_ask_no_more_than_twelve_times_a_second() {
    for (quota, capacity, rate, most) in [
        ("100/s", 100, 100, 5),
        ("100/s", 100, 100, 25),
        ("1k/s", 1_000, 1_000, 100),
        ("1k/s burst 5000", 5_000, 1_000, 250),
        ("6k/min", 6_000, 100, 600),
    ] {
        let mut overload = Overload::new(quota);
        overload.runs(most);
        let Overload { questions, passed, .. } = overload;
        let may = capacity + rate * TIME.as_secs();
        assert!(questions <= 240, "{quota}, costs up to {most}: {questions} in {TIME:?}");
        // What nobody can pay who has just come lies there for those who come next.
        assert!((may * 95 / 100..=may).contains(&passed), "{quota}: {passed} of {may}");
    }
}

const WAY: Duration = Duration::from_millis(2);
const TIME: Duration = Duration::from_secs(20);

//! Requests that come while an answer is awaited.

use std::time::Duration;

use tollgate_core::lease::{Account, Borrower, Lender, Node, Spend};
use tollgate_core::{Anchor, Limit, Phase, Tick};

/// A node with a store that answers at once.
struct Pair {
    node: Borrower,
    lender: Lender,
    account: Account,
    now: Tick,
}

impl Pair {
    fn new() -> Self {
        let limit = Limit::token_bucket("60/min").unwrap();
        let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
        let node = Borrower::new(Node { number: 1, incarnation: 1 }, lender.terms().unwrap());
        let account = lender.open(Tick::ZERO, Phase::default());
        Self { node, lender, account, now: Tick::ZERO }
    }

    /// Asks for a request now and then, until some tokens lie with the node.
    fn lend(&mut self) {
        while self.node.tokens(self.now) < 2 {
            let exchange = match self.node.spend(self.now, 1) {
                Spend::Ask => self.node.ask(self.now, 1),
                _ => self.node.exchange(self.now),
            };
            if let Some(exchange) = exchange {
                let grant = self.lender.exchange(&mut self.account, self.now, &exchange).unwrap();
                self.node.answer(self.now, &grant);
            }
            self.now = self.now.after(Duration::from_millis(20));
        }
    }
}

#[test]
fn who_comes_while_the_first_is_asked_about_asks_apart_and_has_nothing_borrowed() {
    let Pair { mut node, lender, mut account, now } = Pair::new();
    assert_eq!(node.spend(now, 1), Spend::Ask);
    let first = node.ask(now, 1).unwrap();
    assert_eq!((node.spend(now, 1), node.ask(now, 1)), (Spend::Ask, None));
    assert!(node.asks_apart(now));
    let grant = lender.exchange(&mut account, now, &first).unwrap();
    assert!(node.answer(now, &grant));
    assert_eq!(node.exchange(now), None, "the store has decided both");
}

#[test]
fn who_comes_while_something_goes_back_waits_for_it() {
    let mut pair = Pair::new();
    pair.lend();
    let due = pair.node.due().unwrap();
    let back = pair.node.exchange(due).unwrap();
    assert!(back.returned > 0 && back.want == 0, "{back:?}");
    assert_eq!((pair.node.spend(due, 1), pair.node.ask(due, 1)), (Spend::Ask, None));
    assert!(!pair.node.asks_apart(due), "the store may not have it back yet");
    let grant = pair.lender.exchange(&mut pair.account, due, &back).unwrap();
    assert!(pair.node.answer(due, &grant));
    let ask = pair.node.ask(due, 1).unwrap();
    let grant = pair.lender.exchange(&mut pair.account, due, &ask).unwrap();
    assert!(grant.decision.is_allowed(), "{grant:?}");
}

#[test]
fn who_comes_while_more_is_asked_for_waits_for_it() {
    let mut pair = Pair::new();
    pair.lend();
    let now = pair.now;
    while let Spend::Taken(_) = pair.node.spend(now, 1) {}
    let more = pair.node.ask(now, 1).unwrap();
    assert!(more.want > 0, "{more:?}");
    assert_eq!((pair.node.spend(now, 1), pair.node.ask(now, 1)), (Spend::Ask, None));
    assert!(!pair.node.asks_apart(now));
}

//! Law: a lease that goes on and on is let go before the sums that are told of it grow too large for a
//! store, and nothing is lost or won by that.

use std::time::Duration;

use tollgate_core::lease::{Account, Borrower, Exchange, Lender, Node, Spend};
use tollgate_core::{Anchor, Limit, Phase, Tick};

const NODE: Node = Node { number: 1, incarnation: 1 };

/// The most that any limit can have.
const BURST: u64 = 1_000_000_000_000_000;

/// As long as numbers of a store are sure to be exact.
const MOST: u64 = 1 << 51;

struct Bank {
    lender: Lender,
    account: Account,
    now: Tick,
}

impl Bank {
    fn new() -> (Self, Borrower) {
        let limit = Limit::token_bucket("1M/ms burst 1000000000000000").unwrap();
        let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
        let account = lender.open(Tick::ZERO, Phase::default());
        let node = Borrower::new(NODE, lender.terms().unwrap());
        (Self { lender, account, now: Tick::ZERO }, node)
    }

    /// The answer to the node, if it comes.
    fn exchange(&mut self, node: &mut Borrower, is_lost: bool) -> Option<Exchange> {
        let ask = node.exchange(self.now)?;
        let grant = self.lender.exchange(&mut self.account, self.now, &ask).unwrap();
        assert!(is_lost || node.answer(self.now, &grant));
        Some(ask)
    }

    fn left(&mut self) -> u64 {
        self.lender.left(&mut self.account, self.now)
    }
}

#[test]
fn a_long_lease_is_let_go_and_another_begins() {
    let (mut bank, mut node) = Bank::new();
    let cost = 300_000_000_000_000;
    assert_eq!(node.spend(bank.now, cost), Spend::Ask);
    bank.exchange(&mut node, false).unwrap();
    assert!(matches!(node.spend(bank.now, cost), Spend::Taken(_)));

    node.spend(bank.now, 7);
    let last = bank.exchange(&mut node, false).unwrap();
    assert_eq!((last.used, last.want), (cost, 0), "it tells all, and wants nothing of that lease");
    assert_eq!(bank.account.escrow(), 0);
    assert_eq!(node.spend(bank.now, 7), Spend::Ask);
    let first = bank.exchange(&mut node, false).unwrap();
    assert_eq!((first.lease, first.used, first.returned), (None, 0, 0));
    assert!(matches!(node.spend(bank.now, 7), Spend::Taken(_)));

    // What is used of the new one is told of the new one.
    let left = bank.left() + bank.account.escrow();
    assert_eq!(left, BURST - cost);
    bank.now = bank.now.after(Duration::from_secs(29));
    bank.exchange(&mut node, false).unwrap();
    let gained = bank.left() + bank.account.escrow() - left;
    assert_eq!(gained, 29_000_000_000 - 7);
}

/// Whichever answers are lost, what was lent in them is given back before the lease is let go.
#[test]
fn answers_that_are_lost_win_nothing() {
    let (mut bank, mut node) = Bank::new();
    let mut passed = 0;
    for round in 0..200_000u64 {
        bank.now = bank.now.after(Duration::from_millis(100));
        let held = node.tokens(bank.now);
        let cost = if round % 3 == 0 { held / 2 } else { held }.max(1);
        if let Spend::Taken(_) = node.spend(bank.now, cost) {
            passed += cost;
        }
        assert!(passed <= BURST + bank.now.as_nanos(), "{passed} in {round} rounds");
        // More than is there would be of no use.
        node.spend(bank.now, 1_000_000_000.min(bank.left()).max(held + 1));
        if let Some(ask) = bank.exchange(&mut node, round % 5 == 2) {
            assert!(ask.used < MOST && ask.returned < MOST, "{ask:?}");
        }
    }
    assert!(passed > BURST, "{passed} passed, in more than one lease");
}

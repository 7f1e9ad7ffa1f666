//! Law: what comes in next is lent before it is there, and used when it is, not earlier and hardly
//! later.

use std::time::Duration;

use tollgate_core::lease::{Account, Borrower, Exchange, Lender, Node, Spend};
use tollgate_core::{Anchor, Limit, Phase, Tick};

const NODE: Node = Node { number: 1, incarnation: 1 };

fn lender(limit: &Limit) -> (Lender, Account) {
    let lender = Lender::new(limit, Anchor::default(), Duration::ZERO).unwrap();
    let account = lender.open(Tick::ZERO, Phase::default());
    (lender, account)
}

fn at(micros: u64) -> Tick {
    Tick::ZERO.after(Duration::from_micros(micros))
}

/// One of so many, asks for as much.
fn wants(number: u64, want: u64) -> Exchange {
    Exchange { want, ..Exchange::strict(Node { number, incarnation: 1 }, 0) }
}

/// The answer takes no time, and a request comes every tenth of a millisecond.
fn serve(lender: &Lender, account: &mut Account, node: &mut Borrower, now: Tick) -> u64 {
    let spent = node.spend(now, 1);
    let exchange = match spent {
        Spend::Ask => node.ask(now, 1),
        Spend::Taken(_) | Spend::Short(_) => node.exchange(now),
    };
    let asked = exchange.is_some_and(|exchange| {
        let grant = lender.exchange(account, now, &exchange).unwrap();
        node.answer(now, &grant) && exchange.cost > 0 && grant.decision.is_allowed()
    });
    u64::from(asked || matches!(spent, Spend::Taken(_)))
}

#[test]
fn in_overload_tokens_pass_as_they_come_in() {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    let mut node = Borrower::new(NODE, lender.terms().unwrap());
    let (mut passed, mut worst) = (0, 0);
    for tenth in 0..100_000 {
        passed += serve(&lender, &mut account, &mut node, at(tenth * 100));
        let may = 1_000 + tenth / 10;
        assert!(passed <= may, "{passed} of {may} after {tenth} tenths of a millisecond");
        // The burst is not spent before that.
        worst = worst.max(if tenth < 3_000 { 0 } else { may - passed });
    }
    // Clocks may differ by a fiftieth, so the last of 84 ms comes nearly two later than it could.
    assert!(worst <= 5, "{worst} had come in and did not pass");
}

#[test]
fn what_is_still_to_come_cannot_be_used() {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    let mut node = Borrower::new(NODE, lender.terms().unwrap());
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    assert_eq!(node.spend(at(0), 1), Spend::Ask);
    let grant = lender.exchange(&mut account, at(0), &node.exchange(at(0)).unwrap()).unwrap();
    assert_eq!((grant.tokens, grant.all_in), (1, Duration::from_millis(1)));
    assert!(node.answer(at(0), &grant));
    assert!(matches!(node.spend(at(1_019), 1), Spend::Short(_)), "its clock may be the faster one");
    assert!(matches!(node.spend(at(1_020), 1), Spend::Taken(_)));
}

/// Six years after its beginning a clock stands still. What has not come in by then never does.
#[test]
fn at_the_end_of_time_nothing_comes_in_early() {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    let mut node = Borrower::new(NODE, lender.terms().unwrap());
    let before_end = |nanos| Tick::from_nanos(Tick::MAX.as_nanos() - nanos);
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    assert_eq!(node.spend(before_end(10_000_000), 50), Spend::Ask);
    let ask = node.exchange(before_end(10_000_000)).unwrap();
    let grant = lender.exchange(&mut account, at(0), &ask).unwrap();
    assert_eq!((grant.tokens, grant.all_in), (50, Duration::from_millis(50)));
    assert!(node.answer(before_end(10_000_000), &grant));
    assert_eq!(node.tokens(before_end(1)), 8, "in ten milliseconds, or less");
}

/// A node that never heard of a grant holds all of it all the same, and has to wait for all of it.
#[test]
fn what_an_answer_brought_that_was_lost_is_waited_for_too() {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    let first = lender.exchange(&mut account, at(0), &wants(1, 40)).unwrap();
    assert_eq!((first.tokens, first.all_in), (40, Duration::from_millis(40)));
    let again = Exchange { sequence: 2, lease: Some(first.lease), ..wants(1, 20) };
    let second = lender.exchange(&mut account, at(10_000), &again).unwrap();
    assert_eq!((second.tokens, second.all_in), (60, Duration::from_millis(50)), "ten are there");
}

#[test]
fn nodes_get_theirs_one_behind_the_other() {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    let mut lent = |number| {
        let grant = lender.exchange(&mut account, at(0), &wants(number, 1_000)).unwrap();
        (grant.tokens, grant.all_in.as_millis())
    };
    assert_eq!(lent(1), (84, 84), "all that comes in until it asks again");
    assert_eq!(lent(2), (0, 0), "that is as far ahead as it goes");
    let (lender, mut account) = self::lender(&Limit::token_bucket("1k/s").unwrap());
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    let theirs = (1..=4).map(|number| {
        let grant = lender.exchange(&mut account, at(0), &wants(number, 10)).unwrap();
        (grant.tokens, grant.all_in.as_millis())
    });
    assert_eq!(theirs.collect::<Vec<_>>(), [(10, 10), (10, 20), (10, 30), (10, 40)]);
}

/// A bucket that is full with what is lent lets nothing come in, so none of that can be lent.
#[test]
fn no_more_is_lent_than_a_bucket_holds() {
    let (lender, mut account) = lender(&Limit::token_bucket("100/s").unwrap());
    for number in 1..=20 {
        lender.exchange(&mut account, at(0), &wants(number, 100)).unwrap();
    }
    assert_eq!(account.escrow(), 100);
    assert_eq!(lender.left(&mut account, at(500_000)), 0);
}

#[test]
fn windows_have_nothing_that_comes_in_later() {
    for limit in [Limit::fixed_window("1k/s"), Limit::sliding_window("1k/s")] {
        let (lender, mut account) = lender(&limit.unwrap());
        assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
        let grant = lender.exchange(&mut account, at(0), &wants(1, 10)).unwrap();
        assert_eq!((grant.tokens, grant.all_in), (0, Duration::ZERO));
    }
}

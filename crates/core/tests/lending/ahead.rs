//! Law: what comes in next is lent before it is there, and used when it is, not earlier and hardly
//! later.

use std::time::Duration;

use tollgate_core::lease::{Account, Borrower, Exchange, LeaseId, Lender, Node, Promise, Spend};
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

/// So many, all of which are in after so many microseconds.
fn promise(tokens: u64, micros: u64, lanes: u64) -> Promise {
    Promise { tokens, all_in: Duration::from_micros(micros), lanes }
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
    // Clocks may differ by a fiftieth, so the last of 90 ms comes nearly two later than it could.
    assert!(worst <= 5, "{worst} had come in and did not pass");
}

#[test]
fn what_is_still_to_come_cannot_be_used() {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    let mut node = Borrower::new(NODE, lender.terms().unwrap());
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    assert_eq!(node.spend(at(0), 1), Spend::Ask);
    let grant = lender.exchange(&mut account, at(0), &node.exchange(at(0)).unwrap()).unwrap();
    assert_eq!((grant.tokens, grant.promise), (1, promise(1, 1_000, 4)));
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
    assert_eq!((grant.tokens, grant.promise), (50, promise(50, 50_000, 4)));
    assert!(node.answer(before_end(10_000_000), &grant));
    assert_eq!(node.tokens(before_end(1)), 8, "in ten milliseconds, or less");
}

/// A node that never heard of a grant holds all of it all the same, and has to wait for all of it.
#[test]
fn what_an_answer_brought_that_was_lost_is_waited_for_too() {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    let first = lender.exchange(&mut account, at(0), &wants(1, 40)).unwrap();
    assert_eq!((first.tokens, first.promise), (40, promise(40, 40_000, 4)));
    let again = Exchange { sequence: 2, lease: Some(first.lease), ..wants(1, 20) };
    let second = lender.exchange(&mut account, at(10_000), &again).unwrap();
    assert_eq!((second.tokens, second.promise), (60, promise(60, 50_000, 4)), "ten are there");
}

/// Empty, and nodes that want so much each ask one after the other.
fn asked_at_once(nodes: u64, want: u64) -> Vec<Promise> {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    let mut lent = |number| {
        let grant = lender.exchange(&mut account, at(0), &wants(number, want)).unwrap();
        assert_eq!(grant.tokens, grant.promise.tokens, "nothing is in");
        grant.promise
    };
    (1..=nodes).map(&mut lent).collect()
}

#[test]
fn nodes_that_can_use_all_get_theirs_one_behind_the_other() {
    let all = asked_at_once(2, 1_000);
    assert_eq!(all, [promise(90, 90_000, 4), Promise::NOTHING], "that is as far ahead as it goes");
    let some = asked_at_once(3, 157);
    assert_eq!(some[0], promise(90, 90_000, 4), "it does not know of the others");
}

/// As many as come in by one lane in the time in which they are used are 39.
#[test]
fn nodes_that_can_use_little_get_theirs_beside_each_other() {
    let all = asked_at_once(5, 10);
    assert_eq!(all[0], promise(10, 10_000, 4), "it is alone");
    assert_eq!(all[1..3], [promise(10, 30_000, 2); 2], "two of them have half each");
    assert_eq!(all[3..], [promise(10, 70_000, 1); 2], "and then each has a lane");
}

/// What one has given back the next one gets, and not sooner than it comes in.
#[test]
fn what_is_given_back_is_promised_again() {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    let first = lender.exchange(&mut account, at(0), &wants(1, 1_000)).unwrap();
    let back = Exchange { sequence: 2, lease: Some(first.lease), returned: 90, ..wants(1, 0) };
    lender.exchange(&mut account, at(30_000), &back).unwrap();
    assert_eq!(lender.left(&mut account, at(30_000)), 30, "what has come in meanwhile");
    let second = lender.exchange(&mut account, at(30_000), &wants(2, 100)).unwrap();
    assert_eq!((second.tokens, second.promise.tokens), (100, 70));
    assert!(second.promise.all_in >= Duration::from_millis(70), "{:?}", second.promise);
}

/// It is nobody's, and nobody keeps it back.
#[test]
fn what_a_lost_memory_may_have_lent_is_waited_for() {
    let limit = Limit::token_bucket("1k/s").unwrap();
    let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
    let lender = lender.after_loss(1, at(0));
    let mut account = lender.open(at(1), Phase::default());
    assert_eq!(lender.terms().unwrap().hold(), Duration::from_millis(500));
    let grant = lender.exchange(&mut account, at(490_000), &wants(1, 20)).unwrap();
    assert_eq!((grant.tokens, grant.promise), (20, promise(20, 30_000, 4)));
}

/// However many ask at once, and however often, each is told another time.
#[test]
fn nodes_that_find_nothing_take_turns() {
    let (lender, mut account) = lender(&Limit::token_bucket("1k/s").unwrap());
    assert!(lender.exchange(&mut account, at(0), &Exchange::once(1_000)).is_some());
    let mut told = |sequence, micros| {
        let lease = (sequence > 1).then_some(LeaseId { epoch: 0, began: 0 });
        let ask = |number| Exchange { sequence, lease, ..wants(number, 500) };
        let turn = |number| {
            let grant = lender.exchange(&mut account, at(micros), &ask(number)).unwrap();
            grant.turn.as_millis()
        };
        (1..=9).map(turn).collect::<Vec<_>>()
    };
    let first = told(1, 0);
    assert_eq!(first, [90, 135, 165, 180, 180, 180, 180, 180, 180], "others are not known yet");
    let again = told(2, 20_000);
    assert_eq!(again, [90, 115, 145, 160, 160, 160, 160, 160, 160], "each keeps its turn");
    let later = told(3, 400_000);
    assert_eq!(
        later,
        [0, 90, 100, 110, 120, 130, 140, 150, 160],
        "the first does not get the last"
    );
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
        assert_eq!(
            (grant.tokens, grant.promise, grant.turn),
            (0, Promise::NOTHING, Duration::ZERO)
        );
    }
}

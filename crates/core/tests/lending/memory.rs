//! What a store that lost its memory, or has none for a node, says.

use std::num::NonZeroU32;
use std::time::Duration;

use tollgate_core::lease::{Account, Borrower, Exchange, Lender, Node, Spend};
use tollgate_core::{Anchor, Limit, Phase, Tick};

fn lender(limit: &Limit) -> Lender {
    Lender::new(limit, Anchor::default(), Duration::ZERO).expect("it is no log")
}

fn wants(number: u64, want: u64) -> Exchange {
    Exchange { want, ..Exchange::strict(Node { number, incarnation: 1 }, 0) }
}

fn after(millis: u64) -> Tick {
    Tick::ZERO.after(Duration::from_millis(millis))
}

#[test]
fn a_lease_of_another_epoch_settles_nothing() {
    let lender = lender(&Limit::token_bucket("1k/s").unwrap());
    let mut account = lender.open(Tick::ZERO, Phase::default());
    let ask = wants(1, 100);
    let lease = lender.exchange(&mut account, Tick::ZERO, &ask).unwrap().lease;

    let lender = lender.after_loss(1, Tick::ZERO);
    let mut account = lender.open(after(600), Phase::default());
    assert_eq!(lender.left(&mut account, after(600)), 100);
    let grant = lender.exchange(&mut account, after(600), &wants(1, 20)).unwrap();
    assert_ne!(grant.lease, lease);
    let old = Exchange { sequence: 2, lease: Some(lease), used: 5, returned: 15, want: 0, ..ask };
    lender.exchange(&mut account, after(600), &old).unwrap();
    assert_eq!((lender.left(&mut account, after(600)), account.escrow()), (80, 20));
}

/// Also keys that come long after: a client that spent everything before the loss would have it
/// twice.
#[test]
fn a_key_that_comes_later_has_no_burst_either() {
    let lender = lender(&Limit::token_bucket("1k/s").unwrap()).after_loss(1, Tick::ZERO);
    for (millis, left) in [(0, 0), (499, 0), (500, 0), (750, 250), (1_500, 1_000), (9_000, 1_000)] {
        let mut account = lender.open(after(millis), Phase::default());
        assert_eq!(lender.left(&mut account, after(millis)), left, "after {millis} ms");
    }
}

#[test]
fn a_window_that_was_forgotten_stays_spent_until_it_ends() {
    for limit in [Limit::fixed_window("1k/s"), Limit::calendar("1k/day", "UTC")] {
        let limit = limit.unwrap();
        let lender = lender(&limit).after_loss(1, after(100));
        let left = |now| lender.left(&mut lender.open(now, Phase::default()), now);
        assert_eq!(left(after(999)), 0, "{limit}");
        assert_eq!(left(after(86_400_000)), 1_000, "{limit}");
    }
}

#[test]
fn nodes_beyond_the_last_place_are_decided_and_lent_nothing() {
    let lender = lender(&Limit::token_bucket("100k/s").unwrap());
    let mut account = lender.open(Tick::ZERO, Phase::default());
    for number in 0..Account::MAX_LEASES as u64 {
        assert_eq!(lender.exchange(&mut account, Tick::ZERO, &wants(number, 2)).unwrap().tokens, 2);
    }
    let late = Exchange { cost: 3, ..wants(1_000, 2) };
    let grant = lender.exchange(&mut account, Tick::ZERO, &late).unwrap();
    assert!(grant.decision.is_allowed());
    assert_eq!((grant.tokens, account.leases()), (0, Account::MAX_LEASES));

    // A node that has given back everything makes room.
    let lease = lender.exchange(&mut account, Tick::ZERO, &wants(7, 2)).unwrap().lease;
    let done = Exchange { sequence: 2, lease: Some(lease), returned: 2, ..wants(7, 0) };
    lender.exchange(&mut account, Tick::ZERO, &done).unwrap();
    assert_eq!(lender.exchange(&mut account, Tick::ZERO, &late).unwrap().tokens, 2);
    assert_eq!(account.leases(), Account::MAX_LEASES);
}

#[test]
fn an_account_nobody_uses_comes_to_rest() {
    let lender = lender(&Limit::token_bucket("1k/s").unwrap());
    let mut account = lender.open(Tick::ZERO, Phase::default());
    lender.exchange(&mut account, Tick::ZERO, &wants(1, 100)).unwrap();
    assert!(!lender.is_at_rest(&mut account, after(499)));
    // The lease ends after half a second and counts as used; a tenth of a second brings it back.
    assert_eq!(lender.left(&mut account, after(500)), 900);
    assert_eq!(lender.left(&mut account, after(600)), 1_000);
    assert!(lender.is_at_rest(&mut account, after(1_000)), "its answer is forgotten as well");
}

/// Requests go on when the store forgets that they have permits. Their node does not.
#[test]
fn permits_in_use_are_counted_in_the_next_lease() {
    let lender = Lender::of_permits(NonZeroU32::new(40).unwrap(), Duration::ZERO);
    let mut account = lender.open(Tick::ZERO, Phase::default());
    let terms = lender.terms().unwrap();
    let mut node = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
    let exchange = |node: &mut Borrower, lender: &Lender, account: &mut Account, now| {
        assert_eq!(node.spend(now, 9), Spend::Ask);
        let ask = node.exchange(now).expect("nine permits are missing");
        let grant = lender.exchange(account, now, &ask).expect("nothing overtakes it");
        assert!(node.answer(now, &grant));
    };
    exchange(&mut node, &lender, &mut account, Tick::ZERO);
    assert!(matches!(node.spend(after(1), 9), Spend::Taken(_)));

    let lender = lender.after_loss(1, after(10));
    let later = after(3_000);
    let mut account = lender.open(later, Phase::default());
    exchange(&mut node, &lender, &mut account, later);
    assert_eq!((account.escrow(), node.held(later)), (18, 18));
    assert_eq!(node.tokens(later), 9, "and as many are in use");
}

/// A node that found nobody until its lease was over asks for what is under way before anything else.
#[test]
fn permits_in_use_are_covered_again_by_the_first_exchange_after_a_lease() {
    let lender = Lender::of_permits(NonZeroU32::new(40).unwrap(), Duration::ZERO);
    let mut account = lender.open(Tick::ZERO, Phase::default());
    let mut node = Borrower::new(Node { number: 1, incarnation: 1 }, lender.terms().unwrap());
    node.spend(Tick::ZERO, 20);
    let ask = node.exchange(Tick::ZERO).unwrap();
    let grant = lender.exchange(&mut account, Tick::ZERO, &ask).unwrap();
    node.answer(Tick::ZERO, &grant);
    assert!(matches!(node.spend(after(1), 20), Spend::Taken(_)));
    assert!(node.due().is_some_and(|due| due <= after(1_000)), "there is time to try again");

    let ask = node.exchange(after(2_100)).expect("twenty are in use, and lent by nobody");
    let grant = lender.exchange(&mut account, after(2_100), &ask).unwrap();
    assert!(node.answer(after(2_100), &grant));
    assert_eq!((account.escrow(), node.held(after(2_100)), node.tokens(after(2_100))), (20, 20, 0));
}

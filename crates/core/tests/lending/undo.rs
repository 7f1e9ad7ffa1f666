//! Laws: what is taken back is as if it had never been spent, and no better than that.

use std::time::Duration;

use tollgate_core::lease::{Account, Exchange, Lender, Node};
use tollgate_core::{Anchor, Limit, Phase, Tick};

fn at(millis: u64) -> Tick {
    Tick::from_nanos(5_000_000_000).after(Duration::from_millis(millis))
}

fn open(limit: &Limit) -> (Lender, Account) {
    let lender = Lender::new(limit, Anchor::default(), Duration::ZERO).unwrap();
    let account = lender.open(at(0), Phase::default());
    (lender, account)
}

/// Whether that many pass; and if so, undoes it at another time.
fn spend(lender: &Lender, account: &mut Account, millis: u64, cost: u64) -> Option<Exchange> {
    let grant = lender.exchange(account, at(millis), &Exchange::once(cost)).unwrap();
    grant.decision.is_allowed().then(|| Exchange::undo(cost, grant.at))
}

fn left(lender: &Lender, account: &mut Account, millis: u64) -> u64 {
    lender.left(account, at(millis))
}

#[test]
fn what_is_taken_back_at_once_is_all_there() {
    for limit in [
        Limit::token_bucket("100/s").unwrap(),
        Limit::leaky_police("100/s burst 100").unwrap(),
        Limit::fixed_window("100/s").unwrap(),
        Limit::sliding_window("100/s").unwrap(),
    ] {
        let (lender, mut account) = open(&limit);
        let undo = spend(&lender, &mut account, 0, 60).unwrap();
        spend(&lender, &mut account, 0, 10).unwrap();
        let grant = lender.exchange(&mut account, at(0), &undo).unwrap();
        assert_eq!(grant.decision.remaining(), 90, "{limit}");
    }
}

/// The bucket is full again before it is taken back. Were it put back whole, then those who come at
/// the end would find a second burst: 200 within a second of a limit of 100 a second.
#[test]
fn what_time_has_given_back_is_not_given_twice() {
    let (lender, mut account) = open(&Limit::token_bucket("100/s").unwrap());
    let undo = spend(&lender, &mut account, 0, 100).unwrap();
    spend(&lender, &mut account, 1_000, 100).unwrap();
    lender.exchange(&mut account, at(1_000), &undo);
    assert_eq!(left(&lender, &mut account, 1_000), 0);
}

#[test]
fn a_window_that_is_over_keeps_what_was_spent_in_it() {
    for limit in [Limit::fixed_window("100/s").unwrap(), Limit::sliding_window("100/s").unwrap()] {
        let (lender, mut account) = open(&limit);
        let undo = spend(&lender, &mut account, 900, 50).unwrap();
        let before = left(&lender, &mut account, 1_500);
        spend(&lender, &mut account, 1_500, before).unwrap();
        lender.exchange(&mut account, at(1_500), &undo);
        assert_eq!(left(&lender, &mut account, 1_500), 0, "{limit}");
    }
}

/// Nobody honest asks for it, and the limit holds all the same.
#[test]
fn what_was_never_spent_does_not_come_on_top_of_what_is_lent() {
    let (lender, mut account) = open(&Limit::token_bucket("100/s").unwrap());
    let ask = Exchange { want: 40, ..Exchange::strict(Node { number: 1, incarnation: 1 }, 0) };
    let grant = lender.exchange(&mut account, at(0), &ask).unwrap();
    for cost in [60, 100, 1_000, u64::MAX] {
        lender.exchange(&mut account, at(0), &Exchange::undo(cost, grant.at));
        assert_eq!((left(&lender, &mut account, 0), account.escrow()), (60, 40));
    }
}

#[test]
fn what_was_spent_before_all_that_the_store_knows_of_stays_spent() {
    let limit = Limit::token_bucket("100/s").unwrap();
    let anchor = Anchor { tick: Tick::ZERO, wall: tollgate_core::Wall::from_unix_seconds(100) };
    let lender = Lender::new(&limit, anchor, Duration::ZERO).unwrap();
    let mut account = lender.open(at(0), Phase::default());
    spend(&lender, &mut account, 0, 10).unwrap();
    lender.exchange(&mut account, at(0), &Exchange::undo(10, tollgate_core::Wall::default()));
    assert_eq!(left(&lender, &mut account, 0), 90);
}

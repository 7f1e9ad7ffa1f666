//! Law: an exchange that comes again is answered as it was at first, and one that was overtaken is
//! not answered; neither changes anything. And nonsense does no harm.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::lease::{Account, Exchange, Lender, Node};
use tollgate_core::{Anchor, Limit, Phase, Tick};

fn lenders() -> impl Strategy<Value = (Lender, u64)> {
    let of = |limit: Limit| {
        let lender = Lender::new(&limit, Anchor::default(), Duration::from_millis(2));
        (lender.expect("it is no log"), limit.capacity().unwrap())
    };
    prop_oneof![
        Just(of(Limit::token_bucket("100/s").unwrap())),
        Just(of(Limit::token_bucket("7/min burst 50").unwrap())),
        Just(of(Limit::fixed_window("100/s").unwrap())),
        Just(of(Limit::sliding_window("100/s").unwrap())),
        Just(of(Limit::leaky_shape("100/s", 20).unwrap())),
        Just((Lender::of_permits(NonZeroU32::new(40).unwrap(), Duration::ZERO), 40)),
    ]
}

/// Numbers that make sense mostly.
fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..60u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

#[derive(Clone, Debug)]
struct Deed {
    pause: u64,
    node: u64,
    used: u64,
    returned: u64,
    cost: u64,
    want: u64,
    least: u64,
    /// Which lease it is about: the node's own, none, or somebody else's.
    about: u8,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let sums = (numbers(), numbers(), numbers(), numbers(), prop_oneof![Just(0), numbers()]);
    let one = (0..300_000_000u64, 0..5u64, sums, 0..8u8).prop_map(|(pause, node, sums, about)| {
        let (used, returned, cost, want, least) = sums;
        Deed { pause: pause >> (pause % 16), node, used, returned, cost, want, least, about }
    });
    prop::collection::vec(one, 1..60)
}

fn books(lender: &Lender, account: &mut Account, now: Tick) -> (u64, u64, usize) {
    (lender.left(account, now), account.escrow(), account.leases())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn repeats_change_nothing((lender, capacity) in lenders(), deeds in deeds()) {
        let mut now = Tick::from_nanos(5_000_000_000);
        let mut account = lender.open(now, Phase(3));
        let (mut leases, mut last) = ([None; 5], [None; 5]);
        for (index, deed) in deeds.iter().enumerate() {
            now = now.after(Duration::from_nanos(deed.pause));
            let who = deed.node as usize;
            let exchange = Exchange {
                node: Node { number: deed.node, incarnation: 1 },
                sequence: index as u64 + 1,
                lease: match deed.about { 0 => None, 1 => leases[(who + 1) % 5], _ => leases[who] },
                used: deed.used,
                returned: deed.returned,
                cost: deed.cost,
                want: deed.want,
                least: deed.least,
                undo: None,
            };
            let grant = lender.exchange(&mut account, now, &exchange).expect("it is the latest");
            let after = books(&lender, &mut account, now);
            prop_assert!(after.0 + after.1 <= capacity, "{after:?}");
            prop_assert_eq!(lender.exchange(&mut account, now, &exchange), Some(grant));
            prop_assert_eq!(books(&lender, &mut account, now), after);
            if let Some(old) = last[who] {
                prop_assert_eq!(lender.exchange(&mut account, now, &old), None);
                prop_assert_eq!(books(&lender, &mut account, now), after);
            }
            (leases[who], last[who]) = (Some(grant.lease), Some(exchange));
        }
    }
}

/// A strict decision that is asked for again because its answer was lost is spent once.
#[test]
fn a_strict_decision_asked_for_twice_is_spent_once() {
    let limit = Limit::token_bucket("100/s").unwrap();
    let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
    let mut account = lender.open(Tick::ZERO, Phase::default());
    for incarnation in [1, 2, 2, 1] {
        let ask = Exchange::strict(Node { number: 1, incarnation }, 30);
        assert!(lender.exchange(&mut account, Tick::ZERO, &ask).unwrap().decision.is_allowed());
    }
    assert_eq!(lender.left(&mut account, Tick::ZERO), 40);
}

/// So late that the store has forgotten who sent it: the lease that it begins is another one than the one
/// that it began the first time, or what was told of that would be settled with it, and lent twice.
#[test]
fn a_lease_that_a_late_message_begins_is_another_one() {
    let limit = Limit::fixed_window("100/s").unwrap();
    let lender = Lender::new(&limit, Anchor::default(), Duration::from_millis(2)).unwrap();
    let mut account = lender.open(Tick::ZERO, Phase::default());
    let at = |millis| Tick::ZERO.after(Duration::from_millis(millis));
    let node = Node { number: 1, incarnation: 1 };
    let ask = Exchange { want: 30, ..Exchange::strict(node, 0) };
    let first = lender.exchange(&mut account, at(0), &ask).unwrap();
    let back = Exchange { sequence: 2, lease: Some(first.lease), returned: 30, want: 0, ..ask };
    lender.exchange(&mut account, at(10), &back).unwrap();
    for incarnation in 2..2 + Account::MAX_LEASES as u64 {
        let other = Exchange::strict(Node { number: 2, incarnation }, 0);
        lender.exchange(&mut account, at(20), &other).unwrap();
    }
    let again = lender.exchange(&mut account, at(30), &ask).unwrap();
    assert_eq!((again.tokens, account.escrow()), (30, 30), "nobody knows that it came before");
    assert_ne!(again.lease, first.lease);
    let told = Exchange { sequence: 3, ..back };
    let held = lender.exchange(&mut account, at(40), &told).unwrap();
    assert_eq!((held.tokens, account.escrow()), (30, 30), "none of these was given back");
}

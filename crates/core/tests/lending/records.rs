//! What a store elsewhere wrote down is taken for what it says, and nonsense does no harm.

use std::time::Duration;

use tollgate_core::lease::{Borrower, LeaseId, Lender, Node, Promise, Record, Spend};
use tollgate_core::{Anchor, Limit, Phase, State, Tick};

/// As much as can be, in the largest bucket, at the end of time.
#[test]
fn no_number_of_a_record_is_too_large() {
    let limit = Limit::token_bucket("1/day burst 400").unwrap();
    let lender = Lender::new(&limit, Anchor::default(), Duration::ZERO).unwrap();
    let terms = lender.terms().unwrap();
    let day = 86_400_000_000_000;
    let mut grants = 0;
    for days in (0..2_000).step_by(10) {
        for (cost, lent) in [(0, 0), (400, 0), (0, 400), (400, u64::MAX), (u64::MAX, u64::MAX)] {
            let nanos = Tick::MAX.as_nanos() + days * day;
            let record = Record {
                now: Tick::MAX,
                state: Some(State::Full { nanos, part: 63 }),
                cost,
                lent,
                escrow: u64::MAX,
                held: Some((LeaseId { epoch: 1, began: 1 }, u64::MAX)),
                promise: Promise { tokens: u64::MAX, all_in: Duration::MAX, lanes: u64::MAX },
                turn: Duration::MAX,
                epoch: 1,
            };
            let mut node = Borrower::new(Node { number: 1, incarnation: 1 }, terms);
            let ask = node.ask(Tick::ZERO, 1).unwrap();
            if let Some(grant) = lender.grant(&ask, &record, Phase::default()) {
                assert!(node.answer(Tick::ZERO, &grant));
                assert_eq!(node.tokens(Tick::ZERO), 0, "all of it is to come");
                let soon = Tick::ZERO.after(terms.pause() * 3);
                assert!(!matches!(node.spend(soon, 1), Spend::Short(_)), "it is soon asked again");
                grants += 1;
            }
        }
    }
    assert_eq!(grants, 51 * 5, "none is full later than after 500 days");
}

//! Law: a lease is over for its node before it is over for the store, also if the node's clock is
//! slow, and whether its message or the answer was late. The worst node keeps all it gets to the
//! last nanosecond, spends it, and then somebody takes from the store whatever is left.

use proptest::prelude::*;
use tollgate_core::lease::{Exchange, Node, Spend};
use tollgate_core::{Phase, Tick};

use crate::audit::Audit;
use crate::bound::{BUCKETS, WINDOWS};
use crate::chance::Chance;
use crate::member::Member;
use crate::plan::{MILLI, SECOND, Subject};

fn subjects() -> impl Strategy<Value = Subject> {
    prop::sample::select([BUCKETS.as_slice(), WINDOWS.as_slice()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_kept_to_the_last_moment_was_still_held_by_the_store(
        subject in subjects(),
        begin in 0..4 * SECOND,
        there in prop_oneof![Just(0), 0..60 * MILLI],
        back in 0..60 * MILLI,
        slow in prop_oneof![Just(10), 0..=10u64],
        phase in any::<u64>(),
    ) {
        let sent = Subject::START + begin;
        let lender = subject.lender(std::time::Duration::from_millis(5));
        let mut account = lender.open(Tick::from_nanos(sent), Phase(phase));
        let mut audit = Audit::of(subject, phase);
        let terms = lender.terms().expect("it is lent");
        let mut node = Member::new(Node { number: 1, incarnation: 1 }, terms, 0, &mut Chance(phase));
        node.gains = -1_000 * slow as i64;

        let clock = node.clock(sent);
        assert_eq!(node.borrower.spend(clock, subject.capacity() / 2), Spend::Ask);
        let ask = node.borrower.exchange(clock).expect("somebody asks for half of everything");
        let grant = lender.exchange(&mut account, Tick::from_nanos(sent + there), &ask).unwrap();
        let come = sent + there + back;
        assert!(node.borrower.answer(node.clock(come), &grant));

        // The last nanosecond at which there is something to spend.
        let is_held = |time: u64| node.borrower.clone().tokens(node.clock(time)) > 0;
        let (mut last, mut over) = (come, come + 20 * SECOND);
        while last + 1 < over {
            let middle = (last + over) / 2;
            if is_held(middle) { last = middle } else { over = middle }
        }
        let held = node.borrower.clone().tokens(node.clock(last));
        prop_assert_eq!(held > 0, is_held(come), "what was held on arrival is held at the end");
        if held > 0 {
            prop_assert!(matches!(node.borrower.spend(node.clock(last), held), Spend::Taken(_)));
            audit.passes(last, held).map_err(TestCaseError::fail)?;
        }
        let left = lender.left(&mut account, Tick::from_nanos(last));
        let rest = Exchange::strict(Node { number: 2, incarnation: 1 }, left);
        let rest = lender.exchange(&mut account, Tick::from_nanos(last), &rest).unwrap();
        prop_assert!(rest.decision.is_allowed());
        audit.passes(last, left).map_err(TestCaseError::fail)?;
    }
}

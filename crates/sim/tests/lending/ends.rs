//! Law: a lease is over for its node before it is over for the store, also if the node's clock is
//! slow, and whether its message or the answer was late. The worst node keeps all it gets to the
//! last nanosecond, spends it, and then somebody takes from the store whatever is left.

use proptest::prelude::*;
use tollgate_core::lease::{Exchange, Node, Spend};
use tollgate_core::{Phase, Tick};

use tollgate_sim::{Audit, Chance, MILLI, Member, Plan, SECOND, Subject};

fn subjects() -> impl Strategy<Value = Subject> {
    let lent = [
        Subject::bucket("100/s"),
        Subject::bucket("333/s burst 400"),
        Subject::bucket("9973/s burst 5k"),
        Subject::bucket("100/min"),
        Subject::police("100/s burst 80"),
        Subject::fixed("1k/s"),
        Subject::jittered("100/3s"),
        Subject::daily("200/day"),
        Subject::sliding("1k/s"),
        Subject::sliding("100/2s"),
    ];
    prop::sample::select(lent.into_iter().map(Result::unwrap).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_kept_to_the_last_moment_was_still_held_by_the_store(
        subject in subjects(),
        begin in 0..4 * SECOND,
        there in prop_oneof![Just(0), 0..60 * MILLI],
        back in 0..60 * MILLI,
        slow in prop_oneof![Just(10), 0..=10i64],
        phase in any::<u64>(),
    ) {
        let sent = Plan::START + begin;
        let lender = subject.lender(std::time::Duration::from_millis(5)).unwrap();
        let mut account = lender.open(Tick::from_nanos(sent), Phase(phase));
        let mut audit = Audit::of(&subject, phase);
        let terms = lender.terms().expect("it is lent");
        let name = Node { number: 1, incarnation: 1 };
        let mut node = Member::new(name, Some(terms), 0, &mut Chance(phase)).gaining(-1_000 * slow);
        let mut borrower = node.borrower.take().expect("it is lent");

        let clock = node.clock(sent);
        assert_eq!(borrower.spend(clock, subject.capacity() / 2), Spend::Ask);
        let ask = borrower.exchange(clock).expect("somebody asks for half of everything");
        let grant = lender.exchange(&mut account, Tick::from_nanos(sent + there), &ask).unwrap();
        let come = sent + there + back;
        assert!(borrower.answer(node.clock(come), &grant));

        // The last nanosecond at which there is something to spend.
        let is_held = |time: u64| borrower.clone().tokens(node.clock(time)) > 0;
        let (mut last, mut over) = (come, come + 60 * SECOND);
        while last + 1 < over {
            let middle = (last + over) / 2;
            if is_held(middle) { last = middle } else { over = middle }
        }
        let held = borrower.clone().tokens(node.clock(last));
        prop_assert_eq!(held > 0, is_held(come), "what was held on arrival is held at the end");
        if held > 0 {
            prop_assert!(matches!(borrower.spend(node.clock(last), held), Spend::Taken(_)));
            audit.passes(last, held).map_err(|broken| TestCaseError::fail(broken.0))?;
        }
        let left = lender.left(&mut account, Tick::from_nanos(last));
        let rest = Exchange::strict(Node { number: 2, incarnation: 1 }, left);
        let rest = lender.exchange(&mut account, Tick::from_nanos(last), &rest).unwrap();
        prop_assert!(rest.decision.is_allowed());
        audit.passes(last, left).map_err(|broken| TestCaseError::fail(broken.0))?;
    }
}

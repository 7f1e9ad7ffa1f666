//! Laws: a state at rest equals no state at all; words ascend with spending, and are at rest only
//! when the whole budget is back.

use proptest::prelude::*;
use tollgate_core::{Tick, Word};

use crate::subject::{self, Subject};
use crate::trace::{self, Request, Visit};

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn a_state_at_rest_equals_no_state_at_all(
        subject in subject::all(),
        start in trace::starts(),
        requests in trace::requests(40),
        rest in trace::pauses(),
        future in trace::requests(20),
    ) {
        let mut now = start;
        let mut last = subject.peek(Word::REST, start);
        let word = trace::walk(&subject, start, &requests, |visit| {
            (now, last) = (visit.now, visit.step.decision);
            Ok(())
        })?;
        let now = now.after(rest.length(subject.rate(), &last)).after(last.reset_after());
        if word.is_at_rest(now) {
            stays_equal(&subject, word, now, &future)?;
        }
    }

    #[test]
    fn words_ascend_with_spending(
        subject in subject::all(), start in trace::starts(), requests in trace::stumbling(50),
    ) {
        trace::walk(&subject, start, &requests, |visit| ascends(&subject, visit))?;
    }
}

fn stays_equal(
    subject: &Subject,
    word: Word,
    now: Tick,
    future: &[Request],
) -> Result<(), TestCaseError> {
    let (mut now, mut kept, mut fresh) = (now, word, Word::REST);
    let mut last = subject.peek(fresh, now);
    for request in future {
        now = now.after(request.pause.length(subject.rate(), &last));
        let cost = request.cost.tokens(subject.peek(fresh, now));
        let (one, other) = (subject.step(kept, now, cost), subject.step(fresh, now, cost));
        prop_assert_eq!(one.decision, other.decision);
        (kept, fresh, last) = (one.word, other.word, one.decision);
    }
    Ok(())
}

fn ascends(subject: &Subject, visit: &Visit) -> Result<(), TestCaseError> {
    let (before, after, now) = (visit.before, visit.step.word, visit.now);
    prop_assert!(after.bits() < Word::END);
    prop_assert_eq!(Word::from_bits(after.bits()), Some(after));
    match visit.spent() {
        true => {
            prop_assert!(after > before);
            prop_assert!(!after.is_at_rest(now), "something is spent");
        }
        false => prop_assert_eq!(after, before),
    }
    if before.is_at_rest(now) {
        prop_assert_eq!(subject.remaining(before, now), subject.capacity());
        prop_assert_eq!(
            subject.step(before, now, visit.cost).decision,
            subject.step(Word::REST, now, visit.cost).decision
        );
    }
    Ok(())
}

//! Law: a refund never gives more than there was.

use proptest::prelude::*;

use crate::subject::{self, Kind, Subject};
use crate::trace::{self, Pause, Visit};

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn a_refund_gives_no_more_than_was_spent(
        subject in subject::all(),
        start in trace::starts(),
        requests in trace::stumbling(40),
        pause in trace::pauses(),
    ) {
        trace::walk(&subject, start, &requests, |visit| refunds(&subject, visit, pause))?;
    }

    #[test]
    fn a_refund_gives_back_what_was_spent_just_now(
        subject in subject::all(), start in trace::starts(), requests in trace::requests(40),
    ) {
        trace::walk(&subject, start, &requests, |visit| refunds_exactly(&subject, visit))?;
    }
}

fn refunds(subject: &Subject, visit: &Visit, pause: Pause) -> Result<(), TestCaseError> {
    let (word, now, cost) = (visit.step.word, visit.now, visit.cost);
    let refunded = subject.machine.refund(word, now, cost, subject.phase);
    let later = now.after(pause.length(subject.rate(), &visit.step.decision));
    for at in [now, later] {
        let most = subject.remaining(word, at).saturating_add(cost).min(subject.capacity());
        let is = subject.remaining(refunded, at);
        // A count that is rounded when its window ends may cross a step.
        prop_assert!(is <= most + subject.slack(), "{is} remain at {at} instead of {most}");
    }
    Ok(())
}

fn refunds_exactly(subject: &Subject, visit: &Visit) -> Result<(), TestCaseError> {
    let (word, now) = (visit.step.word, visit.now);
    let refunded = subject.machine.refund(word, now, visit.cost, subject.phase);
    if matches!(subject.kind, Kind::Shape { .. }) {
        prop_assert_eq!(refunded, word, "a place in a queue cannot be given back");
    } else if visit.spent() {
        prop_assert_eq!(subject.peek(refunded, now), subject.peek(visit.before, now));
    }
    Ok(())
}

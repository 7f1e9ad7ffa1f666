//! Laws: a charge spends as a step does, or what there is; a refund never gives more than there
//! was.

use proptest::prelude::*;

use crate::subject::{self, Kind, Subject};
use crate::trace::{self, Pause, Visit};

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn a_charge_leaves_no_more_than_a_step(
        subject in subject::all(),
        start in trace::starts(),
        requests in trace::stumbling(40),
        pause in trace::pauses(),
    ) {
        trace::walk(&subject, start, &requests, |visit| charges(&subject, visit, pause))?;
    }

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

fn charges(subject: &Subject, visit: &Visit, pause: Pause) -> Result<(), TestCaseError> {
    let (now, cost) = (visit.now, visit.cost);
    let charged = subject.machine.charge(visit.before, now, cost, subject.phase);
    let left = subject.remaining(visit.before, now).saturating_sub(cost);
    prop_assert_eq!(subject.remaining(charged, now), left);
    if visit.spent() {
        prop_assert_eq!(charged, visit.step.word);
    }
    let later = now.after(pause.length(subject.rate(), &visit.step.decision));
    let is = subject.remaining(charged, later);
    let stepped = subject.remaining(visit.step.word, later);
    prop_assert!(is <= stepped, "{is} remain at {later}, and {stepped} after a step");
    if subject.kind != Kind::Sliding {
        // No more is spent than there is: at most a part of a token besides whole ones.
        let all = subject.step(visit.before, now, subject.remaining(visit.before, now)).word;
        let exhausted = subject.remaining(all, later);
        prop_assert!(is + 1 >= exhausted, "{is} remain at {later}, and {exhausted} of nothing");
    }
    Ok(())
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

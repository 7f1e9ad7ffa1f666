//! Law: two states that are joined allow nothing that either of them does not, now or later.

use proptest::prelude::*;
use tollgate_core::{Tick, Word};

use crate::subject::{self, Kind, Subject};
use crate::trace;

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn joined_states_are_as_strict_as_the_stricter(
        subject in subject::all(),
        start in trace::starts(),
        one in trace::stumbling(20),
        two in trace::stumbling(20),
        pause in trace::pauses(),
    ) {
        let (one, at_one) = last_word(&subject, start, &one)?;
        let (two, at_two) = last_word(&subject, start, &two)?;
        let joined = subject.machine.join(one, two, subject.phase);
        prop_assert_eq!(joined, subject.machine.join(two, one, subject.phase));
        prop_assert_eq!(joined, subject.machine.join(joined, one, subject.phase));
        prop_assert_eq!(one, subject.machine.join(one, Word::REST, subject.phase));
        let now = at_one.max(at_two);
        let later = now.after(pause.length(subject.rate(), &subject.peek(joined, now)));
        for at in [now, later] {
            let least = subject.remaining(one, at).min(subject.remaining(two, at));
            let is = subject.remaining(joined, at);
            prop_assert!(is <= least, "{is} remain at {at}, and {least} of one of them");
            prop_assert!(is == least || subject.kind == Kind::Sliding, "{is} instead of {least}");
        }
    }
}

/// Where a walk ends.
fn last_word(
    subject: &Subject,
    start: Tick,
    requests: &[trace::Request],
) -> Result<(Word, Tick), TestCaseError> {
    let mut last = (Word::REST, start);
    trace::walk(subject, start, requests, |visit| {
        last = (visit.step.word, visit.now.max(last.1));
        Ok(())
    })?;
    Ok(last)
}

//! Law: time that stands still or runs backwards never adds budget.

use proptest::prelude::*;
use tollgate_core::{Tick, Word};

use crate::subject::{self, Subject};
use crate::trace::{self, Request, Visit, earlier};

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn what_is_allowed_earlier_is_allowed_later(
        subject in subject::all(),
        start in trace::starts(),
        requests in trace::stumbling(40),
        pause in trace::pauses(),
        back in trace::pauses(),
    ) {
        trace::walk(&subject, start, &requests, |visit| {
            let later = visit.now.after(pause.length(subject.rate(), &visit.step.decision));
            let before = earlier(later, back.length(subject.rate(), &visit.step.decision));
            grows_with_time(&subject, visit, before, later)
        })?;
    }

    #[test]
    fn a_clock_that_stumbles_admits_no_more_than_one_that_waits(
        subject in subject::all(),
        start in trace::starts(),
        requests in trace::stumbling(80),
    ) {
        let waits = total(&subject, start, &requests, true);
        let stumbles = total(&subject, start, &requests, false);
        let slack = subject.slack();
        prop_assert!(stumbles <= waits + slack, "{stumbles} passed instead of {waits}");
    }

    #[test]
    fn a_clock_that_stands_still_gives_nothing_back(
        subject in subject::all(), now in trace::starts(), costs in prop::collection::vec(trace::costs(), 1..40),
    ) {
        let (mut word, mut spent) = (Word::REST, 0u64);
        for cost in costs {
            let cost = cost.tokens(subject.peek(word, now));
            let step = subject.step(word, now, cost);
            if step.decision.is_allowed() {
                spent += cost;
            }
            prop_assert_eq!(step.decision.remaining(), subject.capacity() - spent);
            word = step.word;
        }
    }
}

/// A sliding counter that has to round does so at the end of a window, and may lose a little.
fn grows_with_time(
    subject: &Subject,
    visit: &Visit,
    before: Tick,
    later: Tick,
) -> Result<(), TestCaseError> {
    for word in [visit.before, visit.step.word] {
        let (less, more) = (subject.remaining(word, before), subject.remaining(word, later));
        prop_assert!(less <= more + subject.slack(), "{less} at {before}, and {more} at {later}");
    }
    Ok(())
}

/// How many requests of cost 1 pass if the clock stumbles, or if it stands still instead until it
/// is past the latest time it has shown.
fn total(subject: &Subject, start: Tick, requests: &[Request], waits: bool) -> u64 {
    let (mut word, mut front, mut latest, mut total) = (Word::REST, start, Tick::ZERO, 0);
    let last = subject.peek(word, start);
    for request in requests {
        front = front.after(request.pause.length(subject.rate(), &last));
        let now =
            request.behind.map_or(front, |by| earlier(front, by.length(subject.rate(), &last)));
        latest = latest.max(now);
        let step = subject.step(word, if waits { latest } else { now }, 1);
        word = step.word;
        total += u64::from(step.decision.is_allowed());
    }
    total
}

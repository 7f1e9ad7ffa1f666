//! Laws: a denial spends nothing and earns nothing; `retry_after`, `remaining` and `reset_after`
//! are exact.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Retry, Tick};

use crate::subject::{self, Subject};
use crate::trace::{self, Visit, earlier};

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn a_denial_spends_nothing_and_earns_nothing(
        subject in subject::all(), start in trace::starts(), requests in trace::stumbling(50),
    ) {
        trace::walk(&subject, start, &requests, |visit| denial_changes_nothing(&subject, visit))?;
    }

    #[test]
    fn retry_after_is_exact(
        subject in subject::all(), start in trace::starts(), requests in trace::stumbling(50),
    ) {
        trace::walk(&subject, start, &requests, |visit| retry_is_exact(&subject, visit))?;
    }

    #[test]
    fn remaining_is_what_would_be_allowed_now(
        subject in subject::all(), start in trace::starts(), requests in trace::stumbling(50),
    ) {
        trace::walk(&subject, start, &requests, |visit| remaining_is_exact(&subject, visit))?;
    }

    #[test]
    fn reset_after_is_exact(
        subject in subject::all(), start in trace::starts(), requests in trace::stumbling(50),
    ) {
        trace::walk(&subject, start, &requests, |visit| reset_is_exact(&subject, visit))?;
    }
}

fn denial_changes_nothing(subject: &Subject, visit: &Visit) -> Result<(), TestCaseError> {
    if visit.spent() {
        return Ok(());
    }
    prop_assert_eq!(visit.step.word, visit.before);
    let again = subject.step(visit.step.word, visit.now, visit.cost);
    prop_assert_eq!(again, visit.step);
    let left = subject.remaining(visit.before, visit.now);
    prop_assert_eq!(visit.step.decision.remaining(), left);
    Ok(())
}

fn retry_is_exact(subject: &Subject, visit: &Visit) -> Result<(), TestCaseError> {
    let (now, cost) = (visit.now, visit.cost);
    let retry = visit.step.decision.retry();
    prop_assert_eq!(retry == Some(Retry::Never), cost > subject.capacity());
    let Some(Retry::After(wait)) = retry else { return Ok(()) };
    prop_assert!(wait > Duration::ZERO);
    let then = now.after(wait);
    // The last tick of the clock is not late enough for every promise.
    if then.since(now) == wait {
        prop_assert!(subject.allows(visit.before, then, cost), "denied after {wait:?}");
        let before = earlier(then, Duration::from_nanos(1));
        prop_assert!(!subject.allows(visit.before, before, cost), "allowed before {wait:?}");
        let middle = now.after(wait / 2);
        prop_assert!(middle == then || !subject.allows(visit.before, middle, cost));
    }
    Ok(())
}

fn remaining_is_exact(subject: &Subject, visit: &Visit) -> Result<(), TestCaseError> {
    let (word, now) = (visit.step.word, visit.now);
    let left = visit.step.decision.remaining();
    prop_assert!(left <= subject.capacity());
    prop_assert!(subject.allows(word, now, left), "{left} remain, and are denied");
    prop_assert!(!subject.allows(word, now, left + 1), "{left} remain, and one more is allowed");
    Ok(())
}

fn reset_is_exact(subject: &Subject, visit: &Visit) -> Result<(), TestCaseError> {
    let (word, now, reset) = (visit.step.word, visit.now, visit.step.decision.reset_after());
    let (then, full) = (now.after(reset), subject.capacity());
    if then.since(now) == reset {
        prop_assert_eq!(subject.remaining(word, then), full);
        let before = earlier(then, Duration::from_nanos(1));
        prop_assert!(reset.is_zero() || subject.peek(word, before).reset_after() > Duration::ZERO);
        prop_assert!(reset.is_zero() || is_short(subject, visit, before), "full before {reset:?}");
    }
    Ok(())
}

/// Whether something is missing, be it a part of a token that no cost can show.
fn is_short(subject: &Subject, visit: &Visit, at: Tick) -> bool {
    let word = visit.step.word;
    subject.remaining(word, at) < subject.capacity() || !word.is_at_rest(at)
}

//! Of two answers to one request the stricter counts.

use std::time::Duration;

use tollgate_core::{Decision, Limit, Retry, Verdict};

use crate::subject::{Kind, Subject};

/// From the mildest to the strictest.
fn answers() -> Vec<Decision> {
    let deny = |retry| Decision::deny(10, 3, Duration::ZERO, retry);
    vec![
        Decision::unlimited(),
        Decision::allow(10, 9, Duration::ZERO),
        Decision::allow(10, 0, Duration::ZERO),
        delayed(),
        deny(Retry::After(Duration::from_nanos(1))),
        deny(Retry::After(Duration::from_secs(6 * 366 * 86_400))),
        deny(Retry::OnReturn),
        deny(Retry::Never),
    ]
}

/// The second of two requests that come at once to a shaper.
fn delayed() -> Decision {
    let subject = Subject::plain(Kind::Shape { queue: 9 }, "1/s");
    let first = subject.step(tollgate_core::Word::REST, tollgate_core::Tick::ZERO, 1);
    subject.step(first.word, tollgate_core::Tick::ZERO, 1).decision
}

#[test]
fn the_stricter_answer_counts_whatever_the_order() {
    let answers = answers();
    for (index, mild) in answers.iter().enumerate() {
        for strict in &answers[index..] {
            assert_eq!(mild.stricter(*strict), *strict);
            assert_eq!(strict.stricter(*mild), *strict);
        }
    }
}

#[test]
fn a_decision_says_what_it_was_made_of() {
    let allowed = Decision::allow(10, 9, Duration::from_secs(2));
    assert_eq!((allowed.verdict(), allowed.retry()), (Verdict::Allow, None));
    assert!(allowed.is_allowed() && allowed.delay().is_zero());
    let delayed = delayed();
    assert_eq!(delayed.verdict(), Verdict::AllowAfter(Duration::from_secs(1)));
    assert_eq!((delayed.delay(), delayed.retry_after()), (Duration::from_secs(1), None));
    assert!(delayed.is_allowed());
    // As long as can be: from the first tick to the last, and a window beyond.
    let longest = Retry::After(Duration::from_secs(8 * 366 * 86_400));
    let shortest = Retry::After(Duration::from_nanos(1));
    for retry in [shortest, longest, Retry::OnReturn, Retry::Never] {
        let decision = Decision::deny(10, 3, Duration::from_secs(2), retry);
        assert_eq!((decision.retry(), decision.verdict()), (Some(retry), Verdict::Deny(retry)));
        assert!(!decision.is_allowed() && decision.delay().is_zero());
        assert_eq!((decision.limit(), decision.remaining()), (10, 3));
        assert_eq!(decision.reset_after(), Duration::from_secs(2));
    }
}

#[test]
fn limits_that_shape_say_so() {
    assert!(Limit::leaky_shape("5/s", 5).unwrap().shapes());
    assert!(!Limit::leaky_police("5/s").unwrap().shapes());
}

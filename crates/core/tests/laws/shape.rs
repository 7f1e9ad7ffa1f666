//! Laws of the shaping leaky bucket: requests leave one by one at a constant pace, and the queue
//! is bounded.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Tick, Verdict, Word};

use crate::fraction::Fraction;
use crate::subject::{self, Kind, Subject};
use crate::trace;

/// When the next request may leave, in parts of a nanosecond.
struct Queue {
    rate: Fraction,
    free: u128,
}

impl Queue {
    /// The delay of a request, rounded up to whole nanoseconds.
    fn delay(&self, now: Tick) -> u128 {
        let now = u128::from(now.as_nanos()) * self.rate.tokens;
        self.free.saturating_sub(now).div_ceil(self.rate.tokens)
    }

    fn join(&mut self, now: Tick, cost: u64) {
        let now = u128::from(now.as_nanos()) * self.rate.tokens;
        self.free = self.free.max(now) + u128::from(cost) * self.rate.nanos;
    }
}

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn each_leaves_when_those_before_it_have_left(
        subject in subject::shapes(), start in trace::starts(), requests in trace::requests(60),
    ) {
        let mut queue = Queue { rate: Fraction::kept(subject.rate()), free: 0 };
        trace::walk(&subject, start, &requests, |visit| {
            let decision = visit.step.decision;
            let waits = matches!(decision.verdict(), Verdict::AllowAfter(_));
            prop_assert_eq!(waits, !decision.delay().is_zero());
            if visit.spent() {
                prop_assert_eq!(decision.delay().as_nanos(), queue.delay(visit.now));
                queue.join(visit.now, visit.cost);
            } else {
                prop_assert_eq!(decision.delay(), Duration::ZERO);
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_more_than_the_queue_holds_ever_wait(
        subject in subject::shapes(), start in trace::starts(), pauses in prop::collection::vec(0..2u32 << 16, 1..200),
    ) {
        let Kind::Shape { queue } = subject.kind else { return Ok(()) };
        let (mut word, mut now, mut leaving) = (Word::REST, start, Vec::new());
        for pause in pauses {
            let pause = trace::Pause::Token(pause / 8);
            now = now.after(pause.length(subject.rate(), &subject.peek(word, now)));
            let step = subject.step(word, now, 1);
            word = step.word;
            let nanos = u128::from(now.as_nanos());
            leaving.retain(|leaves| *leaves > nanos);
            match step.decision.is_allowed() {
                true => leaving.push(nanos + step.decision.delay().as_nanos()),
                false => prop_assert_eq!(leaving.len() as u64, queue),
            }
            prop_assert!(leaving.iter().filter(|leaves| **leaves > nanos).count() as u64 <= queue);
        }
    }
}

#[test]
fn output_is_evenly_spaced_however_the_input_comes() {
    let subject = Subject::plain(Kind::Shape { queue: 4 }, "10/s");
    let at = |millis| Tick::ZERO.after(Duration::from_millis(millis));
    let (mut word, mut leaves) = (Word::REST, Vec::new());
    for arrival in [0, 0, 0, 20, 30, 35, 180, 200, 950] {
        let step = subject.step(word, at(arrival), 1);
        word = step.word;
        let delay = step.decision.delay().as_millis();
        leaves.push(step.decision.is_allowed().then_some(u128::from(arrival) + delay));
    }
    let (left, denied) = (Some, None);
    let right = [
        left(0),
        left(100),
        left(200),
        left(300),
        left(400),
        denied,
        left(500),
        left(600),
        left(950),
    ];
    assert_eq!(leaves, right);
}

#[test]
fn a_full_queue_says_when_a_place_is_free() {
    let subject = Subject::plain(Kind::Shape { queue: 2 }, "10/s");
    let mut word = Word::REST;
    for _ in 0..3 {
        word = subject.step(word, Tick::ZERO, 1).word;
    }
    let denied = subject.step(word, Tick::ZERO, 1).decision;
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(100)));
    assert_eq!((denied.limit(), denied.remaining()), (3, 0));
}

//! Law: step by step, a machine and its model say the same.

use proptest::prelude::*;
use tollgate_core::{BoundStep, Step, StepUser, Tick, Word};

use crate::model;
use crate::subject::{self, Kind, Subject};
use crate::trace::{self, Request, Visit};

proptest! {
    #![proptest_config(trace::cases(4))]

    #[test]
    fn buckets_agree_with_dripping_tokens(
        subject in subject::buckets(), start in trace::starts(), requests in trace::requests(60),
    ) {
        agrees(&subject, start, &requests)?;
    }

    #[test]
    fn sliding_counters_agree_with_the_estimate(
        subject in subject::of(&[Kind::Sliding]), start in trace::starts(), requests in trace::requests(60),
    ) {
        agrees(&subject, start, &requests)?;
    }
}

proptest! {
    #![proptest_config(trace::cases(2))]

    #[test]
    fn windows_agree_with_a_list_of_admissions(
        subject in subject::windows(), start in trace::starts(), requests in trace::requests(60),
    ) {
        agrees(&subject, start, &requests)?;
    }
}

/// Exactly, except for a sliding counter that has to round: it may be too strict by a little.
fn agrees(subject: &Subject, start: Tick, requests: &[Request]) -> Result<(), TestCaseError> {
    let (mut model, slack) = (model::of(subject), subject.slack());
    trace::walk(subject, start, requests, |visit| {
        let now = visit.now.as_nanos();
        let (is, right) = (subject.remaining(visit.before, visit.now), model.remaining(now));
        prop_assert!(is <= right && right - is <= slack, "{is} remain at {now}, {right} is right");
        let decision = visit.step.decision;
        prop_assert_eq!(by_other_ways(subject, visit), [visit.step; 2]);
        prop_assert!(looks_as_it_decides(subject, visit));
        if slack == 0 {
            prop_assert_eq!(decision.is_allowed(), visit.cost <= right);
        }
        if visit.spent() {
            model.spend(now, visit.cost);
        }
        let (is, right) = (decision.remaining(), model.remaining(now));
        prop_assert!(
            is <= right && right - is <= slack,
            "{is} are left at {now}, {right} is right"
        );
        Ok(())
    })?;
    Ok(())
}

/// What the ways that are made for speed say to the same request.
fn by_other_ways(subject: &Subject, visit: &Visit) -> [Step; 2] {
    let Visit { before, now, cost, .. } = *visit;
    let inlined = subject.machine.step_with(now, cost, subject.phase, Once(before));
    let usual = subject.machine.usual();
    let usual = usual.at(now, cost).map(|ask| match ask.spend(before) {
        Some(word) => Step { word, decision: ask.allowed(word) },
        None => Step { word: before, decision: ask.denied(before) },
    });
    [inlined, usual.unwrap_or(inlined)]
}

/// Whether the quick way to look says what the decision would be, with what is left before it.
fn looks_as_it_decides(subject: &Subject, visit: &Visit) -> bool {
    let Visit { before, now, cost, step } = *visit;
    let left = subject.machine.step(before, now, 0, subject.phase).decision;
    let usual = subject.machine.usual();
    let mut unspent = step.decision;
    !unspent.is_allowed()
        || !unspent.unspend(cost)
        || unspent == left
            && usual
                .at(now, cost)
                .is_none_or(|ask| ask.looked(before) == step.decision.with_remaining_of(left))
}

struct Once(Word);

impl StepUser for Once {
    type Output = Step;

    fn with(self, step: &impl BoundStep) -> Step {
        step.step(self.0)
    }
}

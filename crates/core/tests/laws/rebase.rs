//! Laws of a key that comes from another limit: it has spent what it is said to have, has everything
//! back when anybody would have, and may be told so again whenever it is at rest.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Limit, Log, LogRule, Tick, Word};

use crate::subject::{self, Subject};
use crate::trace;

proptest! {
    #![proptest_config(trace::cases(2))]

    #[test]
    fn a_rebased_key_has_spent_so_much_or_everything(
        subject in subject::all(), since in trace::starts(), share in 0..=u64::MAX, few in 0..9u64,
    ) {
        for spent in [share % (subject.capacity() + 1), few, share] {
            let word = rebased(&subject, since, spent);
            let left = subject.capacity().saturating_sub(spent);
            prop_assert_eq!(subject.remaining(word, since), left);
        }
    }

    #[test]
    fn whoever_has_spent_everything_has_it_back_in_time(
        subject in subject::all(), since in trace::starts(), pause in 0..=u64::MAX,
    ) {
        let word = rebased(&subject, since, u64::MAX);
        let by = subject.machine.rested_by(since);
        // At the end of time it stands still.
        prop_assume!(by < Tick::MAX);
        prop_assert_eq!(subject.remaining(word, by), subject.capacity());
        let one = subject.step(word, by, 1).decision;
        prop_assert_eq!(one, subject.step(Word::REST, by, 1).decision);
        // Nobody is told to wait for longer than that.
        let nanos = by.since(since).as_nanos().max(1) as u64;
        let now = since.after(Duration::from_nanos(pause % nanos));
        for cost in [1, subject.capacity()] {
            if let Some(retry) = subject.step(word, now, cost).decision.retry_after() {
                prop_assert!(retry <= by.since(now), "{:?} at {}", retry, now);
            }
        }
    }

    #[test]
    fn a_rebased_key_that_came_to_rest_may_be_rebased_again(
        subject in subject::all(),
        since in trace::starts(),
        spent in 0..=u64::MAX,
        requests in trace::requests(40),
    ) {
        let base = rebased(&subject, since, spent % (subject.capacity() + 1));
        let (mut word, mut now) = (base, since);
        let mut last = subject.peek(word, now);
        for request in requests {
            now = now.after(request.pause.length(subject.rate(), &last));
            if word.is_at_rest(now) {
                prop_assert!(base.is_at_rest(now), "{:?} is not at rest at {}", base, now);
                word = base;
            }
            let cost = request.cost.tokens(subject.peek(word, now));
            let step = subject.step(word, now, cost);
            (word, last) = (step.word, step.decision);
        }
    }

    #[test]
    fn a_rebased_log_keeps_the_latest_requests_that_its_new_rule_counts(
        old in rules(), new in rules(), requests in costs(), later in 0..5_000u64,
    ) {
        let (mut log, mut passed, mut now) = (Log::default(), Vec::new(), Tick::ZERO);
        for (pause, cost) in requests {
            now = now.after(Duration::from_millis(pause));
            if log.step(old, now, cost).is_allowed() {
                passed.push((now, cost));
            }
        }
        passed.retain(|(at, _)| now.since(*at) < old.window());
        let mut room = new.limit();
        for (_, cost) in passed.iter_mut().rev() {
            *cost = (*cost).min(room);
            room -= *cost;
        }
        log.rebase(new, now);
        let at = now.after(Duration::from_millis(later));
        let counted = passed.iter().filter(|(then, _)| at.since(*then) < new.window());
        let spent: u64 = counted.map(|(_, cost)| cost).sum();
        prop_assert_eq!(log.peek(new, at, 0).remaining(), new.limit() - spent);
    }

    #[test]
    fn a_log_joined_in_place_is_as_strict_as_both_whoever_takes_back(
        rule in rules(), one in costs(), two in costs(), later in 0..5_000u64,
    ) {
        let (mut common, mut now) = (Log::default(), Tick::ZERO);
        let mut own = Log::default();
        for (pause, cost) in &two {
            own.step(rule, Tick::ZERO.after(Duration::from_millis(*pause)), *cost);
        }
        for (pause, cost) in one {
            now = now.after(Duration::from_millis(pause));
            common.step_in_place(rule, now, cost);
        }
        own.forget(rule, now);
        common.forget(rule, now);
        let (mut before, at) = (common.clone(), now.after(Duration::from_millis(later)));
        common.join_in_place(&own);
        prop_assert!(common.entries() <= 1);
        common.undo(now, 1);
        let least = own.peek(rule, at, 0).remaining().min(before.peek(rule, at, 0).remaining());
        prop_assert!(common.peek(rule, at, 0).remaining() <= least || own.entries() == 0);
    }
}

fn rebased(subject: &Subject, since: Tick, spent: u64) -> Word {
    subject.machine.rebased(since, spent, subject.phase)
}

fn rules() -> impl Strategy<Value = LogRule> {
    (1..20u64, prop::sample::select(vec!["100ms", "1s", "3s"])).prop_map(|(count, period)| {
        Limit::sliding_log(format!("{count}/{period}")).unwrap().log_rule().unwrap()
    })
}

fn costs() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..800u64, 0..6u64), 0..20)
}

//! The laws of the sliding log, against a list of all admissions.

use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Decision, Limit, Log, LogRule, Rate, Retry, Tick};

use crate::subject::magnitudes;
use crate::trace::{self, Request, earlier};

/// Everything ever admitted, asked slowly. A clock that runs backwards stands still instead.
struct Model {
    limit: u64,
    window: u64,
    admitted: Vec<(u64, u64)>,
    latest: u64,
}

impl Model {
    fn new(rule: LogRule) -> Self {
        let window = u64::try_from(rule.window().as_nanos()).unwrap();
        Self { limit: rule.limit(), window, admitted: Vec::new(), latest: 0 }
    }

    fn remaining(&mut self, now: Tick) -> u64 {
        self.latest = self.latest.max(now.as_nanos());
        let inside = |at: u64| at + self.window > self.latest;
        let spent: u64 =
            self.admitted.iter().filter(|(at, _)| inside(*at)).map(|(_, cost)| cost).sum();
        self.limit - spent
    }

    fn spend(&mut self, now: Tick, cost: u64) {
        assert!(cost <= self.remaining(now));
        self.admitted.push((self.latest, cost));
    }

    /// Any window whatsoever holds at most the limit. It is enough to try those that begin with an
    /// admission.
    fn keeps_the_limit(&self) -> bool {
        self.admitted.iter().all(|(from, _)| {
            let window = *from..from + self.window;
            let inside = self.admitted.iter().filter(|(at, _)| window.contains(at));
            inside.map(|(_, cost)| cost).sum::<u64>() <= self.limit
        })
    }
}

/// What one request met.
struct Visit<'a> {
    rule: LogRule,
    before: &'a Log,
    after: &'a Log,
    now: Tick,
    cost: u64,
    decision: Decision,
}

fn walk(
    limit: &Limit,
    start: Tick,
    requests: &[Request],
    mut visit: impl FnMut(&Visit<'_>) -> Result<(), TestCaseError>,
) -> Result<(Log, Tick), TestCaseError> {
    let (rule, rate) = parts(limit);
    let (mut log, mut front) = (Log::default(), start);
    let mut last = Log::default().peek(rule, start, 0);
    for request in requests {
        front = front.after(request.pause.length(rate, &last));
        let behind = request.behind.map_or(Duration::ZERO, |by| by.length(rate, &last));
        let now = earlier(front, behind);
        let before = log.clone();
        let cost = request.cost.tokens(before.clone().peek(rule, now, 0));
        last = log.step(rule, now, cost);
        visit(&Visit { rule, before: &before, after: &log, now, cost, decision: last })?;
    }
    Ok((log, front))
}

fn parts(limit: &Limit) -> (LogRule, Rate) {
    (limit.log_rule().expect("a log"), limit.quota().rate().expect("it limits"))
}

fn limits() -> impl Strategy<Value = Limit> {
    let period = prop::sample::select(vec!["1ms", "s", "15min", "day", "month", "366day"]);
    (prop_oneof![1..5u64, magnitudes(16)], period)
        .prop_map(|(count, period)| Limit::sliding_log(&*format!("{count}/{period}")).unwrap())
}

proptest! {
    #![proptest_config(trace::cases(3))]

    #[test]
    fn a_log_agrees_with_a_list_of_all_admissions(
        limit in limits(), start in trace::starts(), requests in trace::stumbling(60),
    ) {
        let mut model = Model::new(parts(&limit).0);
        walk(&limit, start, &requests, |visit| {
            let right = model.remaining(visit.now);
            prop_assert_eq!(visit.before.clone().peek(visit.rule, visit.now, 0).remaining(), right);
            prop_assert_eq!(visit.decision.is_allowed(), visit.cost <= right);
            if visit.decision.is_allowed() {
                model.spend(visit.now, visit.cost);
            }
            prop_assert_eq!(visit.decision.remaining(), model.remaining(visit.now));
            prop_assert!(visit.after.entries() as u64 <= visit.rule.limit());
            Ok(())
        })?;
        prop_assert!(model.keeps_the_limit());
    }

    #[test]
    fn what_a_log_says_is_exact(
        limit in limits(), start in trace::starts(), requests in trace::stumbling(40),
    ) {
        walk(&limit, start, &requests, |visit| {
            denial_changes_nothing(visit)?;
            retry_is_exact(visit)?;
            remaining_and_reset_are_exact(visit)
        })?;
    }

    #[test]
    fn a_log_at_rest_equals_an_empty_one(
        limit in limits(),
        start in trace::starts(),
        requests in trace::requests(40),
        pause in trace::pauses(),
        future in trace::requests(20),
    ) {
        let (rule, rate) = parts(&limit);
        let (mut log, now) = walk(&limit, start, &requests, |_| Ok(()))?;
        let mut last = log.peek(rule, now, 0);
        let mut now = now.after(pause.length(rate, &last)).after(last.reset_after());
        prop_assert_eq!(log.is_at_rest(rule, now), log.clone().peek(rule, now, 0).remaining() == rule.limit());
        let future = if log.is_at_rest(rule, now) { future } else { Vec::new() };
        let mut fresh = Log::default();
        for request in future {
            now = now.after(request.pause.length(rate, &last));
            let cost = request.cost.tokens(fresh.peek(rule, now, 0));
            last = fresh.step(rule, now, cost);
            prop_assert_eq!(log.step(rule, now, cost), last);
        }
    }

    #[test]
    fn what_is_undone_was_never_there(
        limit in limits(), start in trace::starts(), requests in trace::stumbling(40), undone in any::<u64>(),
    ) {
        undoes_exactly(&limit, start, &requests, undone)?;
    }
}

proptest! {
    #![proptest_config(trace::cases(3))]

    #[test]
    fn a_log_in_place_keeps_the_limit_in_the_memory_it_has(
        limit in limits(), start in trace::starts(), requests in trace::stumbling(60), room in 1..8usize,
    ) {
        let (rule, rate) = parts(&limit);
        let (mut log, mut front, mut model) = (Log::default(), start, Model::new(rule));
        let mut last = Log::default().peek(rule, start, 0);
        for request in requests {
            front = front.after(request.pause.length(rate, &last));
            let now = earlier(front, request.behind.map_or(Duration::ZERO, |by| by.length(rate, &last)));
            let cost = request.cost.tokens(log.peek(rule, now, 0));
            last = match log.entries() < room {
                true => log.step(rule, now, cost),
                false => log.step_in_place(rule, now, cost),
            };
            prop_assert!(log.entries() <= room);
            // It counts too high, so whatever it allows is right.
            model.spend(now, if last.is_allowed() { cost } else { 0 });
            prop_assert!(last.remaining() <= model.remaining(now));
        }
        prop_assert!(model.keeps_the_limit());
    }

    #[test]
    fn a_refund_to_a_log_gives_no_more_than_was_spent(
        limit in limits(), start in trace::starts(), requests in trace::stumbling(40), cost in trace::costs(),
    ) {
        walk(&limit, start, &requests, |visit| {
            let mut log = visit.after.clone();
            let before = log.peek(visit.rule, visit.now, 0);
            let cost = cost.tokens(before);
            log.refund(cost);
            let right = before.remaining().saturating_add(cost).min(visit.rule.limit());
            prop_assert_eq!(log.peek(visit.rule, visit.now, 0).remaining(), right);
            Ok(())
        })?;
    }
}

fn denial_changes_nothing(visit: &Visit<'_>) -> Result<(), TestCaseError> {
    let mut again = visit.after.clone();
    if !visit.decision.is_allowed() {
        prop_assert_eq!(again.step(visit.rule, visit.now, visit.cost), visit.decision);
        prop_assert_eq!(
            visit.before.clone().peek(visit.rule, visit.now, visit.cost),
            visit.decision
        );
        let left = visit.before.clone().peek(visit.rule, visit.now, 0).remaining();
        prop_assert_eq!(again.peek(visit.rule, visit.now, 0).remaining(), left);
    }
    Ok(())
}

fn retry_is_exact(visit: &Visit<'_>) -> Result<(), TestCaseError> {
    let (rule, now, cost) = (visit.rule, visit.now, visit.cost);
    let allows = |at| visit.before.clone().peek(rule, at, cost).is_allowed();
    let retry = visit.decision.retry();
    prop_assert_eq!(retry == Some(Retry::Never), cost > rule.limit());
    let Some(Retry::After(wait)) = retry else { return Ok(()) };
    let then = now.after(wait);
    if then.since(now) == wait {
        prop_assert!(wait > Duration::ZERO && allows(then), "denied after {wait:?}");
        prop_assert!(!allows(earlier(then, Duration::from_nanos(1))), "allowed before {wait:?}");
    }
    Ok(())
}

fn remaining_and_reset_are_exact(visit: &Visit<'_>) -> Result<(), TestCaseError> {
    let (rule, now) = (visit.rule, visit.now);
    let peek = |at, cost| visit.after.clone().peek(rule, at, cost);
    let left = visit.decision.remaining();
    prop_assert!(peek(now, left).is_allowed() && !peek(now, left + 1).is_allowed());
    let reset = visit.decision.reset_after();
    let then = now.after(reset);
    if then.since(now) == reset {
        prop_assert_eq!(peek(then, 0).remaining(), rule.limit());
        let before = peek(earlier(then, Duration::from_nanos(1)), 0);
        prop_assert!(reset.is_zero() || before.remaining() < rule.limit());
    }
    Ok(())
}

/// Takes one admission back at a later time, and compares with a log that never saw it: the same
/// if it was still inside, and nothing else is ever taken back.
fn undoes_exactly(
    limit: &Limit,
    start: Tick,
    requests: &[Request],
    undone: u64,
) -> Result<(), TestCaseError> {
    let rule = parts(limit).0;
    let mut seen = Vec::new();
    let (mut log, now) = walk(limit, start, requests, |visit| {
        seen.push((visit.now, if visit.decision.is_allowed() { visit.cost } else { 0 }));
        Ok(())
    })?;
    let index = (undone % seen.len() as u64) as usize;
    let (then, cost) = seen[index];
    log.undo(then, cost);
    seen[index].1 = 0;
    let mut model = Model::new(rule);
    for (at, cost) in &seen {
        model.spend(*at, *cost);
    }
    let is = log.peek(rule, now, 0).remaining();
    let right = model.remaining(now);
    prop_assert!(is <= right, "{is} remain, more than {right} if it had never been");
    if seen.is_sorted_by_key(|(at, _)| *at) && now.since(then) < rule.window() {
        prop_assert_eq!(is, right);
    }
    Ok(())
}

fn rule(text: &str) -> LogRule {
    Limit::sliding_log(text).unwrap().log_rule().unwrap()
}

const fn millis(millis: u64) -> Tick {
    Tick::from_nanos(millis * 1_000_000)
}

#[test]
fn a_log_has_the_memory_it_is_given_and_keeps_what_it_holds() {
    let (rule, mut log) = (rule("9/s"), Log::default());
    for entries in [3, 8, 1, 0, 5] {
        log.set_capacity(entries);
        assert_eq!(log.capacity(), entries);
    }
    for at in 0..9 {
        assert!(log.step(rule, millis(at), 1).is_allowed());
        log.set_capacity(2);
        assert_eq!(log.capacity(), 2.max(log.entries()), "after {at} ms");
    }
    log.forget(rule, millis(1003));
    assert_eq!((log.entries(), log.capacity()), (5, 9));
    log.set_capacity(6);
    assert_eq!((log.entries(), log.capacity()), (5, 6));
    assert_eq!(log.peek(rule, millis(1003), 0).remaining(), 4, "4 of 9 are over");
}

/// A request that had left the log was taken from the next one instead.
#[test]
fn undo_leaves_others_alone_when_its_own_is_gone() {
    let (rule, mut log) = (rule("2/s"), Log::default());
    assert!(log.step(rule, millis(0), 1).is_allowed());
    assert!(log.step(rule, millis(1500), 1).is_allowed());
    log.undo(millis(0), 1);
    assert_eq!(log.peek(rule, millis(1500), 0).remaining(), 1);
}

/// A denial at a later time made the log forget, and then the clock ran backwards.
#[test]
fn forgetting_is_not_earning() {
    let (rule, mut log) = (rule("1/s"), Log::default());
    assert!(log.step(rule, millis(0), 1).is_allowed());
    assert!(!log.step(rule, millis(1000), 2).is_allowed());
    assert!(log.step(rule, millis(500), 1).is_allowed(), "as at the latest time it has seen");
    assert!(!log.step(rule, millis(1999), 1).is_allowed(), "so it counts until a second later");
    assert!(log.step(rule, millis(2000), 1).is_allowed());
}

/// An empty log would count what comes at once from now on, and not from the latest time seen.
#[test]
fn a_log_that_has_seen_a_later_time_is_not_at_rest() {
    let (rule, mut log) = (rule("1/s"), Log::default());
    log.peek(rule, millis(700), 1);
    assert!(!log.is_at_rest(rule, millis(699)));
    assert!(log.is_at_rest(rule, millis(700)));
}

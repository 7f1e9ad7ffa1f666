//! Long windows of nodes and stores that fail: what was spent stays spent until they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::load::Load;
use crate::overload::{Overload, SECOND};
use crate::redis::{Redis, Sentinel, until};
use crate::{now, pass};

/// Windows that do not end while a test runs: one is lent to nodes, and about the other every decision
/// asks the store. What it cannot say is denied, so all that passes was granted.
fn rules(lent: u64, strict: u64) -> String {
    format!(
        "rules:
  - {{ name: lent, match: {{ path: /lent }}, key: [user], limit: {lent}/month, algorithm: fixed_window,
      on_store_failure: deny }}
  - {{ name: strict, match: {{ path: /strict }}, key: [user], limit: {strict}/month,
      algorithm: sliding_window, consistency: strict, on_store_failure: deny }}"
    )
}

/// Waits until nothing passes any more, of hundreds that ask.
fn until_nothing_passes(load: &Load) {
    let mut last = (load.allowed(), load.answered());
    until("nothing passes any more", || {
        if load.allowed() != last.0 {
            last = (load.allowed(), load.answered());
        }
        load.has_gone_on(&last.1, 50).then_some(())
    });
}

#[test]
fn a_window_has_one_budget_while_a_node_is_killed_and_redis_stands_still() {
    let (lent, strict) = (6_000, 1_500);
    let redis = Redis::start(&[]);
    let mut overload = Overload::begin(3, &redis.url(), &rules(lent, strict));
    pass(SECOND);
    overload.kill(2);
    overload.all_are_answered();
    redis.signal("STOP");
    overload.all_are_degraded();
    pass(SECOND);
    redis.signal("CONT");
    overload.all_are_well_again();
    until_nothing_passes(&overload.lent);
    until_nothing_passes(&overload.strict);
    let [(_, of_lent), (_, of_strict)] = overload.end();
    // What was lent to the node that was killed comes back half a minute later, and some of what the
    // store granted was not heard of.
    assert!((lent / 2..=lent).contains(&of_lent.allowed), "{} of {lent}", of_lent.allowed);
    let allowed = of_strict.allowed;
    assert!((strict * 9 / 10..=strict).contains(&allowed), "{allowed} of {strict}");
}

#[test]
fn nothing_passes_until_a_window_ends_of_which_redis_has_lost_everything() {
    let limit = 50_000;
    let mut redis = Redis::start(&[]);
    let overload = Overload::begin(3, &redis.url(), &rules(limit, limit));
    pass(SECOND);
    redis.kill();
    overload.all_are_degraded();
    // What was granted before is heard of by now.
    overload.all_are_answered();
    let before = overload.strict.allowed();
    redis.restart_empty();
    overload.all_are_well_again();
    // Nodes may use what was lent to them, which was part of the budget that is lost.
    until_nothing_passes(&overload.lent);
    let lent = overload.lent.allowed();
    assert!(lent < limit / 2 && before > 0, "{lent} and {before} of {limit}");
    pass(SECOND);
    for (name, outcome) in overload.end() {
        let expected = if name == "lent" { lent } else { before };
        assert_eq!(outcome.allowed, expected, "{name}");
    }
}

/// Two windows go on where they were when something happens to their store after which the last three seconds
/// may be missing.
fn go_on(store: &str, happens: impl FnOnce(&Overload)) {
    let limits = [8_000, 2_000];
    let is_over = Arc::new(AtomicBool::new(false));
    // Most of what is spent until then is spent at first: that is known for certain.
    let is_on = {
        let is_over = Arc::clone(&is_over);
        move |node, time: Duration| {
            let is_little = node == 0 && time.subsec_millis() < 200;
            is_little || time < SECOND || is_over.load(Ordering::Relaxed)
        }
    };
    let overload = Overload::with(3, store, &rules(limits[0], limits[1]), is_on);
    pass(SECOND * 9 / 2);
    let end = now();
    is_over.store(true, Ordering::Relaxed);
    happens(&overload);
    for (load, limit) in [&overload.lent, &overload.strict].into_iter().zip(limits) {
        until("most of it has passed", || (load.allowed() >= limit * 9 / 10).then_some(()));
        until_nothing_passes(load);
    }
    for ((name, outcome), limit) in overload.end().into_iter().zip(limits) {
        let last = outcome.allowed_between(end - 3 * SECOND, end);
        let (allowed, may) = (outcome.allowed, limit + last);
        assert!(last < limit / 10, "{name}: {last} of {limit} are too many to tell");
        assert!(allowed <= may, "{name}: {allowed} have passed, and {may} may");
    }
}

#[test]
fn a_window_goes_on_with_what_redis_has_on_its_disk() {
    let mut redis = Redis::start(&["--appendonly", "yes"]);
    let url = redis.url();
    // Only its memory is empty then.
    go_on(&url, |_| redis.restart_empty());
}

#[test]
fn a_window_goes_on_with_what_a_replica_knows_that_takes_over() {
    let mut primary = Redis::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    let sentinel = Sentinel::of(&primary);
    sentinel.wait_until_it_knows(&replica);
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    go_on(&url, |overload| {
        primary.kill();
        overload.all_are_degraded();
        until("its replica has taken over", || sentinel.names(&replica).then_some(()));
        overload.all_are_well_again();
    });
}

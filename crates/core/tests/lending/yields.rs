//! Law: where the network is healthy, lending loses nothing, and hardly a request waits for the
//! store.

use crate::fleet::{Fleet, Outcome};
use crate::plan::{MILLI, Plan, SECOND, Subject};

/// A fleet that is asked for `load` in a second.
fn outcome(subject: Subject, nodes: u64, load: u64, lasts: u64, turns: Option<u64>) -> Outcome {
    let pause = SECOND * nodes / load;
    let plan = Plan { lasts, turns, drift: 10, ..Plan::calm(nodes, subject, nodes, pause) };
    Fleet::run(&plan).unwrap_or_else(|broken| panic!("{broken}: {plan:?}"))
}

/// So many in a thousand.
fn is_at_least(per_mille: u64, outcome: &Outcome, whole: u64) -> bool {
    outcome.passed * 1_000 >= whole * per_mille
}

#[test]
fn steady_overload_gets_all_there_is_but_a_thousandth() {
    for (quota, rate, burst) in [("1k/s", 1_000, 1_000), ("500/s burst 200", 500, 200)] {
        for nodes in [1, 3, 20] {
            let outcome = outcome(Subject::Bucket(quota), nodes, 2 * rate, 200 * SECOND, None);
            let whole = burst + 200 * rate;
            assert!(is_at_least(999, &outcome, whole), "{quota}, {nodes} nodes: {outcome:?}");
        }
    }
}

#[test]
fn nodes_that_are_busy_in_turns_get_all_there_is_but_little() {
    for turns in [300 * MILLI, 2 * SECOND] {
        let outcome = outcome(Subject::Bucket("1k/s"), 10, 4_000, 200 * SECOND, Some(turns));
        assert!(is_at_least(997, &outcome, 201_000), "turns of {turns}: {outcome:?}");
    }
}

/// Fifty windows from the third second on, and the ends of those at both ends.
#[test]
fn windows_in_overload_are_used_up() {
    for subject in [Subject::Fixed("1k/s"), Subject::Jittered("1k/s")] {
        let outcome = outcome(subject, 5, 3_000, 50 * SECOND, None);
        assert!(is_at_least(999, &outcome, 50_000), "{subject:?}: {outcome:?}");
    }
}

#[test]
fn hot_keys_hardly_ever_wait() {
    for subject in [Subject::Bucket("10k/s"), Subject::Fixed("10k/s"), Subject::Sliding("10k/s")] {
        let outcome = outcome(subject, 5, 2_000, 20 * SECOND + 500 * MILLI, None);
        assert_eq!(outcome.passed, outcome.requests, "there is enough for all: {subject:?}");
        assert!(outcome.local * 1_000 >= outcome.requests * 990, "{subject:?}: {outcome:?}");
        assert!(outcome.exchanges * 10 <= outcome.requests, "{subject:?}: {outcome:?}");
    }
}

/// A key that is asked for now and then asks the store, once each time, and holds nothing.
#[test]
fn cold_keys_do_not_borrow() {
    let outcome = outcome(Subject::Bucket("1k/s"), 5, 25, 20 * SECOND, None);
    assert_eq!((outcome.local, outcome.passed), (0, outcome.requests));
    assert!(outcome.exchanges <= outcome.requests, "{outcome:?}");
}

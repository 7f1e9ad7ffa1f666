//! Law: where the network is healthy, lending loses nothing, and hardly a request waits for the
//! store.

use tollgate_sim::{Fleet, MILLI, Outcome, Plan, SECOND, Subject};

/// A fleet that is asked for `load` in a second.
fn outcome(subject: &Subject, nodes: u64, load: u64, lasts: u64, turns: Option<u64>) -> Outcome {
    let pause = SECOND * nodes / load;
    let plan = Plan { lasts, turns, drift: 10, ..Plan::calm(nodes, subject.clone(), nodes, pause) };
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
            let outcome =
                outcome(&Subject::bucket(quota).unwrap(), nodes, 2 * rate, 200 * SECOND, None);
            let whole = burst + 200 * rate;
            assert!(is_at_least(999, &outcome, whole), "{quota}, {nodes} nodes: {outcome:?}");
        }
    }
}

#[test]
fn nodes_that_are_busy_in_turns_get_all_there_is_but_little() {
    for turns in [300 * MILLI, 2 * SECOND] {
        let outcome =
            outcome(&Subject::bucket("1k/s").unwrap(), 10, 4_000, 200 * SECOND, Some(turns));
        assert!(is_at_least(997, &outcome, 201_000), "turns of {turns}: {outcome:?}");
    }
}

/// Fifty windows from the third second on, and the ends of those at both ends.
#[test]
fn windows_in_overload_are_used_up() {
    for subject in [Subject::fixed("1k/s"), Subject::jittered("1k/s")].map(Result::unwrap) {
        let outcome = outcome(&subject, 5, 3_000, 50 * SECOND, None);
        assert!(is_at_least(999, &outcome, 50_000), "{subject:?}: {outcome:?}");
    }
}

#[test]
fn hot_keys_hardly_ever_wait() {
    for subject in [Subject::bucket("10k/s"), Subject::fixed("10k/s"), Subject::sliding("10k/s")]
        .map(Result::unwrap)
    {
        let outcome = outcome(&subject, 5, 2_000, 20 * SECOND + 500 * MILLI, None);
        assert_eq!(outcome.passed, outcome.requests, "there is enough for all: {subject:?}");
        assert!(outcome.local * 1_000 >= outcome.requests * 990, "{subject:?}: {outcome:?}");
        assert!(outcome.exchanges * 10 <= outcome.requests, "{subject:?}: {outcome:?}");
    }
}

/// Where leases are long, a key need not be hot to be worth lending to.
#[test]
fn slow_keys_of_slow_limits_seldom_wait() {
    for (load, share, most_exchanges) in [(50, 990, 250), (5, 950, 250), (1, 650, 400)] {
        for subject in
            [Subject::bucket("6k/min"), Subject::fixed("6k/min"), Subject::sliding("6k/min")]
                .map(Result::unwrap)
        {
            let outcome = outcome(&subject, 5, load, 900 * SECOND, None);
            let per_mille = outcome.local * 1_000 / outcome.requests;
            assert!(per_mille >= share, "{load}/s, {subject:?}: {outcome:?}");
            let per_mille = outcome.exchanges * 1_000 / outcome.requests;
            assert!(per_mille <= most_exchanges, "{load}/s, {subject:?}: {outcome:?}");
        }
    }
}

/// However fast a key is, and however much of it is denied. At the very end of a window nothing is
/// lent, and what comes then asks besides.
#[test]
fn a_node_asks_at_most_twelve_times_a_second() {
    let seconds = 30;
    for (subject, rate) in [
        (Subject::bucket("1k/s").unwrap(), 1_000),
        (Subject::bucket("10k/s").unwrap(), 10_000),
        (Subject::fixed("60k/min").unwrap(), 1_000),
        (Subject::sliding("60k/min").unwrap(), 1_000),
        (Subject::bucket("6k/min").unwrap(), 100),
        (Subject::bucket("100/min").unwrap(), 2),
    ] {
        for (nodes, load) in
            [(1, rate / 2), (5, rate / 2), (5, rate), (1, 4 * rate), (5, 4 * rate), (20, 2 * rate)]
        {
            let plan = Plan {
                drift: 10,
                ..Plan::calm(nodes, subject.clone(), nodes, SECOND * nodes / load)
            };
            let mut fleet = Fleet::new(plan).unwrap();
            // Until nodes know what they need, every request asks.
            fleet.run_until(Plan::START + 2 * SECOND).unwrap();
            let before = fleet.outcome().exchanges;
            fleet.run_until(fleet.now() + seconds * SECOND).unwrap();
            let exchanges = fleet.outcome().exchanges - before;
            let most = 12 * nodes * seconds;
            assert!(exchanges <= most, "{exchanges} of {nodes} nodes, {load}/s, {subject:?}");
        }
    }
}

/// A key that a node is not asked for twice in a lease asks the store, once each time, and holds
/// nothing.
#[test]
fn cold_keys_do_not_borrow() {
    let outcome = outcome(&Subject::bucket("1k/s").unwrap(), 5, 5, 100 * SECOND, None);
    assert_eq!((outcome.local, outcome.passed), (0, outcome.requests));
    assert!(outcome.exchanges <= outcome.requests, "{outcome:?}");
}

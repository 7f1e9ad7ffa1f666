//! One key, mostly in overload, on nodes that are all well.

use std::time::Duration;

use crate::load::{Load, Outcome};
use crate::redis::Redis;
use crate::{Fleet, pass};

/// Half of what passes has come in meanwhile, at a rate of which a busy machine can ask for ten times
/// as much.
const RULES: &str =
    "rules: [{ name: hot, key: [user], limit: 12k/min burst 2k, on_store_failure: deny }]";
const BURST: f64 = 2_000.0;
const RATE: f64 = 200.0;

/// In no interval did more pass than may, and in all hardly less. A machine that stands still takes what was
/// lent and not used in time: a run in which it did says nothing about that, and is done again.
fn assert_exact(may_lack: f64, run: impl Fn() -> Outcome) {
    let mut lacks = Vec::new();
    while lacks.len() < 4 {
        let outcome = run();
        let (excess, lack) = (outcome.excess(BURST, RATE), outcome.lack(BURST, RATE));
        // Nodes that answer late would be asked too late.
        let Outcome { answered, .. } = outcome;
        assert!(answered as f64 > 10.0 * RATE * 10.0, "{answered} in ten seconds are no overload");
        assert!(excess <= 0.0, "{excess:.1} more passed than may in some interval");
        if lack <= may_lack {
            return;
        }
        let stall = outcome.stalls.longest();
        assert!(
            stall > STALL,
            "{lack:.5} of what may pass did not, on a machine that stood still for {stall:?}"
        );
        lacks.push(lack);
    }
    panic!(
        "less passed than may, by these parts of it, whenever the machine stood still: {lacks:?}"
    );
}

/// As long as a thousandth of what may pass takes to come in. A machine that keeps nobody waiting for longer is
/// quick enough to be held to what it is asked.
const STALL: Duration = Duration::from_millis(20);

#[test]
fn five_nodes_together_let_exactly_the_limit_pass() {
    assert_exact(0.001, || {
        let redis = Redis::start(&[]);
        let fleet = Fleet::patient("1", 5, &redis.url(), RULES);
        // Five times eight every ten milliseconds: twenty times the limit.
        let load = Load::begin(&fleet.addresses("resp"), "/hot", 8, |_, _| true);
        pass(Duration::from_secs(10));
        let outcome = load.end();
        let answered = outcome.answered;
        let asked = "tollgate_store_decisions_total{how=\"asked\"}";
        let asked: f64 = (0..5).map(|node| fleet.metric(node, asked)).sum();
        assert!(asked < answered as f64 / 100.0, "{asked} of {answered} asked the store");
        outcome
    });
}

#[test]
fn traffic_that_moves_from_node_to_node_finds_its_budget_there() {
    assert_exact(0.003, || {
        let redis = Redis::start(&[]);
        let fleet = Fleet::patient("1", 5, &redis.url(), RULES);
        let is_on = |node: usize, time: Duration| time.as_secs() as usize % 5 == node;
        let load = Load::begin(&fleet.addresses("resp"), "/hot", 40, is_on);
        pass(Duration::from_secs(10));
        load.end()
    });
}

/// Threads of a node share what was lent to it, and the limit leaves room for all.
#[test]
fn nobody_below_the_limit_is_denied_by_nodes_with_several_threads() {
    // Ten connections to each of five nodes: half of the limit. And two, with pipelines.
    for (connections, each) in [(10, 1), (2, 5)] {
        let redis = Redis::start(&[]);
        // A store that is late, because the machine is busy, denies nobody either.
        let rules = "rules: [{ name: hot, key: [user], limit: 10k/s, on_store_failure: allow }]";
        let fleet = Fleet::patient("3", 5, &redis.url(), rules);
        let nodes = fleet.addresses("resp").repeat(connections);
        let load = Load::begin(&nodes, "/hot", each, |_, _| true);
        pass(Duration::from_secs(3));
        let Outcome { allowed, answered, .. } = load.end();
        assert_eq!(allowed, answered, "nobody is denied, {each} at once");
        let lent = "tollgate_store_decisions_total{how=\"lent\"}";
        let lent: f64 = (0..5).map(|node| fleet.metric(node, lent)).sum();
        assert!(lent > answered as f64 / 2.0, "{lent} of {answered} with what was lent");
    }
}

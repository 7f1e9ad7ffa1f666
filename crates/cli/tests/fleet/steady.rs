//! One key, mostly in overload, on nodes that are all well.

use std::time::Duration;

use crate::load::{Load, Outcome};
use crate::redis::Redis;
use crate::{Fleet, pass};

/// A limit, which part of what may pass may be missing in the end, and more than how many requests there have to be:
/// ten times as many as come in while somebody asks.
#[derive(Clone, Copy)]
struct Exactly {
    limit: &'static str,
    burst: f64,
    rate: f64,
    may_lack: f64,
    overload: u64,
}

/// Half of what passes has come in meanwhile, at a rate of which a busy machine can ask for ten times
/// as much.
const STEADY: Exactly = Exactly {
    limit: "12k/min burst 2k",
    burst: 2_000.0,
    rate: 200.0,
    may_lack: 0.001,
    overload: 20_000,
};

/// All of it is back after a second of silence.
const BURSTS: Exactly = Exactly {
    limit: "400/s burst 400",
    burst: 400.0,
    rate: 400.0,
    may_lack: 0.003,
    overload: 24_000,
};

impl Exactly {
    fn fleet(&self, redis: &Redis) -> Fleet {
        let limit = self.limit;
        let rules = format!(
            "rules: [{{ name: hot, key: [user], limit: {limit}, on_store_failure: deny }}]"
        );
        Fleet::patient("1", 5, &redis.url(), &rules)
    }

    /// In no interval did more pass than may, and in all hardly less. A machine that stands still takes what was
    /// lent and not used in time, and no more than would have come in meanwhile: a run that lacks more than it may,
    /// and no more than that besides, is done again.
    fn assert(&self, run: impl Fn(&Fleet) -> Outcome) {
        let (mut lacks, Self { burst, rate, may_lack, overload, .. }) = (Vec::new(), *self);
        while lacks.len() < 4 {
            let redis = Redis::start(&[]);
            let outcome = run(&self.fleet(&redis));
            let (excess, lack) = (outcome.excess(burst, rate), outcome.lack(burst, rate));
            // Nodes that answer late would be asked too late.
            let Outcome { answered, allowed, .. } = outcome;
            assert!(answered > overload, "{answered} are no overload");
            assert!(excess <= 0.0, "{excess:.1} more passed than may in some interval");
            if lack <= may_lack {
                return;
            }
            let all = outcome.stalls.sum();
            let lost = rate * all.as_secs_f64() / allowed as f64;
            assert!(
                lack <= may_lack + lost,
                "{lack:.5} of what may pass did not, on a machine that stood still for {all:?} in all"
            );
            lacks.push(lack);
        }
        panic!(
            "less passed than may, by these parts of it, whenever the machine stood still: {lacks:?}"
        );
    }
}

#[test]
fn five_nodes_together_let_exactly_the_limit_pass() {
    STEADY.assert(|fleet| {
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
    Exactly { may_lack: 0.003, ..STEADY }.assert(|fleet| {
        let is_on = |node: usize, time: Duration| time.as_secs() as usize % 5 == node;
        let load = Load::begin(&fleet.addresses("resp"), "/hot", 40, is_on);
        pass(Duration::from_secs(10));
        load.end()
    });
}

/// What lies with a node when all fall silent is missing when they come again. So nodes are asked often: a token
/// that waits for the next request is one that lies there.
#[test]
fn traffic_that_comes_in_bursts_finds_what_has_come_in_between() {
    BURSTS.assert(|fleet| {
        let is_on = |_, time: Duration| time.as_secs() % 3 != 2;
        let pause = Duration::from_millis(2);
        let load = Load::every(pause, &fleet.addresses("resp"), "/hot", 4, is_on);
        pass(Duration::from_secs(8));
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

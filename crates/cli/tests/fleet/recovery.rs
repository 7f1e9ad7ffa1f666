//! A store that comes back grants no burst: what passed without it counts, and what it has forgotten is not
//! granted again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::load::Outcome;
use crate::overload::{Overload, SECOND, Said};
use crate::redis::{Redis, until};
use crate::{now, pass};

const NODES: usize = 5;
const BURST: f64 = 300.0;
const RATE: f64 = 100.0;
/// Which part of a limit a node lets pass alone, unless told otherwise.
const SHARE: f64 = 0.5;

/// Half of the time that the bucket takes to refill. No lease lasts longer, and nothing passes for so long of
/// a bucket whose store has lost its memory.
const HALF: Duration = Duration::from_millis(1_500);

/// For how long nodes wait for their store: a machine that is busy with other things is hardly ever taken for
/// a store that fails.
const TIMEOUT: Duration = Duration::from_millis(300);

/// So few decisions without the store, after it was well, say nothing: they are what one node was asked at once.
const FEW: f64 = 10.0;

/// So often is done again what the machine has spoiled.
const RUNS: usize = 4;

/// A fleet in overload that can be kept silent.
pub(crate) struct Busy {
    pub(crate) overload: Overload,
    pub(crate) is_on: Arc<AtomicBool>,
}

/// A time without a store: from when no answer of it could come on, until it could again.
struct Outage {
    begin: Instant,
    end: Instant,
    /// How many decisions there were meanwhile with what was lent before.
    lent: f64,
}

/// What came after it: since when each node was seen to be well, and until when it was looked at.
pub(crate) struct Recovery {
    since: Vec<Instant>,
    end: Instant,
    /// How many decisions there were meanwhile without the store: some, if the machine kept it from answering.
    alone: f64,
    /// For how long nodes wait for it.
    timeout: Duration,
}

/// Does something again that the machine has spoiled, in the way that it says, a few times.
pub(crate) fn unspoiled(run: impl Fn() -> Result<(), String>) {
    let spoiled: Vec<_> = (0..RUNS).map_while(|_| run().err()).collect();
    assert!(spoiled.len() < RUNS, "nothing can be seen on a machine like this: {spoiled:#?}");
}

impl Busy {
    fn begin(redis: &Redis, policy: &str) -> Self {
        let rules = format!(
            "rules:
  - {{ name: lent, match: {{ path: /lent }}, key: [user], limit: 100/s burst 300,
      on_store_failure: {policy} }}
  - {{ name: strict, match: {{ path: /strict }}, key: [user], limit: 100/s burst 300,
      consistency: strict, on_store_failure: {policy} }}"
        );
        Self::waiting(TIMEOUT, NODES, &redis.url(), &rules)
    }

    /// So many nodes that wait for their store for so long.
    pub(crate) fn waiting(timeout: Duration, nodes: usize, store: &str, rules: &str) -> Self {
        let is_on = Arc::new(AtomicBool::new(true));
        let turn = Arc::clone(&is_on);
        let turn = move |_, _| turn.load(Ordering::Relaxed);
        let overload = Overload::waiting(timeout, nodes, store, rules, turn);
        pass(SECOND);
        Self { overload, is_on }
    }

    fn nodes(&self) -> usize {
        self.overload.fleet.nodes.len()
    }

    /// How many decisions all nodes have made so.
    pub(crate) fn decided(&self, how: &str) -> f64 {
        (0..self.nodes()).map(|node| self.decided_by(node, how)).sum()
    }

    fn decided_by(&self, node: usize, how: &str) -> f64 {
        let name = format!("tollgate_store_decisions_total{{how=\"{how}\"}}");
        self.overload.fleet.metric(node, &name)
    }

    /// Takes the store away, for longer than any lease lasts.
    fn outage(&self, goes: impl FnOnce(), comes_back: impl FnOnce()) -> Outage {
        let lent = self.decided("lent");
        goes();
        let begin = now();
        self.overload.all_are_degraded();
        pass(HALF.saturating_sub(now() - begin) + SECOND / 4);
        let (lent, end) = (self.decided("lent") - lent, now());
        comes_back();
        Outage { begin, end, lent }
    }

    /// Waits until all nodes ask again, and then until something passes and `time` is over.
    pub(crate) fn recovery(&self, time: impl FnOnce() -> Duration) -> Recovery {
        let mut seen = vec![None; self.nodes()];
        until("the store is well again", || {
            for (node, seen) in seen.iter_mut().enumerate() {
                if seen.is_none() && !Said::by(&self.overload.fleet.nodes[node]).is_degraded() {
                    *seen = Some((self.decided_by(node, "degraded"), now()));
                }
            }
            seen.iter().all(Option::is_some).then_some(())
        });
        let (alone, since): (Vec<_>, Vec<_>) = seen.into_iter().flatten().unzip();
        self.is_on.store(true, Ordering::Relaxed);
        for load in [&self.overload.lent, &self.overload.strict] {
            let before = load.allowed();
            until("something passes again", || (load.allowed() > before).then_some(()));
        }
        pass(time());
        let end = now();
        let alone = self.decided("degraded") - alone.iter().sum::<f64>();
        Recovery { since, end, alone, timeout: self.overload.timeout }
    }
}

/// What is lent in the books of the key that everybody asks about.
fn escrow(redis: &Redis) -> f64 {
    let key = redis.cli(&["--raw", "KEYS", "tg:{user=alice}:default/lent:*"]);
    redis.cli(&["--raw", "HGET", key.trim(), "escrow"]).trim().parse().unwrap_or(0.0)
}

/// Takes the store away twice. Meanwhile no more passes than `may_alone` says, and what was lent before.
/// Afterwards no more passes than comes in from then on: what came in before has passed already.
///
/// What may pass as well is what a store that stood still lent when it went on, to questions that lay there
/// and before anybody could tell it anything.
fn comes_back(policy: &str, may_alone: impl Fn(Duration) -> f64) -> Result<(), String> {
    let mut redis = Redis::start(&[]);
    let busy = Busy::begin(&redis, policy);
    let stood = busy.outage(
        || redis.signal("STOP"),
        // Nobody asks until all nodes have said what passed: of the fleet's budget nothing is left then.
        || busy.is_on.store(false, Ordering::Relaxed),
    );
    let continued = now();
    redis.signal("CONT");
    let at_once = escrow(&redis);
    let after_stood = busy.recovery(|| SECOND);

    let killed = busy.outage(|| redis.kill(), || ());
    let restarted = now();
    redis.restart_empty();
    // Here everybody asks all the time.
    let refills = restarted + HALF;
    let after_killed = busy.recovery(|| (refills + SECOND / 2).saturating_duration_since(now()));

    let came_in = |since: Instant| move |at: Instant| RATE * (at - since).as_secs_f64();
    let outcomes = busy.overload.end();
    for (name, outcome) in &outcomes {
        for (what, outage) in [("stood still", &stood), ("was gone", &killed)] {
            let what = format!("{name}, while the store {what}");
            let Outage { begin, end, .. } = *outage;
            let lent = if *name == "lent" { outage.lent } else { 0.0 };
            let time = (end - begin).as_secs_f64();
            assert!(lent <= BURST + RATE * time, "{what}: {lent} were lent");
            let may = |at| lent + may_alone(at - begin);
            let excess = outcome.excess_since(&[begin; NODES], end, may);
            assert!(excess <= 0.0, "{what}: {excess:.1} more passed than may");
            let passed = outcome.allowed_between(begin, end) as f64;
            assert!(passed > RATE * time, "{what}: only {passed} passed, and something is left");
        }
        let at_once = if *name == "lent" { at_once } else { 0.0 };
        let may = |at| at_once + came_in(continued)(at);
        assert_no_burst(&format!("{name}, once the store goes on"), outcome, &after_stood, may);
        let may = |at: Instant| came_in(refills)(at.max(refills));
        assert_no_burst(&format!("{name}, once the store is back"), outcome, &after_killed, may);
    }
    after_stood.undisturbed(&outcomes)?;
    after_killed.undisturbed(&outcomes)
}

/// No more passed at any time than came in, but for what nodes have decided alone because the machine kept
/// them from asking.
pub(crate) fn assert_no_burst(
    what: &str,
    outcome: &Outcome,
    recovery: &Recovery,
    may: impl Fn(Instant) -> f64,
) {
    let Recovery { since, end, alone, .. } = recovery;
    let excess = outcome.excess_since(since, *end, may);
    // A token comes in at one moment for the store, and at another for us.
    assert!(
        excess <= 1.0 + alone,
        "{what}: {excess:.1} more passed than may, {alone} of them alone"
    );
}

impl Recovery {
    /// Hardly anything was decided alone, or the machine stood still, which is an error: then nobody knows what else
    /// would have been.
    pub(crate) fn undisturbed(&self, outcomes: &[(&str, Outcome)]) -> Result<(), String> {
        let Self { ref since, end, alone, timeout } = *self;
        // What nodes were asked before may have become too late only then.
        let begin = since.iter().min().map_or(end, |begin| *begin - timeout);
        let longest = |(_, outcome): &(&str, Outcome)| outcome.stalls.longest(begin, end);
        let stall = outcomes.iter().map(longest).max().unwrap_or_default();
        let why =
            format!("{alone} were decided alone, on a machine that stood still for {stall:?}");
        assert!(alone <= FEW || stall > timeout / 2, "{why}");
        if alone <= FEW { Ok(()) } else { Err(why) }
    }
}

#[test]
fn a_store_that_comes_back_grants_no_burst_to_nodes_that_let_everything_pass() {
    unspoiled(|| comes_back("allow", |_| f64::INFINITY));
}

#[test]
fn a_store_that_comes_back_grants_no_burst_to_nodes_that_let_their_share_pass() {
    let share = |time: Duration| SHARE * (BURST + RATE * time.as_secs_f64());
    unspoiled(|| comes_back("local", |time| NODES as f64 * share(time)));
}

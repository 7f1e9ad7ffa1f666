//! Nodes that are asked for more than there is, of a limit that is lent to them and of one that is not.

use std::time::Duration;

use crate::load::{Load, Outcome};
use crate::redis::until;
use crate::support::Server;
use crate::{Fleet, pass};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// For how long nodes wait for their store: less than 100 milliseconds, because they count how many answers took
/// longer than that.
const TIMEOUT: Duration = Duration::from_millis(80);

/// No answer is as late as this, however busy the machine is with other things: whatever happens to the
/// store lasts longer.
const LONGEST_WAIT: Duration = SECOND;

/// Rules with the paths `/lent` and `/strict`, and requests for both at all nodes.
pub(crate) struct Overload {
    pub(crate) fleet: Fleet,
    /// For how long its nodes wait for their store.
    timeout: Duration,
    pub(crate) lent: Load,
    pub(crate) strict: Load,
}

impl Overload {
    pub(crate) fn begin(count: usize, store: &str, rules: &str) -> Self {
        Self::with(count, store, rules, |_, _| true)
    }

    /// Only when it is the turn of a node, as `is_on` says.
    pub(crate) fn with(
        count: usize,
        store: &str,
        rules: &str,
        is_on: impl Fn(usize, Duration) -> bool + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::waiting(TIMEOUT, count, store, rules, is_on)
    }

    /// The same with nodes that wait for their store for so long.
    pub(crate) fn waiting(
        timeout: Duration,
        count: usize,
        store: &str,
        rules: &str,
        is_on: impl Fn(usize, Duration) -> bool + Clone + Send + Sync + 'static,
    ) -> Self {
        let fleet = Fleet::waiting(&format!("{timeout:?}"), "1", count, store, rules);
        let addresses = fleet.addresses("resp");
        let [lent, strict] = [("/lent", 8), ("/strict", 2)]
            .map(|(path, each)| Load::begin(&addresses, path, each, is_on.clone()));
        Self { fleet, timeout, lent, strict }
    }

    /// Kills a node, and its clients are gone with it.
    pub(crate) fn kill(&mut self, node: usize) {
        self.lent.doom(node);
        self.strict.doom(node);
        self.fleet.nodes[node].process.signal("KILL");
        self.fleet.nodes[node].process.wait();
    }

    /// Waits until every client has heard further answers: nobody waits for the store.
    pub(crate) fn all_are_answered(&self) {
        let loads = [&self.lent, &self.strict];
        let before = loads.map(Load::answered);
        until("everybody is answered", || {
            let mut both = loads.iter().zip(&before);
            both.all(|(load, before)| load.has_gone_on(before, 10)).then_some(())
        });
    }

    /// Waits until all nodes leave the store alone.
    pub(crate) fn all_are_degraded(&self) {
        let is_told = |(_, node): (_, &Server)| Said::by(node).is_degraded();
        until("all nodes say that the store fails", || self.living().all(is_told).then_some(()));
    }

    /// Waits for the same, and sees that for two seconds, in which the store stays away, they do, and
    /// say no more about it than that.
    pub(crate) fn all_stay_degraded(&self) {
        self.all_are_degraded();
        let said = || self.living().map(|(_, node): (_, &Server)| Said::by(node));
        let before: Vec<_> = said().collect();
        pass(2 * SECOND);
        for (node, _) in self.living() {
            assert_eq!(self.fleet.metric(node, "tollgate_store_degraded"), 1.0, "node {node}");
        }
        assert!(
            said().eq(before),
            "{:#?}",
            self.living().map(|(_, it)| told(it)).collect::<Vec<_>>()
        );
    }

    /// Waits until all nodes have said that the store is well again.
    pub(crate) fn all_are_well_again(&self) {
        let is_well = |(_, node): (_, &Server)| !Said::by(node).is_degraded();
        until("the store is well again", || self.living().all(is_well).then_some(()));
    }

    /// What came of both, if nobody had to wait.
    pub(crate) fn end(self) -> [(&'static str, Outcome); 2] {
        let living: Vec<_> = self.living().map(|(node, _)| node).collect();
        let Self { fleet, timeout, lent, strict } = self;
        let outcomes = [("lent", lent.end()), ("strict", strict.end())];
        let stall = outcomes.iter().map(|(_, outcome)| outcome.stall).max().unwrap_or_default();
        let late: Vec<_> =
            living.iter().map(|node| late(&fleet.nodes[*node], timeout + stall)).collect();
        let are_late = late.iter().filter(|late| **late > 0).count();
        // A wait that is too long is one of every node, all of which are asked all the time. A machine may be
        // in the way of one and of nobody else.
        assert!(
            are_late <= 1,
            "so many answers of each node were late, on a machine that stood still for {stall:?}: {late:?}"
        );
        for (name, outcome) in &outcomes {
            let wait = outcome.longest_wait();
            assert!(wait <= LONGEST_WAIT, "{name}: somebody waited for {wait:?}");
        }
        living.iter().for_each(|node| assert_told_in_turn(&fleet.nodes[*node]));
        outcomes
    }

    /// The nodes that were not killed, with their numbers.
    fn living(&self) -> impl Iterator<Item = (usize, &Server)> {
        self.fleet.nodes.iter().enumerate().filter(|(node, _)| !self.lent.is_doomed(*node))
    }
}

/// How often a node took longer to answer what it had read than this: the next bound of what it counts.
fn late(node: &Server, most: Duration) -> u64 {
    let bounds = [(100, "0.1"), (500, "0.5"), (1_000, "1.0")];
    let bound = bounds.iter().find(|(millis, _)| Duration::from_millis(*millis) >= most);
    let (_, bound) = bound.unwrap_or(&bounds[2]);
    let text = node.metrics();
    let sample = |name: &str| -> u64 {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    sample(r#"tollgate_door_seconds_count{door="resp"}"#)
        - sample(&format!(r#"tollgate_door_seconds_bucket{{le="{bound}",door="resp"}}"#))
}

/// How often a node has said that the store fails, and that it is well again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    fails: usize,
    well: usize,
}

impl Said {
    pub(crate) fn by(node: &Server) -> Self {
        let told = told(node);
        let count = |what: &str| told.iter().filter(|line| line.contains(what)).count();
        Self { fails: count(FAILS), well: count(WELL) }
    }

    pub(crate) fn is_degraded(self) -> bool {
        self.fails > self.well
    }
}

/// What a node has logged about its store.
fn told(node: &Server) -> Vec<String> {
    let lines = node.process.output();
    lines.into_iter().filter(|line| line.contains(FAILS) || line.contains(WELL)).collect()
}

/// However often the store failed: each time one line said so, and then one that it is well.
fn assert_told_in_turn(node: &Server) {
    let told = told(node);
    for (at, line) in told.iter().enumerate() {
        let expected = if at % 2 == 0 { FAILS } else { WELL };
        assert!(line.contains(expected), "{told:#?}");
    }
}

const FAILS: &str = "WARN the store fails";
const WELL: &str = "INFO the store is well";

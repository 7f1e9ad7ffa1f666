//! Nodes that are asked for more than there is, of a limit that is lent to them and of one that is not.

use std::time::{Duration, Instant};

use crate::load::{Load, Outcome};
use crate::redis::until;
use crate::stalls::Stalls;
use crate::support::Server;
use crate::turns::{Turns, Waits};
use crate::{Fleet, pass};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// For how long nodes wait for their store.
const TIMEOUT: Duration = Duration::from_millis(80);

/// Rules with the paths `/lent` and `/strict`, and requests for both at all nodes.
pub(crate) struct Overload {
    pub(crate) fleet: Fleet,
    /// For how long its nodes wait for their store.
    pub(crate) timeout: Duration,
    pub(crate) lent: Load,
    pub(crate) strict: Load,
    /// Requests that need no store. Whoever keeps them waiting is not the store.
    control: Load,
    /// When the machine was in the way of one of them.
    turns: Turns,
}

/// What the control asks: each node decides it alone.
const CONTROL: &str = "\n  - { name: control, match: { path: /control }, key: [user], limit: 1/s, consistency: local }\n";

/// How much longer than the timeout it may take until an answer is heard: it has to be worked out and written, and
/// read by a client.
const MARGIN: Duration = Duration::from_millis(20);

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
        let fleet = Fleet::waiting(
            &format!("{timeout:?}"),
            "1",
            count,
            store,
            &(rules.to_owned() + CONTROL),
        );
        let addresses = fleet.addresses("resp");
        let [lent, strict] = [("/lent", 8), ("/strict", 2)]
            .map(|(path, each)| Load::begin(&addresses, path, each, is_on.clone()));
        let control = Load::begin(&addresses, "/control", 1, |_, _| true);
        let turns = Turns::of(&fleet.nodes);
        Self { fleet, timeout, lent, strict, control, turns }
    }

    /// Kills a node, and its clients are gone with it.
    pub(crate) fn kill(&mut self, node: usize) {
        self.lent.doom(node);
        self.strict.doom(node);
        self.control.doom(node);
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

    /// Waits until all nodes have said that the store is well again, and their metrics say so as well.
    pub(crate) fn all_are_well_again(&self) {
        let is_well = |(_, node): (_, &Server)| {
            !Said::by(node).is_degraded() && node.metric("tollgate_store_degraded") == Some(0.0)
        };
        until("the store is well again", || self.living().all(is_well).then_some(()));
        self.living().for_each(|(_, node)| failures_are_counted_as_said(node));
    }

    /// What came of both, if nobody had to wait.
    pub(crate) fn end(self) -> [(&'static str, Outcome); 2] {
        let living: Vec<_> = self.living().map(|(node, _)| node).collect();
        let Self { fleet, timeout, lent, strict, control, turns } = self;
        let outcomes = [("lent", lent.end()), ("strict", strict.end())];
        let (control, turns) = (control.end(), turns.end());
        let late = Late { living: &living, turns: &turns, most: timeout + MARGIN };
        late.assert_few(&outcomes, &control);
        for node in living.iter().map(|node| &fleet.nodes[*node]) {
            assert_told_in_turn(node);
            failures_are_counted_as_said(node);
        }
        outcomes
    }

    /// The nodes that were not killed, with their numbers.
    fn living(&self) -> impl Iterator<Item = (usize, &Server)> {
        self.fleet.nodes.iter().enumerate().filter(|(node, _)| !self.lent.is_doomed(*node))
    }
}

/// Who looks for those who had to wait for longer than this, at nodes that were not killed.
struct Late<'a> {
    living: &'a [usize],
    turns: &'a Waits,
    most: Duration,
}

impl Late<'_> {
    /// Nobody waited for so long, but for the time in which the machine was in the way: of everybody, of a node, or of
    /// those who asked for what needs no store at the same moment.
    fn assert_few(&self, outcomes: &[(&str, Outcome)], control: &Outcome) {
        let nodes = self.living.iter().map(|node| control.stalls_of(*node));
        let stalls: Vec<_> = nodes.collect();
        let mut late = Vec::new();
        for (name, outcome) in outcomes {
            let stalls: Vec<_> = stalls.iter().chain([&outcome.stalls, &control.stalls]).collect();
            let waits = self.waits(outcome, &stalls).into_iter();
            late.extend(waits.map(|(node, time)| (*name, node, time)));
        }
        // It may be in the way of one client and of nobody else, and not for long. A wait that is too long is one
        // of every node, all of which are asked all the time.
        let is_short = |time: &Duration| *time <= 2 * self.most;
        let is_one = late.len() <= 1 && late.iter().all(|(.., time)| is_short(time));
        assert!(is_one, "so long did somebody wait, whatever the machine did: {late:?}");
        // The same of a node that keeps those waiting who need no store.
        let late = self.waits(control, &[&control.stalls]);
        let is_one = late.windows(2).all(|two| two[0].0 == two[1].0);
        let is_one = is_one && late.iter().all(|(_, time)| is_short(time));
        assert!(is_one, "nodes kept everybody waiting: {late:?}");
    }

    /// The waits that were too long without these, and without those for a turn, with the nodes.
    fn waits(&self, outcome: &Outcome, stalls: &[&Stalls]) -> Vec<(usize, Duration)> {
        let of_node = |node: usize| {
            let waited = move |(sent, heard): (Instant, Instant)| {
                let all = self.turns.on_the_way_to(node).chain(stalls.iter().copied());
                let stood = all.map(|stalls| stalls.within(sent, heard)).max();
                (heard - sent).saturating_sub(stood.unwrap_or_default())
            };
            let waits = outcome.waits(node).map(waited).filter(|time| *time > self.most);
            waits.map(move |time| (node, time))
        };
        self.living.iter().copied().flat_map(of_node).collect()
    }
}

/// How often a node has said that the store fails, and that it is well again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) fails: usize,
    pub(crate) well: usize,
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
pub(crate) fn told(node: &Server) -> Vec<String> {
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

/// Waits until a node has said as often that the store fails as it has counted it: it is counted first.
fn failures_are_counted_as_said(node: &Server) {
    until("each failure of the store is said once and counted once", || {
        let counted = node.metric("tollgate_store_degradations_total");
        (counted == Some(Said::by(node).fails as f64)).then_some(())
    });
}

const FAILS: &str = "WARN the store fails";
const WELL: &str = "INFO the store is well";

//! What goes wrong never lets more pass than may, and nobody waits for it.

use std::time::Duration;

use crate::client::{Client, encode};
use crate::load::Load;
use crate::redis::{Kind, Redis, start_cluster, until};
use crate::support::Server;
use crate::{Fleet, pass};

/// While a rule denies what its store cannot say, all that passes was granted. The budget of the first
/// is lent to nodes, and about the second every decision asks the store.
const RULES: &str = "rules:
  - { name: hot, match: { path: /hot }, key: [user], limit: 100/s burst 500, on_store_failure: deny }
  - { name: strict, match: { path: /strict }, key: [user], limit: 100/s burst 500,
      consistency: strict, on_store_failure: deny }";
const BURST: f64 = 500.0;
const RATE: f64 = 100.0;

const SECOND: Duration = Duration::from_secs(1);

/// Nobody waits for the store beyond its timeout of 50 milliseconds. The rest of a second is for a
/// machine that has other things to do: whatever happens to the store lasts longer.
const LONGEST_WAIT: Duration = SECOND;

/// Five nodes in overload.
struct Overload {
    fleet: Fleet,
    lent: Load,
    strict: Load,
}

/// How often a node has said that the store fails, and that it is well again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said {
    fails: usize,
    well: usize,
}

/// Has five nodes in overload while something happens, and holds them to the limit in every interval.
fn during(store: &str, happens: impl FnOnce(&mut Overload)) {
    let fleet = Fleet::start(5, store, RULES);
    let addresses = fleet.addresses("resp");
    let [lent, strict] = [("/hot", 8), ("/strict", 2)]
        .map(|(path, each)| Load::begin(&addresses, path, each, |_, _| true));
    let mut overload = Overload { fleet, lent, strict };
    pass(2 * SECOND);
    happens(&mut overload);
    pass(2 * SECOND);
    let Overload { fleet, lent, strict } = overload;
    for (name, load) in [("lent", lent), ("strict", strict)] {
        let before = load.allowed();
        until("something passes again", || (load.allowed() > before).then_some(()));
        let outcome = load.end();
        let (excess, wait) = (outcome.excess(BURST, RATE), outcome.longest_wait());
        assert!(excess <= 0.0, "{name}: {excess:.1} more passed than may in some interval");
        assert!(wait <= LONGEST_WAIT, "{name}: somebody waited for {wait:?}");
    }
    for node in 0..5 {
        assert_told_in_turn(&fleet, node);
    }
}

impl Overload {
    /// Waits until every client has heard further answers: nobody waits for the store.
    fn all_are_answered(&self) {
        let loads = [&self.lent, &self.strict];
        let before = loads.map(Load::answered);
        until("everybody is answered", || {
            let mut both = loads.iter().zip(&before);
            both.all(|(load, before)| load.has_gone_on(before, 10)).then_some(())
        });
    }

    /// Waits until all nodes leave the store alone, and sees that for two seconds, in which it stays
    /// away, they do, and say no more about it than that.
    fn all_stay_degraded(&self) {
        let all = 0..self.fleet.nodes.len();
        let is_told = |node| Said::by(&self.fleet, node).is_degraded();
        until("all nodes say that the store fails", || all.clone().all(is_told).then_some(()));
        let before: Vec<_> = all.clone().map(|node| Said::by(&self.fleet, node)).collect();
        pass(2 * SECOND);
        for node in all {
            assert_eq!(self.fleet.metric(node, "tollgate_store_degraded"), 1.0, "node {node}");
            let told = told(&self.fleet, node);
            assert_eq!(Said::by(&self.fleet, node), before[node], "node {node}: {told:#?}");
        }
    }

    /// Waits until all nodes have said that the store is well again.
    fn all_are_well_again(&self) {
        let is_well = |node| !Said::by(&self.fleet, node).is_degraded();
        until("the store is well again", || (0..self.fleet.nodes.len()).all(is_well).then_some(()));
    }
}

impl Said {
    fn by(fleet: &Fleet, node: usize) -> Self {
        let told = told(fleet, node);
        let count = |what: &str| told.iter().filter(|line| line.contains(what)).count();
        Self { fails: count(FAILS), well: count(WELL) }
    }

    fn is_degraded(self) -> bool {
        self.fails > self.well
    }
}

/// What a node has logged about its store.
fn told(fleet: &Fleet, node: usize) -> Vec<String> {
    let lines = fleet.nodes[node].process.output();
    lines.into_iter().filter(|line| line.contains(FAILS) || line.contains(WELL)).collect()
}

/// However often the store failed: each time one line said so, and then one that it is well.
fn assert_told_in_turn(fleet: &Fleet, node: usize) {
    let told = told(fleet, node);
    for (at, line) in told.iter().enumerate() {
        let expected = if at % 2 == 0 { FAILS } else { WELL };
        assert!(line.contains(expected), "node {node}: {told:#?}");
    }
}

const FAILS: &str = "WARN the store fails";
const WELL: &str = "INFO the store is well";

#[test]
fn a_node_is_killed() {
    let redis = Redis::start(&[]);
    during(&redis.url(), |overload| {
        overload.lent.doom(2);
        overload.strict.doom(2);
        overload.fleet.nodes[2].process.signal("KILL");
        overload.fleet.nodes[2].process.wait();
        overload.all_are_answered();
    });
}

#[test]
fn redis_stands_still_for_two_seconds() {
    let redis = Redis::start(&[]);
    during(&redis.url(), |overload| {
        redis.signal("STOP");
        overload.all_are_answered();
        overload.all_stay_degraded();
        overload.all_are_answered();
        redis.signal("CONT");
        overload.all_are_well_again();
    });
}

#[test]
fn redis_is_killed_and_comes_back_empty() {
    let mut redis = Redis::start(&[]);
    let url = redis.url();
    during(&url, |overload| {
        redis.kill();
        overload.all_are_answered();
        overload.all_stay_degraded();
        overload.all_are_answered();
        redis.restart_empty();
        overload.all_are_well_again();
    });
}

#[test]
fn redis_is_killed_while_it_stands_still_and_comes_back_empty() {
    let mut redis = Redis::start(&[]);
    let url = redis.url();
    during(&url, |overload| {
        redis.signal("STOP");
        overload.all_are_answered();
        overload.all_stay_degraded();
        redis.restart_empty();
        overload.all_are_well_again();
    });
}

/// Nobody asks for anything more after the few questions that found it gone: all that a node has of
/// its store then is a connection to a server that is not there any more.
#[test]
fn redis_that_few_ask_is_killed_while_it_stands_still_and_comes_back_empty() {
    let mut redis = Redis::start(&[]);
    let fleet = Fleet::start(2, &redis.url(), RULES);
    let question = ["TG.CHECK", "path", "/strict", "user", "alice"];
    let passes = |client: &mut Client| client.ask(&question).starts_with("*8\r\n:0\r\n");
    let clients = |node: &Server| -> Vec<_> { (0..8).map(|_| Client::of(node)).collect() };
    let mut clients: Vec<_> = fleet.nodes.iter().map(clients).collect();
    for client in clients.iter_mut().flatten() {
        until("something passes", || passes(client).then_some(()));
    }
    redis.signal("STOP");
    // Each node finds all of its questions at once, and asks them together.
    fleet.nodes.iter().for_each(|node| node.process.signal("STOP"));
    clients.iter_mut().flatten().for_each(|client| client.send(encode(&question)));
    fleet.nodes.iter().for_each(|node| node.process.signal("CONT"));
    clients.iter_mut().flatten().for_each(|client| _ = client.answer());

    let all = |is: fn(Said) -> bool| (0..2).all(|node| is(Said::by(&fleet, node))).then_some(());
    until("all nodes say that the store fails", || all(Said::is_degraded));
    redis.restart_empty();
    until("the store is well again", || all(|said| !said.is_degraded()));
    for client in clients.iter_mut().flatten() {
        until("something passes again", || passes(client).then_some(()));
    }
}

#[test]
fn connections_are_cut_again_and_again() {
    let redis = Redis::start(&[]);
    during(&redis.url(), |overload| {
        for _ in 0..10 {
            redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
            overload.all_are_answered();
        }
    });
}

#[test]
fn a_primary_of_a_cluster_is_killed_and_its_replica_takes_over() {
    let mut servers = start_cluster(Kind::Redis);
    let url = format!("redis+cluster://127.0.0.1:{}", servers[0].port);
    during(&url, |overload| {
        let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "tg:{user=alice}:x"]);
        let slot: u32 = slot.parse().unwrap();
        let holds = |nodes: &str, port: u16| {
            let mine = nodes.lines().find(|line| line.contains(&format!(":{port}@"))).unwrap();
            mine.contains("master")
                && mine.split(' ').skip(8).any(|range| {
                    let (from, to) = range.split_once('-').unwrap_or((range, range));
                    from.parse().is_ok_and(|from: u32| from <= slot)
                        && to.parse().is_ok_and(|to: u32| slot <= to)
                })
        };
        let nodes = servers[0].cli(&["CLUSTER", "NODES"]);
        let primary = servers.iter().position(|one| holds(&nodes, one.port)).unwrap();
        servers[primary].kill();
        overload.all_are_answered();
        let other = usize::from(primary == 0);
        until("its replica has taken over", || {
            let nodes = servers[other].cli(&["CLUSTER", "NODES"]);
            let is_taken = |at: usize| at != primary && holds(&nodes, servers[at].port);
            (0..servers.len()).any(is_taken).then_some(())
        });
    });
}

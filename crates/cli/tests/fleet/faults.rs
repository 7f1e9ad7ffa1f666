//! What goes wrong never lets more pass than may, and nobody waits for it.

use crate::client::{Client, encode};
use crate::overload::{Overload, SECOND, Said};
use crate::redis::{Kind, Redis, Sentinel, start_cluster, until};
use crate::support::Server;
use crate::{Fleet, pass};

/// While a rule denies what its store cannot say, all that passes was granted. The budget of the first
/// is lent to nodes, and about the second every decision asks the store.
const RULES: &str = "rules:
  - { name: lent, match: { path: /lent }, key: [user], limit: 100/s burst 500, on_store_failure: deny }
  - { name: strict, match: { path: /strict }, key: [user], limit: 100/s burst 500,
      consistency: strict, on_store_failure: deny }";
const BURST: f64 = 500.0;
const RATE: f64 = 100.0;

/// Has five nodes in overload while something happens, and holds them to the limit in every interval.
fn during(store: &str, happens: impl FnOnce(&mut Overload)) {
    let mut overload = Overload::begin(5, store, RULES);
    pass(2 * SECOND);
    happens(&mut overload);
    pass(2 * SECOND);
    for load in [&overload.lent, &overload.strict] {
        let before = load.allowed();
        until("something passes again", || (load.allowed() > before).then_some(()));
    }
    for (name, outcome) in overload.end() {
        let excess = outcome.excess(BURST, RATE);
        assert!(excess <= 0.0, "{name}: {excess:.1} more passed than may in some interval");
    }
}

#[test]
fn a_node_is_killed() {
    let redis = Redis::start(&[]);
    during(&redis.url(), |overload| {
        overload.kill(2);
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

    let all =
        |is: fn(Said) -> bool| fleet.nodes.iter().all(|node| is(Said::by(node))).then_some(());
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

#[test]
fn a_primary_of_a_sentinel_is_killed_and_its_replica_takes_over() {
    let mut primary = Redis::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    let sentinel = Sentinel::of(&primary);
    sentinel.wait_until_it_knows(&replica);
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    during(&url, |overload| {
        primary.kill();
        overload.all_are_answered();
        overload.all_are_degraded();
        until("its replica has taken over", || sentinel.names(&replica).then_some(()));
        overload.all_are_well_again();
    });
}

//! What goes wrong never lets more pass than may.

use std::time::Duration;

use crate::load::Load;
use crate::redis::{Kind, Redis, start_cluster, until};
use crate::{Fleet, pass};

/// While a rule denies what its store cannot say, all that passes was granted.
const RULES: &str =
    "rules: [{ name: hot, key: [user], limit: 100/s burst 500, on_store_failure: deny }]";
const BURST: f64 = 500.0;
const RATE: f64 = 100.0;

const SECOND: Duration = Duration::from_secs(1);

/// Has five nodes in overload while something happens, and holds them to the limit.
fn during(store: &str, happens: impl FnOnce(&mut Fleet, &Load)) {
    let mut fleet = Fleet::start(5, store, RULES);
    let load = Load::begin(&fleet.addresses("resp"), 8, |_, _| true);
    pass(2 * SECOND);
    happens(&mut fleet, &load);
    pass(2 * SECOND);
    let before = load.allowed();
    until("something passes again", || (load.allowed() > before).then_some(()));
    let outcome = load.end();
    let most = BURST + RATE * outcome.longest.as_secs_f64();
    assert!(outcome.allowed as f64 <= most, "{} passed, of at most {most:.0}", outcome.allowed);
}

/// Waits until every client but these has heard further answers: nobody waits for the store.
fn all_are_answered(load: &Load, but: &[usize]) {
    let before = load.answered();
    until("everybody is answered", || {
        let after = load.answered();
        let goes_on = |node: &usize| but.contains(node) || after[*node] > before[*node] + 100;
        (0..before.len()).all(|node| goes_on(&node)).then_some(())
    });
}

#[test]
fn a_node_is_killed() {
    let redis = Redis::start(&[]);
    during(&redis.url(), |fleet, load| {
        fleet.nodes[2].process.signal("KILL");
        fleet.nodes[2].process.wait();
        all_are_answered(load, &[2]);
    });
}

#[test]
fn redis_stands_still_for_two_seconds() {
    let redis = Redis::start(&[]);
    during(&redis.url(), |fleet, load| {
        redis.signal("STOP");
        all_are_answered(load, &[]);
        pass(2 * SECOND);
        all_are_answered(load, &[]);
        for node in 0..5 {
            let degraded = || fleet.metric(node, "tollgate_store_degraded");
            assert_eq!(degraded(), 1.0, "node {node}");
        }
        redis.signal("CONT");
        for node in &mut fleet.nodes {
            node.process.wait_for_line("the store is well again");
            let said = node.process.output();
            let times = |what: &str| said.iter().filter(|line| line.contains(what)).count();
            let told = said.iter().filter(|line| line.contains("the store"));
            let told: Vec<_> = told.collect();
            assert_eq!(
                (times("the store fails"), times("INFO the store is well")),
                (1, 1),
                "{told:#?}"
            );
        }
    });
}

/// Every decision asks the store, and none waits for much longer than the timeout of 50 milliseconds:
/// the rest of a second is for a machine that has other things to do.
#[test]
fn no_decision_waits_until_redis_goes_on() {
    let redis = Redis::start(&[]);
    let rules = "rules: [{ name: strict, key: [user], limit: 1M/s, consistency: strict }]";
    let fleet = Fleet::start(5, &redis.url(), rules);
    let load = Load::begin(&fleet.addresses("resp"), 1, |_, _| true);
    all_are_answered(&load, &[]);
    redis.signal("STOP");
    all_are_answered(&load, &[]);
    load.end();
    for node in 0..5 {
        assert_eq!(fleet.metric(node, "tollgate_store_degraded"), 1.0, "node {node}");
        let within = |seconds: &str| {
            let sample = format!(r#"tollgate_door_seconds_bucket{{le="{seconds}",door="resp"}}"#);
            fleet.metric(node, &sample)
        };
        assert_eq!(within("1.0"), within("+Inf"), "node {node}");
    }
}

#[test]
fn redis_is_killed_and_comes_back_empty() {
    let mut redis = Redis::start(&[]);
    let url = redis.url();
    during(&url, |_, load| {
        redis.restart_empty();
        all_are_answered(load, &[]);
    });
}

#[test]
fn connections_are_cut_again_and_again() {
    let redis = Redis::start(&[]);
    during(&redis.url(), |_, load| {
        for _ in 0..10 {
            redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
            all_are_answered(load, &[]);
        }
    });
}

#[test]
fn a_primary_of_a_cluster_is_killed_and_its_replica_takes_over() {
    let mut servers = start_cluster(Kind::Redis);
    let url = format!("redis+cluster://127.0.0.1:{}", servers[0].port);
    during(&url, |_, load| {
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
        all_are_answered(load, &[]);
        let other = usize::from(primary == 0);
        until("its replica has taken over", || {
            let nodes = servers[other].cli(&["CLUSTER", "NODES"]);
            let is_taken = |at: usize| at != primary && holds(&nodes, servers[at].port);
            (0..servers.len()).any(is_taken).then_some(())
        });
    });
}

//! A store that is there and refuses what it is asked: rules do as they say, and operators learn why.

use std::{fs, thread};

use crate::overload::{Said, told};
use crate::redis::{Redis, cli, free_port, until};
use crate::relay::Relay;
use crate::{Fleet, check};

/// The share of a node is two of ten.
const RULES: &str = "rules:
  - { name: allow, match: { path: /allow }, key: [user], limit: 10/day, on_store_failure: allow }
  - { name: deny, match: { path: /deny }, key: [user], limit: 10/day, on_store_failure: deny }
  - { name: local, match: { path: /local }, key: [user], limit: 10/day, on_store_failure: local 20% }";

const NODES: usize = 2;

/// More than any of the limits.
const TIMES: usize = 12;

/// What can come over a Redis that serves.
#[derive(Clone, Copy)]
enum Trouble {
    /// It has no memory left.
    Full,
    /// It becomes a replica, of a primary that is not there.
    Replica,
    /// It reads its data set, and is not done before somebody says so.
    Loading,
    /// It cannot write its snapshot.
    Unsaved,
    /// It is too old.
    Old,
}

impl Trouble {
    fn begin(self, redis: &Redis, relay: &Relay) {
        let set = |name: &str, value: &str| {
            assert_eq!(redis.cli(&["CONFIG", "SET", name, value]), "OK", "{name}");
        };
        match self {
            Self::Full => set("maxmemory", "1"),
            Self::Replica => {
                let nobody = free_port().to_string();
                assert_eq!(redis.cli(&["REPLICAOF", "127.0.0.1", &nobody]), "OK");
            }
            Self::Loading => {
                // A minute, unless somebody ends it.
                redis.cli(&["DEBUG", "POPULATE", "6000", "fill", "500"]);
                set("key-load-delay", "10000");
                set("loading-process-events-interval-bytes", "1024");
                let port = redis.port;
                thread::spawn(move || cli(port, &["DEBUG", "RELOAD"]));
                until("it loads", || says(redis, "loading:1").then_some(()));
            }
            Self::Unsaved => {
                set("save", "3600 1");
                fs::create_dir(redis.folder().join(SNAPSHOT)).unwrap();
                redis.cli(&["BGSAVE"]);
                until("it has failed", || says(redis, "rdb_last_bgsave_status:err").then_some(()));
            }
            Self::Old => {
                relay.seems_old(true);
                // It is asked who it is when somebody connects.
                redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
            }
        }
    }

    fn end(self, redis: &Redis, relay: &Relay) {
        match self {
            Self::Full => _ = redis.cli(&["CONFIG", "SET", "maxmemory", "0"]),
            Self::Replica => _ = redis.cli(&["REPLICAOF", "NO", "ONE"]),
            Self::Loading => {
                assert!(says(redis, "loading:1"), "it was meant to last");
                redis.cli(&["CONFIG", "SET", "key-load-delay", "0"]);
            }
            Self::Unsaved => {
                fs::remove_dir(redis.folder().join(SNAPSHOT)).unwrap();
                redis.cli(&["BGSAVE"]);
            }
            Self::Old => relay.seems_old(false),
        }
    }

    /// What is said of it.
    const fn reason(self) -> &'static str {
        match self {
            Self::Full => "the store is out of memory: OOM",
            Self::Replica => "name the address of the primary",
            Self::Loading => "the store is loading its data set",
            Self::Unsaved => "the store takes no writes: MISCONF",
            Self::Old => "Redis from 6.0 on or Valkey is needed",
        }
    }
}

/// Whether it has this line among what it says of what it keeps on disk.
fn says(redis: &Redis, line: &str) -> bool {
    redis.cli(&["INFO", "persistence"]).lines().any(|said| said.trim() == line)
}

/// How many of so many requests of somebody pass at each node, one node after the other.
fn passing(fleet: &Fleet, path: &str, user: &str, times: usize) -> Vec<usize> {
    let body = format!(r#"{{"path":"{path}","user":"{user}"}}"#);
    let passes = |address| match check(address, &body) {
        200 => true,
        429 => false,
        other => panic!("{body} gets {other}"),
    };
    let at = |address| (0..times).filter(|_| passes(address)).count();
    fleet.addresses("http").into_iter().map(at).collect()
}

/// Waits until each node has said so often that the store fails, and that it is well again, and its metrics agree.
fn all_have_said(fleet: &Fleet, said: Said) {
    for (number, node) in fleet.nodes.iter().enumerate() {
        let names = ["tollgate_store_degraded", "tollgate_store_degradations_total"];
        let metered = || names.map(|name| fleet.metric(number, name));
        let expected = [f64::from(u8::from(said.is_degraded())), said.fails as f64];
        until("the node says so", || (Said::by(node) == said).then_some(()));
        until("its metrics agree", || (metered() == expected).then_some(()));
    }
}

fn is_left_alone_until_it_is_over(trouble: Trouble) {
    let redis = Redis::start(&REDIS);
    let relay = Relay::to(redis.port);
    let fleet = Fleet::patient("1", NODES, &relay.url(), RULES);
    assert_eq!(passing(&fleet, "/deny", "bob", 1), [1; NODES], "the store decides");

    trouble.begin(&redis, &relay);
    // It is not asked any more after a few questions, and the answers are the same before that.
    for (path, passed) in [("/local", 2), ("/deny", 0), ("/allow", TIMES)] {
        assert_eq!(passing(&fleet, path, "alice", TIMES), [passed; NODES], "{path}");
    }
    all_have_said(&fleet, Said { fails: 1, well: 0 });
    for node in &fleet.nodes {
        let told = told(node);
        assert!(told[0].contains(trouble.reason()), "{told:#?}");
    }
    // It is tried meanwhile, and nobody takes that it answers for more than it is.
    let enough = relay.brought() + 24;
    until("it is tried again and again", || (relay.brought() >= enough).then_some(()));
    for (path, passed) in [("/local", 0), ("/deny", 0), ("/allow", TIMES)] {
        assert_eq!(passing(&fleet, path, "alice", TIMES), [passed; NODES], "{path}");
    }
    all_have_said(&fleet, Said { fails: 1, well: 0 });

    trouble.end(&redis, &relay);
    all_have_said(&fleet, Said { fails: 1, well: 1 });
    // The store decides, and has been told what passed without it.
    let alone = || -> f64 {
        let of = |node| fleet.metric(node, "tollgate_store_decisions_total{how=\"degraded\"}");
        (0..NODES).map(of).sum()
    };
    let before = alone();
    for (path, left) in [("/local", 6), ("/deny", 10), ("/allow", 0)] {
        let passed = passing(&fleet, path, "alice", TIMES);
        assert_eq!(passed.iter().sum::<usize>(), left, "{path}: {passed:?}");
    }
    assert_eq!(alone(), before, "nothing is decided without it");
    all_have_said(&fleet, Said { fails: 1, well: 1 });
}

#[test]
fn a_store_without_memory_is_left_alone_until_it_has_some() {
    is_left_alone_until_it_is_over(Trouble::Full);
}

#[test]
fn a_store_that_becomes_a_replica_is_left_alone_until_it_is_a_primary_again() {
    is_left_alone_until_it_is_over(Trouble::Replica);
}

#[test]
fn a_store_that_loads_its_data_is_left_alone_until_it_has() {
    is_left_alone_until_it_is_over(Trouble::Loading);
}

#[test]
fn a_store_that_cannot_save_its_data_is_left_alone_until_it_can() {
    is_left_alone_until_it_is_over(Trouble::Unsaved);
}

#[test]
fn a_store_that_is_too_old_is_left_alone_until_it_is_another() {
    is_left_alone_until_it_is_over(Trouble::Old);
}

/// It may be asked to load what it has.
const REDIS: [&str; 8] = [
    "--maxmemory-policy",
    "noeviction",
    "--enable-debug-command",
    "yes",
    "--rdbcompression",
    "no",
    "--dbfilename",
    SNAPSHOT,
];

const SNAPSHOT: &str = "snapshot.rdb";

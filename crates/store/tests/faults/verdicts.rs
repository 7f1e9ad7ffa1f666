//! What has become of the primary that had a slot: nobody is believed who cannot know, and nothing that was
//! true before is taken for true now.

use std::time::Duration;

use tollgate_core::Limit;
use tollgate_store::RedisConfig;

use crate::moving::{begin, ends, move_on};
use crate::process::{Kind, Redis, start_cluster, until};
use crate::shards::let_nobody_take_over;
use crate::view::{View, until_meanwhile};

/// Three primaries with a replica each, which go on if one of them is missing.
fn start() -> Vec<Redis> {
    let servers = start_cluster(Kind::Redis);
    let_nobody_take_over(&servers);
    for server in &servers {
        let set = ["CONFIG", "SET", "cluster-require-full-coverage", "no"];
        assert_eq!(server.cli(&set), "OK");
    }
    servers
}

/// So patient that much can happen meanwhile.
fn patient(servers: &[Redis]) -> View {
    let (timeout, connect_timeout) = (Duration::from_secs(60), Duration::from_secs(5));
    let config = RedisConfig { timeout, connect_timeout, ..RedisConfig::default() };
    View::with(&format!("redis+cluster://127.0.0.1:{}", servers[0].port), config)
}

/// A key of a slot that a primary had from the beginning, other than that of `k`.
fn key_of(servers: &[Redis], primary: &Redis) -> String {
    let slots = [0..=5_460, 5_461..=10_922, 10_923..=16_383];
    let place = servers.iter().position(|one| one.port == primary.port).unwrap();
    let slot = |key: &str| servers[0].cli(&["CLUSTER", "KEYSLOT", key]).parse::<u16>().unwrap();
    let mut names = (0..).map(|number| format!("other{number}"));
    names.find(|key| slots[place].contains(&slot(key)) && slot(key) != slot("k")).unwrap()
}

/// Has a replica take the place of its primary, and waits until all of them know but for one, whom nobody
/// can ask or tell.
fn take_over<'a>(servers: &'a [Redis], primary: &Redis, but_for: Option<&Redis>) -> &'a Redis {
    let others = servers.iter().filter(|one| but_for.is_none_or(|but| but.port != one.port));
    let others: Vec<_> = others.collect();
    let follows = format!("master_port:{}\r\n", primary.port);
    let replica = until("it has a replica", || {
        let is_ready = |one: &&&Redis| {
            let info = one.cli(&["INFO", "replication"]);
            info.contains(&follows) && info.contains("link_status:up")
        };
        others.iter().find(is_ready)
    });
    let heard = |one: &Redis| {
        let info = one.cli(&["INFO", "replication"]);
        info.lines().find(|line| line.starts_with("master_repl_offset:")).map(str::to_owned)
    };
    until("it has heard everything", || (heard(replica) == heard(primary)).then_some(()));
    assert_eq!(replica.cli(&["CLUSTER", "FAILOVER", "TAKEOVER"]), "OK");
    let id = replica.cli(&["CLUSTER", "MYID"]);
    until("all know of it", || {
        let knows = |one: &&Redis| {
            let nodes = one.cli(&["CLUSTER", "NODES"]);
            let line = nodes.lines().find(|line| line.starts_with(&id));
            line.is_some_and(|line| line.contains("master") && line.contains("connected "))
        };
        others.iter().all(knows).then_some(())
    });
    replica
}

/// Moves all keys of a slot back to where they came from: it does not move after all.
fn take_back(slot: &str, from: &Redis, to: &Redis) {
    let port = from.port.to_string();
    assert_eq!(from.cli(&["CLUSTER", "SETSLOT", slot, "STABLE"]), "OK");
    for key in to.cli(&["CLUSTER", "GETKEYSINSLOT", slot, "100"]).lines() {
        assert_eq!(to.cli(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]), "OK");
    }
    assert_eq!(to.cli(&["CLUSTER", "SETSLOT", slot, "STABLE"]), "OK");
}

/// How often a server has said this to anybody.
fn said(server: &Redis, error: &str) -> u32 {
    let stats = server.cli(&["INFO", "errorstats"]);
    let line =
        stats.lines().find_map(|line| line.strip_prefix(&format!("errorstat_{error}:count=")));
    line.map_or(0, |count| count.trim().parse().unwrap())
}

/// Who has just said that it gives the slot away does not while the question rests, and is replaced.
#[tokio::test]
async fn what_was_said_before_a_question_rested_is_asked_anew() {
    let servers = start();
    let view = patient(&servers);
    let budget = view.bucket("20/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "k"]);
    let (from, to) = ends(&servers, &slot);
    let other = key_of(&servers, from);
    begin(&slot, from, to);
    // The mark is there, and this one is nowhere: whoever asks has to wait, longer each time.
    let new = view.budget("new", &Limit::token_bucket("20/day").unwrap());
    let answer = view.left(&new, "k");
    let rest = async {
        until_meanwhile("some are refused", || (said(to, "TRYAGAIN") >= 3).then_some(())).await;
        take_back(&slot, from, to);
        take_over(&servers, from, None);
        assert_eq!(said(from, "TRYAGAIN") + said(to, "TRYAGAIN"), 3, "it has not asked meanwhile");
        // Now it is known where slots lie.
        view.left(&budget, &other).await.unwrap();
        view.left(&budget, &other).await.unwrap();
    };
    let (answer, ()) = tokio::join!(answer, rest);
    assert_eq!(answer, Ok(0), "the last moments may be lost");
}

/// The same where the one that had the slot before that does not answer, as it did to somebody else. Then the
/// mark is that of the one which is replaced.
#[tokio::test]
async fn what_was_said_before_a_question_waited_for_a_silent_server_is_asked_anew() {
    let servers = start();
    let first = View::of(&format!("redis+cluster://127.0.0.1:{}", servers[0].port));
    let budget = first.bucket("20/day");
    assert_eq!(first.spend(&budget, "k").await, Ok(true));
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "k"]);
    let (silent, _) = ends(&servers, &slot);
    move_on(&servers, "k");
    let (from, to) = ends(&servers, &slot);
    let other = key_of(&servers, from);
    begin(&slot, from, to);
    let before = process(silent);
    silent.signal("STOP");
    let view = patient(&servers);
    view.left_at_last(&budget, &other).await;
    let asked = || to.cli(&["INFO", "commandstats"]).contains("cmdstat_evalsha:");
    assert!(!asked());
    let answer = view.left(&budget, "k");
    let rest = async {
        until_meanwhile("it is asked for", || asked().then_some(())).await;
        take_back(&slot, from, to);
        let keys = from.cli(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
        let mark = keys.lines().find(|key| key.ends_with("}:epoch")).unwrap();
        let text = from.cli(&["GET", mark]);
        let new = text.replace(&before, &process(from)).replace(" moved 0 ", " moved 1 ");
        assert_ne!(new, text);
        assert_eq!(from.cli(&["SET", mark, &new]), "OK");
        let successor = take_over(&servers, from, Some(silent));
        // Where the question went before it goes again.
        begin(&slot, successor, to);
    };
    let (answer, ()) = tokio::join!(answer, rest);
    silent.signal("CONT");
    assert_eq!(answer, Ok(0), "the last moments may be lost");
}

/// A primary that has heard of nobody who took its place says so, and has given nothing away.
#[tokio::test]
async fn a_primary_that_was_replaced_and_does_not_know_it_has_not_given_its_slots_away() {
    let servers = start();
    let view = patient(&servers);
    let budget = view.bucket("20/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "k"]);
    let (stale, _) = ends(&servers, &slot);
    // To those whom it does not know it does not listen.
    for one in servers.iter().filter(|one| one.port != stale.port) {
        let id = one.cli(&["CLUSTER", "MYID"]);
        assert_eq!(stale.cli(&["CLUSTER", "FORGET", &id]), "OK");
    }
    let successor = take_over(&servers, stale, Some(stale));
    // It is silent while others are asked where slots lie, and so they say it.
    stale.signal("STOP");
    let others: Vec<_> = servers[..3].iter().filter(|one| one.port != stale.port).collect();
    move_between(&servers, &others, &view).await;
    stale.signal("CONT");
    let is_primary = |one: &Redis| {
        let has_key = one.cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot]) != "0";
        has_key && one.cli(&["INFO", "replication"]).contains("role:master")
    };
    assert!(is_primary(stale) && is_primary(successor));
    assert_eq!(view.left(&budget, "k").await, Ok(0), "the last moments may be lost");
    assert!(is_primary(stale), "it knows of nothing");
    let mark = successor.cli(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
    let mark = successor.cli(&["GET", mark.lines().find(|key| key.ends_with("}:epoch")).unwrap()]);
    assert!(mark.contains(" moved 0 "), "{mark}");
}

/// Moves a slot from one to the other, and has it asked about: then slots may lie anywhere.
async fn move_between(servers: &[Redis], ends: &[&Redis], view: &View) {
    let [from, to] = ends else { panic!("two are needed") };
    let budget = view.bucket("20/day");
    let key = key_of(servers, from);
    view.left(&budget, &key).await.unwrap();
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", &key]);
    begin(&slot, from, to);
    for one in ends {
        assert_eq!(
            one.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to.cli(&["CLUSTER", "MYID"])]),
            "OK"
        );
    }
    let told = || {
        let count = |one: &Redis| {
            let stats = one.cli(&["INFO", "commandstats"]);
            let line = stats.lines().find(|line| line.starts_with("cmdstat_cluster|slots:"));
            line.and_then(|line| line.split(['=', ',']).nth(1)?.parse::<u32>().ok()).unwrap_or(0)
        };
        ends.iter().map(|one| count(one)).sum::<u32>()
    };
    let before = told();
    view.left(&budget, &key).await.unwrap();
    until_meanwhile("they are asked", || (told() > before).then_some(())).await;
    view.left(&budget, &key).await.unwrap();
}

fn process(server: &Redis) -> String {
    let info = server.cli(&["INFO", "server"]);
    info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap().trim().to_owned()
}

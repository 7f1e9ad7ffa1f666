//! Slots of a Cluster that move from one primary to another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate_core::Limit;
use tollgate_core::lease::{Exchange, Node};
use tollgate_store::{RedisConfig, Store as _, StoreError};

use crate::process::{Kind, Redis, start_cluster, until};
use crate::shards::let_nobody_take_over;
use crate::view::{View, until_linked, until_meanwhile};

/// Several who ask about the same keys all the time, each through a client of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_that_move_are_followed_by_all_who_ask_meanwhile() {
    let servers = start_cluster(Kind::Redis);
    let url = format!("redis+cluster://127.0.0.1:{}", servers[0].port);
    let keys: Arc<[String]> = (0..9).map(|number| format!("key{number}")).collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        callers.spawn(ask_until(View::of(&url), Arc::clone(&keys), Arc::clone(&is_over)));
    }
    let moved = Arc::clone(&keys);
    let moves = tokio::task::spawn_blocking(move || {
        for key in moved.iter().chain(&*moved) {
            move_on(&servers, key);
        }
        servers
    });
    let _servers = moves.await.unwrap();
    is_over.store(true, Ordering::Relaxed);
    let passed = callers.join_all().await;
    for (place, key) in keys.iter().enumerate() {
        let passed: u32 = passed.iter().map(|caller| caller[place]).sum();
        assert_eq!(passed, 20, "{key}: what was spent is spent, and what was left is left");
    }
}

/// What moves in good order has lost nothing: at once, while it moves and afterwards, for whoever asks first,
/// and when it comes back.
async fn a_slot_that_moves_keeps_what_was_spent_and_what_was_left(kind: Kind) {
    let servers = start_cluster(kind);
    let url = format!("redis+cluster://127.0.0.1:{}", servers[0].port);
    let view = View::of(&url);
    let budgets = [
        view.budget("bucket", &Limit::token_bucket("20/day").unwrap()),
        view.budget("window", &Limit::fixed_window("20/month").unwrap()),
        view.budget("sliding", &Limit::sliding_window("20/month").unwrap()),
        view.budget("log", &Limit::sliding_log("20/day").unwrap()),
    ];
    for budget in &budgets {
        assert_eq!(view.spend(budget, "k").await, Ok(true));
    }
    let lent = Exchange { want: 5, ..Exchange::strict(Node { number: 1, incarnation: 1 }, 1) };
    let grant = view.ask(&budgets[0], "k", lent).await.unwrap();
    assert_eq!(view.left(&budgets[0], "k").await, Ok(13));
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "k"]);
    let (from, to) = ends(&servers, &slot);
    begin(&slot, from, to);
    for budget in &budgets[1..] {
        assert_eq!(view.left(budget, "k").await, Ok(19), "{budget}");
        assert_eq!(view.spend(budget, "k").await, Ok(true), "{budget}");
    }
    end(&servers[..3], &slot, to);
    for budget in &budgets[1..] {
        assert_eq!(view.left(budget, "k").await, Ok(18), "{budget}");
    }
    // The lease is still good, and what was returned of it is there again.
    let back = Exchange { sequence: 2, returned: 5, want: 0, cost: 0, ..lent };
    let back = Exchange { lease: Some(grant.lease), ..back };
    assert_eq!(view.ask(&budgets[0], "k", back).await.unwrap().lease.epoch, grant.lease.epoch);
    assert_eq!(view.left(&budgets[0], "k").await, Ok(18));
    let new = view.budget("new", &Limit::fixed_window("20/month").unwrap());
    assert_eq!(view.left(&new, "k").await, Ok(20), "one that is new has its whole budget");
    // To the third, where somebody asks who knows nothing of it, and to the first again.
    for _ in 0..2 {
        move_on(&servers, "k");
        let newcomer = View::of(&url);
        for budget in &budgets {
            assert_eq!(newcomer.left(budget, "k").await, Ok(18), "{budget}");
            assert_eq!(view.left(budget, "k").await, Ok(18), "{budget}");
        }
    }
    let mark =
        |one: &Redis| one.cli(&["GET", &format!("tg:{{{}}}:epoch", tag_in(&servers, &slot))]);
    assert!(mark(from).contains(" lost 0 kept 0 moved 3 "), "{}", mark(from));
}

/// The number by which the mark of a slot is called.
fn tag_in(servers: &[Redis], slot: &str) -> String {
    let lies_there = |one: &Redis| {
        let keys = one.cli(&["CLUSTER", "GETKEYSINSLOT", slot, "100"]);
        let mark = keys.lines().find(|key| key.ends_with("}:epoch"))?.to_owned();
        mark.split(['{', '}']).nth(1).map(str::to_owned)
    };
    servers[..3].iter().find_map(lies_there).expect("there is a mark")
}

/// A replica that takes over may lack the last moments, whether the primary is still there or not.
#[tokio::test]
async fn a_slot_that_was_taken_over_counts_as_lost_also_if_its_primary_lives() {
    let servers = start_cluster(Kind::Redis);
    let view = View::of(&format!("redis+cluster://127.0.0.1:{}", servers[0].port));
    let budget = view.bucket("20/day");
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "k"]);
    for is_silent in [false, true] {
        assert!(view.ask(&budget, "k", Exchange::once(1)).await.is_ok());
        let has_slot = |one: &&Redis| {
            let is_primary = one.cli(&["INFO", "replication"]).contains("role:master");
            is_primary && one.cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot]) != "0"
        };
        let primary = servers.iter().find(has_slot).unwrap();
        let follows = format!("master_port:{}\r\n", primary.port);
        let replica = until("it has a replica", || {
            let is_ready = |one: &&Redis| {
                let info = one.cli(&["INFO", "replication"]);
                info.contains(&follows) && info.contains("link_status:up")
            };
            servers.iter().find(is_ready)
        });
        view.store.forget(&budget, b"k").await.unwrap();
        assert_eq!(view.left(&budget, "k").await, Ok(20));
        match is_silent {
            false => assert_eq!(replica.cli(&["CLUSTER", "FAILOVER", "TAKEOVER"]), "OK"),
            true => primary.signal("STOP"),
        }
        until("it takes over", || {
            replica.cli(&["INFO", "replication"]).contains("role:master").then_some(())
        });
        // It thinks that it is a primary until it hears of the other, and answers as one.
        if is_silent {
            primary.signal("CONT");
        }
        until("it makes room", || {
            primary.cli(&["INFO", "replication"]).contains("role:slave").then_some(())
        });
        assert_eq!(view.left_at_last(&budget, "k").await, 0, "is it silent? {is_silent}");
    }
}

/// The mark of a slot that has just moved names a primary that has given it away; so it does again when the
/// next one is started with what it had written to its disk before somebody asked.
#[tokio::test]
async fn a_slot_that_moved_and_was_read_from_an_old_disk_counts_as_lost() {
    let mut servers = start_cluster(Kind::Redis);
    let view = View::of(&format!("redis+cluster://127.0.0.1:{}", servers[0].port));
    let budget = view.bucket("20/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    move_on(&servers, "k");
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "k"]);
    let has_keys = |one: &Redis| one.cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot]) != "0";
    let place = servers[..3].iter().position(has_keys).unwrap();
    assert_eq!(servers[place].cli(&["SAVE"]), "OK");
    for _ in 0..5 {
        assert_eq!(view.spend(&budget, "k").await, Ok(true));
    }
    servers[place].restart_empty();
    assert_eq!(view.left_at_last(&budget, "k").await, 0, "five were spent that nobody knows of");
}

/// The first to ask about a slot that has moved asks the primary that had it, which may be held up just then.
#[tokio::test]
async fn a_slot_that_moved_has_lost_nothing_if_its_former_primary_is_silent_for_a_moment() {
    let servers = start_cluster(Kind::Redis);
    let_nobody_take_over(&servers);
    let url = format!("redis+cluster://127.0.0.1:{}", servers[0].port);
    let view = View::of(&url);
    let budget = view.bucket("20/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "k"]);
    let (from, _) = ends(&servers, &slot);
    move_on(&servers, "k");
    let timeout = Duration::from_millis(200);
    let newcomer = View::with(&url, RedisConfig { timeout, ..RedisConfig::default() });
    // Where slots lie is known then, and soon everybody who has some.
    newcomer.left_at_last(&budget, "another").await;
    until_linked(from, 2).await;
    from.signal("STOP");
    for _ in 0..2 {
        let error = newcomer.left(&budget, "k").await.unwrap_err();
        assert!(matches!(error, StoreError::Timeout { .. }), "{error}");
    }
    from.signal("CONT");
    assert_eq!(newcomer.left_at_last(&budget, "k").await, 19);
}

/// While the mark of a slot lies with one server and a key with another, nobody can say anything.
#[tokio::test]
async fn who_asks_while_keys_of_a_slot_lie_apart_is_answered_when_they_do_not() {
    let servers = start_cluster(Kind::Redis);
    let view = View::of(&format!("redis+cluster://127.0.0.1:{}", servers[0].port));
    let budget = view.bucket("20/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "k"]);
    let (from, to) = ends(&servers, &slot);
    to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
    from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
    let key = from.cli(&["KEYS", "tg:{k}:*"]);
    let port = to.port.to_string();
    assert_eq!(from.cli(&["MIGRATE", "127.0.0.1", &port, &key, "0", "5000"]), "OK");
    let answer = view.left(&budget, "k");
    let rest = async {
        // Some have been told to try again.
        until_meanwhile("some are refused", || {
            let errors = from.cli(&["INFO", "errorstats"]);
            errors.contains("errorstat_TRYAGAIN").then_some(())
        })
        .await;
        begin(&slot, from, to);
        end(&servers[..3], &slot, to);
    };
    let (answer, ()) = tokio::join!(answer, rest);
    assert_eq!(answer, Ok(19));
}

/// Asks about one key after the other until it is over, and then once more, when all is well again.
/// Says how often each passed.
async fn ask_until(view: View, keys: Arc<[String]>, is_over: Arc<AtomicBool>) -> Vec<u32> {
    let budget = view.bucket("20/day");
    let mut all = vec![0; keys.len()];
    let mut is_last = false;
    while !is_last {
        is_last = is_over.load(Ordering::Relaxed);
        for (passed, key) in all.iter_mut().zip(&*keys) {
            match view.spend(&budget, key).await {
                Ok(is_allowed) => *passed += u32::from(is_allowed),
                Err(error) => panic!("{key}: {error}"),
            }
        }
    }
    all
}

/// Moves a slot on to the next primary.
pub(crate) fn move_on(servers: &[Redis], key: &str) {
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", key]);
    let (from, to) = ends(servers, &slot);
    begin(&slot, from, to);
    end(&servers[..3], &slot, to);
}

/// Who has a slot with keys in it, as soon as there are some, and who shall have it.
pub(crate) fn ends<'a>(servers: &'a [Redis], slot: &str) -> (&'a Redis, &'a Redis) {
    let has_keys = |one: &Redis| one.cli(&["CLUSTER", "COUNTKEYSINSLOT", slot]) != "0";
    let owner = until("there are keys", || servers[..3].iter().position(has_keys));
    (&servers[owner], &servers[(owner + 1) % 3])
}

/// Moves all keys of a slot, and not yet the slot.
pub(crate) fn begin(slot: &str, from: &Redis, to: &Redis) {
    to.cli(&["CLUSTER", "SETSLOT", slot, "IMPORTING", &id(from)]);
    from.cli(&["CLUSTER", "SETSLOT", slot, "MIGRATING", &id(to)]);
    let port = to.port.to_string();
    // Others may come while these go.
    until("the slot is empty", || {
        let keys = from.cli(&["CLUSTER", "GETKEYSINSLOT", slot, "100"]);
        for key in keys.lines() {
            assert_eq!(from.cli(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]), "OK");
        }
        keys.is_empty().then_some(())
    });
}

/// Tells everybody who has it now.
pub(crate) fn end(primaries: &[Redis], slot: &str, to: &Redis) {
    for one in primaries {
        assert_eq!(one.cli(&["CLUSTER", "SETSLOT", slot, "NODE", &id(to)]), "OK");
    }
}

fn id(server: &Redis) -> String {
    server.cli(&["CLUSTER", "MYID"])
}

with_either_kind!(a_slot_that_moves_keeps_what_was_spent_and_what_was_left);

//! Slots of a Cluster that move from one primary to another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;
use tollgate_store::StoreError;

use crate::process::{Kind, Redis, start_cluster, until};
use crate::view::View;

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
        assert!((1..=20).contains(&passed), "{key}: {passed} passed");
    }
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
                Err(StoreError::ClusterDown { .. }) if !is_last => {}
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

//! A Cluster of three primaries with a replica each.

use tollgate_store::{Extent, Store as _, StoreError};

use crate::moving::{begin, end, ends};
use crate::process::{Kind, Redis, start_cluster};
use crate::view::{View, pause};

#[tokio::test]
async fn keys_of_all_slots_are_found_and_stay_found() {
    let mut servers = start_cluster(Kind::Redis);
    // One seed that is not there, and one that is.
    let view = View::of(&format!("redis+cluster://127.0.0.1:1,127.0.0.1:{}", servers[0].port));
    let budget = view.bucket("20/day");
    let keys: Vec<_> = (0..60).map(|number| format!("key{number}")).collect();
    for key in &keys {
        assert_eq!(view.spend(&budget, key).await, Ok(true), "{key}");
        assert_eq!(view.left(&budget, key).await, Ok(19), "{key}");
    }
    let sizes: Vec<_> = servers[..3].iter().map(|one| one.cli(&["DBSIZE"])).collect();
    assert!(sizes.iter().all(|size| size != "0"), "{sizes:?}");
    assert!(view.store.ping().await.is_ok());

    let losses = view.store.losses().unwrap();
    let found = || {
        let losses = losses.borrow();
        (losses.found, losses.latest.as_ref().map(|loss| loss.extent))
    };
    move_a_slot(&servers, &view).await;
    assert_eq!(found(), (0, None), "what is moved is not lost");
    kill_a_primary(&mut servers, &view).await;
    for key in &keys {
        view.left_at_last(&budget, key).await;
    }
    assert_eq!(found(), (1, Some(Extent::LastMoments)), "one server, and many slots");
    servers[1].cli(&["FLUSHALL"]);
    for key in &keys {
        view.left_at_last(&budget, key).await;
    }
    assert_eq!(found(), (2, Some(Extent::Everything)), "one server, and many slots");
}

/// A slot that moves is followed, also while it moves.
async fn move_a_slot(servers: &[Redis], view: &View) {
    let budget = view.bucket("20/day");
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", "mover"]);
    assert_eq!(view.spend(&budget, "mover").await, Ok(true));
    let (from, to) = ends(servers, &slot);
    begin(&slot, from, to);
    // All keys are there, and the slot is not yet: a detour.
    assert_eq!(view.left(&budget, "mover").await, Ok(19));
    end(&servers[..3], &slot, to);
    assert_eq!(view.left(&budget, "mover").await, Ok(19));
}

/// A replica takes over; keys of others are answered all the while.
async fn kill_a_primary(servers: &mut [Redis], view: &View) {
    let budget = view.bucket("20/day");
    let key_of = |server: &Redis| {
        let name = server.cli(&["KEYS", "tg:{key*"]);
        let name = name.lines().next().unwrap().to_owned();
        name.split(['{', '}']).nth(1).unwrap().to_owned()
    };
    let (victim, other) = (key_of(&servers[0]), key_of(&servers[1]));
    servers[0].kill();
    let mut is_over = false;
    for _ in 0..6_000 {
        let (lost, alive) = (view.left(&budget, &victim).await, view.left(&budget, &other).await);
        for error in [&lost, &alive].into_iter().filter_map(|answer| answer.as_ref().err()) {
            assert!(error.is_transient(), "{error}");
            assert!(!matches!(error, StoreError::Timeout { .. }), "{error}");
        }
        if let (Ok(left), Ok(19)) = (lost, alive) {
            assert_eq!(left, 0, "what the primary said last is not known");
            is_over = true;
            break;
        }
        pause().await;
    }
    assert!(is_over, "nobody took over");
}

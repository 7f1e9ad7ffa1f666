//! One primary of a Cluster in trouble: started again, or silent. What is that to others?

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tollgate_core::Limit;
use tollgate_store::{RedisConfig, Store as _};

use crate::moving::{begin, end};
use crate::process::{Kind, Redis, start_cluster};
use crate::view::{View, now, pause, until_linked, until_meanwhile};

/// So many keys that lie with a primary, each in a slot of its own.
fn keys_of(primary: usize, servers: &[Redis], count: usize) -> Vec<String> {
    let slots = [0..=5_460, 5_461..=10_922, 10_923..=16_383];
    let slot = |key: &str| servers[0].cli(&["CLUSTER", "KEYSLOT", key]).parse::<u16>().unwrap();
    let names = (0..).map(|number| format!("key{number}"));
    names.filter(|key| slots[primary].contains(&slot(key))).take(count).collect()
}

fn url(servers: &[Redis]) -> String {
    format!("redis+cluster://127.0.0.1:{}", servers[1].port)
}

async fn a_shard_that_starts_empty_grants_no_burst_in_slots_that_nobody_has_seen(kind: Kind) {
    let mut servers = start_cluster(kind);
    let_nobody_take_over(&servers);
    let (keys, others) = (keys_of(0, &servers, 4), keys_of(1, &servers, 1));
    let (busy, quiet) = (View::of(&url(&servers)), View::of(&url(&servers)));
    let budget = busy.bucket("20/day");
    assert_eq!(busy.spend(&budget, &keys[0]).await, Ok(true));
    // Who has asked about the slots of another shard alone knows this one by sight.
    assert_eq!(quiet.spend(&budget, &others[0]).await, Ok(true));
    until_linked(&servers[0], 2).await;
    servers[0].restart_empty();
    assert_eq!(quiet.left_at_last(&budget, &keys[1]).await, 0, "whoever is first knows");
    // There are keys again, and what was there before is not.
    assert_eq!(busy.left_at_last(&budget, &keys[2]).await, 0);
    assert_eq!(busy.left_at_last(&budget, &others[0]).await, 19, "others have lost nothing");
    // Of slots that were seen since, a newcomer hears.
    let newcomer = View::of(&url(&servers));
    assert_eq!(newcomer.left_at_last(&budget, &keys[2]).await, 0);
}

async fn a_shard_that_starts_with_its_data_has_all_budget_in_slots_that_nobody_has_seen(
    kind: Kind,
) {
    let mut servers = start_cluster(kind);
    let_nobody_take_over(&servers);
    let keys = keys_of(0, &servers, 2);
    let view = View::of(&url(&servers));
    let budget = view.bucket("20/day");
    assert_eq!(view.spend(&budget, &keys[0]).await, Ok(true));
    assert_eq!(servers[0].cli(&["SAVE"]), "OK");
    servers[0].restart_empty();
    assert_eq!(view.left_at_last(&budget, &keys[1]).await, 20, "there was nothing to lose");
    assert_eq!(view.left_at_last(&budget, &keys[0]).await, 0, "the last moments may be lost");
}

/// Somebody who was not there before asks first, and who was there puts an end to what it took for new.
#[tokio::test]
async fn who_knows_of_a_shard_that_started_empty_tells_also_if_somebody_else_was_first() {
    let mut servers = start_cluster(Kind::Redis);
    let_nobody_take_over(&servers);
    let keys = keys_of(0, &servers, 2);
    let view = View::of(&url(&servers));
    let budget = view.bucket("20/day");
    assert_eq!(view.spend(&budget, &keys[0]).await, Ok(true));
    servers[0].restart_empty();
    let newcomer = View::of(&url(&servers));
    for key in &keys {
        assert_eq!(newcomer.left_at_last(&budget, key).await, 20);
    }
    for key in &keys {
        assert_eq!(view.left_at_last(&budget, key).await, 0, "{key}");
        assert_eq!(newcomer.left(&budget, key).await, Ok(0), "{key}");
    }
}

/// Whoever knows of one slot that something of it is missing knows it of all that were there.
#[tokio::test]
async fn a_shard_that_starts_with_a_snapshot_of_before_grants_no_long_window_twice() {
    let mut servers = start_cluster(Kind::Redis);
    let_nobody_take_over(&servers);
    let keys = keys_of(0, &servers, 3);
    let (busy, quiet) = (View::of(&url(&servers)), View::of(&url(&servers)));
    let window = busy.budget("window", &Limit::fixed_window("20/month").unwrap());
    for key in &keys[..2] {
        assert_eq!(busy.spend(&window, key).await, Ok(true));
        assert_eq!(quiet.left(&window, key).await, Ok(19));
    }
    assert_eq!(servers[0].cli(&["SAVE"]), "OK");
    let saved = now(&servers[0]);
    until_meanwhile("it is long ago", || (now(&servers[0]) > saved + 4_200_000).then_some(()))
        .await;
    assert_eq!(busy.spend(&window, &keys[0]).await, Ok(true));
    assert_eq!(quiet.left(&window, &keys[1]).await, Ok(19));
    servers[0].restart_empty();
    // One that it has asked about before, one that it asked about last, and one that it never did.
    for key in &keys {
        assert_eq!(quiet.left_at_last(&window, key).await, 0, "{key}");
    }
    assert_eq!(busy.left_at_last(&window, &keys[0]).await, 0);
    let others = keys_of(1, &servers, 1);
    assert_eq!(busy.left_at_last(&window, &others[0]).await, 20, "others have lost nothing");
}

/// What a shard has lost goes with its slots, and no further: neither are those lost that come to it later, nor
/// has a shard lost anything that such a slot comes to.
#[tokio::test]
async fn slots_that_move_after_a_shard_has_started_empty_are_lost_if_it_had_them_before() {
    let mut servers = start_cluster(Kind::Redis);
    let_nobody_take_over(&servers);
    let (keys, others) = (keys_of(0, &servers, 3), keys_of(1, &servers, 4));
    let view = View::of(&url(&servers));
    let budget = view.bucket("20/day");
    for key in &keys[..2] {
        assert_eq!(view.spend(&budget, key).await, Ok(true));
    }
    servers[0].restart_empty();
    assert_eq!(view.left_at_last(&budget, &keys[0]).await, 0);
    // One that nobody has seen, and one that was asked about before the loss: there is no mark to move.
    let (unseen, seen) = (&keys[2], &keys[1]);
    let moves = [(unseen, [0, 1]), (seen, [0, 1]), (&others[0], [1, 0])];
    let mut left = Vec::new();
    for (key, ends) in moves {
        hand_over(&servers, key, ends).await;
        left.push(view.left_at_last(&budget, key).await);
    }
    assert_eq!(left, [0, 0, 20], "the last one was not there to be lost");
    // Who comes now hears it from what lies there, and of the other shard nothing else is lost.
    for (view, another) in [(view, &others[1]), (View::of(&url(&servers)), &others[2])] {
        let mut left = Vec::new();
        for key in [unseen, seen, &others[0], another] {
            left.push(view.left_at_last(&budget, key).await);
        }
        assert_eq!(left, [0, 0, 20, 20], "{another}");
    }
}

/// Moves a slot that may have no keys, and waits until everybody knows.
async fn hand_over(servers: &[Redis], key: &str, [from, to]: [usize; 2]) {
    let slot = servers[0].cli(&["CLUSTER", "KEYSLOT", key]);
    let is_whole = |one: &Redis| one.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
    until_meanwhile("all are there", || servers[..3].iter().all(is_whole).then_some(())).await;
    begin(&slot, &servers[from], &servers[to]);
    end(&servers[..3], &slot, &servers[to]);
}

/// The first seed, too: it is asked about the way when nobody else is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_stands_still_holds_up_nobody_else() {
    let servers = start_cluster(Kind::Redis);
    let_nobody_take_over(&servers);
    // Or else all of them refuse as long as one is missing.
    for server in &servers {
        let set = ["CONFIG", "SET", "cluster-require-full-coverage", "no"];
        assert_eq!(server.cli(&set), "OK");
    }
    let seeds = format!("redis+cluster://127.0.0.1:{}", servers[0].port);
    // Less than a connection may take, and more than a busy machine needs.
    let (timeout, connect_timeout) = (Duration::from_secs(2), Duration::from_secs(10));
    let config = RedisConfig { timeout, connect_timeout, ..RedisConfig::default() };
    let view = Arc::new(View::with(&format!("{seeds},127.0.0.1:{}", servers[1].port), config));
    let budget = view.bucket("100k/day");
    let (victims, others) = (keys_of(0, &servers, 3), keys_of(1, &servers, 3));
    for key in victims.iter().chain(&others) {
        view.left_at_last(&budget, key).await;
    }
    servers[0].signal("STOP");
    // Several ask about what is silent: until it is left, and until it is not found again.
    let mut callers = JoinSet::new();
    for key in victims {
        let view = Arc::clone(&view);
        callers.spawn(async move {
            let budget = view.bucket("100k/day");
            for _ in 0..4 {
                let answer = view.left(&budget, &key).await;
                assert!(answer.is_err(), "nobody can know what is left: {answer:?}");
            }
        });
    }
    let (mut asked, mut answered) = ([0; 2], [0; 2]);
    while !callers.is_empty() {
        for key in &others {
            asked[0] += 1;
            answered[0] += u32::from(view.spend(&budget, key).await == Ok(true));
        }
        asked[1] += 1;
        answered[1] += u32::from(view.store.ping().await.is_ok());
        pause().await;
        while let Some(caller) = callers.try_join_next() {
            caller.unwrap();
        }
    }
    // Pings go to those who answer, as soon as it is known who does.
    for (what, (asked, answered)) in
        ["keys", "pings"].into_iter().zip(asked.into_iter().zip(answered))
    {
        assert!(answered * 20 >= asked * 19, "{what}: {answered} of {asked} were answered");
    }
}

/// However long a primary is gone.
pub(crate) fn let_nobody_take_over(servers: &[Redis]) {
    for server in servers {
        assert_eq!(server.cli(&["CONFIG", "SET", "cluster-replica-no-failover", "yes"]), "OK");
    }
}

with_either_kind!(
    a_shard_that_starts_empty_grants_no_burst_in_slots_that_nobody_has_seen,
    a_shard_that_starts_with_its_data_has_all_budget_in_slots_that_nobody_has_seen
);

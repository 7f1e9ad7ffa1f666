//! A primary of a Cluster that is started again, and those who have not asked about all of its slots.

use crate::process::{Kind, Redis, start_cluster, until};
use crate::view::View;

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

#[tokio::test]
async fn a_shard_that_starts_empty_grants_no_burst_in_slots_that_nobody_has_seen() {
    let mut servers = start_cluster(Kind::Redis);
    let (keys, others) = (keys_of(0, &servers, 4), keys_of(1, &servers, 1));
    let (busy, quiet) = (View::of(&url(&servers)), View::of(&url(&servers)));
    let budget = busy.bucket("20/day");
    assert_eq!(busy.spend(&budget, &keys[0]).await, Ok(true));
    // Who has asked about the slots of another shard alone knows this one by sight.
    assert_eq!(quiet.spend(&budget, &others[0]).await, Ok(true));
    until("both are there", || {
        let clients = servers[0].cli(&["CLIENT", "LIST"]);
        let is_ready = |word: &str| clients.contains(&format!(" cmd={word} "));
        (is_ready("evalsha") && is_ready("script|load")).then_some(())
    });
    servers[0].restart_empty();
    assert_eq!(quiet.left_at_last(&budget, &keys[1]).await, 0, "whoever is first knows");
    // There are keys again, and what was there before is not.
    assert_eq!(busy.left_at_last(&budget, &keys[2]).await, 0);
    assert_eq!(busy.left_at_last(&budget, &others[0]).await, 19, "others have lost nothing");
    // Of slots that were seen since, a newcomer hears.
    let newcomer = View::of(&url(&servers));
    assert_eq!(newcomer.left_at_last(&budget, &keys[2]).await, 0);
}

#[tokio::test]
async fn a_shard_that_starts_with_its_data_has_all_budget_in_slots_that_nobody_has_seen() {
    let mut servers = start_cluster(Kind::Redis);
    let keys = keys_of(0, &servers, 2);
    let view = View::of(&url(&servers));
    let budget = view.bucket("20/day");
    assert_eq!(view.spend(&budget, &keys[0]).await, Ok(true));
    assert_eq!(servers[0].cli(&["SAVE"]), "OK");
    servers[0].restart_empty();
    assert_eq!(view.left_at_last(&budget, &keys[1]).await, 20, "there was nothing to lose");
    assert_eq!(view.left_at_last(&budget, &keys[0]).await, 0, "the last moments may be lost");
}

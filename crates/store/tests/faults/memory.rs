//! A server that was started again, with its data or without.

use tollgate_core::Limit;
use tollgate_core::lease::{Exchange, Node};

use crate::process::Redis;
use crate::view::View;

#[tokio::test]
async fn a_server_that_starts_empty_grants_no_burst() {
    let mut redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let (bucket, window) =
        (view.bucket("20/day"), view.budget("w", &Limit::fixed_window("20/month").unwrap()));
    let node = Node { number: 1, incarnation: 1 };
    let lent = Exchange { want: 5, ..Exchange::strict(node, 1) };
    let grant = view.ask(&bucket, "k", lent).await.unwrap();
    assert_eq!(grant.tokens, 5);
    assert_eq!(view.left(&window, "k").await, Ok(20), "one that is new has its whole budget");
    redis.restart_empty();
    assert_eq!(view.left_at_last(&bucket, "k").await, 0);
    assert_eq!(view.left_at_last(&bucket, "never seen").await, 0);
    assert_eq!(view.left_at_last(&window, "k").await, 0);
    // The lease is of the former memory: it is not settled, and not renewed.
    let next =
        Exchange { sequence: 2, lease: Some(grant.lease), returned: 5, want: 0, cost: 0, ..lent };
    let answer = view.ask(&bucket, "k", next).await.unwrap();
    assert_ne!(answer.lease.epoch, grant.lease.epoch);
    assert_eq!((answer.tokens, answer.decision.remaining()), (0, 0));
    // Somebody who comes now learns of it.
    let newcomer = View::of(&redis.url());
    assert_eq!(newcomer.left(&bucket, "another").await, Ok(0));
    // An operator who knows better says so.
    let mark = redis.cli(&["GET", "tg:epoch"]);
    let words: Vec<_> = mark.split(' ').collect();
    let [_, process, _, epoch, _, _, _, kept] = words[..] else { panic!("{mark}") };
    let better = format!("process {process} epoch {epoch} lost 0 kept {kept}");
    assert_eq!(redis.cli(&["SET", "tg:epoch", &better]), "OK");
    assert_eq!(view.left(&window, "new").await, Ok(20));
}

#[tokio::test]
async fn a_server_that_starts_with_old_data_empties_buckets_and_keeps_long_windows() {
    let mut redis = Redis::start(&["--dbfilename", "old.rdb"]);
    let view = View::of(&redis.url());
    let bucket = view.bucket("20/day");
    let window = view.budget("long", &Limit::fixed_window("20/month").unwrap());
    let minute = view.budget("short", &Limit::fixed_window("20/min").unwrap());
    for _ in 0..3 {
        assert_eq!(view.spend(&bucket, "k").await, Ok(true));
        assert_eq!(view.spend(&window, "k").await, Ok(true));
    }
    assert_eq!(redis.cli(&["SAVE"]), "OK");
    assert_eq!(view.spend(&window, "k").await, Ok(true));
    redis.restart_empty();
    assert_eq!(view.left_at_last(&bucket, "k").await, 0);
    assert_eq!(view.left_at_last(&window, "k").await, 17, "the last one was not saved");
    assert_eq!(view.left_at_last(&window, "new").await, 20);
    let left = view.left_at_last(&minute, "k").await;
    // Unless it is over just now.
    assert!(left == 0 || view.left_at_last(&minute, "k").await == 20);
}

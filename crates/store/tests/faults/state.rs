//! What stands under our names and is not ours.

use tollgate_core::Limit;
use tollgate_core::lease::{Exchange, Node};
use tollgate_store::StoreError;

use crate::process::Redis;
use crate::view::View;

fn limits() -> [Limit; 4] {
    [
        Limit::token_bucket("50/day").unwrap(),
        Limit::fixed_window("50/day").unwrap(),
        Limit::sliding_window("50/day").unwrap(),
        Limit::sliding_log("50/day").unwrap(),
    ]
}

/// The name of the one key that is there, beside the mark.
fn name(redis: &Redis) -> String {
    let keys = redis.cli(&["KEYS", "tg:{*"]);
    assert_eq!(keys.lines().count(), 1, "{keys}");
    keys
}

#[tokio::test]
async fn what_is_not_ours_is_reported_and_left_alone() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    for limit in limits() {
        let budget = view.budget("api", &limit);
        assert_eq!(view.spend(&budget, "alice").await, Ok(true));
        let name = name(&redis);
        for (make, look) in [
            (vec!["SET", &name, "mine"], vec!["GET", &name]),
            (vec!["RPUSH", &name, "mine"], vec!["LRANGE", &name, "0", "-1"]),
            (vec!["HSET", &name, "of", "mine"], vec!["HGETALL", &name]),
            (vec!["HSET", &name, "v", "2"], vec!["HGETALL", &name]),
            (vec!["ZADD", &name, "1", "mine"], vec!["ZRANGE", &name, "0", "-1"]),
        ] {
            redis.cli(&["DEL", &name]);
            redis.cli(&make);
            let before = redis.cli(&look);
            let numbered = Exchange::strict(Node { number: 1, incarnation: 1 }, 1);
            for exchange in [Exchange::once(1), numbered] {
                let error = view.ask(&budget, "alice", exchange).await.unwrap_err();
                assert_eq!(error, StoreError::WrongType { name: name.clone() }, "{limit}");
                assert!(error.is_about_key());
            }
            assert_eq!(redis.cli(&look), before, "{limit}");
            assert_eq!(view.spend(&budget, "bob").await, Ok(true), "others go on");
        }
        redis.cli(&["DEL", &name]);
        for key in redis.cli(&["KEYS", "tg:{*"]).lines() {
            redis.cli(&["DEL", key]);
        }
    }
}

#[tokio::test]
async fn numbers_that_make_no_sense_are_reported() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    for (limit, field) in limits().iter().zip(["full", "count", "this"]) {
        let budget = view.budget("api", limit);
        assert_eq!(view.spend(&budget, "alice").await, Ok(true));
        let name = name(&redis);
        for nonsense in ["abc", "-5", "1e300", "nan"] {
            redis.cli(&["HSET", &name, field, nonsense]);
            let answer = view.spend(&budget, "alice").await;
            let is_denied = answer == Ok(false);
            let is_told =
                matches!(answer, Err(StoreError::Garbled { .. } | StoreError::Refused { .. }));
            assert!(is_denied || is_told, "{limit}: {field} is {nonsense}: {answer:?}");
        }
        redis.cli(&["DEL", &name]);
    }
}

#[tokio::test]
async fn keys_can_be_read_and_end_by_themselves() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    for (limit, seconds) in limits().iter().zip([2 * 86_400, 2 * 86_400, 2 * 86_400, 2 * 86_400]) {
        let budget = view.budget("api", limit);
        assert_eq!(view.spend(&budget, "alice@example.com").await, Ok(true));
        let name = name(&redis);
        assert!(name.starts_with("tg:{alice@example.com}:api:"), "{name}");
        let left: i64 = redis.cli(&["TTL", &name]).parse().unwrap();
        assert!((seconds - 60..seconds + 60).contains(&left), "{limit}: {left}");
        redis.cli(&["DEL", &name]);
    }
}

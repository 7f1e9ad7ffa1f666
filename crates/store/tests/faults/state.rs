//! What stands under our names and is not ours.

use tollgate_core::Limit;
use tollgate_core::lease::{Exchange, Node};
use tollgate_store::StoreError;

use crate::process::Redis;
use crate::view::{View, pause};

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
async fn a_mark_that_is_not_ours_is_reported_and_left_alone() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    for (make, look) in [
        (vec!["SET", "tg:epoch", "mine"], vec!["GET", "tg:epoch"]),
        (vec!["HSET", "tg:epoch", "epoch", "1"], vec!["HGETALL", "tg:epoch"]),
    ] {
        redis.cli(&["DEL", "tg:epoch"]);
        redis.cli(&make);
        let before = redis.cli(&look);
        for limit in limits() {
            let numbered = Exchange::strict(Node { number: 1, incarnation: 1 }, 1);
            for exchange in [Exchange::once(1), numbered] {
                let budget = view.budget("api", &limit);
                let error = view.ask(&budget, "alice", exchange).await.unwrap_err().to_string();
                assert!(error.contains("tg:epoch is not ours"), "{limit}: {error}");
            }
        }
        assert_eq!(redis.cli(&look), before);
    }
}

#[tokio::test]
async fn numbers_that_make_no_sense_are_reported() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let is_reported = |answer: &Result<bool, StoreError>| {
        let is_told = matches!(
            answer,
            Err(StoreError::Garbled { .. }
                | StoreError::WrongType { .. }
                | StoreError::Refused { .. })
        );
        *answer == Ok(false) || is_told
    };
    for (limit, field) in limits().iter().zip(["full", "count", "this"]) {
        let budget = view.budget("api", limit);
        assert_eq!(view.spend(&budget, "alice").await, Ok(true));
        let name = name(&redis);
        // The text of a key of which nothing is lent: each of its numbers in turn.
        for line in garbled(&redis.cli(&["GET", &name])) {
            redis.cli(&["SET", &name, &line]);
            let answer = view.spend(&budget, "alice").await;
            assert!(is_reported(&answer), "{limit}: {line}: {answer:?}");
        }
        // And the hash of one of which something is.
        redis.cli(&["DEL", &name]);
        let ask = Exchange { want: 5, ..Exchange::strict(Node { number: 1, incarnation: 1 }, 1) };
        view.ask(&budget, "alice", ask).await.unwrap();
        for nonsense in ["abc", "-5", "1e300", "nan"] {
            redis.cli(&["HSET", &name, field, nonsense]);
            let answer = view.spend(&budget, "alice").await;
            assert!(is_reported(&answer), "{limit}: {field} is {nonsense}: {answer:?}");
        }
        redis.cli(&["DEL", &name]);
    }
}

/// Texts that are like this one and make no sense. That of a window ends with a time, which nobody
/// needs as long as the clock goes on; the numbers of a bucket are ten bytes.
fn garbled(line: &str) -> Vec<String> {
    let words: Vec<_> = line.split(' ').collect();
    if words[0] == "bucket" {
        let begin = format!("bucket {}", words[1]);
        let ends = ["", " ", " 012345678", " 0123456789 ", " ~~~~~~~~~~", "0123456789"];
        let mut lines = ends.map(|end| format!("{begin}{end}")).to_vec();
        lines.extend(["abc", "-5", "1e3", ""].map(|word| format!("bucket {word} 0123456789")));
        return lines;
    }
    let mut lines = Vec::new();
    for place in 1..words.len() - 1 {
        for nonsense in ["abc", "-5", "1e300", "nan", "", "99999999999999999999"] {
            // Large numbers before the counts are of another memory, or another window.
            if place >= 4 || !nonsense.starts_with('9') {
                let mut words = words.clone();
                words[place] = nonsense;
                lines.push(words.join(" "));
            }
        }
    }
    lines
}

/// A key is a text until somebody borrows from it, and becomes one again.
#[tokio::test]
async fn what_is_kept_changes_its_form_and_nothing_else() {
    // All at once: it takes as long as a lease.
    let limits = limits();
    tokio::join!(changes_form(&limits[0]), changes_form(&limits[1]), changes_form(&limits[2]));
}

async fn changes_form(limit: &Limit) {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let budget = view.budget("api", limit);
    assert_eq!(view.spend(&budget, "alice").await, Ok(true));
    let name = name(&redis);
    let form = || redis.cli(&["TYPE", &name]);
    assert_eq!(form(), "string", "{limit}");
    let ask = Exchange { want: 5, ..Exchange::strict(Node { number: 1, incarnation: 1 }, 1) };
    let grant = view.ask(&budget, "alice", ask).await.unwrap();
    assert_eq!((grant.tokens, form()), (5, "hash".to_owned()), "{limit}");
    assert_eq!(view.spend(&budget, "alice").await, Ok(true));
    assert_eq!(view.left(&budget, "alice").await, Ok(50 - 8), "{limit}");
    let back = Exchange { sequence: 2, returned: 5, cost: 0, want: 0, ..ask };
    view.ask(&budget, "alice", Exchange { lease: Some(grant.lease), ..back }).await.unwrap();
    assert_eq!(view.left(&budget, "alice").await, Ok(50 - 3), "{limit}");
    for _ in 0..6_000 {
        view.spend(&budget, "alice").await.unwrap();
        if form() == "string" {
            break;
        }
        pause().await;
    }
    assert_eq!(form(), "string", "{limit}");
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
        assert!((seconds - 60..seconds + 70).contains(&left), "{limit}: {left}");
        redis.cli(&["DEL", &name]);
    }
}

//! What stands under our names and is not ours.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Limit;
use tollgate_core::lease::{Exchange, Node};
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::{Ask, Budget, Store as _, StoreError};

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
    let most = NonZeroU32::new(50).unwrap();
    let permits =
        Budget::of_permits("api", most, Duration::from_millis(5), SystemClock::new().wall());
    let budgets = limits().map(|limit| view.budget("api", &limit));
    for budget in budgets.into_iter().chain([Arc::new(permits)]) {
        let numbered = Exchange::strict(Node { number: 1, incarnation: 1 }, 1);
        view.ask(&budget, "alice", numbered).await.unwrap();
        let name = name(&redis);
        for (make, look) in [
            (vec!["SET", &name, "mine"], vec!["GET", &name]),
            (vec!["RPUSH", &name, "mine"], vec!["LRANGE", &name, "0", "-1"]),
            (vec!["HSET", &name, "of", "mine"], vec!["HGETALL", &name]),
            (vec!["HSET", &name, "v", "3"], vec!["HGETALL", &name]),
            (vec!["ZADD", &name, "1", "mine"], vec!["ZRANGE", &name, "0", "-1"]),
            (vec!["SADD", &name, "mine"], vec!["SMEMBERS", &name]),
            (vec!["XADD", &name, "*", "of", "mine"], vec!["XRANGE", &name, "-", "+"]),
        ] {
            redis.cli(&["DEL", &name]);
            redis.cli(&make);
            let before = redis.cli(&look);
            let wrong = StoreError::WrongType { name: name.clone() };
            assert!(wrong.is_about_key() && !before.is_empty());
            for exchange in [Exchange::once(1), Exchange::once(0), numbered] {
                let answer = view.ask(&budget, "alice", exchange).await;
                assert_eq!(answer.as_ref().unwrap_err(), &wrong, "{budget}: {make:?}");
            }
            let forgotten = view.store.forget(&budget, b"alice").await;
            assert_eq!(forgotten.as_ref().unwrap_err(), &wrong, "{budget}: {make:?}");
            assert_eq!(redis.cli(&look), before, "{budget}");
            view.ask(&budget, "bob", numbered).await.expect("others go on");
        }
        redis.cli(&["DEL", &name]);
        for key in redis.cli(&["KEYS", "tg:{*"]).lines() {
            redis.cli(&["DEL", key]);
        }
    }
}

/// Books as they were before promises were made in lanes.
#[tokio::test]
async fn books_of_an_older_version_are_told_apart_and_left_alone() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let most = NonZeroU32::new(50).unwrap();
    let permits =
        Budget::of_permits("api", most, Duration::from_millis(5), SystemClock::new().wall());
    // A log is a list, as it was.
    let budgets = limits().into_iter().take(3).map(|limit| view.budget("api", &limit));
    for budget in budgets.chain([Arc::new(permits)]) {
        let node = Node { number: 1, incarnation: 1 };
        let numbered = Exchange { want: 5, ..Exchange::strict(node, 1) };
        view.ask(&budget, "alice", numbered).await.unwrap();
        let name = name(&redis);
        redis.cli(&["HSET", &name, "v", "1"]);
        redis.cli(&["HDEL", &name, "lanes"]);
        // Fields stand in any order.
        let fields = || {
            let mut fields: Vec<_> =
                redis.cli(&["HGETALL", &name]).lines().map(str::to_owned).collect();
            fields.sort();
            fields
        };
        let before = fields();
        for exchange in [Exchange::once(1), Exchange::once(0), numbered] {
            let error = view.ask(&budget, "alice", exchange).await.unwrap_err();
            let StoreError::Older { name: older, within } = &error else { panic!("{error:?}") };
            assert_eq!(*older, name);
            assert!(error.is_about_key() && !error.without_keys().to_string().contains("alice"));
            // It was written just now, with so much time.
            let left: u64 = redis.cli(&["PTTL", &name]).parse().unwrap();
            assert!(*within >= Duration::from_millis(left), "{budget}: {within:?}, {left} ms");
        }
        assert_eq!(fields(), before, "{budget}");
        // What only says that it is one is none.
        redis.cli(&["DEL", &name]);
        redis.cli(&["HSET", &name, "v", "1", "escrow", "many"]);
        let error = view.ask(&budget, "alice", numbered).await.unwrap_err();
        assert_eq!(error, StoreError::WrongType { name: name.clone() });
        redis.cli(&["DEL", &name]);
    }
}

/// Nodes of two versions may know a time zone by other rules, and take a month to end at another hour.
#[tokio::test]
async fn a_window_that_others_end_elsewhere_goes_on_until_it_has_ended() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let budget = view.budget("api", &Limit::calendar("50/month", "UTC").unwrap());
    let node = Node { number: 1, incarnation: 1 };
    let lent = Exchange { want: 7, ..Exchange::strict(node, 3) };
    for (spent, is_lent) in [(Exchange::once(10), false), (lent, true)] {
        view.ask(&budget, "alice", spent).await.unwrap();
        let name = name(&redis);
        let has_end_at = |other: Option<u64>| match is_lent {
            true => {
                let end = redis.cli(&["HGET", &name, "end"]);
                other.map(|other| redis.cli(&["HSET", &name, "end", &other.to_string()]));
                end.parse().unwrap()
            }
            false => {
                let text = redis.cli(&["GET", &name]);
                let end: u64 = text.split(' ').nth(2).unwrap().parse().unwrap();
                let ends_at = |other| text.replacen(&end.to_string(), &format!("{other}"), 1);
                other.map(|other| redis.cli(&["SET", &name, &ends_at(other), "KEEPTTL"]));
                end
            }
        };
        let (now, end) =
            (SystemClock::new().wall().as_unix_nanos() / 1_000_000_000, has_end_at(None));
        // One that would end after the next one of ours is nobody's.
        let later = end + 70 * 86_400;
        for (other, left) in [(end + 3_600, 40), (now + 60, 40), (now, 50), (later, 50)] {
            has_end_at(Some(other));
            assert_eq!(view.left(&budget, "alice").await, Ok(left), "{end}, and {other}");
        }
        redis.cli(&["DEL", &name]);
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

/// Numbers that cannot be: each is reported, whoever asks and in whatever way, and all of it stays as it is.
#[tokio::test]
async fn numbers_that_make_no_sense_are_reported() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    // A log is a list, and has a test of its own.
    for limit in &limits()[..3] {
        let budget = view.budget("api", limit);
        assert_eq!(view.spend(&budget, "alice").await, Ok(true));
        let name = name(&redis);
        // The text of a key of which nothing is lent: each of its numbers in turn.
        for line in garbled(&redis.cli(&["GET", &name])) {
            redis.cli(&["SET", &name, &line]);
            is_left_alone(&redis, &view, &budget, &["GET", &name]).await;
        }
        // And the hash of one of which something is.
        redis.cli(&["DEL", &name]);
        let ask = Exchange { want: 5, ..Exchange::strict(Node { number: 1, incarnation: 1 }, 1) };
        view.ask(&budget, "alice", ask).await.unwrap();
        let fields = redis.cli(&["HKEYS", &name]);
        let is_number = |field: &&str| *field != "limit" && !field.starts_with("lease ");
        let fields: Vec<_> = fields.lines().filter(is_number).collect();
        assert!(fields.len() > 8, "{fields:?}");
        for field in fields {
            let right = redis.cli(&["HGET", &name, field]);
            for nonsense in ["", "abc", "-5", "1e300", "nan", "99999999999999999999"]
                .into_iter()
                .chain(NOT_WHOLE)
            {
                redis.cli(&["HSET", &name, field, nonsense]);
                is_left_alone(&redis, &view, &budget, &["HGETALL", &name]).await;
            }
            redis.cli(&["HSET", &name, field, &right]);
        }
        assert_eq!(view.spend(&budget, "alice").await, Ok(true), "all is well again");
        redis.cli(&["DEL", &name]);
    }
}

/// What stands under the key of `alice` is reported, and not changed, whoever asks.
async fn is_left_alone(redis: &Redis, view: &View, budget: &Arc<Budget>, look: &[&str]) {
    let before = redis.cli(look);
    let node = Node { number: 2, incarnation: 1 };
    let wants = Exchange { want: 5, ..Exchange::strict(node, 1) };
    for exchange in [Exchange::once(1), Exchange::once(0), wants] {
        let answer = view.ask(budget, "alice", exchange).await;
        let is_reported =
            matches!(&answer, Err(StoreError::Garbled { .. } | StoreError::WrongType { .. }));
        assert!(is_reported, "{budget}: {before}: {exchange:?}: {answer:?}");
        assert_eq!(redis.cli(look), before, "{budget}: {exchange:?}");
    }
}

/// Asks about three keys in one call. Those beside the one that makes no sense are answered, and that
/// one is reported, and stays as it is.
async fn is_reported_alone(
    redis: &Redis,
    view: &View,
    asks: [&(Arc<Budget>, Exchange); 3],
    look: &[&str],
) {
    // The fields of a hash stand in any order, and one that is empty may be the last.
    let look = || {
        let said = redis.cli(look);
        let lines = said.lines().filter(|line| !line.is_empty());
        let mut lines: Vec<_> = lines.map(str::to_owned).collect();
        lines.sort();
        lines.join("\n")
    };
    let before = look();
    let keys = ["bob", "alice", "carol"].into_iter().zip(asks);
    let asks: Vec<_> = keys
        .map(|(key, (budget, exchange))| Ask::new(Arc::clone(budget), key, *exchange))
        .collect();
    let answers = view.store.exchange(&asks).await;
    assert!(matches!(&answers[1], Err(StoreError::Garbled { .. })), "{before}: {:?}", answers[1]);
    for beside in [&answers[0], &answers[2]] {
        assert!(beside.is_ok(), "{before}: {beside:?}");
    }
    assert_eq!(look(), before);
}

#[tokio::test]
async fn a_lease_that_makes_no_sense_is_reported_alone() {
    let redis = Redis::start(&[]);
    let most = NonZeroU32::new(50).unwrap();
    let trip = Duration::from_millis(5);
    let now = SystemClock::new().wall();
    let permits = Budget::of_permits("api", most, trip, now);
    let limits = limits();
    let budgets = limits[..3].iter().map(|limit| Budget::new("api", limit, trip, now));
    for budget in budgets.chain([permits]).map(Arc::new) {
        // To somebody who has not seen it before, an empty store is new.
        let view = View::of(&redis.url());
        let node = Node { number: 1, incarnation: 1 };
        let first = Exchange { want: 5, ..Exchange::strict(node, 1) };
        view.ask(&budget, "alice", first).await.unwrap();
        let name = name(&redis);
        // All of this takes longer than a key of permits is kept.
        redis.cli(&["PERSIST", &name]);
        let field = "lease 1.1";
        let line = redis.cli(&["HGET", &name, field]);
        // The same node asks again, and others when something is due. Questions of nodes do not change
        // what they are asked about, so that neighbours can be asked again and again.
        let (again, other) = (Exchange::strict(node, 2), Exchange::once(0));
        let looks = |exchange| (Arc::clone(&budget), exchange);
        for (due, exchange) in [(None, again), (Some("1"), other)] {
            if let Some(due) = due {
                redis.cli(&["HSET", &name, "due", due]);
            }
            for line in garbled_lease(&line) {
                redis.cli(&["HSET", &name, field, &line]);
                let (ask, look) = (looks(exchange), ["HGETALL", &name]);
                is_reported_alone(&redis, &view, [&ask, &ask, &ask], &look).await;
            }
        }
        redis.cli(&["FLUSHALL"]);
    }
}

/// A node that takes itself for further away than others may have the same limit and no lanes.
#[tokio::test]
async fn books_without_lanes_are_answered_and_those_that_make_no_sense_are_reported_alone() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let budget = view.budget("api", &Limit::token_bucket("100/min").unwrap());
    let wants = |number, sequence| {
        let node = Node { number, incarnation: 1 };
        Exchange { sequence, want: 3, ..Exchange::strict(node, 0) }
    };
    view.ask(&budget, "alice", Exchange::once(100)).await.unwrap();
    view.ask(&budget, "alice", wants(1, 1)).await.unwrap();
    let name = name(&redis);
    assert_eq!(redis.cli(&["HDEL", &name, "lanes"]), "1");
    let grant = view.ask(&budget, "alice", wants(2, 1)).await.unwrap();
    assert!(grant.promise.tokens > 0 && !grant.promise.all_in.is_zero(), "{grant:?}");
    let look = (Arc::clone(&budget), Exchange::strict(Node { number: 3, incarnation: 1 }, 0));
    for line in ["", "abc", "1 2 3 4", "1 2 3 4 5 6", "1 2 3 4 -5", "1 2 3 4 99999999999999999999"]
    {
        redis.cli(&["HSET", &name, "lanes", line]);
        is_reported_alone(&redis, &view, [&look, &look, &look], &["HGETALL", &name]).await;
    }
}

/// Such a number is as large as one may be, and a server that reckons with it is gone for all.
#[tokio::test]
async fn a_bucket_that_is_never_full_again_does_not_keep_the_server() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let budget = view.budget("api", &Limit::token_bucket("1M/s").unwrap());
    let wants = |sequence| {
        let node = Node { number: 1, incarnation: 1 };
        Exchange { sequence, want: 200, ..Exchange::strict(node, 0) }
    };
    view.ask(&budget, "alice", wants(1)).await.unwrap();
    redis.cli(&["HSET", &name(&redis), "full", "9007199254740991"]);
    let answer = view.ask(&budget, "alice", wants(2)).await;
    assert!(answer.is_err(), "{answer:?}");
    assert_eq!(redis.cli(&["PING"]), "PONG");
}

fn garbled_lease(line: &str) -> Vec<String> {
    let words: Vec<_> = line.split(' ').collect();
    let mut lines = vec![String::new(), "abc".into(), words[1..].join(" "), format!("{line} 1")];
    for place in 0..words.len() {
        for nonsense in ["abc", "-5", "1e300", "nan", "99999999999999999999", "1.5", "0x10"] {
            let mut words = words.clone();
            words[place] = nonsense;
            lines.push(words.join(" "));
        }
    }
    // More than is lent of the key, less than nothing, and more lanes than there are or none.
    for (place, sum) in [(2, "40"), (3, "40"), (7, "2"), (10, "2"), (13, "5"), (11, "3")] {
        let mut words = words.clone();
        words[place] = sum;
        lines.push(words.join(" "));
    }
    lines
}

#[tokio::test]
async fn what_permits_were_before_a_loss_is_reported_alone_if_it_makes_no_sense() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let (most, trip) = (NonZeroU32::new(50).unwrap(), Duration::from_millis(5));
    let permits = Budget::of_permits("api", most, trip, SystemClock::new().wall());
    let budget = Arc::new(permits);
    view.left(&budget, "alice").await.unwrap();
    redis.cli(&["FLUSHALL"]);
    let node = |number| Node { number, incarnation: 1 };
    view.ask(&budget, "alice", Exchange::strict(node(1), 1)).await.unwrap();
    let name = name(&redis);
    for line in ["", "abc", "1 2 3"] {
        redis.cli(&["HSET", &name, "lease unknown", line]);
        let ask = (Arc::clone(&budget), Exchange::strict(node(2), 1));
        is_reported_alone(&redis, &view, [&ask, &ask, &ask], &["HGETALL", &name]).await;
    }
}

#[tokio::test]
async fn a_log_that_makes_no_sense_is_reported_alone() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let budget = view.budget("api", &Limit::sliding_log("50/day").unwrap());
    let passed = view.ask(&budget, "alice", Exchange::once(1)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(view.spend(&budget, "alice").await, Ok(true));
    }
    let name = name(&redis);
    let lines: Vec<_> =
        redis.cli(&["LRANGE", &name, "0", "-1"]).lines().map(str::to_owned).collect();
    let last = lines.len() - 1;
    // Questions that look at all entries, and such as look at the last, of a key beside others that
    // are asked about the same.
    let asks = |exchange| (Arc::clone(&budget), exchange);
    let (fits, is_too_much) = (asks(Exchange::once(1)), asks(Exchange::once(50)));
    let undo = asks(Exchange::undo(1, passed.at));
    let long_ago = "1 1";
    for (place, nonsense) in [
        (0, "log 1 abc 1 1"),
        (0, "log 1 1 1 99999999999999999999"),
        (1, "abc"),
        (1, ""),
        (1, "5"),
        (1, "-1 1"),
        (1, "1 nan"),
        (1, "99999999999999999999 1"),
        (1, "1 99999999999999999999"),
        (2, "abc"),
        (2, "1 1e300"),
        (last, "abc"),
        (last, "1 -5"),
    ] {
        redis.cli(&["LSET", &name, &place.to_string(), nonsense]);
        let all = ["LRANGE", &name, "0", "-1"];
        is_reported_alone(&redis, &view, [&fits, &is_too_much, &fits], &all).await;
        if place == last {
            is_reported_alone(&redis, &view, [&fits, &fits, &fits], &all).await;
            is_reported_alone(&redis, &view, [&fits, &undo, &fits], &all).await;
        }
        // Those that are over are looked at one after the other.
        if place == 2 {
            redis.cli(&["LSET", &name, "1", long_ago]);
            is_reported_alone(&redis, &view, [&fits, &fits, &fits], &all).await;
            redis.cli(&["LSET", &name, "1", &lines[1]]);
        }
        redis.cli(&["LSET", &name, &place.to_string(), &lines[place]]);
    }
    assert_eq!(view.left(&budget, "alice").await, Ok(47));
}

/// What Lua takes for a number, and nobody of us writes: it would be reckoned with, and what comes of that
/// is no answer.
const NOT_WHOLE: [&str; 8] = ["1.5", "0.5", "1e3", "0x10", " 5", "5 ", "inf", "-0"];

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
        // Also with as many letters as there were, so that all else is where it was.
        let wide = |word: &str| format!("{word:0>width$}", width = words[place].len());
        let wide =
            ["1.5", "0.5", "5.", "-5", "abc", "1e3", "1E3", "2e0", "1e+1", "5 ", "5\t"].map(wide);
        // A digit that takes the place of another is a number.
        let blanks = ["inf", "nan", "0x10", "0X1", "5", "+5", "-0", "- 1", "12 ", ".5e1"];
        let blanks = blanks.iter().filter(|word| word.len() > 1 || words[place].len() > 1);
        let blank = blanks.map(|word| format!("{word:>width$}", width = words[place].len()));
        let blank: Vec<_> = blank.collect();
        let nonsense =
            ["abc", "-5", "1.5", "1e300", "nan", "", "9999999999999999", "99999999999999999999"];
        for nonsense in nonsense.map(str::to_owned).iter().chain(&wide).chain(&blank) {
            let mut words = words.clone();
            words[place] = nonsense;
            lines.push(words.join(" "));
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

//! A server that is not there, or does not do what it is asked.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::lease::{Exchange, Node};
use tollgate_core::{Limit, Wall};
use tollgate_local::{Clock as _, SystemClock};
use tollgate_store::{Budget, RedisConfig, Store as _, StoreError};

use crate::process::{Kind, Redis, free_port, until};
use crate::view::{View, pause};

#[tokio::test]
async fn nobody_there_is_said_at_once_and_somebody_later_is_found() {
    let port = free_port();
    let view = View::of(&format!("redis://127.0.0.1:{port}"));
    let budget = view.bucket("5/day");
    let error = view.spend(&budget, "k").await.unwrap_err();
    assert!(matches!(&error, StoreError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&port.to_string()) && error.is_transient(), "{error}");
    assert!(view.store.ping().await.is_err());
    let _redis = Redis::start_on(port, &[]);
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    assert!(view.store.ping().await.is_ok());
}

#[tokio::test]
async fn a_server_that_stands_still_costs_a_timeout_and_no_more() {
    let redis = Redis::start(&[]);
    let timeout = Duration::from_millis(50);
    let view = View::with(&redis.url(), RedisConfig { timeout, ..RedisConfig::default() });
    let budget = view.bucket("1k/day");
    // The first question waits for the connection as well.
    while view.spend(&budget, "k").await.is_err() {
        pause().await;
    }
    redis.signal("STOP");
    for _ in 0..5 {
        let error = view.spend(&budget, "k").await.unwrap_err();
        assert_eq!(error, StoreError::Timeout { after: timeout });
    }
    redis.signal("CONT");
    assert!(view.left_at_last(&budget, "k").await >= 900);
}

#[tokio::test]
async fn no_more_questions_wait_than_may() {
    let redis = Redis::start(&[]);
    let timeout = Duration::from_millis(500);
    let config = RedisConfig { timeout, most_waiting: 10, ..RedisConfig::default() };
    let view = View::with(&redis.url(), config);
    let budget = view.bucket("1k/day");
    view.left_at_last(&budget, "k").await;
    redis.signal("STOP");
    let asks = tollgate_store::Ask::new(budget, "k", Exchange::once(1));
    let answers = view.store.exchange(&vec![asks; 15]).await;
    let busy = |answer: &&Result<_, StoreError>| matches!(answer, Err(StoreError::Busy { .. }));
    assert_eq!(answers.iter().filter(busy).count(), 5, "{answers:?}");
    redis.signal("CONT");
}

async fn credentials_and_leave_are_asked_for_by_name(kind: Kind) {
    let redis = Redis::start_as(kind, free_port(), &["--requirepass", "right"]);
    let at = format!("store at 127.0.0.1:{} ", redis.port);
    for wrong in ["", ":wrong@"] {
        let view = View::of(&format!("redis://{wrong}127.0.0.1:{}", redis.port));
        let error = view.spend(&view.bucket("5/day"), "k").await.unwrap_err();
        assert!(matches!(error, StoreError::Credentials { .. }), "{error}");
        assert!(!error.to_string().contains("wrong@"), "{error}");
        assert!(error.to_string().contains(&at), "{error}");
    }
    let view = View::of(&format!("redis://:right@127.0.0.1:{}", redis.port));
    assert_eq!(view.spend(&view.bucket("5/day"), "k").await, Ok(true));
    let rules = "ACL SETUSER small on >pw ~tg:* +ping +hello +client +info";
    redis.cli(
        &[&["-a", "right", "--no-auth-warning"], &rules.split(' ').collect::<Vec<_>>()[..]]
            .concat(),
    );
    let view = View::of(&format!("redis://small:pw@127.0.0.1:{}", redis.port));
    let error = view.spend(&view.bucket("5/day"), "k").await.unwrap_err();
    assert!(matches!(error, StoreError::NotAllowed { .. }), "{error}");
    assert!(error.to_string().contains(&at), "{error}");
    // What the error says is needed is enough.
    let needed = error.to_string();
    let needed = needed.split('`').nth(1).unwrap();
    let rules = format!("ACL SETUSER able on >pw {needed}");
    redis.cli(
        &[&["-a", "right", "--no-auth-warning"], &rules.split(' ').collect::<Vec<_>>()[..]]
            .concat(),
    );
    let view = View::of(&format!("redis://able:pw@127.0.0.1:{}", redis.port));
    assert_eq!(view.spend(&view.bucket("6/day"), "k").await, Ok(true));
    let log = view.budget("log", &Limit::sliding_log("5/day").unwrap());
    assert_eq!(view.spend(&log, "k").await, Ok(true));
    // Also if the right is taken away later: in a Cluster nobody knows otherwise where.
    redis.cli(&["-a", "right", "--no-auth-warning", "ACL", "SETUSER", "able", "-evalsha", "-time"]);
    let error = view.spend(&log, "k").await.unwrap_err();
    assert!(matches!(error, StoreError::NotAllowed { .. }), "{error}");
    assert!(error.to_string().contains(&at), "{error}");
    let error = view.store.ping().await.unwrap_err();
    assert!(error.to_string().contains(&at), "{error}");
}

async fn a_replica_is_refused_and_so_is_a_primary_that_becomes_one(kind: Kind) {
    let (primary, other) =
        (Redis::start_as(kind, free_port(), &[]), Redis::start_as(kind, free_port(), &[]));
    let view = View::of(&primary.url());
    let budget = view.bucket("5/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    primary.cli(&["REPLICAOF", "127.0.0.1", &other.port.to_string()]);
    for _ in 0..2 {
        let error = view.spend(&budget, "k").await.unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    }
}

/// It is the primary, so nobody is to look for another one.
async fn a_primary_that_takes_no_writes_says_what_it_lacks(kind: Kind) {
    let redis = Redis::start_as(kind, free_port(), &["--dbfilename", "taken.rdb"]);
    let view = View::of(&redis.url());
    let budget = view.bucket("5/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let error = view.spend(&budget, "k").await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }) && error.is_transient(), "{error}");
    let said = error.to_string();
    assert!(said.contains("NOREPLICAS") && said.contains("`min-replicas-to-write`"), "{said}");
    assert!(!said.contains("address of the primary"), "{said}");
    redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);

    // A snapshot that cannot be written.
    redis.cli(&["CONFIG", "SET", "save", "3600 1"]);
    std::fs::create_dir(redis.folder().join("taken.rdb")).unwrap();
    redis.cli(&["BGSAVE"]);
    until("the snapshot has failed", || {
        redis.cli(&["INFO", "persistence"]).contains("rdb_last_bgsave_status:err").then_some(())
    });
    let said = view.spend(&budget, "k").await.unwrap_err().to_string();
    assert!(said.contains("MISCONF") && said.contains("disk"), "{said}");
    assert!(!said.contains("address of the primary"), "{said}");
}

async fn a_server_without_memory_says_so(kind: Kind) {
    let redis = Redis::start_as(kind, free_port(), &["--maxmemory-policy", "noeviction"]);
    let view = View::of(&redis.url());
    let budget = view.bucket("5/day");
    let log = view.budget("log", &Limit::sliding_log("5/day").unwrap());
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    assert_eq!(view.spend(&log, "k").await, Ok(true));
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    for (budget, key) in [(&budget, "other"), (&budget, "k"), (&log, "k"), (&log, "other")] {
        let error = view.spend(budget, key).await.unwrap_err();
        assert!(matches!(error, StoreError::OutOfMemory { .. }), "{error}");
    }
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(view.left_at_last(&budget, "k").await, 4);
    assert_eq!(view.left(&log, "k").await, Ok(4), "what was refused has changed nothing");
}

#[tokio::test]
async fn a_server_that_loads_says_so() {
    let redis = Redis::start(&["--enable-debug-command", "yes"]);
    let view = View::of(&redis.url());
    let budget = view.bucket("5/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    // Written to disk, and read again with a pause at every key.
    redis.cli(&["DEBUG", "POPULATE", "300", "fill", "100"]);
    redis.cli(&["CONFIG", "SET", "key-load-delay", "20000"]);
    redis.cli(&["CONFIG", "SET", "loading-process-events-interval-bytes", "1024"]);
    let port = redis.port;
    let reload = std::thread::spawn(move || crate::process::cli(port, &["DEBUG", "RELOAD"]));
    let mut errors = Vec::new();
    while !reload.is_finished() {
        errors.extend(view.spend(&budget, "k").await.err());
        pause().await;
    }
    assert_eq!(reload.join().unwrap(), "OK");
    assert!(errors.contains(&StoreError::Loading), "{errors:?}");
    assert!(errors.iter().all(StoreError::is_transient), "{errors:?}");
}

async fn scripts_that_were_flushed_are_loaded_again(kind: Kind) {
    let redis = Redis::start_as(kind, free_port(), &[]);
    let view = View::of(&redis.url());
    let budget = view.bucket("5/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    redis.cli(&["SCRIPT", "FLUSH"]);
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    assert_eq!(view.left(&budget, "k").await, Ok(3));
}

/// By the clock of whoever made the budgets, that of the server is two years behind, or six ahead. It is not
/// about the key, which nobody is to remove, but about the store.
#[tokio::test]
async fn a_server_whose_clock_is_wrong_by_years_says_so() {
    let redis = Redis::start(&[]);
    let view = View::of(&redis.url());
    let year = Duration::from_secs(366 * 86_400);
    let now = Duration::from_nanos(SystemClock::new().wall().as_unix_nanos());
    let trip = Duration::from_millis(5);
    for made in [now + 2 * year, now - 6 * year] {
        let made = Wall::from_unix_seconds(made.as_secs());
        let permits = Budget::of_permits("permits", NonZeroU32::MIN, trip, made);
        let limits = [
            Limit::token_bucket("50/day").unwrap(),
            Limit::leaky_shape("50/s", 5).unwrap(),
            Limit::fixed_window("50/day").unwrap(),
            Limit::calendar("50/day", "UTC").unwrap(),
            Limit::sliding_window("50/day").unwrap(),
            Limit::sliding_log("50/day").unwrap(),
        ];
        let budgets = limits.iter().map(|limit| Budget::new("api", limit, trip, made));
        for budget in budgets.chain([permits]).map(Arc::new) {
            let node = Node { number: 1, incarnation: 1 };
            for exchange in [Exchange::once(1), Exchange::strict(node, 1)] {
                let error = view.ask(&budget, "k", exchange).await.unwrap_err();
                assert_eq!(error, StoreError::Clock, "{budget}: {error}");
                assert!(!error.is_about_key());
            }
            assert_eq!(view.store.forget(&budget, b"k").await, Err(StoreError::Clock), "{budget}");
        }
    }
    assert_eq!(view.spend(&view.bucket("5/day"), "k").await, Ok(true), "others go on");
    // A script that has run has run: what it spent by its own clock stays spent.
    let made = Wall::from_unix_seconds((now + 2 * year).as_secs());
    let bucket = Limit::token_bucket("50/day").unwrap();
    let ahead = Arc::new(Budget::new("spent", &bucket, trip, made));
    assert_eq!(view.ask(&ahead, "k", Exchange::once(20)).await.unwrap_err(), StoreError::Clock);
    assert_eq!(view.left(&view.budget("spent", &bucket), "k").await, Ok(30));
}

with_every_kind!(
    credentials_and_leave_are_asked_for_by_name,
    a_replica_is_refused_and_so_is_a_primary_that_becomes_one,
    a_primary_that_takes_no_writes_says_what_it_lacks,
    a_server_without_memory_says_so,
    scripts_that_were_flushed_are_loaded_again
);

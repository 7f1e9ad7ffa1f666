//! A primary that Sentinels name, and its successor.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Limit;
use tollgate_store::{Budget, RedisConfig, StoreError};

use crate::memory::beat;
use crate::process::{Kind, Redis, Sentinel, free_port, until};
use crate::view::{View, now, pause, until_meanwhile};

async fn the_successor_of_a_primary_is_found_and_grants_no_burst(kind: Kind) {
    let mut primary = Redis::start_as(kind, free_port(), &[]);
    let replica = Redis::start_as(
        kind,
        free_port(),
        &["--replicaof", "127.0.0.1", &primary.port.to_string()],
    );
    let sentinel = Sentinel::of(&primary);
    sentinel.wait_until_it_knows(&replica);
    let address =
        |service| format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/{service}", sentinel.port);
    let wrong = View::of(&address("other"));
    let error = wrong.spend(&wrong.bucket("5/day"), "k").await.unwrap_err();
    assert!(matches!(error, StoreError::NoPrimary { .. }), "{error}");

    let view = View::of(&address("main"));
    let budget = view.bucket("20/day");
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    until("the replica has the key", || {
        (!replica.cli(&["KEYS", "tg:{k}*"]).is_empty()).then_some(())
    });
    primary.kill();
    let mut is_over = false;
    for _ in 0..3_000 {
        match view.left(&budget, "k").await {
            Ok(left) => {
                assert_eq!(left, 0, "what the primary said last is not known");
                is_over = true;
                break;
            }
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        pause().await;
    }
    assert!(is_over, "nobody took over");

    // It is back, and takes itself for the primary until it is told otherwise.
    primary.restart_empty();
    assert!(primary.cli(&["INFO", "replication"]).contains("role:master"));
    for view in [view, View::of(&address("main"))] {
        assert_eq!(view.left(&budget, "k").await, Ok(0), "it is not asked");
    }
    assert_eq!(primary.cli(&["INFO", "commandstats"]).matches("cmdstat_evalsha:").count(), 0);
}

/// A primary that stood still while another had its place has its old memory, and is the same process as before: it
/// cannot tell that anything is missing. Whoever was answered by the other can.
async fn a_primary_that_comes_back_with_its_old_memory_grants_no_long_window_twice(kind: Kind) {
    let first = Redis::start_as(kind, free_port(), &["--repl-diskless-sync-delay", "0"]);
    let replica_of_first = ["--replicaof", "127.0.0.1", &first.port.to_string()];
    let mut second = Redis::start_as(kind, free_port(), &replica_of_first);
    let sentinel = Sentinel::of(&first);
    sentinel.wait_until_it_knows(&second);
    let address = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port);
    // Nobody asks a server for long that stands still.
    let timeout = Duration::from_secs(2);
    let view = View::with(&address, RedisConfig { timeout, ..RedisConfig::default() });
    let windows = [
        view.budget("window", &Limit::fixed_window("20/month").unwrap()),
        view.budget("sliding", &Limit::sliding_window("20/month").unwrap()),
    ];
    for window in &windows {
        assert_eq!(passing(&view, window, 8).await, 8);
    }
    until_meanwhile("the replica has heard of all", || has_the_same(&first, &second)).await;
    let end_of_first = beat(&first);
    first.signal("STOP");
    until_meanwhile("the second has taken over", || sentinel.names(&second).then_some(())).await;
    for window in &windows {
        assert_eq!(view.left_at_last(window, "k").await, 12, "{window} goes on");
    }
    // What was spent in three seconds may be missing of what is kept.
    until_meanwhile("more than that has passed", || {
        (now(&second) > end_of_first + 3_200_000).then_some(())
    })
    .await;
    for window in &windows {
        assert_eq!(passing(&view, window, 12).await, 12);
    }

    // In this order: somebody who is back while the other is there becomes its replica.
    second.kill();
    first.signal("CONT");
    until_meanwhile("the first has taken over", || sentinel.names(&first).then_some(())).await;
    for window in &windows {
        view.left_at_last(window, "k").await;
        assert_eq!(passing(&view, window, 20).await, 0, "{window}: all 20 had passed before");
    }
    // From then on they all know.
    let newcomer = View::of(&address);
    for window in &windows {
        assert_eq!(newcomer.left(window, "k").await, Ok(0), "{window}");
    }
}

/// How many of so many requests pass.
async fn passing(view: &View, budget: &Arc<Budget>, count: usize) -> usize {
    let mut passed = 0;
    for _ in 0..count {
        passed += usize::from(view.spend(budget, "k").await.unwrap());
    }
    passed
}

/// Whether a replica has all that its primary has of our keys, as it is there now.
fn has_the_same(primary: &Redis, replica: &Redis) -> Option<()> {
    let script = "
        local all = redis.call('KEYS', 'tg:*')
        table.sort(all)
        for at, key in ipairs(all) do all[at] = key .. ' ' .. redis.sha1hex(redis.call('DUMP', key)) end
        return all";
    let [theirs, ours] =
        [primary, replica].map(|server| server.cli(&["--raw", "EVAL", script, "0"]));
    (theirs.contains("tg:epoch") && theirs == ours).then_some(())
}

async fn sentinels_are_asked_by_a_user_of_their_own(kind: Kind) {
    const ALLOWED: &str = "+sentinel|get-master-addr-by-name";
    let primary = Redis::start_as(kind, free_port(), &["--requirepass", "pr1mary"]);
    let port = free_port();
    let users = format!(
        "port {port}\nsentinel auth-pass main pr1mary\nrequirepass s3ntinel\n\
         user asker on >w0rd {ALLOWED}\nuser other on >w0rd +ping\n"
    );
    let sentinel = Sentinel::with(&primary, port, &users);
    let view = |behind: &str| {
        let hosts = format!("127.0.0.1:1,127.0.0.1:{}", sentinel.port);
        View::of(&format!("redis+sentinel://:pr1mary@{hosts}/main{behind}"))
    };
    for (behind, why) in [
        ("", "NOAUTH"),
        ("?sentinel=:pr1mary", "Password authentication failed"),
        ("?sentinel=asker:s3ntinel", "Password authentication failed"),
        ("?sentinel=other:w0rd", "NOPERM"),
    ] {
        let view = view(behind);
        let error = view.spend(&view.bucket("5/day"), "k").await.unwrap_err();
        assert!(matches!(error, StoreError::SentinelCredentials { .. }), "{behind}: {error}");
        let said = error.to_string();
        let server = format!("127.0.0.1:{port} says {why}");
        assert!(said.contains(&server) && said.contains(ALLOWED), "{behind}: {error}");
        assert!(!["pr1mary", "s3ntinel", "w0rd"].iter().any(|it| said.contains(it)), "{said}");
    }
    for behind in ["?sentinel=:s3ntinel", "?sentinel=default:s3ntinel", "?sentinel=asker:w0rd"] {
        let view = view(behind);
        assert_eq!(view.spend(&view.bucket("5/day"), "k").await, Ok(true), "{behind}");
    }
    // The primary's is looked at as before.
    let wrong = View::of(&format!("redis+sentinel://127.0.0.1:{port}/main?sentinel=asker:w0rd"));
    let error = wrong.spend(&wrong.bucket("5/day"), "k").await.unwrap_err();
    assert!(matches!(error, StoreError::Credentials { .. }), "{error}");
}

async fn a_password_that_sentinels_do_not_want_is_said_to_be_theirs(kind: Kind) {
    let primary = Redis::start_as(kind, free_port(), &[]);
    let sentinel = Sentinel::of(&primary);
    let view =
        View::of(&format!("redis+sentinel://127.0.0.1:{}/main?sentinel=:w0rd", sentinel.port));
    let error = view.spend(&view.bucket("5/day"), "k").await.unwrap_err();
    assert!(matches!(error, StoreError::SentinelCredentials { .. }), "{error}");
}

with_either_kind!(
    the_successor_of_a_primary_is_found_and_grants_no_burst,
    a_primary_that_comes_back_with_its_old_memory_grants_no_long_window_twice,
    sentinels_are_asked_by_a_user_of_their_own,
    a_password_that_sentinels_do_not_want_is_said_to_be_theirs
);

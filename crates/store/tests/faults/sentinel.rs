//! A primary that Sentinels name, and its successor.

use tollgate_store::StoreError;

use crate::process::{Kind, Redis, Sentinel, free_port, until};
use crate::view::{View, pause};

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
    sentinels_are_asked_by_a_user_of_their_own,
    a_password_that_sentinels_do_not_want_is_said_to_be_theirs
);

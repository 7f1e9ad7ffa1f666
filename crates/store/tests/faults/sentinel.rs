//! A primary that Sentinels name, and its successor.

use tollgate_store::StoreError;

use crate::process::{Redis, Sentinel, cli, until};
use crate::view::{View, pause};

#[tokio::test]
async fn the_successor_of_a_primary_is_found_and_grants_no_burst() {
    let mut primary = Redis::start(&[]);
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    let sentinel = Sentinel::of(&primary);
    until("the Sentinel knows the replica", || {
        let replicas = cli(sentinel.port, &["SENTINEL", "REPLICAS", "main"]);
        replicas.contains(&replica.port.to_string()).then_some(())
    });
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
}

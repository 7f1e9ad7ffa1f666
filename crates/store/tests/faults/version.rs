//! A server that is too old: a real one, which says of itself that it is.

use tollgate_store::{Store as _, StoreError};

use crate::process::{Kind, Redis, free_port};
use crate::relay::Relay;
use crate::view::View;

async fn an_old_server_is_refused_by_its_version_until_there_is_another(kind: Kind) {
    let redis = Redis::start_as(kind, free_port(), &[]);
    let info = redis.cli(&["INFO", "server"]);
    let says = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap();
    assert!(says.starts_with(['6', '7', '8', '9']), "{says}");
    let old = format!("Redis 5{}", says[1..].trim());
    let relay = Relay::to(redis.port);
    relay.seems_old(true);
    let view = View::of(&relay.url());
    let budget = view.bucket("5/day");
    let too_old = StoreError::Version { found: old.clone(), least: "6.0" };
    // Nobody takes it for one that may answer soon, or for a matter of one key.
    assert!(!too_old.is_transient() && !too_old.is_about_key());
    let said = too_old.to_string();
    assert!(
        said.contains(&old) && said.contains("Redis from 6.0 on or Valkey is needed"),
        "{said}"
    );
    for _ in 0..2 {
        assert_eq!(view.spend(&budget, "k").await, Err(too_old.clone()));
        assert_eq!(view.store.forget(&budget, b"k").await, Err(too_old.clone()));
        assert_eq!(view.store.ping().await, Err(too_old.clone()));
    }
    let done = redis.cli(&["INFO", "commandstats"]);
    assert!(!done.contains("cmdstat_script") && !done.contains("cmdstat_eval"), "{done}");
    assert_eq!(redis.cli(&["DBSIZE"]), "0");
    relay.seems_old(false);
    assert_eq!(view.spend(&budget, "k").await, Ok(true));
    assert_eq!(view.left(&budget, "k").await, Ok(4), "what was refused has spent nothing");
}

with_every_kind!(an_old_server_is_refused_by_its_version_until_there_is_another);

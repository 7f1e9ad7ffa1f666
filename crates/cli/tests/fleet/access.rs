//! Stores that want to know who asks.

use std::fs;

use tempfile::NamedTempFile;

use crate::redis::{Redis, Sentinel, free_port};
use crate::{Fleet, check};

const RULES: &str = "rules:
  - { name: strict, key: [user], limit: 10/day, consistency: strict, on_store_failure: deny }";

const ALICE: &str = r#"{"path":"/","user":"alice"}"#;

/// How many of so many requests pass, at one node after the other.
fn passed(fleet: &Fleet, count: usize) -> usize {
    let addresses = fleet.addresses("http");
    (0..count).filter(|at| check(addresses[at % addresses.len()], ALICE) == 200).count()
}

#[test]
fn sentinels_are_asked_by_their_own_user_and_no_password_is_shown() {
    let primary = Redis::start(&["--requirepass", "pr1mary"]);
    let port = free_port();
    let users = format!(
        "port {port}\nsentinel auth-pass main pr1mary\nrequirepass s3ntinel\n\
         user asker on >w0rd@x +sentinel|get-master-addr-by-name\n"
    );
    let _sentinel = Sentinel::with(&primary, port, &users);
    let settings = NamedTempFile::new().unwrap();
    let url = format!("redis+sentinel://:pr1mary@127.0.0.1:{port}/main?sentinel=asker:w0rd%40x");
    fs::write(&settings, format!("[store]\nurl = '{url}'\ntimeout = '10s'\n")).unwrap();
    let settings = settings.path().to_str().unwrap();
    let fleet = Fleet::with(2, RULES, &["--config", settings, "--threads", "1"]);
    assert_eq!(passed(&fleet, 20), 10);
    let said = fleet.nodes[0].process.output().join("\n");
    let shown = format!("redis+sentinel://***@127.0.0.1:{port}/main?***");
    assert!(said.contains(&shown), "{said}");
    for word in ["pr1mary", "s3ntinel", "w0rd"] {
        assert!(!said.contains(word), "{said}");
    }
}

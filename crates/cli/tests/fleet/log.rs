//! What nodes write about a store that does not decide.

use crate::redis::Redis;
use crate::{Fleet, check};

const RULES: &str = "rules:
  - { name: per-user, key: [user], limit: 10/day, consistency: strict, on_store_failure: local 20% }";

const ZOE: &str = r#"{"path":"/","user":"zoe"}"#;
const BOB: &str = r#"{"path":"/","user":"bob"}"#;

/// What a line begins with about requests that the store did not decide.
const LAPSE: &str = "WARN the store did not decide";

#[test]
fn a_key_that_the_store_cannot_count_is_named_once_with_its_rule_and_why() {
    let redis = Redis::start(&[]);
    let fleet = Fleet::start(1, &redis.url(), RULES);
    let http = fleet.addresses("http")[0];
    assert_eq!(check(http, ZOE), 200);
    let name = redis.cli(&["--raw", "KEYS", "tg:{user=zoe}:default/per-user:*"]);
    redis.cli(&["SET", name.trim(), "something else"]);
    // Somebody else's answer in between: the store is not left alone.
    let passed: usize = (0..20)
        .map(|_| {
            assert_eq!(fleet.metric(0, "tollgate_store_degraded"), 0.0);
            let passes = check(http, ZOE) == 200;
            check(http, BOB);
            usize::from(passes)
        })
        .sum();
    assert_eq!(passed, 1, "this node's share is two, and one has passed before");
    assert_eq!(redis.cli(&["GET", name.trim()]).trim(), "something else");
    let is_lapse = |line: &String| line.contains(LAPSE);
    crate::support::until("it is said", || {
        fleet.nodes[0].process.output().iter().any(is_lapse).then_some(())
    });
    let lines = fleet.nodes[0].process.output();
    let said: Vec<_> = lines.iter().filter(|line| is_lapse(line)).collect();
    assert_eq!(said.len(), 1, "{lines:#?}");
    for part in
        ["rule=\"per-user\"", "on_store_failure=local 20%", "something else", "tg:{***}:default"]
    {
        assert!(said[0].contains(part), "{part} is missing in {}", said[0]);
    }
    let all = lines.join("\n");
    assert!(!all.contains("zoe"), "a key is named: {all}");
}

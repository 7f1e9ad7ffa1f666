//! `tollgate doctor` beside nodes that use the store: what they keep there is known for theirs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::redis::{Kind, Redis, start_cluster, until};
use crate::{Fleet, check, support};

/// Every algorithm. Of most limits plenty can be lent; of logs and strict ones nothing ever is.
const RULES: &str = "rules:
  - { name: token, key: [user], limit: 60k/min }
  - { name: leaky, key: [user], limit: 60k/min, algorithm: leaky_bucket, burst: 30k }
  - { name: queue, key: [user], limit: 60k/min, algorithm: leaky_bucket, queue: 500 }
  - { name: fixed, key: [user], limit: 60k/min, algorithm: fixed_window }
  - { name: month, key: [user], limit: 1M/month, window: { calendar: month } }
  - { name: sliding, key: [user], limit: 60k/min, algorithm: sliding_window }
  - { name: log, key: [user], limit: 60k/min, algorithm: sliding_log }
  - { name: strict, key: [user], limit: 60k/min, consistency: strict }
  - { name: slots, key: [user], concurrent: 900 }";

/// Of which kinds keys are, with the words that texts and lists begin with, and a field of which
/// hashes have the one or the other.
fn forms(servers: &[Redis]) -> BTreeSet<String> {
    let script = "
        local forms = {}
        for _, key in ipairs(redis.call('KEYS', 'tg:*')) do
            local kind, begin = redis.call('TYPE', key).ok, ''
            if kind == 'string' then begin = redis.call('GET', key) end
            if kind == 'list' then begin = redis.call('LINDEX', key, 0) end
            for _, field in ipairs({ 'full', 'count', 'this', 'v' }) do
                if kind == 'hash' and begin == '' and redis.call('HEXISTS', key, field) == 1 then
                    begin = field
                end
            end
            table.insert(forms, kind .. ' ' .. string.match(begin, '^%a*'))
        end
        return forms";
    // Replicas have the same.
    let is_primary = |one: &&Redis| one.cli(&["INFO", "replication"]).contains("role:master");
    let said =
        servers.iter().filter(is_primary).map(|one| one.cli(&["--raw", "EVAL", script, "0"]));
    said.flat_map(|said| said.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Has nodes use a store for keys that come often and keys that come once, and then looks at it while
/// they go on.
fn look_at_a_used_store(url: &str, servers: &[Redis]) {
    let fleet = Fleet::patient("1", 2, url, RULES);
    let addresses = fleet.addresses("http");
    let ask = |user: &str, node: usize| {
        let body = format!(r#"{{"path":"/","user":"{user}"}}"#);
        assert_eq!(check(addresses[node], &body), 200);
    };
    (0..40).for_each(|number| ask(&format!("once-{number}"), number % 2));
    let texts = ["bucket", "process", "sliding", "window"].map(|word| format!("string {word}"));
    // A bucket, a window and a sliding window that are lent, and permits.
    let hashes = ["full", "count", "this", "v"].map(|field| format!("hash {field}"));
    let logs = ["list log".to_owned()];
    let wanted: BTreeSet<_> = texts.into_iter().chain(hashes).chain(logs).collect();
    until("there is a key of every form", || {
        (0..20).for_each(|number| ask("often", number % 2));
        (forms(servers) == wanted).then_some(())
    });
    let looked = support::run(&["doctor", "--store", url, "--output", "json"]);
    let report = looked.json();
    // How long it takes is the business of the machine.
    let is_untimed = |finding: &&Value| finding["code"] != "round-trip";
    let found: Vec<_> = report["findings"].as_array().unwrap().iter().filter(is_untimed).collect();
    assert!(found.iter().any(|finding| finding["code"] == "keys"), "{report}");
    for finding in found {
        assert_eq!(finding["severity"], "ok", "{finding}");
    }
}

#[test]
fn nothing_that_nodes_keep_in_a_store_is_foreign_to_it() {
    let redis = Redis::start(&[]);
    look_at_a_used_store(&redis.url(), &[redis]);
}

#[test]
fn nothing_that_nodes_keep_in_a_cluster_is_foreign_to_it() {
    let servers = start_cluster(Kind::Redis);
    let url = format!("redis+cluster://127.0.0.1:{}", servers[0].port);
    for server in &servers {
        // Without it there may be two primaries.
        server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    }
    look_at_a_used_store(&url, &servers[..]);
}

/// Where a failure of the store would pass, denials are the store's; where it would be denied, what passes
/// is allowed by the store.
const SLOW: &str = "rules:
  - { name: bucket, key: [user], match: { path: /bucket }, limit: 20/day, consistency: strict, on_store_failure: allow }
  - { name: log, key: [user], match: { path: /log }, limit: 20/day, algorithm: sliding_log, on_store_failure: allow }
  - { name: sliding, key: [user], match: { path: /sliding }, limit: 20/day, algorithm: sliding_window, consistency: strict, on_store_failure: deny }
  - { name: month, key: [user], match: { path: /month }, limit: 20/month, window: { calendar: month }, consistency: strict, on_store_failure: deny }";

#[test]
fn what_is_said_of_a_restart_with_all_data_is_what_happens() {
    let mut redis = Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let url = redis.url();
    let report = support::run(&["doctor", "--store", &url, "--output", "json"]).json();
    let findings = report["findings"].as_array().unwrap();
    let disk = findings.iter().find(|finding| finding["code"] == "disk").unwrap();
    assert_eq!(disk["severity"], "ok", "{disk}");
    let said = disk["message"].as_str().unwrap();
    for part in [
        "an append-only file; a restart begins a new epoch, also one that loses nothing",
        "a bucket grants nothing for up to 30 s and then refills from nothing (20/day: for a day)",
        "a sliding log grants nothing for as long as it looks back",
        "longer windows go on with what is on disk",
    ] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }

    let fleet = Fleet::patient("1", 1, &url, SLOW);
    let node = fleet.addresses("http")[0];
    let ask = |path: &str| check(node, &format!(r#"{{"path":"/{path}","user":"alice"}}"#));
    for path in ["bucket", "log", "sliding", "month"] {
        (0..5).for_each(|_| assert_eq!(ask(path), 200, "{path}"));
    }
    redis.cli(&["SHUTDOWN"]);
    redis.restart_empty();
    for path in ["month", "sliding"] {
        until("longer windows go on", || (ask(path) == 200).then_some(()));
    }
    assert!(redis.cli(&["GET", "tg:epoch"]).contains(" kept 1 "), "nothing is missing");
    assert_eq!((ask("bucket"), ask("log")), (429, 429));
}

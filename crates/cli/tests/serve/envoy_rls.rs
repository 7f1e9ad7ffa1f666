//! Envoy's rate limit service, as the document sets it up.

use std::fs;

use tempfile::NamedTempFile;

use crate::redis::Redis;
use crate::support::{Client, Gateway, Proxy, Server, assert_denied, files};

const ENVOY: [&str; 4] = ["envoy", "-c", "envoy.yaml", "--use-dynamic-base-id"];

fn start(edit: impl Fn(String) -> String) -> Gateway {
    let files = files("envoy-rls.md");
    let (_, rules) = files.iter().find(|(name, _)| name == "rules.yaml").unwrap();
    // A machine that runs all tests at once may be slower than what it tests.
    let patient = |text: String| edit(text.replace("timeout: 0.020s", "timeout: 20s"));
    Gateway::serving(rules, "envoy-rls.md", &ENVOY, patient)
}

/// What is left of a rule, as a client is told.
fn left(client: &Client, path: &str, rule: &str) -> Option<u64> {
    let answer = client.get(path, &[]);
    let told = answer.header("ratelimit")?;
    let (_, behind) = told.split_once(&format!("\"{rule}\";r="))?;
    behind.split(';').next()?.parse().ok()
}

#[test]
fn clients_pass_up_to_their_limit_and_are_told_so() {
    let gateway = start(|text| text);
    let client = gateway.client(2);
    for left in (0..5).rev() {
        let answer = client.get("/page", &[]);
        assert_eq!((answer.status, &*answer.body), (200, "GET /page"), "{answer:?}");
        let told = answer.header("ratelimit").unwrap_or_default();
        assert!(told.starts_with(&format!("\"per-client\";r={left};t=")), "{answer:?}");
    }
    assert_denied(&client.get("/page", &[("x-forwarded-for", "192.0.2.7")]));
    assert_eq!(gateway.client(3).get("/page", &[]).status, 200, "others have their own");
    let sample = "tollgate_decisions_total{door=\"grpc\",outcome=\"denied\"}";
    assert_eq!(gateway.server.metric(sample), Some(1.0));
}

#[test]
fn a_request_that_is_denied_for_one_descriptor_spends_nothing_on_the_other() {
    let gateway = start(|text| text);
    let client = gateway.client(2);
    for _ in 0..3 {
        assert_eq!(client.get("/page", &[("x-plan", "free")]).status, 200);
    }
    for _ in 0..3 {
        assert_denied(&client.get("/page", &[("x-plan", "free")]));
    }
    assert_eq!(left(&client, "/quota", "per-client"), Some(2));
    assert_eq!(client.get("/page", &[("x-plan", "gold")]).status, 200, "no rule is about that");
    assert_eq!(left(&client, "/quota", "per-client"), Some(1));
}

#[test]
fn hits_count_several_times_or_not_at_all() {
    let gateway = start(|text| text);
    let client = gateway.client(2);
    assert_eq!(left(&client, "/export", "per-client"), Some(2), "it counts as three");
    assert_eq!(left(&client, "/quota", "per-client"), Some(2), "it only looks");
    assert_eq!(client.get("/export", &[]).status, 429, "two are left");
    assert_eq!([(); 2].map(|()| client.get("/page", &[]).status), [200, 200]);
    assert_eq!(client.get("/quota", &[]).status, 429, "nothing is left");
}

#[test]
fn nobody_passes_without_an_answer_unless_envoy_is_told_so() {
    for (deny, status) in [("true", 500), ("false", 200)] {
        let mode = format!("failure_mode_deny: {deny}");
        let mut gateway = start(|text| text.replace("failure_mode_deny: true", &mode));
        assert_eq!(gateway.client(2).get("/page", &[]).status, 200);
        gateway.server.process.signal("KILL");
        gateway.server.process.wait();
        for _ in 0..9 {
            assert_eq!(gateway.client(2).get("/page", &[]).status, status, "{mode}");
        }
    }
}

/// Envoy waits for four seconds, and a store may take a minute.
#[test]
fn a_store_that_stands_still_leaves_it_to_the_rule_and_not_to_envoy() {
    let redis = Redis::start(&[]);
    let config = NamedTempFile::new().unwrap();
    fs::write(&config, format!("[store]\nurl = '{}'\ntimeout = '60s'\n", redis.url())).unwrap();
    for (policy, status) in [("allow", 200), ("deny", 429)] {
        let rules = format!(
            "rules: [{{ name: a, key: [descriptor.remote_address], limit: 100/h, consistency: strict,
                on_store_failure: {policy} }}]"
        );
        let server = Server::with(&rules, &["--config", config.path().to_str().unwrap()]);
        let hasty = |text: String| text.replace("timeout: 0.020s", "timeout: 4s");
        let proxy = Proxy::start(&server, "envoy-rls.md", &ENVOY, hasty);
        assert_eq!(proxy.client(2).get("/page", &[]).status, 200);
        redis.signal("STOP");
        assert_eq!(proxy.client(2).get("/page", &[]).status, status, "{policy}");
        redis.signal("CONT");
    }
}

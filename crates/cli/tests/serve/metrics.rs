//! What Prometheus reads.

use std::fs;

use crate::support::{Server, python, until};

const RULES: &str = "rules:
  - { name: per-user, key: [user], limit: 2/h }
  - { name: trial, key: [], limit: 1/h, mode: shadow }";

#[test]
fn counts_what_was_decided_and_goes_on_when_rules_change() {
    let server = Server::start(RULES);
    let decided = (0..5).filter(|_| server.allows(r#"{"user":"alice"}"#)).count();
    assert_eq!(decided, 2);
    for (sample, value) in [
        (r#"tollgate_decisions_total{door="http",outcome="allowed"}"#, 2.0),
        (r#"tollgate_decisions_total{door="http",outcome="denied"}"#, 3.0),
        (r#"tollgate_rule_decisions_total{rule="per-user",outcome="denied"}"#, 3.0),
        (r#"tollgate_rules_loaded"#, 2.0),
    ] {
        assert_eq!(server.metric(sample), Some(value), "{sample}\n{}", server.metrics());
    }
    let shadow = r#"tollgate_rule_decisions_total{rule="trial",outcome="shadow_denied"}"#;
    assert!(server.metric(shadow) > Some(0.0), "{}", server.metrics());
    fs::write(server.rules(), RULES.replace("2/h", "9/h").replace("trial", "other")).unwrap();
    until("the rules are exchanged", || {
        server.metric("tollgate_rules_swaps_total").filter(|swaps| *swaps > 0.0)
    });
    assert!(server.allows(r#"{"user":"alice"}"#));
    let allowed = r#"tollgate_rule_decisions_total{rule="per-user",outcome="allowed"}"#;
    assert_eq!(server.metric(allowed), Some(3.0));
    assert_eq!(server.metric(shadow), None, "that rule is gone");
}

#[test]
fn time_inside_is_measured_at_every_door() {
    let server = Server::start(RULES);
    for _ in 0..3 {
        server.allows(r#"{"user":"alice"}"#);
    }
    assert_eq!(server.metric(r#"tollgate_door_seconds_count{door="http"}"#), Some(3.0));
    let bucket = r#"tollgate_door_seconds_bucket{le="+Inf",door="http"}"#;
    assert_eq!(server.metric(bucket), Some(3.0), "{}", server.metrics());
    until("nobody but us is connected", || {
        server.metric(r#"tollgate_connections{door="status"}"#).filter(|open| *open == 1.0)
    });
}

#[test]
fn prometheus_reads_it() {
    let server = Server::start(RULES);
    server.allows(r#"{"user":"alice"}"#);
    let url = format!("http://{}/metrics", server.address("status"));
    let read = python("prometheus_reads.py", &[&url]);
    assert!(read.contains("tollgate_rule_decisions counter"), "{read}");
    assert!(read.contains("tollgate_door_seconds histogram"), "{read}");
}

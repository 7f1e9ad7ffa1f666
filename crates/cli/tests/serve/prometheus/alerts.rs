//! The alerts: as Prometheus' own tool judges and tests them, about metrics that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::scraper::Scraper;
use super::{assert_known, packaging, samples, server};
use crate::support::until;

fn promtool(arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus");
    let ran = Command::new("promtool").args(arguments).current_dir(folder).output();
    let ran = ran.unwrap_or_else(|error| {
        panic!("promtool cannot be started: {error}; scripts/test.sh installs what tests need")
    });
    let (out, notes) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{notes}");
}

/// The alerts by name, each with its query.
fn alerts() -> BTreeMap<String, String> {
    let file: Value = serde_saphyr::from_str(&packaging("prometheus/alerts.yaml")).unwrap();
    let rules = file["groups"].as_array().unwrap().iter().flat_map(|it| it["rules"].as_array());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let alerts = rules.flatten().map(|rule| (text(&rule["alert"]), text(&rule["expr"])));
    alerts.collect()
}

#[test]
fn promtool_finds_nothing_wrong() {
    promtool(&["check", "rules", "--lint-fatal", "alerts.yaml"]);
}

#[test]
fn alerts_fire_when_they_should_and_only_then() {
    promtool(&["test", "rules", "alerts.test.yaml"]);
    // Each has both kinds of tests.
    let file: Value = serde_saphyr::from_str(&packaging("prometheus/alerts.test.yaml")).unwrap();
    let (mut fire, mut quiet) = (BTreeSet::new(), BTreeSet::new());
    for test in file["tests"].as_array().unwrap() {
        for case in test["alert_rule_test"].as_array().unwrap() {
            let fires = !case["exp_alerts"].as_array().unwrap().is_empty();
            let name = case["alertname"].as_str().unwrap().to_owned();
            if fires {
                fire.insert(name)
            } else {
                quiet.insert(name)
            };
        }
    }
    let all: BTreeSet<_> = alerts().into_keys().collect();
    assert_eq!((&fire, &quiet), (&all, &all));
}

#[test]
fn every_metric_and_label_exists() {
    let server = server();
    let mut samples = samples(&server);
    // Prometheus makes it itself.
    samples.insert("up".to_owned(), BTreeSet::new());
    for query in alerts().into_values() {
        assert_known(&query, &samples);
    }
}

#[test]
fn prometheus_takes_every_query() {
    let server = server();
    let scraper = Scraper::start(&server);
    until("the server is read", || (!scraper.query("up == 1").is_empty()).then_some(()));
    for query in alerts().into_values() {
        // An answer is an alert, and there may be none: an error is not an answer.
        scraper.query(&query);
    }
}

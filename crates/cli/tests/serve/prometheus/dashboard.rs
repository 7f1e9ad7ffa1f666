//! The dashboard of Grafana: every query, in a real Prometheus that reads a real server.

use std::collections::BTreeSet;

use serde_json::Value;

use super::scraper::Scraper;
use super::{ask, assert_known, packaging, samples, server};
use crate::support::until;

/// A query, and the labels that are shown of what it gives.
struct Query {
    panel: String,
    text: String,
    shown: BTreeSet<String>,
}

fn dashboard() -> Value {
    serde_json::from_str(&packaging("grafana/tollgate.json")).unwrap()
}

/// All queries, with what stands for parts of them filled in.
fn queries() -> Vec<Query> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut queries = Vec::new();
    for panel in panels {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let legend = target["legendFormat"].as_str().unwrap();
            let shown = legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
            let text = target["expr"].as_str().unwrap();
            queries.push(Query {
                panel: panel["title"].as_str().unwrap().to_owned(),
                text: text.replace("$instance", ".*").replace("$__rate_interval", "10s"),
                shown: shown.map(str::to_owned).collect(),
            });
        }
    }
    assert!(queries.len() > 30, "{} are few", queries.len());
    queries
}

#[test]
fn every_metric_and_label_exists() {
    let server = server();
    let samples = samples(&server);
    for query in queries() {
        assert_known(&query.text, &samples);
    }
    for annotation in dashboard()["annotations"]["list"].as_array().unwrap() {
        let query = annotation["expr"].as_str().unwrap();
        assert_known(&query.replace("$instance", ".*"), &samples);
    }
}

#[test]
fn every_metric_is_shown() {
    let server = server();
    let shown: String = queries().iter().map(|query| format!("{} ", query.text)).collect();
    for name in samples(&server).into_keys() {
        // A histogram is shown by its buckets.
        let is_part = name.ends_with("_sum") || name.ends_with("_count");
        assert!(is_part || shown.contains(&name), "{name} is in no panel");
    }
}

#[test]
fn every_query_has_an_answer_in_prometheus() {
    let server = server();
    let scraper = Scraper::start(&server);
    for query in queries() {
        // Rates take two looks, and something that happens in between.
        let series = until(&format!("`{}` has data: {}", query.panel, query.text), || {
            ask(&server);
            Some(scraper.query(&query.text)).filter(|series| !series.is_empty())
        });
        for one in &series {
            for label in &query.shown {
                assert!(one["metric"][label].is_string(), "no `{label}`: {} {one}", query.text);
            }
        }
    }
}

#[test]
fn panels_do_not_lie_on_each_other() {
    let dashboard = dashboard();
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(ids.insert(panel["id"].as_u64()), "{} comes twice", panel["id"]);
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(x < 24 && taken.insert((x, y)), "{} at {x}, {y}", panel["title"]);
            }
        }
    }
}

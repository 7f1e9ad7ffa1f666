//! The page about metrics: every one is in it, with its type and its labels, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{samples, server};
use crate::support::Server;

/// The metrics of a server as queries name them, with their types and labels.
fn served(server: &Server) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let samples = samples(server);
    let text = server.metrics();
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let metric = |(family, kind): (&str, &str)| {
        let (name, sample) = match kind {
            "counter" => (format!("{family}_total"), format!("{family}_total")),
            "info" => (format!("{family}_info"), format!("{family}_info")),
            "histogram" => (family.to_owned(), format!("{family}_bucket")),
            _ => (family.to_owned(), family.to_owned()),
        };
        let labels = samples.get(&sample).unwrap_or_else(|| panic!("there is no {sample}"));
        (name, (kind.to_owned(), labels.clone()))
    };
    families.map(metric).collect()
}

/// The rows of the table in the page.
fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, name, kind, labels, what, _] = *cells else { return None };
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        assert!(!what.is_empty(), "{name} is not explained");
        let labels = labels.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some((name.to_owned(), (kind.to_owned(), labels)))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn every_metric_is_documented() {
    let (served, documented) = (served(&server()), documented());
    for (name, known) in &served {
        assert_eq!(documented.get(name), Some(known), "{name} in docs/metrics.md");
    }
    for name in documented.keys() {
        assert!(served.contains_key(name), "{name} of docs/metrics.md is not there");
    }
}

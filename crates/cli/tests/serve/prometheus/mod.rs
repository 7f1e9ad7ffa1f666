//! What stands beside the metrics for whoever watches: a dashboard, alerts, and a reference.

mod alerts;
mod dashboard;
mod reference;
mod scraper;
mod selectors;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::prometheus::selectors::Selectors;
use crate::support::{Server, exchange};

/// Rules of every kind that metrics tell about.
const RULES: &str = "
rules:
  - { name: per-user, key: [user], limit: 3/h }
  - { name: trial, key: [], limit: 1/h, mode: shadow }
  - { name: killed, key: [ip], limit: 1/h }
  - { name: failures, match: { path: /login }, key: [user], limit: 9/h, count_if: response.status == 401 }";

/// A server that has seen some of everything.
fn server() -> Server {
    let folder = tempfile::TempDir::new().unwrap();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let certificate = file("cert.pem", &certified.cert.pem());
    let key = file("key.pem", &certified.signing_key.serialize_pem());
    // At a door that nobody asks at here: what is told about TLS is told all the same.
    let tls = format!("[tls]\ncertificate = '{certificate}'\nkey = '{key}'\ndoors = ['resp']\n");
    let server = Server::with(RULES, &["--config", &file("tollgate.toml", &tls)]);
    assert_eq!(server.run(&["kill", "killed"]).code, 0);
    fs::write(server.rules(), "rules: [{ nam: b }]").unwrap();
    ask(&server);
    server
}

/// Requests that pass, requests that do not, and one that is still under way.
fn ask(server: &Server) {
    for user in ["alice", "alice", "alice", "alice", "alice", "bob"] {
        server.allows(&format!(r#"{{"user":"{user}"}}"#));
    }
    server.allows(r#"{"user":"carol","path":"/login"}"#);
    let forward_auth = server.address("forward_auth");
    let headers = [
        ("x-forwarded-method", "GET"),
        ("x-forwarded-host", "a.example"),
        ("x-forwarded-uri", "/"),
    ];
    assert_eq!(exchange(forward_auth, "GET", "/traefik", &headers, "").0, 200);
}

/// What a server has: the names of samples, and those of their labels.
fn samples(server: &Server) -> BTreeMap<String, BTreeSet<String>> {
    let mut samples = BTreeMap::<String, BTreeSet<String>>::new();
    let text = server.metrics();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let labels = samples.entry(name.to_owned()).or_default();
        if let Some((_, rest)) = line.split_once('{') {
            // Values of these tests have neither commas nor braces.
            let pairs = rest.split('}').next().unwrap().split(',');
            labels.extend(pairs.map(|pair| pair.split('=').next().unwrap().to_owned()));
        }
    }
    samples
}

/// Every sample and every label that a query names exists.
#[track_caller]
fn assert_known(query: &str, samples: &BTreeMap<String, BTreeSet<String>>) {
    let selectors = Selectors::of(query);
    assert!(!selectors.samples.is_empty(), "it asks for nothing of ours: {query}");
    let mut all: BTreeSet<_> = ADDED.map(str::to_owned).into();
    for (name, labels) in &selectors.samples {
        let known = samples.get(name).unwrap_or_else(|| panic!("no metric `{name}`: {query}"));
        for label in labels.iter().filter(|label| !ADDED.contains(&label.as_str())) {
            assert!(known.contains(label), "`{name}` has no label `{label}`: {query}");
        }
        all.extend(known.iter().cloned());
    }
    for label in selectors.grouping {
        assert!(all.contains(&label), "nothing has a label `{label}`: {query}");
    }
}

/// What Prometheus adds to everything it reads.
const ADDED: [&str; 2] = ["instance", "job"];

/// A file under `packaging`.
fn packaging(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

//! Requests that pass allocate nothing, however they are matched and counted.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed, and says where"
)]

use std::net::IpAddr;

use tollgate::{Engine, ManualClock, Request, RuleSet};

/// Eight rules that all apply, and others that do not.
const EIGHT: &str = "
client_ip: { trusted_proxies: [10.0.0.0/8] }
tiers: { from: claims.plan, known: [free, pro], else: free }
rules:
  - { name: user, match: { path: /v1/** }, key: [user], limit: { free: 1k/s, pro: 10k/s },
      overrides: { alice: 20k/s, bob: 30k/s } }
  - { name: part, match: { path: '/v1/items/{id}' }, key: [path.id], limit: 10k/s }
  - { name: writes, match: { method: [GET, POST], host: '*.example.com' }, key: [user, ip],
      limit: 10k/s, algorithm: sliding_window }
  - { name: ip, match: { ip: [192.0.2.0/24] }, key: [ip], limit: 10k/s, algorithm: fixed_window }
  - { name: net, key: [ip/24], limit: 10k/s, overrides: { 192.0.2.0/24: 20k/s } }
  - { name: header, match: { header.x-app: 'mobile*' }, key: [header.x-app], limit: 10k/s }
  - { name: exact, match: { user: [alice, bob] }, key: [user], limit: 10k/s, cost: 2 }
  - { name: all, match: { tier: pro }, key: [], limit: 100k/s, algorithm: leaky_bucket, burst: 50k }
  - { name: other, match: { path: /v2/** }, key: [], limit: 1/s }
  - { name: elsewhere, match: { ip: [198.51.100.0/24] }, key: [], limit: 1/s }
";

const HEADERS: [(&str, &str); 3] = [
    ("accept", "*/*"),
    ("X-App", "mobile-ios"),
    ("X-Forwarded-For", "203.0.113.9, 192.0.2.7, 10.0.0.3"),
];
const ATTRIBUTES: [(&str, &str); 2] = [("user", "alice"), ("claims.plan", "pro")];

fn request(path: &str) -> Request<'_> {
    Request::new("GET", path)
        .host("api.example.com")
        .peer(IpAddr::from([10, 0, 0, 1]))
        .headers(&HEADERS)
        .attributes(&ATTRIBUTES)
}

/// An engine that watches for heavy keys, as all do: requests are sampled.
fn engine(text: &str) -> Engine<ManualClock> {
    built(text, true)
}

/// One that does not: a key that is watched for the first time gets memory for its name.
fn unwatching(text: &str) -> Engine<ManualClock> {
    built(text, false)
}

fn built(text: &str, watching: bool) -> Engine<ManualClock> {
    let engine = Engine::builder(RuleSet::parse(text).unwrap_or_else(|error| panic!("{error}")));
    engine.heavy_keys(watching).clock(ManualClock::new()).build().unwrap()
}

/// How many allocations so many requests take that all pass, once the thread has its own memory.
fn allocations(engine: &Engine<ManualClock>, request: &Request<'_>, rules: usize) -> u64 {
    for _ in 0..3 {
        let ruling = engine.decide(request);
        assert!(ruling.is_allowed(), "{ruling:?}");
        assert_eq!(ruling.each().len(), rules, "{ruling:?}");
    }
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            assert!(engine.decide(request).is_allowed());
        }
    });
    counted.count_total
}

#[test]
fn a_request_that_eight_rules_allow_allocates_nothing() {
    assert_eq!(allocations(&engine(EIGHT), &request("/v1/items/7?page=2"), 8), 0);
}

#[test]
fn a_request_that_no_rule_is_about_allocates_nothing() {
    let engine = engine("rules: [{ name: a, match: { path: /b }, key: [], limit: 1/s }]");
    assert_eq!(allocations(&engine, &request("/c"), 0), 0);
}

/// With a rule in shadow, blocks and outcomes the way is longer.
#[test]
fn shadows_blocks_and_outcomes_allocate_nothing() {
    let engine = engine(
        "rules:
  - { name: trial, key: [user], limit: 1/s, mode: shadow }
  - { name: blocks, key: [user], limit: 10k/s, block_for: 1min }
  - { name: failures, key: [user], limit: 10k/s, count_if: response.status == 401 }
  - { name: missing, key: [account], key_missing: ip, limit: 10k/s }
  - first_match: true
    rules:
      - { name: one, match: { path: /v1/** }, key: [], limit: 10k/s }
      - { name: two, key: [], limit: 10k/s }",
    );
    assert_eq!(allocations(&engine, &request("/v1/items"), 5), 0);
}

/// A log has its memory once it is there.
#[test]
fn logs_and_queues_allocate_nothing() {
    for limit in ["algorithm: sliding_log", "algorithm: leaky_bucket, queue: 5k"] {
        let text = format!("rules: [{{ name: a, key: [user], limit: 10k/s, {limit} }}]");
        assert_eq!(allocations(&engine(&text), &request("/"), 1), 0, "{limit}");
    }
}

#[test]
fn keys_that_are_new_allocate_nothing() {
    let engine = unwatching(EIGHT);
    assert_eq!(allocations(&engine, &request("/v1/items/7"), 8), 0);
    let paths: Vec<_> = (0..500).map(|n| format!("/v1/items/{n}")).collect();
    let counted = allocation_counter::measure(|| {
        assert!(paths.iter().all(|path| engine.decide(&request(path)).is_allowed()));
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn requests_that_are_denied_or_only_look_allocate_nothing() {
    let engine = unwatching(
        "rules: [{ name: a, key: [user], limit: 3/h }, { name: b, key: [], limit: 9/h }]",
    );
    assert!((0..3).all(|_| engine.decide(&request("/")).is_allowed()));
    let counted = allocation_counter::measure(|| {
        assert!(!engine.decide(&request("/")).is_allowed());
        assert!(!engine.peek(&request("/")).is_allowed());
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn batches_allocate_nothing() {
    let (engine, path) = (engine(EIGHT), "/v1/items/7");
    assert_eq!(allocations(&engine, &request(path), 8), 0);
    let requests = [(); 8].map(|()| request(path));
    let decide = || engine.decide_batch(&requests, |_, ruling| assert!(ruling.is_allowed()));
    // The first has a ruling more at once than this thread had before.
    decide();
    assert_eq!(allocation_counter::measure(decide).count_total, 0);
}

/// Or the others would say nothing.
#[test]
fn what_allocates_is_counted() {
    let engine = engine(EIGHT);
    assert!(allocations(&engine, &request("/v1/items/%37"), 8) >= 100, "the path is written anew");
    let nine: String =
        (0..9).map(|n| format!("\n  - {{ name: r{n}, key: [], limit: 10k/s }}")).collect();
    let engine = self::engine(&format!("rules:{nine}"));
    assert!(allocations(&engine, &request("/"), 9) >= 100, "nine rules are more than eight");
}

//! Costs of GraphQL queries in an engine.

#![cfg(feature = "rules")]
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and says where")]

use std::time::Duration;

use tollgate::{Engine, ManualClock, Request, RuleSet};

#[test]
fn a_query_that_is_too_deep_never_passes_and_spends_nothing() {
    for algorithm in
        ["token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"]
    {
        let rules = RuleSet::parse(&format!(
            "rules: [{{ name: points, key: [user], limit: 100/min, algorithm: {algorithm}, \
             cost: {{ graphql: {{ depth: 2 }} }} }}]"
        ));
        let clock = ManualClock::new();
        let engine = Engine::builder(rules.unwrap()).clock(clock.clone()).build().unwrap();
        let decide = |query: &str| {
            let attributes = [("user", "alice"), ("body.query", query)];
            engine.decide(&Request::new("POST", "/graphql").attributes(&attributes)).is_allowed()
        };
        for _ in 0..3 {
            assert!(!decide("{ a { b { c } } }"), "{algorithm}");
            assert!(decide("{ a }"), "{algorithm}: it spent what others need");
            clock.advance(Duration::from_secs(3600));
        }
    }
}

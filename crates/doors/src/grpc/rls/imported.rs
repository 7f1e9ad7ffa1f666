//! Files of envoyproxy/ratelimit, imported, answer as they did there.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tollgate_proto::envoy::service::ratelimit::v3::rate_limit_response::Code as Answered;
use tollgate_rules::{ImportKind, import};

use super::tests::{ask, descriptor, request};
use crate::grpc::Asking;
use crate::grpc::tests::asking;

fn imported(text: &str) -> Asking {
    asking(&import(ImportKind::Envoy, "ratelimit.yaml", text).unwrap().yaml)
}

/// Whether it may pass, how many there are in which unit, and how many are left.
fn status(asking: &Asking, entries: &[(&str, &str)]) -> (bool, Option<u32>, u32) {
    let answer = ask(asking, request(vec![descriptor(entries)]));
    let status = &answer.statuses[0];
    let limit = status.current_limit.as_ref().map(|limit| limit.requests_per_unit);
    (status.code() == Answered::Ok, limit, status.limit_remaining)
}

#[test]
fn a_message_by_its_parts() {
    let asking = imported(
        "domain: shop
descriptors:
  - key: message_type
    value: marketing
    descriptors:
      - { key: to_number, rate_limit: { unit: day, requests_per_unit: 5 } }
  - key: to_number
    rate_limit: { unit: day, requests_per_unit: 100 }",
    );
    let marketing = |to| status(&asking, &[("message_type", "marketing"), ("to_number", to)]);
    assert_eq!(marketing("1"), (true, Some(5), 4));
    assert_eq!(status(&asking, &[("to_number", "1")]), (true, Some(100), 99));
    assert_eq!(marketing("2"), (true, Some(5), 4), "each number has its own");
    let other = [("message_type", "receipt"), ("to_number", "1")];
    assert_eq!(status(&asking, &other), (true, None, 0), "nothing leads there");
    assert_eq!(status(&asking, &[("message_type", "marketing")]), (true, None, 0));
    let reversed = [("to_number", "1"), ("message_type", "marketing")];
    assert_eq!(status(&asking, &reversed), (true, None, 0), "order matters");
}

#[test]
fn values_that_are_exceptions() {
    let asking = imported(
        "domain: shop
descriptors:
  - { key: remote_address, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: remote_address, value: 50.0.0.5 }
  - { key: remote_address, value: 50.0.0.6, rate_limit: { unlimited: true } }
  - { key: path, value: /api/*, rate_limit: { unit: hour, requests_per_unit: 7 } }
  - { key: path, value: /api/v1, rate_limit: { unit: hour, requests_per_unit: 2 } }",
    );
    assert_eq!(status(&asking, &[("remote_address", "50.0.0.1")]), (true, Some(10), 9));
    assert!(status(&asking, &[("remote_address", "50.0.0.5")]).0);
    assert_eq!(status(&asking, &[("remote_address", "50.0.0.6")]), (true, None, u32::MAX));
    assert_eq!(status(&asking, &[("path", "/api/v1")]), (true, Some(2), 1));
    assert_eq!(status(&asking, &[("path", "/api/v2")]), (true, Some(7), 6));
    assert_eq!(status(&asking, &[("path", "/api/v3")]), (true, Some(7), 6));
    assert_eq!(status(&asking, &[("path", "/web")]), (true, None, 0));
}

#[test]
fn other_domains_meet_nothing() {
    let asking = imported(
        "domain: shop
descriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 1 } }]",
    );
    let mut other = request(vec![descriptor(&[("k", "v")])]);
    other.domain = "other".to_owned();
    assert_eq!(ask(&asking, other).statuses[0].current_limit, None);
}

/// A level of a file: by key and value (an empty one is any), a limit and what stands below.
#[derive(Clone, Debug, Default)]
struct Level(BTreeMap<(String, String), (Option<u32>, Self)>);

impl Level {
    fn yaml(&self, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let mut text = String::new();
        for ((key, value), (limit, below)) in &self.0 {
            text += &format!("{pad}- key: {key}\n");
            if !value.is_empty() {
                text += &format!("{pad}  value: '{value}'\n");
            }
            if let Some(limit) = limit {
                text +=
                    &format!("{pad}  rate_limit: {{ unit: year, requests_per_unit: {limit} }}\n");
            }
            if !below.0.is_empty() {
                text += &format!("{pad}  descriptors:\n{}", below.yaml(indent + 4));
            }
        }
        text
    }

    /// The limit that a descriptor meets: at each level its value, then patterns, then any.
    fn find(&self, entries: &[(&str, &str)]) -> Option<u32> {
        let [(key, value), rest @ ..] = entries else { return None };
        let exact = self.0.get(&((*key).to_owned(), (*value).to_owned()));
        let pattern = || {
            let fits = |known: &&(String, String)| {
                let start = known.1.strip_suffix('*');
                known.0 == *key && start.is_some_and(|start| value.starts_with(start))
            };
            self.0.keys().find(fits).and_then(|key| self.0.get(key))
        };
        let any = || self.0.get(&((*key).to_owned(), String::new()));
        let (limit, below) = exact.or_else(pattern).or_else(any)?;
        if rest.is_empty() { *limit } else { below.find(rest) }
    }
}

fn level(depth: u32) -> BoxedStrategy<Level> {
    let below = match depth {
        0 => Just(Level::default()).boxed(),
        _ => level(depth - 1),
    };
    let one = ("[abc]", "x|y|z\\*|", prop::option::of(1..4_u32), below);
    prop::collection::vec(one, 0..5)
        .prop_map(|all| {
            let all = all.into_iter();
            Level(all.map(|(key, value, limit, below)| ((key, value), (limit, below))).collect())
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the file: every descriptor has the limit that it would have had, and counts apart
    /// from all others.
    #[test]
    fn descriptors_meet_what_they_met(
        root in level(2),
        asked in prop::collection::vec(
            prop::collection::vec(("[abc]", "x|y|z1|z2|w"), 1..4), 1..12),
    ) {
        let text = format!("domain: shop\ndescriptors:\n{}", root.yaml(2));
        let Ok(imported) = import(ImportKind::Envoy, "ratelimit.yaml", &text) else {
            return Ok(());
        };
        let asking = asking(&imported.yaml);
        let mut counted: BTreeMap<Vec<(&str, &str)>, u32> = BTreeMap::new();
        for entries in &asked {
            let entries: Vec<_> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
            let mut keys: Vec<_> = entries.iter().map(|(key, _)| key).collect();
            keys.sort_unstable();
            keys.dedup();
            if keys.len() < entries.len() {
                // One key twice is not carried over, which the importer says.
                continue;
            }
            let (ok, limit, left) = status(&asking, &entries);
            match root.find(&entries) {
                None => prop_assert_eq!((ok, limit), (true, None), "{:?}\n{}", &entries, &imported.yaml),
                Some(most) => {
                    let count = counted.entry(entries.clone()).or_default();
                    *count += 1;
                    let expected = (*count <= most, Some(most), most.saturating_sub(*count));
                    prop_assert_eq!((ok, limit, left), expected, "{:?}\n{}", &entries, &imported.yaml);
                }
            }
        }
    }
}

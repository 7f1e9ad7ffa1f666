//! A bucket of Envoy as rules see it, and the limits that it meets.

use std::collections::BTreeMap;

use tollgate::{Mode, Request, Ruling};
use tollgate_rules::{Facts, Rule};

use crate::grpc::frame::{Code, Refusal};
use crate::grpc::rlqs::pool::Budget;
use crate::service::Service;

/// What Envoy calls a bucket.
pub(super) type BucketId = BTreeMap<String, String>;

/// A bucket as rules see it: `domain` as it is, each part of its name as `descriptor.KEY`, and the
/// keys of all of them in the order of the alphabet as `descriptor_keys`.
pub(super) struct Described<'a> {
    domain: &'a str,
    parts: Vec<(String, &'a str)>,
    keys: String,
}

/// A limit that a bucket meets: that of one rule for one key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Met {
    /// Whose it is: nobody else can have the same.
    pub(super) key: Box<str>,
    pub(super) budget: Budget,
}

impl<'a> Described<'a> {
    pub(super) fn new(domain: &'a str, id: &'a BucketId) -> Result<Self, Refusal> {
        let bytes: usize = id.iter().map(|(key, value)| key.len() + value.len()).sum();
        if id.is_empty() {
            return Err(Refusal::invalid(
                "a bucket has no bucket_id: there is nothing to count by",
            ));
        }
        if bytes > MOST_BYTES || id.len() > MOST_PARTS {
            let message = format!(
                "a bucket_id has {} parts and {bytes} bytes: at most {MOST_PARTS} and {MOST_BYTES}",
                id.len()
            );
            return Err(Refusal::new(Code::ResourceExhausted, message));
        }
        // A key must not look like two.
        let keys: Vec<_> =
            id.keys().map(|key| key.replace('%', "%25").replace('/', "%2F")).collect();
        let parts = id.iter().map(|(key, value)| (format!("descriptor.{key}"), &**value));
        Ok(Self { domain, parts: parts.collect(), keys: keys.join("/") })
    }

    fn attributes(&self) -> Vec<(&str, &str)> {
        let parts = self.parts.iter().map(|(name, value)| (&**name, *value));
        let around = [("domain", self.domain), ("descriptor_keys", &*self.keys)];
        around.into_iter().chain(parts).collect()
    }

    /// The limits that it meets now. None if everybody may pass.
    pub(super) fn limits(&self, service: &Service) -> Vec<Met> {
        let attributes = self.attributes();
        let request = Request::new("GET", "/").attributes(&attributes);
        met(&service.peek(&request), &request)
    }

    /// Spends what Envoy has let pass, as far as there is something left: whoever asks at another
    /// door meets the same counters.
    pub(super) fn spend(&self, service: &Service, allowed: u64) {
        let attributes = self.attributes();
        let request = Request::new("GET", "/").attributes(&attributes);
        service.engine().charge(&request.cost(allowed));
    }
}

/// The limits behind a ruling.
fn met(ruling: &Ruling, request: &Request<'_>) -> Vec<Met> {
    let facts = Facts::new(ruling.rules(), request, None);
    let each = ruling.each().filter(|each| each.mode() == Mode::Enforce);
    let limits = each.filter_map(|each| {
        let budget = budget(each.rule(), each.decision().limit())?;
        Some(Met { key: key(each.rule(), &facts).into(), budget })
    });
    limits.collect()
}

/// What a limit with this capacity allows. Of several it is the slowest.
fn budget(rule: &Rule, capacity: u64) -> Option<Budget> {
    let limits = rule.limits().iter().chain(rule.override_limits());
    let rates = limits.filter(|limit| limit.capacity() == Some(capacity)).filter_map(|limit| {
        let rate = limit.quota().rate()?;
        Some(rate.count() as f64 / rate.period().as_duration().as_secs_f64())
    });
    let rate = rates.reduce(f64::min)?;
    Some(Budget { rate, burst: capacity as f64 })
}

/// The name of the rule and what it counts by, such that no two look the same.
fn key(rule: &Rule, facts: &Facts<'_>) -> String {
    let mut all = rule.name().to_owned();
    for part in rule.key() {
        let value = match (rule.key_value(part, facts), rule.value_instead(facts)) {
            (Some(value), _) => format!("={value}"),
            (None, Some(value)) => format!("~{value}"),
            (None, None) => String::new(),
        };
        all.push_str(&format!("\n{}{value}", value.len()));
    }
    all
}

/// The longest name of a bucket, keys and values together.
const MOST_BYTES: usize = 1024;

/// The most parts of one: rules look through all of them.
const MOST_PARTS: usize = 64;

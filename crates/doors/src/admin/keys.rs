//! Keys: how they stand, which are the heaviest, and a new start for one.

use std::collections::{BTreeMap, BTreeSet};

use ::http::StatusCode;
use serde::{Deserialize, Serialize};
use tollgate::rules::UnknownRule;
use tollgate::{HeavyKey, KeyState, Retry, ToldBy, Under};

use super::{Outcome, bad_request, good, named, not_found, problem};
use crate::respond::{millis, mode_name};
use crate::service::Service;
use crate::web::Answer;

/// How all keys of a request stand; of shared limits, as their store says.
pub(super) async fn inspect(service: &Service, query: &str) -> Outcome<Answer> {
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
    let request = named::request(&service.rules(), pairs)?;
    let states = request.with(|request| service.engine().inspect_waiting(request)).await;
    Ok(good(&States { keys: states.iter().map(State::of).collect() }))
}

/// Gives a key everything back: for one rule, or for all that count by something that was named.
pub(super) async fn reset(service: &Service, asked: &Reset) -> Outcome<Answer> {
    let pairs = asked.attributes.iter().map(|(name, value)| (&**name, &**value));
    let request = named::request(&service.rules(), pairs)?;
    let resets = request.with(|request| {
        let reset = |rule: &str| service.engine().reset_waiting(request, Some(rule));
        if let Some(rule) = &asked.rule {
            return Ok(vec![reset(rule)?]);
        }
        let states = service.engine().inspect(request);
        let rules = states.iter().filter(|state| asked.is_about(state));
        let rules: BTreeSet<_> = rules.map(|state| &*state.rule).collect();
        rules.into_iter().map(reset).collect::<Result<Vec<_>, _>>()
    });
    let resets = resets.map_err(|error: UnknownRule| not_found(&error.to_string()))?;
    let (mut counters, mut leases_end_in) = (0, None);
    for reset in resets {
        let start = reset.await;
        counters += start.counters;
        leases_end_in = leases_end_in.max(start.leases_end_in);
        if let Some(failure) = start.failure {
            return Err(not_forgotten(counters, &failure));
        }
    }
    tracing::info!(rule = asked.rule, counters, "a key was reset");
    Ok(good(&Done { reset: counters, leases_end_in_ms: leases_end_in.map(millis) }))
}

fn not_forgotten(counters: usize, failure: &str) -> Box<Answer> {
    let before = match counters {
        0 => "nothing is reset".to_owned(),
        1 => "1 counter is reset, and others are not".to_owned(),
        counters => format!("{counters} counters are reset, and others are not"),
    };
    let detail = format!(
        "the store keeps what the key has spent, and did not forget it, so {before}: {failure}. \
         Try again; `tollgate doctor` looks at what is wrong with the store"
    );
    problem(StatusCode::SERVICE_UNAVAILABLE, &detail)
}

/// The keys that come, or are denied, most often.
pub(super) fn top(service: &Service, query: &str, denied: bool) -> Outcome<Answer> {
    let mut n = USUAL;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        n = match (&*name, value.parse()) {
            ("n", Ok(n @ 1..=MOST)) => n,
            ("n", _) => return Err(bad_request("`n` is a whole number from 1 to 256")),
            _ => return Err(bad_request("only `n` can be asked for: `?n=20`")),
        };
    }
    let keys = service.top(n, denied);
    Ok(good(&Top { keys: keys.into_iter().map(Heavy::of).collect() }))
}

/// Whose counters are reset, and of which rule; of all rules if none is named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reset {
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    rule: Option<String>,
}

impl Reset {
    /// Whether the key is of what was named. One that all requests share, or all of a method, is
    /// not meant by whoever names a user.
    fn is_about(&self, state: &KeyState) -> bool {
        let named = |name: &str| self.attributes.contains_key(name);
        let implied = |name: &str| matches!(name, "method" | "path" | "host");
        state.key.iter().any(|(name, _)| named(name) || !implied(name))
    }
}

#[derive(Debug, Serialize)]
struct Done {
    /// How many counters and blocks that changed.
    reset: usize,
    /// How long other nodes may pass what was lent to them before.
    #[serde(skip_serializing_if = "Option::is_none")]
    leases_end_in_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct States<'a> {
    keys: Vec<State<'a>>,
}

/// How a key stands with one limit of a rule.
#[derive(Debug, Serialize)]
struct State<'a> {
    rule: &'a str,
    mode: &'static str,
    key: Vec<Part<'a>>,
    /// Whose limit it is: `rule`, `tier` or `override`.
    under: &'static str,
    tier: Option<&'a str>,
    month_begins: Option<u8>,
    limit: &'a str,
    total: u64,
    used: u64,
    remaining: u64,
    reset_after_ms: u64,
    allowed: bool,
    retry_after_ms: Option<u64>,
    /// Whether only an end of something under way helps.
    retry_on_return: bool,
    blocked_for_ms: Option<u64>,
    /// Whose word it is: that of this `node`, or that of the `store`. `node_alone` if the store does
    /// not answer: all numbers are then those of `on_store_failure`.
    told_by: &'static str,
    /// What of that which the store has lent lies here, unspent.
    lent_here: Option<u64>,
    /// What is in force in place of the limit because the store does not answer, with the share.
    on_store_failure: Option<String>,
    /// Why it does not.
    store_failure: Option<&'a str>,
    /// How long ago the store lost its memory, if it may count something as used because of that.
    lost_ago_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Part<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> State<'a> {
    fn of(state: &'a KeyState) -> Self {
        let decision = &state.decision;
        let (under, tier) = match &state.under {
            Under::Tier(name) => ("tier", Some(name.as_str())),
            Under::Override => ("override", None),
            _ => ("rule", None),
        };
        let (told_by, lent_here, alone) = match &state.told_by {
            ToldBy::Store { lent_here } => ("store", Some(*lent_here), None),
            ToldBy::NodeAlone { policy, lent_here, reason } => {
                ("node_alone", Some(*lent_here), Some((policy, reason)))
            }
            _ => ("node", None, None),
        };
        Self {
            rule: &state.rule,
            mode: mode_name(state.mode),
            key: state.key.iter().map(|(name, value)| Part { name, value }).collect(),
            under,
            tier,
            month_begins: state.month_begins,
            limit: &state.limit,
            total: decision.limit(),
            used: state.used(),
            remaining: decision.remaining(),
            reset_after_ms: millis(decision.reset_after()),
            allowed: decision.is_allowed() && state.blocked_for.is_none(),
            retry_after_ms: decision.retry_after().map(millis),
            retry_on_return: decision.retry() == Some(Retry::OnReturn),
            blocked_for_ms: state.blocked_for.map(millis),
            told_by,
            lent_here,
            on_store_failure: alone.map(|(policy, _)| policy.to_string()),
            store_failure: alone.map(|(_, reason)| reason.as_str()),
            lost_ago_ms: state.lost_ago.map(millis),
        }
    }
}

#[derive(Debug, Serialize)]
struct Top {
    keys: Vec<Heavy>,
}

/// A key that comes often.
#[derive(Debug, Serialize)]
struct Heavy {
    /// Its rule, and what that counts by.
    key: String,
    /// How often it came lately, by estimate.
    count: u64,
    /// Its part of all requests, from 0 to 1; of those that were denied, if these are asked for.
    share: f64,
}

impl Heavy {
    fn of(HeavyKey { key, count, share }: HeavyKey) -> Self {
        Self { key, count, share }
    }
}

/// How many keys are shown, and at most.
const USUAL: usize = 20;
const MOST: usize = 256;

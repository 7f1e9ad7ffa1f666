//! How keys of rules become hashes.

use std::fmt;

use tollgate_local::{Key, KeyHash, Seed};
use tollgate_rules::{Attribute, Facts, Rule, RuleSet, Value};

/// The hash of what a rule counts a request by; `None` if the request lacks a part of it.
#[inline]
pub(super) fn key_hash(rule: &Rule, facts: &Facts<'_>, seed: &Seed) -> Option<KeyHash> {
    let mut parts = rule.key().iter();
    let Some(first) = parts.next() else { return Some(().hash(seed)) };
    let mut key = part_hash(rule, first, facts, seed)?;
    for part in parts {
        key = seed.both(key, part_hash(rule, part, facts, seed)?);
    }
    Some(key)
}

#[inline(always)]
fn part_hash(rule: &Rule, part: &Attribute, facts: &Facts<'_>, seed: &Seed) -> Option<KeyHash> {
    // What most keys are made of need not be wrapped up to be hashed.
    let known = match part {
        Attribute::Given(name) => facts.given(name).map(|text| text.hash(seed)),
        Attribute::Ip => facts.counted_ip().map(|ip| ip.hash(seed)),
        _ => rule.key_value(part, facts).map(|value| hash(value, seed)),
    };
    if known.is_some() {
        return known;
    }
    // Nobody can call himself what those without a name are called.
    Some(seed.both(().hash(seed), hash(rule.value_instead(facts)?, seed)))
}

/// What a rule counts a request by, for people: each part and its value, in parentheses what
/// stands for one that the request lacks.
pub(super) fn key_parts(rule: &Rule, facts: &Facts<'_>) -> Vec<(String, String)> {
    let value = |part: &Attribute| {
        let mut text = String::new();
        // A text takes whatever is written to it.
        let _ = write_part(rule, facts, part, &mut text);
        text
    };
    rule.key().iter().map(|part| (part.to_string(), value(part))).collect()
}

/// Writes the value of a part of a key, or what stands instead of it.
pub(super) fn write_part(
    rule: &Rule,
    facts: &Facts<'_>,
    part: &Attribute,
    to: &mut impl fmt::Write,
) -> fmt::Result {
    match (rule.key_value(part, facts), rule.value_instead(facts)) {
        (Some(Value::Text(text)), _) => to.write_str(text),
        (Some(value), _) => write!(to, "{value}"),
        (None, Some(fallback @ Value::Fallback(_))) => write!(to, "{fallback}"),
        (None, Some(value)) => write!(to, "({value})"),
        (None, None) => Ok(()),
    }
}

/// The hash of a key as it is written in a list of overrides. `None` if it cannot be one.
pub(super) fn written_key_hash(
    rules: &RuleSet,
    rule: &Rule,
    text: &str,
    seed: &Seed,
) -> Option<KeyHash> {
    let mut key = None;
    for (part, value) in rule.key().iter().zip(rule.written_key(text)) {
        let value = match (part, value?) {
            (Attribute::Ip, Value::Ip(ip)) => Value::Ip(rules.client_ip().counted(ip)),
            (_, value) => value,
        };
        let value = hash(value, seed);
        key = Some(key.map_or(value, |key| seed.both(key, value)));
    }
    key
}

#[inline(always)]
fn hash(value: Value<'_>, seed: &Seed) -> KeyHash {
    match value {
        Value::Text(text) | Value::Fallback(text) => text.hash(seed),
        Value::Ip(ip) => ip.hash(seed),
        Value::Number(number) => number.hash(seed),
        Value::Country(country) => country.as_str().hash(seed),
    }
}

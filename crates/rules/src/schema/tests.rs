use std::collections::BTreeSet;

use proptest::prelude::*;
use regex_automata::meta::Regex;
use serde_json::{Map, Value, json};

use super::tree;
use crate::document::{Document, Node, Value as Tree};
use crate::{Attribute, GraphqlCost, RuleSet, Source, budget, explain, rule, rule_file};

/// Everything that a rule file can say.
const FILE: &str = r#"
version: 1
namespace: shop-api
descriptors: each
client_ip: { trusted_proxies: [10.0.0.0/8], header: x-forwarded-for, ipv6_host: 64 }
tiers: { from: claims.plan, known: [free, pro, enterprise], else: free }
defaults: { mode: enforce, consistency: shared, on_store_failure: local 20%, headers: both }
rules:
  - name: per-user
    match: { path: /v1/**, tier: [free, pro], user: "a*", header.x-a: [b, c] }
    key: [user, ip/24]
    key_missing: { together: anonymous }
    limit: { free: 100/min, pro: 10k/min, enterprise: unlimited }
    burst: { pro: 500 }
    overrides: { "acme,192.0.2.0": 50k/min }
  - group: writes
    first_match: true
    rules:
      - name: writes
        match: { path: ["/v1/{id}/**", /v2], method: [POST, PUT], host: "*.example.com" }
        key: account
        key_missing: ip
        limit: 100/s burst 20
        priority: critical
      - { name: one, match: { method: GET, ip: 10.0.0.0/8 }, key: [], limit: 5/s, cost: 2 }
  - name: login-failures
    match: { method: POST, path: /login, when: "!('x-internal' in request.headers)" }
    key: [ip, body.username]
    limit: 10/15min
    algorithm: sliding_log
    consistency: strict
    count_if: response.status in [401, 403]
    block_for: 15min
    deny: { status: 403, message: "Try again in {retry_after}.", body: "no" }
  - { name: slots, key: [account], concurrent: 5, expires: 10min, mode: shadow }
  - { name: smooth, key: [], limit: 50/s, algorithm: leaky_bucket, queue: 200 }
  - name: monthly
    key: [account]
    limit: 10k/month
    window: { calendar: month, timezone: Europe/Berlin, anchor: account.billing_day }
    warn_at: [80%, 95%]
  - { name: jittered, key: [user], limit: 5/h, window: { jitter: true } }
  - { name: tokens, key: [user], limit: 9k/min, cost: { attribute: body.tokens, missing: 3 } }
  - { name: points, key: [user], limit: 9k/min, cost: { graphql: { depth: 10, list: 20 } } }
  - { name: sum, key: [user], limit: 9k/min, cost: { expression: "1 + 1" } }
tests:
  - { name: a test, given: { request: GET /, times: 3, over: 1s }, expect: { allowed: 3 } }
  - name: two steps
    steps:
      - { given: { request: POST /login, respond: 401 }, expect: { denied: 0, remaining: ">= 1" } }
      - { after: 1s, given: { request: GET /v1 user=a }, expect: { denied_by: [one, smooth] } }
"#;

fn json_of(node: &Node) -> Value {
    match &node.value {
        Tree::Null => Value::Null,
        Tree::Bool(value) => json!(value),
        Tree::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Tree::Text(text) => json!(text),
        Tree::List(nodes) => nodes.iter().map(json_of).collect(),
        Tree::Map(fields) => {
            fields.iter().map(|it| (it.name.clone(), json_of(&it.value))).collect()
        }
    }
}

fn parsed(text: &str) -> Value {
    json_of(Document::parse(&Source::new("rules.yaml", text)).unwrap().root())
}

fn reads(file: &Value) -> bool {
    RuleSet::read(&Source::new("rules.json", file.to_string()), &crate::NoFiles).is_ok()
}

/// Where a value does not fit; the part of JSON Schema that ours uses.
fn misfit(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let fits = |schema: &Value| misfit(root, schema, value, at).is_none();
    let no = |why: &str| Some(format!("{at}: {why}: {value}"));
    for (word, said) in schema.as_object().unwrap() {
        let list = said.as_array().map_or(&[][..], |list| list);
        let found = match word.as_str() {
            "$ref" => {
                let target = root.pointer(said.as_str().unwrap().trim_start_matches('#')).unwrap();
                misfit(root, target, value, at)
            }
            "type" if !is_type(said, value) => no("type"),
            "enum" if !list.contains(value) => no("enum"),
            "const" if said != value => no("const"),
            "pattern" => match value.as_str() {
                Some(text) if !matches(said.as_str().unwrap(), text) => no("pattern"),
                _ => None,
            },
            "minimum" if value.as_f64() < said.as_f64() && value.is_number() => no("minimum"),
            "maximum" if value.as_f64() > said.as_f64() && value.is_number() => no("maximum"),
            "minItems" if value.as_array().is_some_and(|it| it.len() < number(said)) => no(word),
            "maxItems" if value.as_array().is_some_and(|it| it.len() > number(said)) => no(word),
            "minProperties" if value.as_object().is_some_and(|it| it.len() < number(said)) => {
                no(word)
            }
            "required" if list.iter().any(|it| value.get(it.as_str().unwrap()).is_none()) => {
                no("required")
            }
            "anyOf" if !list.iter().any(fits) => no("anyOf"),
            "oneOf" if list.iter().filter(|it| fits(it)).count() != 1 => no("oneOf"),
            "if" => {
                let branch = if fits(said) { "then" } else { "else" };
                misfit(root, &schema[branch], value, at)
            }
            "items" => value.as_array().and_then(|items| {
                let mut items = items.iter().enumerate();
                items.find_map(|(i, item)| misfit(root, said, item, &format!("{at}/{i}")))
            }),
            "additionalProperties" => misfit_field(root, schema, value, at),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn misfit_field(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let empty = Map::new();
    let patterns = schema["patternProperties"].as_object().unwrap_or(&empty);
    value.as_object()?.iter().find_map(|(name, field)| {
        let at = format!("{at}/{name}");
        let own = schema["properties"].get(name).into_iter();
        let by_pattern = patterns.iter().filter(|(pattern, _)| matches(pattern, name));
        let mut schemas = own.chain(by_pattern.map(|(_, schema)| schema)).peekable();
        if schemas.peek().is_some() {
            return schemas.find_map(|schema| misfit(root, schema, field, &at));
        }
        match schema["additionalProperties"].is_object() {
            true => misfit(root, &schema["additionalProperties"], field, &at),
            false => Some(format!("{at}: unknown field")),
        }
    })
}

fn number(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).unwrap().is_match(text)
}

fn is_type(said: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("{other}"),
    };
    said.as_array().map_or_else(|| is(said), |names| names.iter().any(is))
}

fn check(file: &Value) -> Option<String> {
    let schema = tree();
    misfit(&schema, &schema, file, "")
}

#[test]
fn the_fields_are_those_of_the_reader() {
    let schema = tree();
    let same = |pointer: &str, known: &[&str]| {
        let object = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        let said: BTreeSet<_> = object["properties"].as_object().unwrap().keys().collect();
        let known: Vec<_> = known.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(said, known.iter().collect(), "{pointer}");
        assert_eq!(object["additionalProperties"], json!(false), "{pointer}");
    };
    let rule = "/$defs/rule/properties";
    same("", &rule_file::FIELDS);
    same("/properties/client_ip", &rule_file::CLIENT_IP_FIELDS);
    same("/properties/geo", &crate::Geo::FIELDS);
    same("/properties/tiers", &crate::Tiers::FIELDS);
    same("/properties/defaults", &crate::settings::Settings::FIELDS);
    same("/properties/defaults/properties/deny", &crate::Deny::FIELDS);
    let test = "/properties/tests/anyOf/0/anyOf/0";
    let step = format!("{test}/properties/steps/items");
    same(test, &crate::Case::FIELDS);
    same(&step, &crate::case::Step::FIELDS);
    for at in [test, &step] {
        same(&format!("{at}/properties/given"), &crate::case::Given::FIELDS);
        same(&format!("{at}/properties/expect"), &crate::case::Expect::FIELDS);
    }
    same("/$defs/group", &rule_file::GROUP_FIELDS);
    same("/$defs/rule", &rule::known_fields());
    same(&format!("{rule}/deny"), &crate::Deny::FIELDS);
    same(&format!("{rule}/window"), &crate::window::Window::FIELDS);
    same(&format!("{rule}/cost/anyOf/1"), &crate::Cost::FIELDS);
    same(&format!("{rule}/cost/anyOf/1/properties/graphql"), &GraphqlCost::FIELDS);
    same(&format!("{rule}/key_missing/anyOf/2"), &["together"]);
    same(&format!("{rule}/match"), &crate::matching::SPECIAL);
    assert!(rule::known_fields().starts_with(&["name"]) && budget::FIELDS.contains(&"limit"));
}

#[test]
fn every_field_is_described() {
    fn walk(value: &Value, at: &str) {
        for (name, field) in value["properties"].as_object().into_iter().flatten() {
            let text = field["description"].as_str().unwrap_or_default();
            assert!(text.ends_with(['.', '`']), "{at}/{name}: `{text}`");
        }
        for (name, inner) in value.as_object().into_iter().flatten() {
            walk(inner, &format!("{at}/{name}"));
        }
        value.as_array().into_iter().flatten().for_each(|inner| walk(inner, at));
    }
    walk(&tree(), "");
}

#[test]
fn a_file_with_everything_fits() {
    let file = parsed(FILE);
    assert!(reads(&file), "{}", RuleSet::parse(FILE).unwrap_err());
    assert_eq!(check(&file), None);
}

#[test]
fn attributes_and_quotas_are_those_that_are_read() {
    let definition = |name: &str| tree()["$defs"][name]["pattern"].as_str().unwrap().to_owned();
    let attribute = definition("attribute");
    for text in [
        "ip",
        "asn",
        "country",
        "tier",
        "method",
        "host",
        "path",
        "user",
        "account",
        "api_key",
        "domain",
        "descriptor_keys",
        "ip/1",
        "ip/24",
        "ip/128",
        "ip/129",
        "ip/0",
        "path.id",
        "header.x-a",
        "query.q",
        "claims.a.b",
        "body.x",
        "user.x",
        "account.x",
        "descriptor.x",
        "header.",
        "acount",
        "",
        "x.y",
    ] {
        assert_eq!(matches(&attribute, text), text.parse::<Attribute>().is_ok(), "{text}");
    }
    let quota = definition("quota");
    for text in [
        "5/s",
        "10k / 15 min",
        "1G/month",
        "5/2weeks",
        "unlimited",
        "5/min burst 3",
        "5/minutes",
        "5",
        "5/",
        "/s",
        "5/fortnight",
        "k/s",
        "5/s burst",
        "5 /d",
        "5/1h",
        "-5/s",
        "5.5/s",
    ] {
        assert_eq!(matches(&quota, text), text.parse::<tollgate_core::Quota>().is_ok(), "{text}");
    }
    let duration = definition("duration");
    for text in ["500ms", "15min", "1 d", "month", "5", "", "5 y"] {
        let read = text.parse::<tollgate_core::Period>().is_ok();
        assert_eq!(matches(&duration, text), read, "{text}");
    }
}

/// Pointers to all objects whose fields are known.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    const OPEN: [&str; 4] = ["limit", "burst", "concurrent", "overrides"];
    match value {
        Value::Object(map) => {
            found.push(at.to_owned());
            for (name, it) in map.iter().filter(|(name, _)| !OPEN.contains(&name.as_str())) {
                objects(it, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(list) => {
            for (i, it) in list.iter().enumerate() {
                objects(it, &format!("{at}/{i}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn unknown_fields_do_not_fit() {
    let (file, mut found) = (parsed(FILE), Vec::new());
    objects(&file, "", &mut found);
    assert!(found.len() > 20, "{found:?}");
    for at in found {
        let mut file = file.clone();
        file.pointer_mut(&at).unwrap()["zzz"] = json!("x");
        assert!(check(&file).is_some(), "{at} takes any field");
        assert!(!reads(&file), "{at} is read with any field");
    }
}

#[test]
fn wrong_values_do_not_fit() {
    for rules in [
        "{ name: a, key: [], limit: 5 }",
        "{ name: a, key: [], limit: 5/s, concurrent: 3 }",
        "{ name: a, key: [], limit: 5/s, mode: of }",
        "{ name: a b, key: [], limit: 5/s }",
        "{ name: a, key: [acount], limit: 5/s }",
        "{ name: a, limit: 5/s }",
        "{ name: a, key: [], limit: 5/s, match: { method: get } }",
        "{ name: a, key: [], limit: 5/s, match: { pth: /a } }",
        "{ name: a, key: [], limit: 5/s, deny: { status: 200 } }",
        "{ group: a, rules: [{ group: b, rules: [] }] }",
    ] {
        let file = parsed(&format!("rules: [{rules}]"));
        assert!(check(&file).is_some() && !reads(&file), "{rules}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_can_be_read_fits(file in explain::tests::file()) {
        let file = parsed(&format!("{}{file}", explain::tests::head()));
        prop_assert!(reads(&file));
        prop_assert_eq!(check(&file), None);
    }
}

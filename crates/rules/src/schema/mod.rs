//! The rule file as a JSON Schema, for editors: what can be written, and what it means.
//!
//! It refuses what is certainly wrong and leaves the rest to [`RuleSet::read`](crate::RuleSet),
//! which knows the names of tiers and the parts of paths. Tests hold its fields to those of the
//! reader.

mod case;
mod rule;
mod setting;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::descriptors::Descriptors;

/// The JSON Schema (draft 2020-12) of rule files.
///
/// ```
/// let schema = tollgate_rules::schema();
/// assert!(schema.contains("https://json-schema.org/draft/2020-12/schema"));
/// assert!(schema.contains("first_match"));
/// ```
pub fn schema() -> String {
    // A tree of plain values is always text: `{:#}` writes it with line breaks.
    format!("{:#}\n", tree())
}

fn tree() -> Value {
    let mut root = object(
        "A rule file of Tollgate: which requests are limited, by what, and how much.",
        &["rules"],
        [
            ("version", version()),
            ("namespace", named("Counters of two namespaces never mix. Default: `default`.")),
            ("descriptors", descriptors()),
            ("client_ip", client_ip()),
            ("geo", geo()),
            ("tiers", tiers()),
            ("defaults", setting::defaults()),
            ("rules", rule::rules()),
            ("tests", case::tests()),
        ],
    );
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Tollgate rules");
    root["$defs"] = json!({
        "attribute": attribute(),
        "quota": quota(),
        "count": count(),
        "duration": duration(),
        "name": name(),
        "rule": rule::rule(),
        "group": rule::group(),
    });
    root
}

/// An object with these fields and no others.
fn object<'f>(
    description: &str,
    required: &[&str],
    fields: impl IntoIterator<Item = (&'f str, Value)>,
) -> Value {
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    let mut object = json!({
        "description": description,
        "type": "object",
        "additionalProperties": false,
        "properties": fields,
    });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// One of the definitions, and what it means here.
fn reference(definition: &str, description: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{definition}"), "description": description })
}

fn named(description: &str) -> Value {
    reference("name", description)
}

/// One of several words.
fn choice<T>(description: &str, choices: &[(&str, T)], usual: &str) -> Value {
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    json!({ "description": description, "enum": names, "default": usual })
}

/// One such value, or a list of them.
fn one_or_more(description: &str, item: &Value) -> Value {
    let list = json!({ "type": "array", "items": item });
    json!({ "description": description, "anyOf": [item, list] })
}

/// One such value, or one for each tier.
fn tiered(description: &str, definition: &str) -> Value {
    let value = json!({ "$ref": format!("#/$defs/{definition}") });
    let each = json!({ "type": "object", "additionalProperties": value, "minProperties": 1 });
    json!({ "description": description, "anyOf": [value, each] })
}

/// Text; a number is text as well.
fn text(description: &str) -> Value {
    json!({ "description": description, "type": ["string", "number"] })
}

fn version() -> Value {
    json!({ "description": "The version of the format.", "enum": [1, "1"], "default": 1 })
}

fn descriptors() -> Value {
    choice(
        "How the descriptors of one request of Envoy are decided about: `together`, so that a \
         request that is denied for one of them spends nothing; or `each` on its own, as \
         envoyproxy/ratelimit does.",
        &Descriptors::CHOICES,
        "together",
    )
}

fn client_ip() -> Value {
    let proxies = one_or_more(
        "Networks of proxies whose word about clients is believed. Default: none, so that the \
         client is whoever has connected. Too many, and clients choose their own counters.",
        &text("A network or an address: `10.0.0.0/8`."),
    );
    let bits = json!({
        "description": "How many bits of an IPv6 address are one client: 1 to 128. Default: 64.",
        "type": ["integer", "string"],
        "minimum": 1,
        "maximum": 128,
        "default": 64,
    });
    let header = json!({
        "description": "The header in which these proxies name the client. Default: `x-forwarded-for`.",
        "type": "string",
        "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
        "default": "x-forwarded-for",
    });
    object(
        "How the client's address is found behind proxies.",
        &[],
        [("trusted_proxies", proxies), ("header", header), ("ipv6_host", bits)],
    )
}

fn geo() -> Value {
    let file = |what: &str| text(&format!("A MaxMind database of {what}, beside the rule file."));
    let mut geo = object(
        "Databases that say where addresses are: what `asn` and `country` need.",
        &[],
        [("asn", file("network operators")), ("country", file("countries"))],
    );
    geo["minProperties"] = json!(1);
    geo
}

fn tiers() -> Value {
    let known = json!({
        "description": "All tiers. Limits that differ by tier name each of them.",
        "type": "array",
        "items": { "$ref": "#/$defs/name" },
        "minItems": 1,
        "maxItems": crate::Tiers::MAX,
        "uniqueItems": true,
    });
    object(
        "The plans that requests are on.",
        &["from", "known", "else"],
        [
            ("from", reference("attribute", "What of a request names its tier: `claims.plan`.")),
            ("known", known),
            ("else", named("The tier of requests that name none, or one that is not known.")),
        ],
    )
}

fn attribute() -> Value {
    json!({
        "description": "A part of a request: `user`, `account`, `api_key`, `domain`, \
            `descriptor_keys`, `ip`, `ip/24`, `asn`, `country`, `tier`, `method`, `host`, `path`, or a member of `header.`, `query.`, \
            `path.`, `claims.`, `body.`, `user.`, `account.`, `descriptor.`.",
        "type": "string",
        "pattern": format!("^{ATTRIBUTE}$"),
    })
}

fn quota() -> Value {
    json!({
        "description": "So many per time: `100/min`, `10k/h`, `5M/month`, `10/15min`; or `unlimited`.",
        "type": "string",
        "pattern": format!("^ *(unlimited|{COUNT} */ *[0-9]* *{UNIT}( +burst +{COUNT})?) *$"),
    })
}

fn count() -> Value {
    json!({
        "description": "A whole number, also as `10k`, `5M`, `1G`.",
        "type": ["integer", "string"],
        "minimum": 0,
        "pattern": format!("^{COUNT}$"),
    })
}

fn duration() -> Value {
    json!({
        "description": "A length of time: `500ms`, `30s`, `15min`, `2h`, `1d`, `1week`, `1month` (30 days).",
        "type": "string",
        "pattern": format!("^ *[0-9]* *{UNIT} *$"),
    })
}

fn name() -> Value {
    json!({
        "description": "1 to 64 letters, digits, and `-_.:/`.",
        "type": ["string", "number"],
        "pattern": "^[A-Za-z0-9._:/-]{1,64}$",
    })
}

/// Every attribute, as a pattern.
const ATTRIBUTE: &str = "(ip|ip/([1-9]|[1-9][0-9]|1[01][0-9]|12[0-8])|asn|country|tier|method\
    |host|path|user|account|api_key|domain|descriptor_keys\
    |(header|query|path|claims|body|user|account|descriptor)[.].+)";

const COUNT: &str = "[0-9]+[kMG]?";

const UNIT: &str = "(ms|s|sec|seconds?|min|minutes?|h|hours?|d|days?|weeks?|months?)";

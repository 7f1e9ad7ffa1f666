//! What a rule and a group of rules can say.

use serde_json::{Value, json};

use super::setting::settings;
use super::{ATTRIBUTE, choice, named, object, one_or_more, reference, text, tiered};
use crate::budget::ALGORITHMS;
use crate::key::KeyParts;
use crate::matching::METHODS;

/// Rules, and groups of rules.
pub(super) fn rules() -> Value {
    json!({
        "description": "All rules. A request must be allowed by each that applies to it.",
        "type": "array",
        "items": {
            "if": { "anyOf": [{ "required": ["rules"] }, { "required": ["group"] }] },
            "then": { "$ref": "#/$defs/group" },
            "else": { "$ref": "#/$defs/rule" },
        },
    })
}

pub(super) fn group() -> Value {
    let first_match = json!({
        "description": "Whether only the first that applies is asked, the most specific first. \
            Default: false, and all that apply are.",
        "type": "boolean",
        "default": false,
    });
    let rules = json!({
        "description": "The rules of the group.",
        "type": "array",
        "items": { "$ref": "#/$defs/rule" },
    });
    object(
        "Rules that belong together.",
        &["rules"],
        [("group", named("What it is called.")), ("first_match", first_match), ("rules", rules)],
    )
}

pub(super) fn rule() -> Value {
    let fields = about().into_iter().chain(amount()).chain(settings());
    let mut rule = object("One limit, and which requests meet it.", &["name", "key"], fields);
    rule["oneOf"] = json!([{ "required": ["limit"] }, { "required": ["concurrent"] }]);
    rule
}

/// Which requests, and what they are counted by.
fn about() -> [(&'static str, Value); 8] {
    let part = json!({ "$ref": "#/$defs/attribute" });
    let key = json!({
        "description": "What is counted apart: `[user]`; `[]` is one counter for everybody.",
        "anyOf": [part, { "type": "array", "items": part, "maxItems": KeyParts::MAX }],
    });
    let together = object(
        "All such requests are counted together.",
        &["together"],
        [("together", named("The name of their counter: `anonymous`."))],
    );
    let missing = json!({
        "description": "What becomes of requests that lack a part of the key. `skip`: the rule \
            does not apply to them; an attribute: they count by it instead; `{ together: NAME }`: \
            they share one counter. Default: skip.",
        "anyOf": [{ "const": "skip" }, part, together],
        "default": "skip",
    });
    let overrides = json!({
        "description": "Limits of single keys: a file with lines `KEY,LIMIT`, or a map.",
        "anyOf": [
            { "type": "string" },
            { "type": "object", "additionalProperties": { "$ref": "#/$defs/quota" } },
        ],
    });
    let count_if = "Which outcomes count: `response.status in [401, 403]`. Default: all.";
    let block_for = "How long a key is denied everything after a denial. Default: not at all.";
    [
        ("name", named("What metrics, headers and denials call it. No two rules share one.")),
        ("match", matching()),
        ("key", key),
        ("key_missing", missing),
        ("cost", cost()),
        ("count_if", text(count_if)),
        ("block_for", reference("duration", block_for)),
        ("overrides", overrides),
    ]
}

/// How much is allowed.
fn amount() -> [(&'static str, Value); 7] {
    let queue = "How many wait in line in a `leaky_bucket`; 0 denies at once. Default: 0.";
    let expires = "After what time a slot comes back whose holder died. Default: never.";
    [
        ("limit", tiered("So many per time, for all or for each tier: `100/min`.", "quota")),
        (
            "burst",
            tiered(
                "The most that may pass at one instant, the capacity of the bucket. Default: the \
                 whole limit.",
                "count",
            ),
        ),
        (
            "algorithm",
            choice(
                "token_bucket: bursts up to `burst`, then the pace of the limit; leaky_bucket: \
                 one by one at an even pace; fixed_window: windows of the clock; sliding_window: \
                 the last period, estimated; sliding_log: the last period, exactly. Default: \
                 token_bucket, and fixed_window beside `window`.",
                &ALGORITHMS,
                "token_bucket",
            ),
        ),
        ("queue", reference("count", queue)),
        ("window", window()),
        ("concurrent", tiered("How many may be under way at once.", "count")),
        ("expires", reference("duration", expires)),
    ]
}

fn matching() -> Value {
    let any = "a star at the end or the beginning stands for anything";
    let mut matching = object(
        "What a request must be, all at once; lists mean any of. Default: every request.",
        &[],
        [
            ("method", one_or_more("Methods.", &json!({ "enum": METHODS }))),
            ("host", one_or_more(&format!("Hosts; {any}."), &text("`api.example.com`"))),
            (
                "path",
                one_or_more(
                    "Paths: segments are text, `*`, `{name}`, or `**` at the end.",
                    &json!({ "type": "string", "pattern": "^/[^?#]*$" }),
                ),
            ),
            ("tier", one_or_more("Tiers.", &json!({ "$ref": "#/$defs/name" }))),
            ("ip", one_or_more("Networks and addresses.", &text("`10.0.0.0/8`"))),
            ("when", text("A condition in CEL, for what the other fields cannot say.")),
        ],
    );
    let values = one_or_more(&format!("What the attribute may be; {any}."), &text("A value."));
    matching["patternProperties"] = json!({ format!("^{ATTRIBUTE}$"): values });
    matching
}

fn cost() -> Value {
    let number = json!({ "$ref": "#/$defs/count" });
    let depth = json!({
        "description": "How deep fields may be nested, 1 to 128; deeper queries are denied. \
            Default: 10.",
        "type": ["integer", "string"],
        "minimum": 1,
        "maximum": 128,
        "default": 10,
    });
    let list = "How many items a list has whose length the query does not say. Default: 20.";
    let graphql = object(
        "The points of the GraphQL query in `body.query`.",
        &[],
        [("depth", depth), ("list", reference("count", list))],
    );
    let missing = "What a request costs that lacks the attribute. Default: 1.";
    let computed = object(
        "A cost that depends on the request: one of `attribute`, `expression` and `graphql`.",
        &[],
        [
            ("attribute", reference("attribute", "What says the cost, as a whole number.")),
            ("missing", reference("count", missing)),
            ("expression", text("A whole number in CEL: `int(body.items) * 2`.")),
            ("graphql", graphql),
        ],
    );
    json!({
        "description": "What a request spends; 0 only asks. Default: 1.",
        "anyOf": [number, computed],
        "default": 1,
    })
}

fn window() -> Value {
    let anchor = json!({
        "description": "The day on which months begin, 1 to 31, or the attribute that names it. \
            Default: 1.",
        "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": 31 },
            { "$ref": "#/$defs/attribute" },
        ],
        "default": 1,
    });
    let jitter = json!({
        "description": "Whether windows begin at another moment for each key. Default: false.",
        "type": "boolean",
        "default": false,
    });
    let units = [("day", ()), ("week", ()), ("month", ())];
    let mut calendar = choice("Windows are days, weeks or months of the calendar.", &units, "");
    if let Some(calendar) = calendar.as_object_mut() {
        calendar.remove("default");
    }
    object(
        "Where the windows of a `fixed_window` lie. Default: at multiples of their length.",
        &[],
        [
            ("calendar", calendar),
            ("timezone", text("Whose calendar: `Europe/Berlin`. Default: UTC.")),
            ("anchor", anchor),
            ("jitter", jitter),
        ],
    )
}

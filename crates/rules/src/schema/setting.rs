//! What `defaults` and each rule can say.

use serde_json::{Value, json};

use super::{choice, object, one_or_more, text};
use crate::settings::{CONSISTENCIES, HEADERS, MODES, ON_STORE_FAILURE, PRIORITIES};

pub(super) fn defaults() -> Value {
    object("What holds for every rule that does not say otherwise.", &[], settings())
}

pub(super) fn settings() -> [(&'static str, Value); 7] {
    let percentage = json!({ "type": "string", "pattern": "^([1-9]|[1-9][0-9]|100)%$" });
    [
        (
            "mode",
            choice(
                "enforce: deny what is over the limit; shadow: count and report, and never deny; \
                 off: as if the rule were not there. Default: enforce.",
                &MODES,
                "enforce",
            ),
        ),
        (
            "consistency",
            choice(
                "Where counters are. local: on each node alone; shared: in the store, hot keys are \
                 lent to nodes; strict: in the store, asked for every request; durable: in a \
                 ledger that survives crashes. Default: shared.",
                &CONSISTENCIES,
                "shared",
            ),
        ),
        ("on_store_failure", on_store_failure()),
        (
            "priority",
            choice(
                "Who is turned away first under overload: low first, critical last. Default: \
                 normal.",
                &PRIORITIES,
                "normal",
            ),
        ),
        (
            "headers",
            choice(
                "Which headers tell clients about the limit. standard: RateLimit and \
                 RateLimit-Policy; legacy: X-RateLimit-*; both; github: legacy with \
                 X-RateLimit-Used; none. Default: both.",
                &HEADERS,
                "both",
            ),
        ),
        ("deny", deny()),
        (
            "warn_at",
            one_or_more(
                "Shares of the limit at which clients are warned: `[80%, 95%]`.",
                &percentage,
            ),
        ),
    ]
}

fn on_store_failure() -> Value {
    let names = ON_STORE_FAILURE.map(|(name, _)| name);
    json!({
        "description": "While the store cannot be reached. allow: let everything pass; deny: \
                        nothing; local: go on with what this node knows, and its share of the \
                        limit, which `local 20%` says and the server otherwise. Default: local.",
        "anyOf": [
            { "enum": names },
            { "type": "string", "pattern": "^local ([1-9]|[1-9][0-9]|100)%$" },
        ],
        "default": "local",
    })
}

fn deny() -> Value {
    let status = json!({
        "description": "The status, 400 to 599. Default: 429.",
        "type": ["integer", "string"],
        "minimum": 400,
        "maximum": 599,
        "default": 429,
    });
    let filled = "with `{retry_after}`, `{limit}` and `{rule}` filled in";
    object(
        "The answer to requests that are denied.",
        &[],
        [
            ("status", status),
            ("message", text(&format!("What it says, {filled}."))),
            ("body", text(&format!("A whole body in place of the usual one, {filled}."))),
        ],
    )
}

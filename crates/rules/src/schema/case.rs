//! What a test of rules can say.

use serde_json::{Value, json};

use super::{object, one_or_more, reference, text};
use crate::Case;

/// Tests, and files of tests.
pub(super) fn tests() -> Value {
    let file = json!({ "description": "A file with more tests.", "type": "string" });
    let test = json!({ "anyOf": [test(), file] });
    one_or_more("Tests of these rules, run in simulated time, or files of them.", &test)
}

fn test() -> Value {
    let steps = json!({
        "description": "Several steps, one after another, with the same counters.",
        "type": "array",
        "items": object(
            "One step of a test.",
            &["given"],
            [
                ("after", reference("duration", "How long after the last step. Default: 0.")),
                ("given", given()),
                ("expect", expect()),
            ],
        ),
        "minItems": 1,
        "maxItems": Case::MAX_STEPS,
    });
    let mut test = object(
        "Requests, and what must become of them.",
        &["name"],
        [
            ("name", text("What is tested: `a free user gets 100 a minute`.")),
            ("given", given()),
            ("expect", expect()),
            ("steps", steps),
        ],
    );
    test["oneOf"] = json!([{ "required": ["given"] }, { "required": ["steps"] }]);
    test
}

fn given() -> Value {
    let respond = json!({
        "description": "The status of the responses, 100 to 599, for `count_if`. Default: none.",
        "type": ["integer", "string"],
        "minimum": 100,
        "maximum": 599,
    });
    object(
        "What is asked.",
        &["request"],
        [
            ("request", text("One request: `GET /v1/items user=u1 claims.plan=free`.")),
            ("times", reference("count", "How often it is made. Default: 1.")),
            ("over", reference("duration", "Over what time, evenly. Default: all at once.")),
            ("respond", respond),
        ],
    )
}

fn expect() -> Value {
    let compared =
        |what: &str| text(&format!("{what}: a value, or one behind `<=`, `>=`, `<`, `>`."));
    let denied_by = one_or_more("The rules that deny.", &text("The name of a rule."));
    object(
        "What must come out.",
        &[],
        [
            ("allowed", compared("How many pass")),
            ("denied", compared("How many do not")),
            ("denied_by", denied_by),
            ("retry_after", compared("How long the last that is denied has to wait")),
            ("remaining", compared("How much is left after the last")),
            ("delay", compared("How long the last has to wait in line")),
            ("warning", compared("The percentage of the limit that the last is warned of")),
        ],
    )
}

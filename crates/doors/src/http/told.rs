//! What is said about a ruling, in JSON. It is written straight into the body, because it is written
//! for every request.

use std::time::Duration;

use tollgate::{Decision, Mode, Retry, RuleDecision, Ruling};

use crate::tickets::Ticket;

/// Writes what is said about a ruling: an object, which begins with the members of `problem`, if it
/// is one.
pub(super) fn write(
    ruling: &Ruling,
    ticket: Option<Ticket>,
    problem: Option<&[u8]>,
    to: &mut Vec<u8>,
) {
    match problem {
        Some([members @ .., b'}']) => {
            to.extend_from_slice(members);
            to.push(b',');
        }
        _ => to.push(b'{'),
    }
    put(
        to,
        if ruling.is_allowed() {
            r#""allowed":true,"rule":"#
        } else {
            r#""allowed":false,"rule":"#
        },
    );
    match ruling.rule() {
        Some(name) => put_text(to, name),
        None => put(to, "null"),
    }
    write_numbers(&ruling.decision(), to);
    put(to, r#","rules":["#);
    for (number, each) in ruling.each().enumerate() {
        if number > 0 {
            to.push(b',');
        }
        write_rule(&each, to);
    }
    put(to, r#"],"ticket":"#);
    match ticket {
        // Digits need no escapes.
        Some(ticket) => put(to, &format!("\"{ticket}\"}}")),
        None => put(to, "null}"),
    }
}

/// One rule that applies.
fn write_rule(each: &RuleDecision<'_>, to: &mut Vec<u8>) {
    put(to, r#"{"name":"#);
    put_text(to, each.name());
    put(to, r#","mode":"#);
    put(
        to,
        match each.mode() {
            Mode::Enforce => r#""enforce""#,
            Mode::Shadow => r#""shadow""#,
            Mode::Off => r#""off""#,
        },
    );
    put(to, r#","allowed":"#);
    put(to, if each.is_allowed() { "true" } else { "false" });
    write_numbers(&each.decision(), to);
    put(to, r#","warning":"#);
    put_option(to, each.warning().map(u64::from));
    to.push(b'}');
}

/// What is left of a limit, and when there is more.
fn write_numbers(decision: &Decision, to: &mut Vec<u8>) {
    let known = |number: u64| Some(number).filter(|number| *number != Decision::UNLIMITED);
    put(to, r#","limit":"#);
    put_option(to, known(decision.limit()));
    put(to, r#","remaining":"#);
    put_option(to, known(decision.remaining()));
    put(to, r#","reset_after_ms":"#);
    put_number(to, milliseconds(decision.reset_after()));
    put(to, r#","retry":"#);
    put(
        to,
        match decision.retry() {
            None => "null",
            Some(Retry::After(_)) => r#""after""#,
            Some(Retry::OnReturn) => r#""on_return""#,
            Some(Retry::Never) => r#""never""#,
        },
    );
    put(to, r#","retry_after_ms":"#);
    put_option(to, decision.retry_after().map(milliseconds));
    put(to, r#","delay_ms":"#);
    put_number(to, milliseconds(decision.delay()));
}

/// Rounded up: whoever waits as long as they are told is let in.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn put(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(text.as_bytes());
}

fn put_number(to: &mut Vec<u8>, number: u64) {
    put(to, itoa::Buffer::new().format(number));
}

fn put_option(to: &mut Vec<u8>, number: Option<u64>) {
    match number {
        Some(number) => put_number(to, number),
        None => put(to, "null"),
    }
}

/// A text with its quotes.
fn put_text(to: &mut Vec<u8>, text: &str) {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\');
    if text.bytes().all(is_plain) {
        to.push(b'"');
        put(to, text);
        to.push(b'"');
        return;
    }
    // A text can always be written to memory.
    let _ = serde_json::to_writer(to, text);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tollgate::{Engine, ManualClock, Request, RuleSet};

    use super::*;

    fn told(ruling: &Ruling, problem: Option<&[u8]>) -> Value {
        let mut to = Vec::new();
        write(ruling, None, problem, &mut to);
        serde_json::from_slice(&to).unwrap()
    }

    #[test]
    fn a_ruling_is_told_in_full() {
        let rules = "rules:
          - { name: per-user, key: [user], limit: 2/min, warn_at: [50%] }
          - { name: trial, key: [], limit: 1/h, mode: shadow }";
        let engine = Engine::builder(RuleSet::parse(rules).unwrap()).clock(ManualClock::new());
        let engine = engine.build().unwrap();
        let request = Request::new("GET", "/").attributes(&[("user", "a")]);
        let one = |name: &str, mode, allowed, rest: [u64; 3], warning: Option<u8>| {
            let [limit, remaining, reset] = rest;
            json!({
                "name": name, "mode": mode, "allowed": allowed, "limit": limit, "remaining": remaining,
                "reset_after_ms": reset, "retry": null, "retry_after_ms": null, "delay_ms": 0,
                "warning": warning,
            })
        };
        assert_eq!(
            told(&engine.decide(&request), None),
            json!({
                "allowed": true, "rule": "per-user", "limit": 2, "remaining": 1,
                "reset_after_ms": 30_000, "retry": null, "retry_after_ms": null, "delay_ms": 0,
                "rules": [
                    one("per-user", "enforce", true, [2, 1, 30_000], Some(50)),
                    one("trial", "shadow", true, [1, 0, 3_600_000], None),
                ],
                "ticket": null,
            })
        );
        assert!(engine.decide(&request).is_allowed());
        let denied = told(&engine.decide(&request), Some(br#"{"status":429}"#));
        assert_eq!((&denied["status"], &denied["allowed"]), (&json!(429), &json!(false)));
        assert_eq!(
            (&denied["retry"], &denied["retry_after_ms"]),
            (&json!("after"), &json!(30_000))
        );
    }

    #[test]
    fn no_rule_is_told_as_none() {
        let engine = Engine::new(RuleSet::parse("rules: []").unwrap()).unwrap();
        let told = told(&engine.decide(&Request::new("GET", "/")), None);
        assert_eq!((&told["allowed"], &told["rules"]), (&json!(true), &json!([])));
        assert!(told["rule"].is_null() && told["limit"].is_null() && told["remaining"].is_null());
    }

    #[test]
    fn what_is_never_and_what_nobody_knows_is_told() {
        let rules = "rules:
          - { name: few, match: { path: /few }, key: [], limit: 2/s }
          - { name: slot, match: { path: /slot }, key: [], concurrent: 1 }";
        let engine = Engine::new(RuleSet::parse(rules).unwrap()).unwrap();
        let never = told(&engine.decide(&Request::new("GET", "/few").cost(3)), None);
        assert_eq!((&never["retry"], &never["retry_after_ms"]), (&json!("never"), &Value::Null));
        let slot = Request::new("GET", "/slot");
        let held = engine.decide(&slot);
        assert_eq!(told(&engine.decide(&slot), None)["retry"], "on_return");
        drop(held);
    }
}

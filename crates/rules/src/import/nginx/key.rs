//! What a zone counts by.

use std::collections::BTreeMap;

use super::super::Notes;
use super::super::rule_file::Rule;

/// Puts the variables of a zone's key into the key of a rule. Text between them says nothing that
/// is not the same for all requests.
pub(super) fn write(
    text: &str,
    at: usize,
    made: &BTreeMap<String, usize>,
    notes: &mut Notes<'_>,
    rule: &mut Rule,
) {
    for variable in variables(text) {
        match attribute(variable) {
            Some(attribute) if rule.key.contains(&attribute) => {}
            Some(attribute) => rule.key.push(attribute),
            None => {
                let origin =
                    made.get(variable).map(|at| format!(" (made on line {})", notes.line(*at)));
                let origin = origin.unwrap_or_default();
                let message = format!(
                    "`${variable}`{origin} in a key is not carried over: its rule only counts"
                );
                let remedy = match made.contains_key(variable) {
                    true => {
                        "say with `match`, `when` or `tiers` what it chose by, and take `mode: shadow` away"
                    }
                    false if variable.starts_with("geoip") => {
                        "name a database under `geo`, add `country` or `asn` to `key`, and take `mode: shadow` away"
                    }
                    false => {
                        "add an attribute that stands for it to `key`, and take `mode: shadow` away"
                    }
                };
                notes.add(at, message, remedy);
                rule.shadow_because(format!(
                    "Was also counted by ${variable}, which has no counterpart."
                ));
            }
        }
        if variable == "request_uri" {
            let remedy = "add `query.` attributes to `key` if it mattered";
            notes.add(at, "`$request_uri` has the query in it, and `path` has not", remedy);
        }
    }
    let optional =
        |attribute: &String| attribute.starts_with("header.") || attribute.starts_with("query.");
    if rule.key.len() > 1 && rule.key.iter().any(optional) {
        let message = "a request without one of the key's parts was counted by the others, and is not counted here";
        notes.add(at, message, "give the rule `key_missing` if such requests are to be limited");
    }
}

/// The names of `$a` and `${a}` in text.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).map(|part| {
        let part = part.strip_prefix('{').unwrap_or(part);
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        &part[..end]
    })
}

fn attribute(variable: &str) -> Option<String> {
    let attribute = match variable {
        "binary_remote_addr" | "remote_addr" | "realip_remote_addr" => "ip".to_owned(),
        "server_name" | "host" | "http_host" => "host".to_owned(),
        "uri" | "document_uri" | "request_uri" => "path".to_owned(),
        "request_method" => "method".to_owned(),
        "remote_user" => "user".to_owned(),
        other => match other.split_once('_') {
            Some(("http", name)) if !name.is_empty() => {
                format!("header.{}", name.replace('_', "-").to_ascii_lowercase())
            }
            Some(("arg", name)) if !name.is_empty() => format!("query.{name}"),
            _ => {
                return other
                    .strip_prefix("jwt_claim_")
                    .filter(|name| !name.is_empty())
                    .map(|name| format!("claims.{name}"));
            }
        },
    };
    Some(attribute)
}

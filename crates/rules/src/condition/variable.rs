//! The names that expressions may use.

use super::ExpressionError;
use super::check::Kind;
use crate::read::did_you_mean;

/// What a dotted name stands for.
pub(super) enum Variable {
    /// A variable of this name.
    Whole(Kind),
    /// The member of a map: the map's name, and the key.
    Member(&'static str, String),
}

/// What a dotted name stands for, which begins `at` a place of the expression.
pub(super) fn find(
    segments: &[&str],
    outcome: bool,
    at: usize,
) -> Result<Variable, ExpressionError> {
    let name = segments.join(".");
    if segments[0] == "response" && !outcome {
        return Err(ExpressionError::NoOutcome { at });
    }
    if let Some((_, kind)) = VARIABLES.iter().find(|(known, _)| *known == name) {
        return Ok(Variable::Whole(*kind));
    }
    if let [root, _, ..] = segments
        && FAMILIES.contains(root)
    {
        return Ok(Variable::Member("attributes", name));
    }
    let maps = VARIABLES.iter().filter(|(_, kind)| *kind == Kind::Names);
    for (map, _) in maps {
        if let Some(key) = name.strip_prefix(map).and_then(|rest| rest.strip_prefix('.')) {
            return Ok(Variable::Member(map, key.to_owned()));
        }
    }
    Err(ExpressionError::UnknownName { at, remedy: remedy(segments, &name, outcome), name })
}

fn remedy(segments: &[&str], name: &str, outcome: bool) -> String {
    let known = VARIABLES.iter().map(|(known, _)| *known);
    let known: Vec<_> = known.filter(|known| outcome || !known.starts_with("response")).collect();
    let root = format!("{}.", segments[0]);
    let members: Vec<_> = known.iter().copied().filter(|it| it.starts_with(&root)).collect();
    if !members.is_empty() {
        return did_you_mean(name, &members)
            .filter(|_| segments.len() > 1)
            .unwrap_or_else(|| format!("there are {}", members.join(", ")));
    }
    did_you_mean(name, &known)
        .or_else(|| did_you_mean(segments[0], &FAMILIES))
        .unwrap_or_else(|| format!("write `descriptor.{name}` if the caller sends a descriptor"))
}

/// Families of attributes: `claims.plan` is the attribute of that name.
const FAMILIES: [&str; 5] = ["claims", "body", "descriptor", "user", "account"];

const VARIABLES: [(&str, Kind); 18] = [
    ("request.method", Kind::String),
    ("request.host", Kind::String),
    ("request.path", Kind::String),
    ("request.query", Kind::String),
    ("request.headers", Kind::Names),
    ("client.ip", Kind::String),
    ("response.status", Kind::Int),
    ("response.headers", Kind::Names),
    ("attributes", Kind::Names),
    ("user", Kind::String),
    ("account", Kind::String),
    ("api_key", Kind::String),
    ("domain", Kind::String),
    ("descriptor_keys", Kind::String),
    ("tier", Kind::String),
    ("claims", Kind::Names),
    ("body", Kind::Names),
    ("descriptor", Kind::Names),
];

//! What a rule counts by.

use crate::attribute::Attribute;
use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value as Tree};
use crate::facts::{Facts, Value};
use crate::matching::Matching;
use crate::read::{Fields, Reader};

/// The parts of a request that a rule counts by; none of them: one counter for everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyParts {
    pub(crate) parts: Box<[Attribute]>,
    pub(crate) missing: Missing,
}

/// What happens to a request that lacks a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The rule does not apply.
    #[default]
    Skip,
    /// It is counted by this instead, and if it lacks that too, the rule does not apply.
    Other(Attribute),
    /// All such requests are counted together, under this name.
    Together(Box<str>),
}

impl KeyParts {
    /// The most parts of a key.
    pub(crate) const MAX: usize = 16;

    /// What stands for a part that is missing, if anything does.
    pub(crate) fn instead<'a>(
        &'a self,
        facts: &Facts<'a>,
        matching: &'a Matching,
    ) -> Option<Value<'a>> {
        match &self.missing {
            Missing::Skip => None,
            Missing::Other(attribute) => facts.value(matching, attribute),
            Missing::Together(name) => Some(Value::Fallback(name)),
        }
    }

    /// The parts of a key as it is written: with commas between them. A key of one part may have
    /// commas in it.
    pub(crate) fn written<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Option<Value<'a>>> {
        let texts = text.splitn(self.parts.len().max(1), ',').map(Some);
        let texts = texts.chain(std::iter::repeat(None));
        let value = |(part, text): (_, Option<&'a str>)| Value::written(part, text?.trim());
        self.parts.iter().zip(texts).map(value)
    }

    /// The first part that the request lacks and nothing stands for.
    pub(crate) fn lacking<'r>(
        &'r self,
        facts: &Facts<'r>,
        matching: &'r Matching,
    ) -> Option<&'r Attribute> {
        let lacks = |part: &&Attribute| facts.value(matching, part).is_none();
        let lacking = self.parts.iter().find(lacks)?;
        self.instead(facts, matching).is_none().then_some(lacking)
    }

    pub(crate) fn read(
        reader: &mut Reader<'_>,
        fields: &Fields<'_>,
        matching: &Matching,
    ) -> Option<Self> {
        let missing = match fields.get("key_missing") {
            Some(node) => read_missing(reader, node),
            None => Some(Missing::Skip),
        };
        let remedy =
            "say what is counted apart: `key: [user]`, or `key: []` for everybody together";
        let node = reader.required(fields, "the rule", "key", remedy)?;
        let nodes = reader.items(node);
        if nodes.len() > Self::MAX {
            let message =
                format!("a key has at most {} parts, and this has {}", Self::MAX, nodes.len());
            let span = fields.name_span("key");
            let remedy = "count by fewer parts";
            reader.add(Diagnostic::error("key-too-long", span, message, "this key", remedy));
            return None;
        }
        let mut parts = Vec::new();
        for node in nodes {
            let Some(part) = reader.attribute(node) else { continue };
            check_parameter(reader, node, &part, matching);
            if parts.contains(&part) {
                let message = format!("`{part}` is in the key twice");
                let span = node.span.clone();
                reader.add(Diagnostic::error(
                    "duplicate",
                    span,
                    message,
                    "again",
                    "keep one of them",
                ));
            }
            parts.push(part);
        }
        (parts.len() == nodes.len())
            .then(|| missing.map(|missing| Self { parts: parts.into(), missing }))?
    }
}

fn read_missing(reader: &mut Reader<'_>, node: &Node) -> Option<Missing> {
    if let Tree::Map(_) = node.value {
        let fields = reader.fields(node, "`key_missing`", &["together"])?;
        let remedy = "name the counter of all requests without the part: `{ together: anonymous }`";
        let node = reader.required(&fields, "`key_missing`", "together", remedy)?;
        return Some(Missing::Together(reader.name(node, "a fallback")?.into()));
    }
    match reader.text(node, "`key_missing`")? {
        "skip" => Some(Missing::Skip),
        _ => Some(Missing::Other(reader.attribute(node)?)),
    }
}

/// A part of the path must have a name in every pattern of the rule.
pub(crate) fn check_parameter(
    reader: &mut Reader<'_>,
    node: &Node,
    part: &Attribute,
    matching: &Matching,
) {
    let Attribute::PathParameter(name) = part else { return };
    let has = |path: &crate::path::PathPattern| path.parameters().any(|known| *known == **name);
    if !matching.paths.is_empty() && matching.paths.iter().all(has) {
        return;
    }
    let message = format!("no pattern of the rule names a part `{name}` of the path");
    let remedy = format!("give every path of `match` one: `path: /users/{{{name}}}`");
    let span = node.span.clone();
    reader.add(Diagnostic::error("unknown-parameter", span, message, "not in the path", remedy));
}

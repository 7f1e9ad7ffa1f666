//! What the content of a rule set is called.

use std::fmt::{self, Write};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use crate::document::{Node, Value};
use crate::overrides::Overrides;
use crate::rule::Rule;

/// Names the content of a rule set: the same rules have the same version, wherever they are read.
///
/// ```
/// use tollgate_rules::RuleSet;
/// let a = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]")?;
/// let b = RuleSet::parse("rules:\n  - name: a   # everybody\n    limit: 5/s\n    key: []\n")?;
/// assert_eq!(a.version(), b.version(), "it is about what they say, not how");
/// assert_eq!(a.version().to_string().len(), 32);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(u128);

impl Version {
    /// A hash of all that is said, in whatever order fields are written, and of what other files
    /// say.
    pub(crate) fn of(root: &Node, rules: &[Rule]) -> Self {
        let mut text = String::new();
        write_node(root, &mut text);
        for overrides in rules.iter().filter_map(|rule| rule.overrides.as_ref()) {
            write_overrides(overrides, &mut text);
        }
        const HALVES: [RapidSecrets; 2] = [RapidSecrets::seed(1), RapidSecrets::seed(2)];
        let [high, low] = HALVES.map(|half| rapidhash_v3_seeded(text.as_bytes(), &half));
        Self(u128::from(high) << 64 | u128::from(low))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

fn write_overrides(overrides: &Overrides, text: &mut String) {
    for (key, quota) in overrides.iter() {
        // Writing to a `String` cannot fail, here and below.
        let _ = write!(text, "{key:?}:{},", overrides.quotas[quota]);
    }
}

fn write_node(node: &Node, text: &mut String) {
    match &node.value {
        Value::Null => text.push('~'),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) | Value::Text(value) => {
            let _ = write!(text, "{value:?}");
        }
        Value::List(nodes) => {
            text.push('[');
            for node in nodes {
                write_node(node, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Map(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            text.push('{');
            for field in fields {
                let _ = write!(text, "{:?}:", field.name);
                write_node(&field.value, text);
                text.push(',');
            }
            text.push('}');
        }
    }
}

//! What can differ by tier.

use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value};
use crate::read::Reader;
use crate::tiers::Tiers;

/// One value, or one for each tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tiered<T>(pub(crate) Box<[T]>);

impl<T> Tiered<T> {
    /// The value for a tier.
    pub(crate) fn of(&self, tier: usize) -> &T {
        // There is one at least, and one for every tier if there are several.
        &self.0[if self.0.len() == 1 { 0 } else { tier }]
    }
}

impl Reader<'_> {
    /// One value, or a map with one for every tier. If not all are needed, those that are not
    /// given are `None`.
    pub(crate) fn tiered<T: Clone>(
        &mut self,
        node: &Node,
        what: &str,
        tiers: Option<&Tiers>,
        all: bool,
        read: impl Fn(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<Option<T>>> {
        let Value::Map(fields) = &node.value else {
            return Some(vec![Some(read(self, node)?)]);
        };
        let Some(tiers) = tiers else {
            let message = format!("{what} differs by tier, and this file has no tiers");
            let remedy = "say where the tier comes from: `tiers: { from: claims.plan, known: [free, pro], else: free }`";
            let span = node.span.start..node.span.start;
            self.add(Diagnostic::error("no-tiers", span, message, "needs tiers", remedy));
            return None;
        };
        let (mut values, mut good) = (vec![None; tiers.names().len()], true);
        for field in fields {
            let value = read(self, &field.value);
            good &= value.is_some();
            match tiers.named(&field.name) {
                Some(tier) => values[tier] = value,
                None => {
                    let name = Node { span: field.span.clone(), value: Value::Null };
                    self.unknown_tier(&name, &field.name, tiers.known());
                    good = false;
                }
            }
        }
        for (tier, _) in
            values.iter().enumerate().filter(|(_, value)| all && good && value.is_none())
        {
            let name = tiers.name(tier);
            let message = format!("{what} says nothing about the tier `{name}`");
            let remedy = format!("give it one: `{name}: 100/min`, or `{name}: unlimited`");
            let span = node.span.start..node.span.start;
            self.add(Diagnostic::error("tier-without-limit", span, message, "in here", remedy));
        }
        (good && (!all || values.iter().all(Option::is_some))).then_some(values)
    }
}

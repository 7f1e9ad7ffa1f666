//! What rules need of where they run.

use crate::attribute::Attribute;
use crate::budget::Budget;
use crate::cost::mentions_body;
use crate::key::Missing;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::settings::{Consistency, Mode};

/// What rules need of the place they run in: the name of the first rule that needs each, so that
/// whoever lacks it can say why that matters. Rules that are off need nothing.
///
/// ```
/// use tollgate_rules::RuleSet;
/// let set = RuleSet::parse(
///     "rules:
///   - { name: calm, key: [ip], limit: 5/s, consistency: local }
///   - { name: exact, key: [body.user], limit: 5/s, consistency: strict }",
/// )?;
/// let needs = set.needs();
/// assert_eq!(needs.store.as_deref(), Some("exact"));
/// assert_eq!(needs.bodies.as_deref(), Some("exact"));
/// assert_eq!(needs.ledger, None);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// A store that is asked for every request: `consistency: strict`.
    pub store: Option<Box<str>>,
    /// A store that nodes share, if there are several: `consistency: shared`. One node alone
    /// needs none.
    pub shared_store: Option<Box<str>>,
    /// A ledger that survives any crash: `consistency: durable`.
    pub ledger: Option<Box<str>>,
    /// A door that sees bodies of requests.
    pub bodies: Option<Box<str>>,
    /// A database of network operators.
    pub geo_asn: Option<Box<str>>,
    /// A database of countries.
    pub geo_country: Option<Box<str>>,
}

impl RuleSet {
    /// What the rules need of the place they run in.
    ///
    /// ```
    /// # use tollgate_rules::{Needs, RuleSet};
    /// assert_eq!(RuleSet::parse("rules: []")?.needs(), Needs::default());
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn needs(&self) -> Needs {
        let tier = self.tiers().map(|tiers| tiers.from());
        let mut needs = Needs::default();
        for rule in self.rules.iter().filter(|rule| rule.mode() != Mode::Off) {
            let kept = match rule.consistency() {
                Consistency::Local => None,
                Consistency::Shared => Some(&mut needs.shared_store),
                Consistency::Strict => Some(&mut needs.store),
                Consistency::Durable => Some(&mut needs.ledger),
            };
            if let Some(kept) = kept {
                kept.get_or_insert_with(|| rule.name.clone());
            }
            let asks = |attribute: &dyn Fn(&Attribute) -> bool, of: &mut Option<Box<str>>| {
                if rule.asks_for(attribute) || tier.is_some_and(attribute) {
                    of.get_or_insert_with(|| rule.name.clone());
                }
            };
            asks(&|attribute| *attribute == Attribute::Asn, &mut needs.geo_asn);
            asks(&|attribute| *attribute == Attribute::Country, &mut needs.geo_country);
            if rule.needs_body() || tier.is_some_and(Attribute::is_body) {
                needs.bodies.get_or_insert_with(|| rule.name.clone());
            }
        }
        needs
    }
}

impl Rule {
    /// Whether it counts or asks by such an attribute.
    pub(crate) fn asks_for(&self, such: &dyn Fn(&Attribute) -> bool) -> bool {
        let instead = match &self.key.missing {
            Missing::Other(attribute) => Some(attribute),
            Missing::Skip | Missing::Together(_) => None,
        };
        let anchor = match &self.budget {
            Budget::Rate(rates) => rates.shape.window.anchor(),
            Budget::Concurrent { .. } => None,
        };
        let others = self.matching.others.iter().map(|(attribute, _)| attribute);
        let parts = self.key.parts.iter().chain(instead).chain(anchor);
        parts.chain(others).chain(self.cost.attribute()).any(such)
    }

    /// Whether only those can tell if it applies, and what it counts, who see bodies.
    pub(crate) fn needs_body(&self) -> bool {
        let mut conditions = self.matching.when.iter().chain(&self.count_if);
        self.asks_for(&Attribute::is_body)
            || self.cost.needs_body()
            || conditions.any(|condition| mentions_body(condition.text()))
    }
}

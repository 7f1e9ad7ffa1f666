//! Rules by their names.

use crate::read::{did_you_mean, shortened};
use crate::rule::Rule;
use crate::rule_set::RuleSet;

/// There is no rule of that name. The caller is at fault.
///
/// ```
/// use tollgate_rules::RuleSet;
/// let set = RuleSet::parse("rules: [{ name: per-user, key: [], limit: 5/s }]")?;
/// let error = set.find("per-usr").unwrap_err();
/// assert_eq!(error.to_string(), "there is no rule `per-usr`: did you mean `per-user`?");
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule `{}`: {remedy}", shortened(name))]
pub struct UnknownRule {
    name: String,
    remedy: String,
}

impl RuleSet {
    /// The number of the rule of this name: its place among [`rules`](Self::rules).
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]")?;
    /// assert_eq!(set.find("a"), Ok(0));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn find(&self, name: &str) -> Result<usize, UnknownRule> {
        let found = self.rules.iter().position(|rule| *rule.name == *name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.rules.iter().map(Rule::name).collect();
            let remedy = did_you_mean(name, &names).unwrap_or_else(|| match names.len() {
                0 => "there are no rules in force".to_owned(),
                rules => format!("take the name of one of the {rules} rules in force"),
            });
            UnknownRule { name: name.to_owned(), remedy }
        })
    }
}

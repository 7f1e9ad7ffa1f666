//! What a request spends.

use std::fmt;

use tollgate_core::Quota;

use crate::attribute::Attribute;
use crate::condition::{CostExpression, EvaluationError};
use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value as Tree};
use crate::facts::{Facts, Value};
use crate::read::Reader;

/// What a request spends from a rule's limit.
///
/// ```
/// use tollgate_rules::{Facts, Request, RuleSet};
/// let set = RuleSet::parse(
///     "rules: [{ name: a, key: [user], limit: 100k/min, cost: { attribute: body.tokens } }]",
/// )?;
/// let request = Request::new("POST", "/").attributes(&[("body.tokens", "250")]);
/// let cost = set.rules()[0].cost();
/// assert_eq!(cost.of(&Facts::new(&set, &request, None)), Ok(250));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cost(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Fixed(u64),
    Attribute { attribute: Attribute, missing: u64 },
    Expression(CostExpression),
}

/// Why the cost of a request is not known. It is then taken to be 1, which callers count and
/// report.
///
/// ```
/// use tollgate_rules::{CostError, Facts, Request, RuleSet};
/// let set = RuleSet::parse(
///     "rules: [{ name: a, key: [], limit: 100k/min, cost: { attribute: body.tokens } }]",
/// )?;
/// let request = Request::new("POST", "/").attributes(&[("body.tokens", "many")]);
/// let cost = set.rules()[0].cost().of(&Facts::new(&set, &request, None));
/// assert_eq!(cost, Err(CostError::NotANumber));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CostError {
    /// The attribute that names the cost is no whole number.
    #[error("the attribute that names the cost is no whole number")]
    NotANumber,
    /// The expression that computes the cost has no value.
    #[error(transparent)]
    Expression(#[from] EvaluationError),
}

impl Cost {
    pub(crate) const ONE: Self = Self(Kind::Fixed(1));

    /// What this request spends.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s, cost: 3 }]")?;
    /// # let request = Request::new("GET", "/");
    /// assert_eq!(set.rules()[0].cost().of(&Facts::new(&set, &request, None)), Ok(3));
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    #[inline]
    pub fn of(&self, facts: &Facts<'_>) -> Result<u64, CostError> {
        match &self.0 {
            Kind::Fixed(cost) => Ok(*cost),
            Kind::Attribute { attribute, missing } => match facts.plain_value(attribute) {
                Some(Value::Text(text)) => text.trim().parse().map_err(|_| CostError::NotANumber),
                Some(Value::Number(number)) => Ok(u64::from(number)),
                Some(_) => Err(CostError::NotANumber),
                None => Ok(*missing),
            },
            Kind::Expression(expression) => {
                Ok(expression.cost(facts.request(), facts.tier_name(), facts.client_ip())?)
            }
        }
    }

    /// The most that a request can cost, if the rule alone says.
    pub(crate) const fn largest(&self) -> Option<u64> {
        match &self.0 {
            Kind::Fixed(cost) => Some(*cost),
            Kind::Attribute { .. } | Kind::Expression(_) => None,
        }
    }

    pub(crate) const FIELDS: [&str; 4] = ["attribute", "missing", "expression", "graphql"];

    pub(crate) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Self> {
        if !matches!(node.value, Tree::Map(_)) {
            return Some(Self(Kind::Fixed(reader.parsed(node, "a cost", "5", parse_cost)?.value)));
        }
        let fields = reader.fields(node, "`cost`", &Self::FIELDS)?;
        if let Some(node) = fields.get("expression") {
            let expression = reader.expression(node, "`expression`", CostExpression::parse)?;
            return Some(Self(Kind::Expression(expression)));
        }
        let remedy = "name what says the cost: `cost: { attribute: body.tokens }`";
        let attribute = reader.required(&fields, "`cost`", "attribute", remedy)?;
        let attribute_node = attribute;
        let attribute = reader.attribute(attribute)?;
        if matches!(attribute, Attribute::PathParameter(_) | Attribute::Country) {
            let message = format!("`{attribute}` is not a number");
            let span = attribute_node.span.clone();
            let remedy = "name a header, a claim, a field of the body or a descriptor";
            reader.add(Diagnostic::error("bad-attribute", span, message, "here", remedy));
            return None;
        }
        let missing = match fields.get("missing") {
            Some(node) => reader.parsed(node, "a cost", "1", parse_cost)?.value,
            None => 1,
        };
        Some(Self(Kind::Attribute { attribute, missing }))
    }
}

/// A cost may be 0: the request then only asks.
fn parse_cost(text: &str) -> Result<u64, tollgate_core::QuotaError> {
    if text.trim() == "0" { Ok(0) } else { Quota::parse_count(text) }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Fixed(cost) => write!(f, "{cost}"),
            Kind::Attribute { attribute, .. } => write!(f, "what `{attribute}` says"),
            Kind::Expression(expression) => write!(f, "`{}`", expression.text()),
        }
    }
}

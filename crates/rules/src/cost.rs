//! What a request spends.

use std::fmt;
use std::sync::Arc;

use tollgate_core::Quota;

use crate::attribute::Attribute;
use crate::condition::{CostExpression, EvaluationError};
use crate::diagnostic::Diagnostic;
use crate::document::{Node, Value as Tree};
use crate::facts::{Facts, Value};
use crate::graphql::{GraphqlCache, GraphqlCost, GraphqlError};
use crate::read::{Fields, Reader};

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
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    kind: Kind,
    /// What it is if nothing says it, or nobody can make sense of what does.
    missing: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Fixed(u64),
    Attribute(Attribute),
    Expression(CostExpression),
    /// What the query in `body.query` costs, with `body.operationName` and `body.variables`.
    Graphql(GraphqlCost, Arc<GraphqlCache>),
}

/// Two are equal if the same was written.
impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fixed(a), Self::Fixed(b)) => a == b,
            (Self::Attribute(a), Self::Attribute(b)) => a == b,
            (Self::Expression(a), Self::Expression(b)) => a == b,
            (Self::Graphql(a, _), Self::Graphql(b, _)) => a == b,
            _ => false,
        }
    }
}

/// Why the cost of a request is not known. It is then taken to be 1, which callers count and
/// report; but a query that is refused is denied, by every limit there is: [`Facts::cost`].
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
    /// The GraphQL query has no cost.
    #[error(transparent)]
    Graphql(#[from] GraphqlError),
}

impl CostError {
    /// Whether the request is refused, rather than that its cost is not known: it is nested too
    /// deeply, or so long that nobody looks at it. What else is wrong with a query keeps servers
    /// from running it, but these would run, and a cost of 1 would let them pass.
    ///
    /// ```
    /// use tollgate_rules::{CostError, GraphqlError};
    /// assert!(CostError::from(GraphqlError::TooDeep { limit: 10 }).refuses());
    /// assert!(!CostError::NotANumber.refuses());
    /// ```
    pub const fn refuses(&self) -> bool {
        matches!(self, Self::Graphql(GraphqlError::TooDeep { .. } | GraphqlError::TooLarge { .. }))
    }
}

impl Cost {
    pub(crate) const ONE: Self = Self { kind: Kind::Fixed(1), missing: 1 };

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
        match &self.kind {
            Kind::Fixed(cost) => Ok(*cost),
            Kind::Attribute(attribute) => match facts.plain_value(attribute) {
                Some(Value::Text(text)) => number(text.trim()).ok_or(CostError::NotANumber),
                Some(Value::Number(number)) => Ok(u64::from(number)),
                Some(_) => Err(CostError::NotANumber),
                None => Ok(self.missing),
            },
            Kind::Expression(expression) => {
                Ok(expression.cost(facts.request(), facts.tier_name(), facts.client_ip())?)
            }
            Kind::Graphql(_, cache) => {
                // A query may also come in the path of a request without a body.
                let given = |name: &str| {
                    let in_body = facts.request().attribute(name);
                    let name = name.strip_prefix("body.").unwrap_or(name);
                    let given = in_body.or_else(|| facts.request().query_parameter(name));
                    given.filter(|it| !it.is_empty())
                };
                let Some(query) = given("body.query") else { return Ok(self.missing) };
                Ok(cache.cost(query, given("body.operationName"), given("body.variables"))?)
            }
        }
    }

    /// What a request costs whose cost is not known: `missing`, and 1 at least.
    pub(crate) fn unknown(&self) -> u64 {
        self.missing.max(1)
    }

    /// The attribute that says it, if one does.
    pub(crate) const fn attribute(&self) -> Option<&Attribute> {
        match &self.kind {
            Kind::Attribute(attribute) => Some(attribute),
            _ => None,
        }
    }

    /// Whether only those know it who see bodies.
    pub(crate) fn needs_body(&self) -> bool {
        match &self.kind {
            Kind::Attribute(attribute) => attribute.is_body(),
            Kind::Expression(expression) => mentions_body(expression.text()),
            Kind::Graphql(..) => true,
            Kind::Fixed(_) => false,
        }
    }

    /// The most that a request can cost, if the rule alone says.
    #[inline]
    pub(crate) const fn largest(&self) -> Option<u64> {
        match &self.kind {
            Kind::Fixed(cost) => Some(*cost),
            Kind::Attribute(_) | Kind::Expression(_) | Kind::Graphql(..) => None,
        }
    }

    pub(crate) const FIELDS: [&str; 4] = ["attribute", "missing", "expression", "graphql"];

    pub(crate) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Self> {
        if !matches!(node.value, Tree::Map(_)) {
            let cost = reader.parsed(node, "a cost", "5", parse_cost)?.value;
            return Some(Self { kind: Kind::Fixed(cost), missing: 1 });
        }
        let fields = reader.fields(node, "`cost`", &Self::FIELDS)?;
        let ways = ["attribute", "expression", "graphql"].into_iter().filter(|it| fields.has(it));
        if let [first, second, ..] = *ways.collect::<Vec<_>>() {
            let message = format!("a cost has `{first}` or `{second}`, not both");
            let (span, label) = (fields.name_span(second), format!("beside `{first}`"));
            let remedy = "make two rules of it, or add both up in one `expression`";
            reader.add(Diagnostic::error("two-costs", span, message, label, remedy));
            return None;
        }
        let missing = match fields.get("missing") {
            Some(node) => reader.parsed(node, "a cost", "1", parse_cost)?.value,
            None => 1,
        };
        let kind = if let Some(node) = fields.get("expression") {
            Kind::Expression(reader.expression(node, "`expression`", CostExpression::parse)?)
        } else if let Some(node) = fields.get("graphql") {
            let cost = GraphqlCost::read(reader, node)?;
            Kind::Graphql(cost, Arc::new(GraphqlCache::new(cost)))
        } else {
            Kind::Attribute(Self::read_attribute(reader, &fields)?)
        };
        Some(Self { kind, missing })
    }

    fn read_attribute(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Attribute> {
        let remedy = "name what says the cost: `cost: { attribute: body.tokens }`";
        let node = reader.required(fields, "`cost`", "attribute", remedy)?;
        let attribute = reader.attribute(node)?;
        if matches!(attribute, Attribute::PathParameter(_) | Attribute::Country) {
            let message = format!("`{attribute}` is not a number");
            let span = node.span.clone();
            let remedy = "name a header, a claim, a field of the body or a descriptor";
            reader.add(Diagnostic::error("bad-attribute", span, message, "here", remedy));
            return None;
        }
        Some(attribute)
    }
}

impl GraphqlCost {
    pub(crate) const FIELDS: [&str; 2] = ["depth", "list"];

    /// The depth and the length of lists that a rule has which does not name them.
    const USUAL: Self = Self { depth: 10, list: 20 };

    fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Self> {
        let fields = reader.fields(node, "`graphql`", &Self::FIELDS)?;
        let depth = |text: &str| match text.parse() {
            Ok(depth @ 1..=128) => Ok(depth),
            _ => Err("it must be 1 to 128"),
        };
        let list = |text: &str| match Quota::parse_count(text).map(u32::try_from) {
            Ok(Ok(list @ 1..)) => Ok(list),
            _ => Err("it must be 1 to 4294967295"),
        };
        Some(Self {
            depth: match fields.get("depth") {
                Some(node) => reader.parsed(node, "a depth", "10", depth)?.value,
                None => Self::USUAL.depth,
            },
            list: match fields.get("list") {
                Some(node) => reader.parsed(node, "a length", "20", list)?.value,
                None => Self::USUAL.list,
            },
        })
    }
}

/// Whether an expression asks for parts of the body. One that has the word in a text counts too.
pub(crate) fn mentions_body(expression: &str) -> bool {
    expression.match_indices("body.").any(|(at, _)| {
        let before = expression[..at].chars().next_back();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    })
}

/// What a client says a request costs. It may say more than any limit has, and parts of one count
/// as one: nobody pays less for writing a number in an odd way.
fn number(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    // From here on only what is no plain number.
    match text.parse::<f64>() {
        // Too large a number becomes the largest there is.
        Ok(number) if number >= 0.0 => Some(number.ceil() as u64),
        _ => None,
    }
}

/// A cost may be 0: the request then only asks.
fn parse_cost(text: &str) -> Result<u64, tollgate_core::QuotaError> {
    if text.trim() == "0" { Ok(0) } else { Quota::parse_count(text) }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Fixed(cost) => write!(f, "{cost}"),
            Kind::Attribute(attribute) => {
                write!(f, "what `{attribute}` says, or {} if it is missing", self.missing)
            }
            Kind::Expression(expression) => write!(f, "`{}`", expression.text()),
            Kind::Graphql(GraphqlCost { depth, list }, _) => write!(
                f,
                "the points of its GraphQL query, which is at most {depth} deep \
                 and whose lists have {list} items where it does not say"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{CostError, Facts, Request, RuleSet};

    #[test]
    fn nobody_pays_less_for_an_odd_number() {
        let text =
            "rules: [{ name: a, key: [], limit: 1G/s, cost: { attribute: body.n, missing: 7 } }]";
        let set = RuleSet::parse(text).unwrap();
        for (given, is) in [
            ("5", (5, 0)),
            (" 5 ", (5, 0)),
            ("5.1", (6, 0)),
            ("1e3", (1000, 0)),
            ("99999999999999999999", (u64::MAX, 0)),
            ("inf", (u64::MAX, 0)),
            ("-1", (7, 1)),
            ("NaN", (7, 1)),
            ("many", (7, 1)),
            ("", (7, 0)),
        ] {
            let attributes = [("body.n", given)];
            let request = Request::new("POST", "/").attributes(&attributes);
            let facts = Facts::new(&set, &request, None);
            assert_eq!((facts.cost(&set.rules()[0]), facts.failures()), is, "{given}");
        }
    }

    #[test]
    fn a_query_in_the_path_costs_the_same() {
        let set = RuleSet::parse(RULES).unwrap();
        let request = Request::new("GET", "/graphql?query={a(first:7){b{c}}}");
        assert_eq!(Facts::new(&set, &request, None).cost(&set.rules()[0]), 8);
    }

    const RULES: &str = "rules:
  - { name: points, key: [], limit: 1000/min, cost: { graphql: { depth: 3, list: 20 } } }";

    fn cost(attributes: &[(&str, &str)]) -> (u64, u32) {
        let set = RuleSet::parse(RULES).unwrap();
        let request = Request::new("POST", "/graphql").attributes(attributes);
        let facts = Facts::new(&set, &request, None);
        (facts.cost(&set.rules()[0]), facts.failures())
    }

    #[test]
    fn a_query_costs_its_points() {
        let query = ("body.query", "query A($n: Int) { a(first: $n) { b { c } } } query B { d }");
        let variables = ("body.variables", r#"{"n": 7}"#);
        assert_eq!(cost(&[query, ("body.operationName", "A")]), (21, 0));
        assert_eq!(cost(&[query, ("body.operationName", "A"), variables]), (8, 0));
        assert_eq!(cost(&[query, ("body.operationName", "B")]), (1, 0));
    }

    #[test]
    fn no_query_costs_one() {
        assert_eq!(cost(&[]), (1, 0));
        assert_eq!(cost(&[("body.query", "")]), (1, 0));
    }

    #[test]
    fn what_is_no_query_costs_one_and_is_counted() {
        assert_eq!(cost(&[("body.query", "{ a")]), (1, 1));
    }

    #[test]
    fn a_query_that_is_refused_costs_more_than_there_can_be() {
        assert_eq!(cost(&[("body.query", "{ a { b { c { d } } } }")]), (u64::MAX, 0));
        let padded = format!("{{ a }} #{}", " ".repeat(crate::GraphqlCost::MAX_LENGTH));
        assert_eq!(cost(&[("body.query", &padded)]), (u64::MAX, 0));
    }

    #[test]
    fn the_reason_is_told() {
        let set = RuleSet::parse(RULES).unwrap();
        let request = Request::new("POST", "/graphql").attributes(&[("body.query", "{")]);
        let cost = set.rules()[0].cost().of(&Facts::new(&set, &request, None));
        assert!(matches!(cost, Err(CostError::Graphql(_))), "{cost:?}");
    }

    #[test]
    fn a_cost_is_said_in_one_way() {
        let text =
            "rules: [{ name: a, key: [], limit: 5/s, cost: { graphql: {}, attribute: user } }]";
        let error = RuleSet::parse(text).unwrap_err();
        assert_eq!(error.report().diagnostics()[0].code(), "two-costs", "{error}");
    }
}

//! Expressions over a request, in CEL: what `match` cannot say.
//!
//! | variable | what it is |
//! |---|---|
//! | `request.method`, `.host`, `.path`, `.query` | strings |
//! | `request.headers` | a map; names in any case, the first value of several |
//! | `client.ip` | a string, if the address is known |
//! | `user`, `account`, `api_key`, `domain`, `descriptor_keys`, `tier` | strings, if the caller gives them |
//! | `claims.x`, `body.x`, `descriptor.x`, `user.x`, `account.x` | the same |
//! | `attributes` | a map of all that the caller gives: `attributes['claims.plan']` |
//! | `response.status`, `response.headers` | an integer and a map, after the response |
//!
//! There are the operators of CEL, `has`, `size`, `startsWith`, `endsWith`, `contains`, `int`,
//! `double` and `string`; there are no maps, bytes, optional values, patterns or loops. Names and
//! kinds of values are checked when an expression is parsed.
//!
//! **What is missing.** To use a value that the request lacks is an error, which the caller
//! counts, not an answer. `has(claims.plan)`, `'user' in attributes` and `'x-a' in
//! request.headers` ask first. As CEL has it, what is missing does not matter to `&&` if the
//! other side is false, nor to `||` if the other side is true.
//!
//! **What it costs.** An expression has at most 4096 bytes and is at most 24 deep. It has no
//! loops, names no intermediate results and compiles no patterns, so each of its nodes is
//! evaluated at most once, and goes through each of its operands at most once (`contains` takes
//! linear time, `in` a list as many comparisons as the list is long). An operand is at most as
//! large as all leaves below it, each of which is a literal or a part of the request. So no node
//! costs more than the length of the text times the size of the request, and as a leaf is below
//! at most 24 nodes, all nodes together cost at most 24 times that.

mod check;
mod error;
mod parse;
mod scope;
mod status;
#[cfg(test)]
mod tests;
mod token;
mod variable;

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelInt};
use cel::common::value::Val;
use cel::{Context, Env, ExecutionError, Value};

use crate::{Outcome, Request};
use check::{Check, Kind};
use scope::Scope;
use status::StatusTest;

pub use error::{EvaluationError, ExpressionError};

/// A question about a request, or about how it ended: `when` and `count_if`.
///
/// ```
/// use tollgate_rules::{Condition, Request};
/// let text = "!('x-internal' in request.headers) && request.path.startsWith('/v1')";
/// let condition = Condition::parse(text)?;
/// let request = Request::new("GET", "/v1/items");
/// assert_eq!(condition.holds(&request, None, None, None), Ok(true));
/// let request = request.headers(&[("X-Internal", "1")]);
/// assert_eq!(condition.holds(&request, None, None, None), Ok(false));
/// # Ok::<(), tollgate_rules::ExpressionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Condition {
    text: Box<str>,
    plan: Plan,
}

#[derive(Clone, Debug)]
enum Plan {
    Status(StatusTest),
    General(IdedExpr),
}

impl Condition {
    /// A condition on the request alone: `when`.
    ///
    /// ```
    /// use tollgate_rules::Condition;
    /// assert!(Condition::parse("request.method in ['GET', 'HEAD']").is_ok());
    /// assert!(Condition::parse("request.method").is_err(), "not a question");
    /// ```
    ///
    /// # Errors
    ///
    /// [`ExpressionError`] says where the text is wrong, and what to do.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let expression = checked(text, false, Kind::Bool)?;
        Ok(Self { text: text.into(), plan: Plan::General(expression) })
    }

    /// A condition on the request and its response: `count_if`.
    ///
    /// ```
    /// use tollgate_rules::{Condition, Outcome, Request};
    /// let condition = Condition::parse_outcome("response.status in [401, 403]")?;
    /// let (request, outcome) = (Request::new("POST", "/login"), Outcome::default());
    /// let denied = Outcome { status: Some(401), ..outcome };
    /// assert_eq!(condition.holds(&request, None, None, Some(&denied)), Ok(true));
    /// assert!(condition.holds(&request, None, None, Some(&outcome)).is_err());
    /// # Ok::<(), tollgate_rules::ExpressionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ExpressionError`] says where the text is wrong, and what to do.
    pub fn parse_outcome(text: &str) -> Result<Self, ExpressionError> {
        let expression = checked(text, true, Kind::Bool)?;
        let plan = match StatusTest::of(&expression.expr) {
            Some(test) => Plan::Status(test),
            None => Plan::General(expression),
        };
        Ok(Self { text: text.into(), plan })
    }

    /// Whether it holds for this request.
    ///
    /// ```
    /// use tollgate_rules::{Condition, Request};
    /// let condition = Condition::parse("tier == 'pro' && client.ip.startsWith('10.')")?;
    /// let (request, ip) = (Request::new("GET", "/"), "10.0.0.7".parse().ok());
    /// assert_eq!(condition.holds(&request, Some("pro"), ip, None), Ok(true));
    /// # Ok::<(), tollgate_rules::ExpressionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`EvaluationError`] if the request lacks what is asked about, or a number cannot be had.
    pub fn holds(
        &self,
        request: &Request<'_>,
        tier: Option<&str>,
        client_ip: Option<IpAddr>,
        outcome: Option<&Outcome<'_>>,
    ) -> Result<bool, EvaluationError> {
        match &self.plan {
            Plan::Status(test) => match outcome.and_then(|outcome| outcome.status) {
                Some(status) => Ok(test.holds(status)),
                None => Err(EvaluationError::Missing { name: "response.status".to_owned() }),
            },
            Plan::General(expression) => {
                let scope = Scope { request, tier, client_ip, outcome };
                let read = |value: &dyn Val| value.downcast_ref().map(|it: &CelBool| *it.inner());
                evaluate(expression, &scope, read)
            }
        }
    }

    /// What was written.
    ///
    /// ```
    /// use tollgate_rules::Condition;
    /// assert_eq!(Condition::parse("true").map(|it| it.text().len()), Ok(4));
    /// ```
    pub const fn text(&self) -> &str {
        &self.text
    }
}

/// Two are equal if the same was written.
impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Condition {}

/// How much a request costs, computed from what it says: an integer that is not below zero.
///
/// ```
/// use tollgate_rules::{CostExpression, Request};
/// let cost = CostExpression::parse("has(body.items) ? int(body.items) * 2 : 1")?;
/// let request = Request::new("POST", "/orders");
/// assert_eq!(cost.cost(&request, None, None), Ok(1));
/// let request = request.attributes(&[("body.items", "7")]);
/// assert_eq!(cost.cost(&request, None, None), Ok(14));
/// # Ok::<(), tollgate_rules::ExpressionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CostExpression {
    text: Box<str>,
    expression: IdedExpr,
}

impl CostExpression {
    /// A cost from text.
    ///
    /// ```
    /// use tollgate_rules::CostExpression;
    /// assert!(CostExpression::parse("size(request.query) / 100 + 1").is_ok());
    /// assert!(CostExpression::parse("body.items").is_err(), "a string: write `int(body.items)`");
    /// ```
    ///
    /// # Errors
    ///
    /// [`ExpressionError`] says where the text is wrong, and what to do.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let expression = checked(text, false, Kind::Int)?;
        Ok(Self { text: text.into(), expression })
    }

    /// The cost of this request.
    ///
    /// ```
    /// use tollgate_rules::{CostExpression, EvaluationError, Request};
    /// let cost = CostExpression::parse("1 - size(request.query)")?;
    /// let result = cost.cost(&Request::new("GET", "/?abc"), None, None);
    /// assert_eq!(result, Err(EvaluationError::Negative { cost: -2 }));
    /// # Ok::<(), tollgate_rules::ExpressionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`EvaluationError`] if the request lacks what is asked about, or no such number results.
    pub fn cost(
        &self,
        request: &Request<'_>,
        tier: Option<&str>,
        client_ip: Option<IpAddr>,
    ) -> Result<u64, EvaluationError> {
        let scope = Scope { request, tier, client_ip, outcome: None };
        let read = |value: &dyn Val| value.downcast_ref().map(|it: &CelInt| *it.inner());
        let cost = evaluate(&self.expression, &scope, read)?;
        u64::try_from(cost).map_err(|_| EvaluationError::Negative { cost })
    }

    /// What was written.
    ///
    /// ```
    /// use tollgate_rules::CostExpression;
    /// assert_eq!(CostExpression::parse("1").map(|it| it.text().len()), Ok(1));
    /// ```
    pub const fn text(&self) -> &str {
        &self.text
    }
}

/// Two are equal if the same was written.
impl PartialEq for CostExpression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for CostExpression {}

fn checked(text: &str, outcome: bool, kind: Kind) -> Result<IdedExpr, ExpressionError> {
    let mut expression = parse::parse(text)?;
    Check { outcome }.expect(&mut expression, kind)?;
    Ok(expression)
}

fn evaluate<T>(
    expression: &IdedExpr,
    scope: &Scope<'_>,
    read: impl FnOnce(&dyn Val) -> Option<T>,
) -> Result<T, EvaluationError> {
    let mut context = Context::with_env(Arc::clone(&LANGUAGE));
    context.set_variable_resolver(scope);
    let result = Value::resolve_val(expression, &context).map(|value| read(value.as_ref()));
    match result {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(EvaluationError::Failed { message: "a value of another kind".to_owned() }),
        Err(ExecutionError::NoSuchKey(name) | ExecutionError::UndeclaredReference(name)) => {
            Err(EvaluationError::Missing { name: Arc::unwrap_or_clone(name) })
        }
        Err(error) => Err(EvaluationError::Failed { message: error.to_string() }),
    }
}

/// CEL's functions and operators, without optional values.
static LANGUAGE: LazyLock<Arc<Env>> =
    LazyLock::new(|| Arc::new(Env::default().with_optional_support(false).with_stdlib()));

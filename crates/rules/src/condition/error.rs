//! What is wrong with an expression, and what can go wrong while it is evaluated.

/// Why text is not an expression that rules may use. The rule file is at fault.
///
/// ```
/// use tollgate_rules::Condition;
/// let error = Condition::parse("request.pth == '/'").unwrap_err();
/// assert_eq!(error.to_string(), "there is no `request.pth`");
/// assert_eq!(error.at(), 0);
/// assert_eq!(error.remedy(), "did you mean `request.path`?");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// More text than an expression may have.
    #[error("an expression has at most {limit} bytes, and this has {length}")]
    TooLong {
        /// How many bytes it has.
        length: usize,
        /// How many it may have.
        limit: usize,
    },
    /// Brackets and operators are nested deeper than an expression may be.
    #[error("the expression is nested too deeply")]
    TooDeep {
        /// Where it becomes too deep.
        at: usize,
    },
    /// It does not follow the grammar.
    #[error("{message}")]
    Syntax {
        /// Where.
        at: usize,
        /// What was found, or expected.
        message: String,
    },
    /// The language has this, but rules do not.
    #[error("{what} cannot be used here")]
    Unsupported {
        /// Where.
        at: usize,
        /// What cannot be used.
        what: String,
        /// What to write instead.
        remedy: String,
    },
    /// Nothing is called that.
    #[error("there is no `{name}`")]
    UnknownName {
        /// Where the name stands.
        at: usize,
        /// What was given.
        name: String,
        /// What to write instead.
        remedy: String,
    },
    /// The response is asked about before there is one.
    #[error("there is no response yet when this is evaluated")]
    NoOutcome {
        /// Where `response` stands.
        at: usize,
    },
    /// A value of one kind stands where another is needed.
    #[error("{expected} is needed here, and this is {found}")]
    WrongType {
        /// Where.
        at: usize,
        /// What is needed.
        expected: String,
        /// What is there.
        found: String,
    },
}

impl ExpressionError {
    /// Where it is wrong: the offset of a byte in the expression.
    ///
    /// ```
    /// use tollgate_rules::Condition;
    /// assert_eq!(Condition::parse("true && usr == 'a'").unwrap_err().at(), 8);
    /// ```
    pub const fn at(&self) -> usize {
        match self {
            Self::TooLong { limit, .. } => *limit,
            Self::TooDeep { at }
            | Self::Syntax { at, .. }
            | Self::Unsupported { at, .. }
            | Self::UnknownName { at, .. }
            | Self::NoOutcome { at }
            | Self::WrongType { at, .. } => *at,
        }
    }

    /// What to do about it.
    ///
    /// ```
    /// use tollgate_rules::Condition;
    /// let error = Condition::parse("response.status == 401").unwrap_err();
    /// assert_eq!(error.remedy(), "conditions on the response go into `count_if`");
    /// ```
    pub fn remedy(&self) -> &str {
        match self {
            Self::TooLong { .. } | Self::TooDeep { .. } => {
                "split it into several rules, or let the caller send what it computes"
            }
            Self::Syntax { .. } => "correct the expression",
            Self::Unsupported { remedy, .. } | Self::UnknownName { remedy, .. } => remedy,
            Self::NoOutcome { .. } => "conditions on the response go into `count_if`",
            Self::WrongType { .. } => "compare and combine values of one kind only",
        }
    }
}

/// Why an expression has no value for a request. Nothing was counted; what a rule does then is
/// its caller's to say, who also counts that it happened.
///
/// ```
/// use tollgate_rules::{Condition, EvaluationError, Request};
/// let condition = Condition::parse("claims.plan == 'pro'").expect("an expression");
/// let result = condition.holds(&Request::new("GET", "/"), None, None, None);
/// assert_eq!(result, Err(EvaluationError::Missing { name: "claims.plan".into() }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The request, or what the caller says about it, lacks this.
    #[error("there is no `{name}` in this request")]
    Missing {
        /// What is missing.
        name: String,
    },
    /// A number is too large, is divided by zero, or cannot be read.
    #[error("{message}")]
    Failed {
        /// What happened.
        message: String,
    },
    /// A cost came out below zero.
    #[error("the cost is {cost}, and a cost is never below zero")]
    Negative {
        /// What came out.
        cost: i64,
    },
}

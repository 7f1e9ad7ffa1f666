//! What was not as a test expected.

use std::fmt;

use crate::engine::rehearsal::Rehearsal;

/// Something that was not as a test expected.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{Expectation, Rehearsal, RuleSet};
/// let rules = Arc::new(RuleSet::parse(
///     "rules: [{ name: a, key: [], limit: 5/s }]
/// tests: [{ name: five, given: { request: GET /, times: 5 }, expect: { remaining: 1 } }]",
/// )?);
/// let rehearsal = Rehearsal::run(&rules, &rules.tests()[0])?;
/// let failure = &rehearsal.failures()[0];
/// assert_eq!(failure.about(), Expectation::Remaining);
/// assert_eq!(failure.to_string(), "expected 1 remaining, got 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    step: usize,
    about: Expectation,
    expected: String,
    actual: String,
}

/// Which of the expectations of a step failed: the fields of `expect`, and that a test can be
/// played at all.
///
/// ```
/// assert_eq!(tollgate::Expectation::DeniedBy.as_str(), "denied_by");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expectation {
    /// How many requests are allowed.
    Allowed,
    /// How many requests are denied.
    Denied,
    /// Which rules deny.
    DeniedBy,
    /// When the last request is worth trying again.
    RetryAfter,
    /// What is left after the last request.
    Remaining,
    /// How long the last request waits.
    Delay,
    /// The warning of the last request.
    Warning,
    /// At most [`Rehearsal::MAX_UNDER_WAY`] requests are under way.
    UnderWay,
}

impl Expectation {
    /// What rule files call it.
    ///
    /// ```
    /// assert_eq!(tollgate::Expectation::Allowed.as_str(), "allowed");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::DeniedBy => "denied_by",
            Self::RetryAfter => "retry_after",
            Self::Remaining => "remaining",
            Self::Delay => "delay",
            Self::Warning => "warning",
            Self::UnderWay => "under_way",
        }
    }
}

impl Failure {
    pub(super) const fn new(
        step: usize,
        about: Expectation,
        expected: String,
        actual: String,
    ) -> Self {
        Self { step, about, expected, actual }
    }

    /// The test cannot be played to its end.
    pub(super) fn too_many(step: usize) -> Self {
        let expected = format!("at most {} requests under way", Rehearsal::MAX_UNDER_WAY);
        Self::new(step, Expectation::UnderWay, expected, "more; answer them with `respond`".into())
    }

    /// The step, from 0.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate::{Rehearsal, RuleSet};
    /// # let rules = Arc::new(RuleSet::parse(
    /// #     "rules: [{ name: a, key: [], limit: 5/s }]
    /// # tests: [{ name: six, given: { request: GET /, times: 6 }, expect: { allowed: 6 } }]",
    /// # )?);
    /// assert_eq!(Rehearsal::run(&rules, &rules.tests()[0])?.failures()[0].step(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn step(&self) -> usize {
        self.step
    }

    /// What it is about.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate::{Expectation, Rehearsal, RuleSet};
    /// # let rules = Arc::new(RuleSet::parse(
    /// #     "rules: [{ name: a, key: [], limit: 5/s }]
    /// # tests: [{ name: six, given: { request: GET /, times: 6 }, expect: { allowed: 6 } }]",
    /// # )?);
    /// let rehearsal = Rehearsal::run(&rules, &rules.tests()[0])?;
    /// assert_eq!(rehearsal.failures()[0].about(), Expectation::Allowed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn about(&self) -> Expectation {
        self.about
    }

    /// What was expected.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate::{Rehearsal, RuleSet};
    /// # let rules = Arc::new(RuleSet::parse(
    /// #     "rules: [{ name: a, key: [], limit: 5/s }]
    /// # tests: [{ name: six, given: { request: GET /, times: 6 }, expect: { allowed: 6 } }]",
    /// # )?);
    /// let rehearsal = Rehearsal::run(&rules, &rules.tests()[0])?;
    /// assert_eq!(rehearsal.failures()[0].expected(), "6 allowed");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What came instead.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate::{Rehearsal, RuleSet};
    /// # let rules = Arc::new(RuleSet::parse(
    /// #     "rules: [{ name: a, key: [], limit: 5/s }]
    /// # tests: [{ name: six, given: { request: GET /, times: 6 }, expect: { allowed: 6 } }]",
    /// # )?);
    /// let rehearsal = Rehearsal::run(&rules, &rules.tests()[0])?;
    /// assert!(rehearsal.failures()[0].actual().starts_with("5; first denial at request 6"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn actual(&self) -> &str {
        &self.actual
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, got {}", self.expected, self.actual)
    }
}

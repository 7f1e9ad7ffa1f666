//! The `tests` of a rule file: what is asked in simulated time, and what must be answered.

mod comparison;
mod read;

use std::time::Duration;

pub use comparison::{Comparison, Relation};
pub(crate) use read::{Rules, read_cases};

use crate::request_line::RequestLine;

/// One test of a rule file.
///
/// ```
/// use tollgate_rules::RuleSet;
/// let set = RuleSet::parse(
///     "rules: [{ name: per-user, key: [user], limit: 100/min }]
/// tests:
///   - name: a user gets 100 a minute
///     given: { request: GET /v1/items user=u1, times: 101 }
///     expect: { allowed: 100, denied_by: per-user, retry_after: <= 1s }",
/// )?;
/// let [case] = set.tests() else { panic!("there is one") };
/// assert_eq!(case.name(), "a user gets 100 a minute");
/// assert_eq!(case.steps()[0].given.times, 101);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    name: Box<str>,
    steps: Box<[Step]>,
}

impl Case {
    /// The most tests of a rule file.
    pub const MAX: usize = 10_000;
    /// The most steps of a test.
    pub const MAX_STEPS: usize = 100;
    /// The most requests of a step.
    pub const MAX_TIMES: u64 = 1_000_000;
    /// The most requests of all tests of a file.
    pub const MAX_REQUESTS: u64 = 100_000_000;

    /// What it is about.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]
    /// # tests: [{ name: five pass, given: { request: GET /, times: 6 }, expect: { allowed: 5 } }]")?;
    /// assert_eq!(set.tests()[0].name(), "five pass");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn name(&self) -> &str {
        &self.name
    }

    /// What happens, in order.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]
    /// # tests: [{ name: five pass, given: { request: GET /, times: 6 }, expect: { allowed: 5 } }]")?;
    /// assert_eq!(set.tests()[0].steps().len(), 1);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub const fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How many requests it makes.
    ///
    /// ```
    /// # use tollgate_rules::RuleSet;
    /// # let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]
    /// # tests: [{ name: five pass, given: { request: GET /, times: 6 }, expect: { allowed: 5 } }]")?;
    /// assert_eq!(set.tests()[0].requests(), 6);
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn requests(&self) -> u64 {
        self.steps.iter().map(|step| step.given.times).sum()
    }
}

/// One step of a test: time passes, requests are made, and their decisions are looked at.
///
/// ```
/// use std::time::Duration;
/// use tollgate_rules::RuleSet;
/// let set = RuleSet::parse(
///     "rules: [{ name: logins, key: [ip], limit: 10/15min }]
/// tests:
///   - name: after a while it works again
///     steps:
///       - given: { request: POST /login ip=192.0.2.7, times: 11 }
///         expect: { denied: 1 }
///       - after: 15min
///         given: { request: POST /login ip=192.0.2.7 }
///         expect: { allowed: 1, remaining: 9 }",
/// )?;
/// assert_eq!(set.tests()[0].steps()[1].after, Duration::from_secs(900));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// How much time passes before it.
    pub after: Duration,
    /// What is asked.
    pub given: Given,
    /// What must be answered.
    pub expect: Expect,
}

/// The requests of a step.
///
/// ```
/// # use tollgate_rules::RuleSet;
/// # let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]
/// # tests: [{ name: a, given: { request: GET /, respond: 200 }, expect: { allowed: 1 } }]")?;
/// let given = &set.tests()[0].steps()[0].given;
/// assert_eq!((given.times, given.over.is_zero(), given.respond), (1, true, Some(200)));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Given {
    /// The request.
    pub request: RequestLine,
    /// How often it is made.
    pub times: u64,
    /// The time that all of them take: each has an equal part of it, and stands at its beginning.
    /// Zero: all at one instant.
    pub over: Duration,
    /// The status that each request is answered with at once, if it was allowed: what rules with
    /// `count_if` look at, and the end of what is under way. Without it, what is under way stays so
    /// until the end of the test.
    pub respond: Option<u16>,
}

/// What must be answered in a step.
///
/// ```
/// # use tollgate_rules::RuleSet;
/// # let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]
/// # tests: [{ name: a, given: { request: GET / }, expect: { allowed: '>= 1' } }]")?;
/// let expect = &set.tests()[0].steps()[0].expect;
/// assert_eq!(expect.allowed.expect("it was given").to_string(), "at least 1");
/// assert_eq!(expect.denied, None);
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expect {
    /// How many requests are allowed.
    pub allowed: Option<Comparison<u64>>,
    /// How many requests are denied.
    pub denied: Option<Comparison<u64>>,
    /// The rules that deny: each denial is by one of these, and there is one at least. None: that
    /// does not matter.
    pub denied_by: Box<[Box<str>]>,
    /// When the last request would be worth trying again, which was denied.
    pub retry_after: Option<Comparison<Duration>>,
    /// What is left after the last request.
    pub remaining: Option<Comparison<u64>>,
    /// How long the last request must wait, which was allowed.
    pub delay: Option<Comparison<Duration>>,
    /// The highest percentage of `warn_at` that the last request reached; 0: none.
    pub warning: Option<Comparison<u64>>,
}

impl Expect {
    /// Whether anything would do.
    ///
    /// ```
    /// assert!(tollgate_rules::Expect::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests;

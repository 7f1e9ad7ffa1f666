//! The tests of a rule file at work: simulated time, counters of their own, and what came out.

mod failure;
mod tally;

pub use failure::{Expectation, Failure};

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Wall;
use tollgate_local::{ManualClock, Seed};
use tollgate_rules::{Case, Given, Outcome, Request, RuleSet};

use crate::engine::Engine;
use crate::engine::rehearsal::tally::Tally;
use crate::engine::shared::HeldSlot;
use crate::error::Error;

/// A test of a rule file that was run: whether it passed, and if not, why.
///
/// Each test has an engine of its own, which begins with empty counters at the first moment of
/// 2026, and a clock that moves only as the test says.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{Rehearsal, RuleSet};
/// let rules = Arc::new(RuleSet::parse(
///     "rules: [{ name: per-user, key: [user], limit: 100/min }]
/// tests:
///   - name: a user gets 100 a minute
///     given: { request: GET / user=u1, times: 101 }
///     expect: { allowed: 100, denied_by: per-user, retry_after: <= 1s }
///   - name: a user gets 99 a minute
///     given: { request: GET / user=u1, times: 101 }
///     expect: { allowed: 99 }",
/// )?);
/// let good = Rehearsal::run(&rules, &rules.tests()[0])?;
/// assert!(good.passed());
/// let bad = Rehearsal::run(&rules, &rules.tests()[1])?;
/// assert_eq!(
///     bad.failures()[0].to_string(),
///     "expected 99 allowed, got 100; \
///      first denial at request 101 after 0 s by `per-user`, retry after 600 ms",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    failures: Vec<Failure>,
}

impl Rehearsal {
    /// The most requests that a test has under way at once.
    pub const MAX_UNDER_WAY: usize = 100_000;

    /// Runs a test of these rules, or of others.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate::{Rehearsal, RuleSet};
    /// let rules = Arc::new(RuleSet::parse(
    ///     "rules: [{ name: a, key: [], limit: 5/s }]
    /// tests: [{ name: five, given: { request: GET /, times: 6 }, expect: { denied: 1 } }]",
    /// )?);
    /// assert!(Rehearsal::run(&rules, &rules.tests()[0])?.passed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there can be no engine for the rules. The test then says nothing.
    pub fn run(rules: &Arc<RuleSet>, case: &Case) -> Result<Self, Error> {
        let clock = ManualClock::starting_at(BEGIN);
        let engine = Engine::builder(Arc::clone(rules)).seed(Seed::new(1)).clock(clock);
        let mut stage = Stage { engine: engine.build()?, under_way: Vec::new(), too_many: false };
        let mut failures = Vec::new();
        for (number, step) in case.steps().iter().enumerate() {
            stage.engine.clock().advance(step.after);
            let tally = step.given.request.with(|request| stage.play(&step.given, request));
            tally.compare(number, &step.expect, &mut failures);
            if stage.too_many {
                failures.push(Failure::too_many(number));
                break;
            }
        }
        Ok(Self { failures })
    }

    /// Whether everything was as expected.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tollgate::{Rehearsal, RuleSet};
    /// # let rules = Arc::new(RuleSet::parse(
    /// #     "rules: [{ name: a, key: [], limit: 5/s }]
    /// # tests: [{ name: six, given: { request: GET /, times: 6 }, expect: { allowed: 6 } }]",
    /// # )?);
    /// assert!(!Rehearsal::run(&rules, &rules.tests()[0])?.passed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// What was not as expected, in the order of the steps.
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
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }
}

/// The first moment of 2026, a Thursday.
const BEGIN: Wall = Wall::from_unix_seconds(1_767_225_600);

/// Where a test is played.
struct Stage {
    engine: Engine<ManualClock>,
    /// Slots of requests that are not answered.
    under_way: Vec<HeldSlot>,
    too_many: bool,
}

impl Stage {
    /// Makes the requests of a step, and moves the clock to its end.
    fn play(&mut self, given: &Given, request: &Request<'_>) -> Tally {
        let mut tally = Tally::default();
        let mut passed = Duration::ZERO;
        for number in 0..given.times {
            let since = share(given.over, number, given.times);
            self.engine.clock().advance(since.saturating_sub(passed));
            passed = since;
            let ruling = self.engine.decide(request);
            tally.add(&ruling, passed);
            match given.respond {
                Some(status) if ruling.is_allowed() => {
                    let outcome = Outcome { status: Some(status), headers: &[] };
                    self.engine.report(ruling, request, &outcome);
                }
                _ => self.under_way.extend(ruling.into_held()),
            }
            if self.under_way.len() > Rehearsal::MAX_UNDER_WAY {
                self.too_many = true;
                return tally;
            }
        }
        self.engine.clock().advance(given.over.saturating_sub(passed));
        tally
    }
}

/// When one of several requests is made that share a time evenly.
fn share(over: Duration, number: u64, times: u64) -> Duration {
    let nanos = over.as_nanos() * u128::from(number) / u128::from(times.max(1));
    // Periods are shorter than 2^64 nanoseconds.
    Duration::from_nanos(nanos.try_into().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;

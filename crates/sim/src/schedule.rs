//! One schedule of many: a fleet in trouble from beginning to end.

use std::fmt;

use thiserror::Error;

use crate::fleet::Fleet;
use crate::outcome::Outcome;
use crate::plan::{Loss, Plan};

/// What must never be: more passed than may, or more was lent than there is.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Broken(pub String);

/// A schedule that broke a promise, and what it takes to see it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the schedule.
    pub seed: u64,
    /// What was wrong.
    pub broken: Broken,
    /// The plan, spelt out.
    pub plan: String,
    /// What happened last, the latest at the end.
    pub trace: Vec<String>,
}

/// Runs the schedule of a seed.
///
/// ```
/// use tollgate_sim::{Loss, schedule};
/// let outcome = schedule(7, Loss::Known).expect("the limit holds");
/// assert!(outcome.requests > 0);
/// ```
///
/// # Errors
///
/// The promise that it broke, with what happened before.
pub fn schedule(seed: u64, loss: Loss) -> Result<Outcome, Box<Failure>> {
    run(seed, loss, 0).or_else(|_| run(seed, loss, TRACED)).map(|fleet| fleet.outcome())
}

/// What happens last in the schedule of a seed, up to so many events.
///
/// ```
/// use tollgate_sim::{Loss, trace};
/// assert_eq!(trace(7, Loss::Known, 5).expect("the limit holds").len(), 5);
/// ```
///
/// # Errors
///
/// The promise that it broke, with what happened before.
pub fn trace(seed: u64, loss: Loss, events: usize) -> Result<Vec<String>, Box<Failure>> {
    let fleet = run(seed, loss, events)?;
    Ok(fleet.trace().map(String::from).collect())
}

fn run(seed: u64, loss: Loss, traced: usize) -> Result<Fleet, Box<Failure>> {
    let failed =
        |broken, plan: &str, trace| Box::new(Failure { seed, broken, plan: plan.into(), trace });
    let plan = Plan::troubled(seed)
        .map_err(|error| failed(Broken(error.to_string()), "none", Vec::new()))?;
    let (plan, end) = (Plan { loss, ..plan }, Plan::START + plan.lasts);
    let text = format!("{plan:?}");
    let fleet = Fleet::new(plan).map_err(|broken| failed(broken, &text, Vec::new()))?;
    let mut fleet = fleet.traced(traced);
    match fleet.run_until(end) {
        Ok(()) => Ok(fleet),
        Err(broken) => Err(failed(broken, &text, fleet.trace().map(String::from).collect())),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schedule {}: {}", self.seed, self.broken)
    }
}

impl std::error::Error for Failure {}

/// So many events before a failure are told.
const TRACED: usize = 40;

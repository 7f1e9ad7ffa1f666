//! What passes, beside what may.

use super::counter_sync::CounterSync;
use crate::fleet::Fleet;
use crate::plan::{Pace, Plan, SECOND};
use crate::schedule::Broken;
use crate::subject::Subject;

/// A fleet that is asked for more than may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accuracy {
    /// How many nodes share the limit.
    pub nodes: u64,
    /// The limit, a token bucket.
    pub quota: String,
    /// How many requests there are in a second while there are any, to all nodes.
    pub per_second: u64,
    /// When there are any.
    pub load: Load,
    /// For how long.
    pub seconds: u64,
    /// Where chance begins.
    pub seed: u64,
}

/// When nodes are busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// All the time.
    Steady,
    /// All for a second, and then nobody for a second.
    Bursts,
    /// One half of the nodes for a second, and then the other.
    Turns,
}

/// How the nodes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// They borrow from a store.
    Lending,
    /// They compare counters every tenth of a second.
    CounterSync,
}

/// What passed over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Every tenth of a second: the time in seconds, what passed until then, and what would have
    /// passed if one limiter had seen every request at once.
    pub points: Vec<(f64, u64, u64)>,
    /// By how much more passed at the worst moment, in per cent of what would have.
    pub over_percent: f64,
    /// By how much less passed in the end, in per cent of what would have.
    pub under_percent: f64,
}

impl Accuracy {
    /// So many nodes, asked for ten times what may pass.
    ///
    /// ```
    /// use tollgate_sim::figures::{Accuracy, Load};
    /// assert_eq!(Accuracy::of(5, Load::Steady).seconds, 10);
    /// ```
    pub fn of(nodes: u64, load: Load) -> Self {
        let seconds = if load == Load::Steady { 10 } else { 60 };
        Self { nodes, quota: "1k/s".into(), per_second: 10_000, load, seconds, seed: 1 }
    }

    /// The same with a limit of so many thousands a second, and ten times as many requests.
    ///
    /// ```
    /// use tollgate_sim::figures::{Accuracy, Load};
    /// assert_eq!(Accuracy::of(50, Load::Steady).of_thousands(10).quota, "10k/s");
    /// ```
    #[must_use]
    pub fn of_thousands(self, thousands: u64) -> Self {
        Self { quota: format!("{thousands}k/s"), per_second: 10_000 * thousands, ..self }
    }

    /// What cannot be helped of bursts, in per cent of what would pass: a token that is lent to a node waits
    /// for its next request, and whatever waits at the end of a burst is lost.
    ///
    /// ```
    /// use tollgate_sim::figures::{Accuracy, Load};
    /// assert_eq!(Accuracy::of(50, Load::Bursts).waiting_percent(), 0.25, "5 ms of every other second");
    /// ```
    pub fn waiting_percent(&self) -> f64 {
        100.0 * self.nodes as f64 / self.per_second.max(1) as f64 / 2.0
    }

    /// What passed, and what would have, every tenth of a second.
    fn points(
        &self,
        mut until: impl FnMut(u64) -> Result<(u64, u64), Broken>,
    ) -> Result<Vec<(f64, u64, u64)>, Broken> {
        let at = |tenth: u64| {
            let (passed, ideal) = until(Plan::START + tenth * SECOND / 10)?;
            Ok((tenth as f64 / 10.0, passed, ideal))
        };
        (1..=self.seconds * 10).map(at).collect()
    }

    fn plan(&self) -> Result<Plan, Broken> {
        let subject = Subject::bucket(&self.quota).map_err(|error| Broken(error.to_string()))?;
        let busy = if self.load == Load::Turns { self.nodes.div_ceil(2) } else { self.nodes };
        let gap = SECOND * busy.max(1) / self.per_second.max(1);
        let calm = Plan::calm(self.seed, subject, self.nodes.max(1), gap);
        Ok(Plan {
            pace: Pace::About(gap),
            turns: (self.load != Load::Steady).then_some(SECOND),
            together: self.load == Load::Bursts,
            drift: 10,
            ..calm
        })
    }
}

/// Measures what passes.
///
/// ```
/// use tollgate_sim::figures::{Accuracy, Load, Sharing, accuracy};
/// let few = Accuracy { seconds: 2, ..Accuracy::of(3, Load::Steady) };
/// let (lending, sync) = (accuracy(&few, Sharing::Lending)?, accuracy(&few, Sharing::CounterSync)?);
/// assert_eq!(lending.over_percent, 0.0);
/// assert!(sync.over_percent > 10.0);
/// # Ok::<(), tollgate_sim::Broken>(())
/// ```
///
/// # Errors
///
/// If the quota is none, or nodes that borrow pass more than may.
pub fn accuracy(fleet: &Accuracy, sharing: Sharing) -> Result<Course, Broken> {
    let plan = fleet.plan()?;
    let points = match sharing {
        Sharing::Lending => {
            let mut lent = Fleet::new(plan)?;
            fleet.points(|end| {
                lent.run_until(end)?;
                Ok((lent.outcome().passed, lent.outcome().ideal))
            })
        }
        Sharing::CounterSync => {
            let none = || Broken(format!("{} is no bucket", fleet.quota));
            let mut synced = CounterSync::new(plan, CounterSync::USUAL).ok_or_else(none)?;
            fleet.points(|end| Ok((synced.run_until(end), synced.ideal())))
        }
    }?;
    let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    let over =
        |(_, passed, ideal): &(f64, u64, u64)| percent(passed.saturating_sub(*ideal), *ideal);
    let over_percent = points.iter().map(over).fold(0.0, f64::max);
    let under =
        |(_, passed, ideal): &(f64, u64, u64)| percent(ideal.saturating_sub(*passed), *ideal);
    let under_percent = points.last().map_or(0.0, under);
    Ok(Course { points, over_percent, under_percent })
}

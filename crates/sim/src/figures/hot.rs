//! A few keys that are asked for all the time, or in bursts.

use std::time::Duration;

use crate::fleet::Fleet;
use crate::plan::{Pace, Plan, SECOND};
use crate::schedule::Broken;
use crate::subject::Subject;

/// Hot keys, all as hot as each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Hot {
    /// How many there are.
    pub keys: u64,
    /// How many of them are run, and stand for all.
    pub sample: u64,
    /// How many nodes are asked.
    pub nodes: u64,
    /// How many requests there are in a second while there are any, to all nodes for all keys.
    pub per_second: u64,
    /// There are some for so long, and then none for as long; `None` if there are some all the time.
    pub bursts: Option<Duration>,
    /// The first node is asked so many times as often as each of the others.
    pub heavier: u64,
    /// What is lent of each key. Requests for permits keep them for 150 ms on the average.
    pub subject: Subject,
    /// For how long it is measured, after a while to settle.
    pub seconds: u64,
    /// Where chance begins.
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HotFigures {
    /// Requests in a second, of all keys.
    pub requests: f64,
    /// The part of them that was decided without waiting for the store.
    pub local: f64,
    /// Messages to the store in a second, of all keys and nodes.
    pub exchanges: f64,
    /// Messages in a second of one key and node, on the average.
    pub per_lease: f64,
    /// The same of the busiest, over the whole time.
    pub busiest_lease: f64,
    /// The most messages of one key and node in the first second, in which nodes find out what they need.
    pub most_in_the_first: u64,
    /// The same of any later second.
    pub most_in_a_second: u64,
    /// How many such seconds there were, of all keys and nodes.
    pub seconds: u64,
    /// How many of them had more than twelve.
    pub above_twelve: u64,
}

impl Hot {
    /// A hundred keys with this limit, five nodes, half a million requests a second.
    ///
    /// ```
    /// use tollgate_sim::{Subject, figures::Hot};
    /// assert_eq!(Hot::of(Subject::bucket("10k/s")?).per_second, 500_000, "half of what may pass");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn of(subject: Subject) -> Self {
        let (nodes, per_second, bursts) = (5, 500_000, None);
        let (keys, sample, heavier) = (100, 5, 1);
        Self { keys, sample, nodes, per_second, bursts, heavier, subject, seconds: 20, seed: 1 }
    }

    /// The same in so short a time that it takes none, for a look.
    ///
    /// ```
    /// use tollgate_sim::{Subject, figures::{Hot, hot}};
    /// assert!(hot(&Hot::of(Subject::bucket("10k/s")?).brief()).is_ok());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[must_use]
    pub fn brief(self) -> Self {
        Self { sample: 1, seconds: 2, ..self }
    }
}

/// Measures how often nodes ask the store about hot keys.
///
/// ```
/// use tollgate_sim::{Subject, figures::{Hot, hot}};
/// let figures = hot(&Hot::of(Subject::bucket("10k/s")?).brief())?;
/// assert!(figures.exchanges < 10_000.0, "{figures:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If nobody lends that, or more passes than may.
pub fn hot(hot: &Hot) -> Result<HotFigures, Broken> {
    let (sample, nodes) = (hot.sample.clamp(1, hot.keys.max(1)), hot.nodes.max(1));
    let heavier = hot.heavier.max(1);
    // The first node counts for as many.
    let gap = SECOND * (nodes - 1 + heavier) * hot.keys.max(1) / hot.per_second.max(1);
    let (mut requests, mut waited, mut exchanges) = (0, 0, 0);
    let mut figures = HotFigures::default();
    for number in 0..sample {
        let calm = Plan::calm(hot.seed.wrapping_add(number), hot.subject.clone(), nodes, gap);
        let turns = hot.bursts.map(|burst| burst.as_nanos() as u64);
        let plan =
            Plan { pace: Pace::About(gap), turns, heavier, together: true, drift: 10, ..calm };
        let mut fleet = Fleet::new(plan)?;
        fleet.run_until(Plan::START + SECOND)?;
        let first = fleet.exchanges().iter().copied().max().unwrap_or(0);
        figures.most_in_the_first = figures.most_in_the_first.max(first);
        figures.busiest(&mut fleet, SETTLED - 1)?;
        let (before, begin) = (fleet.outcome(), fleet.exchanges().to_vec());
        figures.busiest(&mut fleet, hot.seconds.max(1))?;
        let after = fleet.outcome();
        requests += after.requests - before.requests;
        waited += after.waited - before.waited;
        exchanges += after.exchanges - before.exchanges;
        let most = since(&begin, fleet.exchanges()).max().unwrap_or(0);
        let most = most as f64 / hot.seconds.max(1) as f64;
        figures.busiest_lease = figures.busiest_lease.max(most);
    }
    let per_key = 1.0 / (sample * hot.seconds.max(1)) as f64;
    Ok(HotFigures {
        requests: requests as f64 * per_key * hot.keys as f64,
        local: 1.0 - waited as f64 / requests.max(1) as f64,
        exchanges: exchanges as f64 * per_key * hot.keys as f64,
        per_lease: exchanges as f64 * per_key / nodes as f64,
        ..figures
    })
}

impl HotFigures {
    /// Runs for so many seconds, and takes note of the busiest.
    fn busiest(&mut self, fleet: &mut Fleet, seconds: u64) -> Result<(), Broken> {
        for _ in 0..seconds {
            let last = fleet.exchanges().to_vec();
            fleet.run_until(fleet.now() + SECOND)?;
            for asked in since(&last, fleet.exchanges()) {
                self.most_in_a_second = self.most_in_a_second.max(asked);
                self.seconds += 1;
                self.above_twelve += u64::from(asked > 12);
            }
        }
        Ok(())
    }
}

/// How many each node has more.
fn since(before: &[u64], after: &[u64]) -> impl Iterator<Item = u64> {
    after.iter().zip(before).map(|(after, before)| after - before)
}

/// For so many seconds nodes find out what they need.
const SETTLED: u64 = 3;

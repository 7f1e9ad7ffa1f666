//! Many keys, some of them asked for all the time and most of them seldom.

use crate::fleet::Fleet;
use crate::plan::{Pace, Plan, SECOND};
use crate::schedule::Broken;
use crate::subject::Subject;

/// Keys that are asked for by Zipf's law with exponent 1: the second half as often as the first, the
/// third a third as often. Requests come independently of each other, to each node as often.
///
/// Keys share nothing, so each is a fleet of its own; of keys that are about as busy as each other,
/// a few stand for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// How many keys there are.
    pub keys: u64,
    /// How many nodes are asked.
    pub nodes: u64,
    /// How many requests there are in a second, to all nodes for all keys.
    pub per_second: u64,
    /// The limit of each key, a token bucket.
    pub quota: String,
    /// So many keys are run of those between one power of two and the next.
    pub sample: u64,
    /// Where chance begins.
    pub seed: u64,
}

/// What was measured, over all keys in proportion to what they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrowdFigures {
    /// Requests in a second.
    pub requests: f64,
    /// The part of them that was decided without waiting for the store.
    pub local: f64,
    /// The same of keys that are asked for more than ten times a second at each node.
    pub fast_local: f64,
    /// The part of requests that those have.
    pub fast: f64,
    /// Messages to the store in a second.
    pub exchanges: f64,
    /// Requests in a second that passed.
    pub passed: f64,
}

impl Default for Crowd {
    /// A hundred thousand keys with limits per minute, five nodes, half a million requests a second.
    fn default() -> Self {
        let quota = "1k/min".into();
        Self { keys: 100_000, nodes: 5, per_second: 500_000, quota, sample: 16, seed: 1 }
    }
}

impl Crowd {
    /// The same with so few keys run that it takes no time, for a look.
    ///
    /// ```
    /// let figures = tollgate_sim::figures::crowd(&tollgate_sim::figures::Crowd::brief())?;
    /// assert!(figures.local > 0.5);
    /// # Ok::<(), tollgate_sim::Broken>(())
    /// ```
    pub fn brief() -> Self {
        Self { keys: 2_000, per_second: 2_000, sample: 1, ..Self::default() }
    }
}

/// Measures how many requests of a crowd wait for the store.
///
/// ```
/// use tollgate_sim::figures::{Crowd, crowd};
/// let figures = crowd(&Crowd::brief())?;
/// assert!(figures.exchanges < figures.requests);
/// # Ok::<(), tollgate_sim::Broken>(())
/// ```
///
/// # Errors
///
/// If the quota is none, or more passes than may.
pub fn crowd(crowd: &Crowd) -> Result<CrowdFigures, Broken> {
    let subject = Subject::bucket(&crowd.quota).map_err(|error| Broken(error.to_string()))?;
    let harmonic: f64 = (1..=crowd.keys).map(|rank| 1.0 / rank as f64).sum();
    let mut sums = Sums::default();
    let mut first = 1;
    while first <= crowd.keys {
        let end = (first * 2).min(crowd.keys + 1);
        let sample = crowd.sample.clamp(1, end - first);
        for number in 0..sample {
            let rank = first + (end - first) * (2 * number + 1) / (2 * sample);
            let per_node = crowd.per_second as f64 / harmonic / rank as f64 / crowd.nodes as f64;
            let weight = (end - first) as f64 / sample as f64;
            sums.add(weight, per_node, &Key::run(crowd, &subject, rank, per_node)?);
        }
        first = end;
    }
    Ok(sums.figures())
}

/// What one key does in a second.
struct Key {
    requests: f64,
    waited: f64,
    exchanges: f64,
    passed: f64,
}

impl Key {
    /// Runs one key until it has settled, and then for as long again.
    fn run(crowd: &Crowd, subject: &Subject, rank: u64, per_node: f64) -> Result<Self, Broken> {
        // Slow keys tell less in a second.
        let seconds = if per_node > 200.0 { 8 } else { 120 };
        let gap = (SECOND as f64 / per_node) as u64;
        let calm = Plan::calm(crowd.seed ^ (rank << 20), subject.clone(), crowd.nodes, gap);
        let mut fleet = Fleet::new(Plan { pace: Pace::About(gap), ..calm })?;
        fleet.run_until(Plan::START + seconds * SECOND)?;
        let before = fleet.outcome();
        fleet.run_until(Plan::START + 2 * seconds * SECOND)?;
        let after = fleet.outcome();
        let rate = |before: u64, after: u64| (after - before) as f64 / seconds as f64;
        Ok(Self {
            requests: rate(before.requests, after.requests),
            waited: rate(before.waited, after.waited),
            exchanges: rate(before.exchanges, after.exchanges),
            passed: rate(before.passed, after.passed),
        })
    }
}

#[derive(Default)]
struct Sums {
    all: CrowdFigures,
    waited: f64,
    fast: f64,
    fast_waited: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, per_node: f64, key: &Key) {
        self.all.requests += weight * key.requests;
        self.all.exchanges += weight * key.exchanges;
        self.all.passed += weight * key.passed;
        self.waited += weight * key.waited;
        if per_node > 10.0 {
            self.fast += weight * key.requests;
            self.fast_waited += weight * key.waited;
        }
    }

    fn figures(&self) -> CrowdFigures {
        let part = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        CrowdFigures {
            local: 1.0 - part(self.waited, self.all.requests),
            fast_local: 1.0 - part(self.fast_waited, self.fast),
            fast: part(self.fast, self.all.requests),
            ..self.all
        }
    }
}

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
    /// What may pass of each key.
    pub limits: Limits,
    /// So many keys are run of those between one power of two and the next.
    pub sample: u64,
    /// Where chance begins.
    pub seed: u64,
}

/// Which limit a key has, a token bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limits {
    /// All keys the same.
    Same(String),
    /// Tiers of 100/min, 1000/min, 10,000/min and so on. Most keys have the lowest that is enough for what
    /// they are asked for, which is from a tenth of it to all of it. One in four has the tier below, and
    /// is asked for up to ten times what may pass.
    Tiers,
}

/// What was measured, over all keys in proportion to what they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrowdFigures {
    /// All keys.
    pub all: Decisions,
    /// Those that are asked for more than ten times a second at each node.
    pub fast: Decisions,
    /// The same of the one of them that waits for the store most often, for its requests.
    pub worst_fast: Decisions,
    /// Messages to the store in a second.
    pub exchanges: f64,
}

/// Requests in a second, and how they were decided.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decisions {
    /// Those that passed.
    pub allowed: f64,
    /// And those of them that waited for the store.
    pub allowed_waited: f64,
    /// Those that did not pass.
    pub denied: f64,
    /// And those of them that waited for the store.
    pub denied_waited: f64,
}

impl Decisions {
    /// All requests.
    ///
    /// ```
    /// use tollgate_sim::figures::Decisions;
    /// assert_eq!(Decisions { allowed: 3.0, denied: 1.0, ..Decisions::default() }.requests(), 4.0);
    /// ```
    pub fn requests(&self) -> f64 {
        self.allowed + self.denied
    }

    /// The part that waited for the store.
    ///
    /// ```
    /// use tollgate_sim::figures::Decisions;
    /// let half = Decisions { allowed: 2.0, allowed_waited: 1.0, ..Decisions::default() };
    /// assert_eq!(half.waited(), 0.5);
    /// ```
    pub fn waited(&self) -> f64 {
        part(self.allowed_waited + self.denied_waited, self.requests())
    }

    /// The part of those that passed which waited for the store.
    ///
    /// ```
    /// use tollgate_sim::figures::Decisions;
    /// let some = Decisions { allowed: 4.0, allowed_waited: 1.0, denied: 7.0, denied_waited: 0.0 };
    /// assert_eq!(some.waited_of_allowed(), 0.25);
    /// ```
    pub fn waited_of_allowed(&self) -> f64 {
        part(self.allowed_waited, self.allowed)
    }

    /// The part of those that did not pass which waited for the store.
    ///
    /// ```
    /// use tollgate_sim::figures::Decisions;
    /// let some = Decisions { denied: 4.0, denied_waited: 1.0, ..Decisions::default() };
    /// assert_eq!(some.waited_of_denied(), 0.25);
    /// ```
    pub fn waited_of_denied(&self) -> f64 {
        part(self.denied_waited, self.denied)
    }

    fn add(&mut self, weight: f64, other: &Self) {
        self.allowed += weight * other.allowed;
        self.allowed_waited += weight * other.allowed_waited;
        self.denied += weight * other.denied;
        self.denied_waited += weight * other.denied_waited;
    }
}

impl Default for Crowd {
    /// A hundred thousand keys with limits per minute, five nodes, half a million requests a second.
    fn default() -> Self {
        let limits = Limits::Tiers;
        Self { keys: 100_000, nodes: 5, per_second: 500_000, limits, sample: 16, seed: 1 }
    }
}

impl Crowd {
    /// The same with so few keys run that it takes no time, for a look.
    ///
    /// ```
    /// let figures = tollgate_sim::figures::crowd(&tollgate_sim::figures::Crowd::brief())?;
    /// assert!(figures.all.waited() < 0.5);
    /// # Ok::<(), tollgate_sim::Broken>(())
    /// ```
    pub fn brief() -> Self {
        Self { keys: 2_000, per_second: 10_000, sample: 1, ..Self::default() }
    }
}

/// Measures how many requests of a crowd wait for the store.
///
/// ```
/// use tollgate_sim::figures::{Crowd, crowd};
/// let figures = crowd(&Crowd::brief())?;
/// assert!(figures.exchanges < figures.all.requests());
/// # Ok::<(), tollgate_sim::Broken>(())
/// ```
///
/// # Errors
///
/// If a quota is none, or more passes than may.
pub fn crowd(crowd: &Crowd) -> Result<CrowdFigures, Broken> {
    let harmonic: f64 = (1..=crowd.keys).map(|rank| 1.0 / rank as f64).sum();
    let mut figures = CrowdFigures::default();
    let (mut first, mut place) = (1, 0);
    while first <= crowd.keys {
        let end = (first * 2).min(crowd.keys + 1);
        let sample = crowd.sample.clamp(1, end - first);
        for number in 0..sample {
            let rank = first + (end - first) * (2 * number + 1) / (2 * sample);
            let per_second = crowd.per_second as f64 / harmonic / rank as f64;
            let weight = (end - first) as f64 / sample as f64;
            place += 1;
            let quota = crowd.limits.quota(place, per_second);
            let key = Key { rank, per_second, quota };
            figures.add(weight, per_second / crowd.nodes as f64, &key.run(crowd)?);
        }
        first = end;
    }
    Ok(figures)
}

impl Limits {
    /// The limit of the key at this place among those that are run.
    fn quota(&self, place: u64, per_second: f64) -> String {
        match self {
            Self::Same(quota) => quota.clone(),
            Self::Tiers => {
                let enough = (per_second * 60.0).log10().ceil() as u32;
                let tier = if place.is_multiple_of(4) { enough.saturating_sub(1) } else { enough };
                format!("{}/min", 10_u64.pow(tier.clamp(2, 12)))
            }
        }
    }
}

/// One of the keys.
struct Key {
    rank: u64,
    per_second: f64,
    quota: String,
}

impl Key {
    /// Runs the key until it has settled, and then for a while: what it does in a second, and how many
    /// messages the store gets.
    fn run(&self, crowd: &Crowd) -> Result<(Decisions, f64), Broken> {
        let subject = Subject::bucket(&self.quota).map_err(|error| Broken(error.to_string()))?;
        let per_node = self.per_second / crowd.nodes as f64;
        // Slow keys tell less in a second.
        let seconds = if per_node > 200.0 { 8 } else { 120 };
        let settled = seconds.max(self.empties(&subject));
        let gap = (SECOND as f64 / per_node) as u64;
        let calm = Plan::calm(crowd.seed ^ (self.rank << 20), subject, crowd.nodes, gap);
        let mut fleet = Fleet::new(Plan { pace: Pace::About(gap), ..calm })?;
        fleet.run_until(Plan::START + settled * SECOND)?;
        let before = fleet.outcome();
        fleet.run_until(Plan::START + (settled + seconds) * SECOND)?;
        let after = fleet.outcome();
        let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds as f64;
        let requests = rate(before.requests, after.requests);
        let allowed = rate(before.passed, after.passed);
        // Every request costs one, so what did not pass by itself has asked. An answer may be on its way.
        let allowed_waited = allowed - rate(before.local, after.local);
        let denied_waited = (rate(before.waited, after.waited) - allowed_waited).max(0.0);
        let denied = requests - allowed;
        let decisions = Decisions { allowed, allowed_waited, denied, denied_waited };
        Ok((decisions, rate(before.exchanges, after.exchanges)))
    }

    /// How many seconds it takes until a bucket is empty of which more is asked for than comes in, and
    /// some more. One of which hardly more is asked for is left as it is, because that takes too long.
    fn empties(&self, subject: &Subject) -> u64 {
        let Some((count, period)) = subject.rate() else { return 0 };
        let missing = self.per_second - count as f64 * SECOND as f64 / period as f64;
        match subject.capacity() as f64 / missing {
            seconds if missing > 0.0 => (seconds * 1.2).min(LONGEST) as u64,
            _ => 0,
        }
    }
}

impl CrowdFigures {
    fn add(&mut self, weight: f64, per_node: f64, (decisions, exchanges): &(Decisions, f64)) {
        self.all.add(weight, decisions);
        self.exchanges += weight * exchanges;
        if per_node > 10.0 {
            self.fast.add(weight, decisions);
            if decisions.waited() >= self.worst_fast.waited() {
                self.worst_fast = *decisions;
            }
        }
    }
}

fn part(part: f64, all: f64) -> f64 {
    if all > 0.0 { part / all } else { 0.0 }
}

/// In seconds.
const LONGEST: f64 = 300.0;

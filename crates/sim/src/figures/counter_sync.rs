//! The usual way to share a counter: everybody counts for himself, and now and then all compare.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::chance::Chance;
use crate::plan::{Plan, SECOND};

/// Nodes that decide by what they last heard of a bucket, and what they have spent themselves since;
/// each tells the store what it has spent every so often, and hears what is left then.
///
/// What all spend at the same time is found out afterwards, and paid back: the bucket goes below
/// nothing, and nobody passes until it is above again. So over a long time no more passes than may,
/// and in a short time up to as many bursts as there are nodes.
#[derive(Clone, Debug)]
pub struct CounterSync {
    plan: Plan,
    every: u64,
    chance: Chance,
    /// In tokens: what the bucket holds, how much of it comes in a nanosecond, and when it was so.
    level: f64,
    burst: f64,
    per_nano: f64,
    at: u64,
    nodes: Vec<View>,
    events: BinaryHeap<Reverse<(u64, u64, usize, Kind)>>,
    order: u64,
    admitted: u64,
}

/// What one node believes.
#[derive(Clone, Copy, Debug)]
struct View {
    level: f64,
    at: u64,
    spent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Request,
    Sync,
}

impl CounterSync {
    /// How often counters are usually compared: every tenth of a second.
    ///
    /// ```
    /// assert_eq!(tollgate_sim::figures::CounterSync::USUAL, tollgate_sim::SECOND / 10);
    /// ```
    pub const USUAL: u64 = SECOND / 10;

    /// The nodes and requests of a plan, of which everything else is ignored. `None` if the plan is
    /// not about a bucket.
    ///
    /// ```
    /// use tollgate_sim::{MILLI, Plan, Subject, figures::CounterSync};
    /// let plan = Plan::calm(7, Subject::bucket("1k/s")?, 5, MILLI);
    /// assert!(CounterSync::new(plan, 100 * MILLI).is_some());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn new(plan: Plan, every: u64) -> Option<Self> {
        let (count, period) = plan.subject.rate()?;
        let burst = plan.subject.capacity() as f64;
        let mut chance = Chance(plan.seed);
        let start = Plan::START;
        let view = View { level: burst, at: start, spent: 0 };
        let mut events = BinaryHeap::new();
        for place in 0..plan.nodes as usize {
            let first = start + plan.pace.pause(&mut chance);
            events.push(Reverse((first, 2 * place as u64, place, Kind::Request)));
            let sync = start + chance.below(every.max(1));
            events.push(Reverse((sync, 2 * place as u64 + 1, place, Kind::Sync)));
        }
        Some(Self {
            every: every.max(1),
            chance,
            level: burst,
            burst,
            per_nano: count as f64 / period as f64,
            at: start,
            nodes: vec![view; plan.nodes as usize],
            order: 2 * plan.nodes,
            events,
            admitted: 0,
            plan,
        })
    }

    /// Runs up to that time, and says how many have passed.
    ///
    /// ```
    /// use tollgate_sim::{MILLI, Plan, SECOND, Subject, figures::CounterSync};
    /// let plan = Plan::calm(7, Subject::bucket("1k/s")?, 5, MILLI / 2);
    /// let mut nodes = CounterSync::new(plan, 100 * MILLI).expect("it is a bucket");
    /// assert!(nodes.run_until(Plan::START + SECOND) > 2_000, "more than may");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn run_until(&mut self, end: u64) -> u64 {
        while let Some(Reverse((time, order, place, kind))) = self.events.pop() {
            if time > end {
                self.events.push(Reverse((time, order, place, kind)));
                break;
            }
            let pause = match kind {
                Kind::Request => {
                    self.request(place, time);
                    self.plan.pace.pause(&mut self.chance)
                }
                Kind::Sync => {
                    self.sync(place, time);
                    self.every
                }
            };
            self.order += 1;
            self.events.push(Reverse((time + pause, self.order, place, kind)));
        }
        self.admitted
    }

    fn request(&mut self, place: usize, time: u64) {
        if self.plan.is_quiet(place, time) {
            return;
        }
        let (burst, per_nano) = (self.burst, self.per_nano);
        let view = &mut self.nodes[place];
        view.level = (view.level + (time - view.at) as f64 * per_nano).min(burst);
        view.at = time;
        if view.level >= 1.0 {
            view.level -= 1.0;
            view.spent += 1;
            self.admitted += 1;
        }
    }

    fn sync(&mut self, place: usize, time: u64) {
        self.level = (self.level + (time - self.at) as f64 * self.per_nano).min(self.burst);
        self.at = time;
        let view = &mut self.nodes[place];
        self.level -= std::mem::take(&mut view.spent) as f64;
        (view.level, view.at) = (self.level, time);
    }
}

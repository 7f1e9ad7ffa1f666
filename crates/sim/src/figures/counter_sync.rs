//! The usual way to share a counter: everybody counts for himself, and now and then all compare.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::counting::Counting;
use crate::chance::Chance;
use crate::ideal::Ideal;
use crate::plan::{Plan, SECOND};

/// Nodes that [count](Counting) for themselves, and compare every so often, each at a moment of its own.
/// That takes no time.
#[derive(Clone, Debug)]
pub struct CounterSync {
    plan: Plan,
    every: u64,
    chance: Chance,
    nodes: Vec<Counting>,
    /// What all have told that they have spent.
    sum: u64,
    events: BinaryHeap<Reverse<(u64, u64, usize, Kind)>>,
    order: u64,
    admitted: u64,
    ideal: Ideal,
    ideally: u64,
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
        let node = Counting::new(burst, count as f64 * SECOND as f64 / period as f64, start);
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
            nodes: vec![node; plan.nodes as usize],
            sum: 0,
            order: 2 * plan.nodes,
            events,
            admitted: 0,
            ideal: Ideal::of(&plan.subject),
            ideally: 0,
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

    /// How many would have passed until then if one limiter had seen every request at once.
    ///
    /// ```
    /// use tollgate_sim::{MILLI, Plan, SECOND, Subject, figures::CounterSync};
    /// let plan = Plan::calm(7, Subject::bucket("1k/s")?, 5, MILLI / 2);
    /// let mut nodes = CounterSync::new(plan, 100 * MILLI).expect("it is a bucket");
    /// assert!(nodes.run_until(Plan::START + SECOND) > nodes.ideal());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn ideal(&self) -> u64 {
        self.ideally
    }

    fn request(&mut self, place: usize, time: u64) {
        if self.plan.is_quiet(place, time) {
            return;
        }
        self.ideally += self.ideal.admits(time, 1);
        self.admitted += u64::from(self.nodes[place].admits(time));
    }

    fn sync(&mut self, place: usize, time: u64) {
        let node = &mut self.nodes[place];
        self.sum += node.tells();
        node.hears(self.sum, time);
    }
}

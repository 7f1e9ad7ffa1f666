//! A store and its nodes in one thread and in virtual time, driven by the seed of a [`Plan`].

mod network;
mod nodes;
mod permits;
mod replica;
mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use tollgate_core::Tick;
use tollgate_core::lease::{Account, Exchange, Grant, Lender, Node, Receipt};

use crate::audit::Audit;
use crate::chance::Chance;
use crate::ideal::Ideal;
use crate::member::Member;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::schedule::Broken;
use network::Scheduled;
use replica::Replica;

/// A fleet at one moment of its run.
///
/// ```
/// use tollgate_sim::{Fleet, MILLI, Plan, SECOND, Subject};
/// let plan = Plan::calm(7, Subject::bucket("1k/s")?, 5, MILLI);
/// let mut fleet = Fleet::new(plan).expect("it can be lent");
/// fleet.run_until(Plan::START + SECOND).expect("the limit holds");
/// assert!((1_900..=2_000).contains(&fleet.outcome().passed), "the burst, and a second's worth");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Debug)]
pub struct Fleet {
    plan: Plan,
    now: u64,
    chance: Chance,
    phase: u64,
    /// The store as it was before it lost anything, and as it is.
    base: Lender,
    lender: Lender,
    account: Option<Account>,
    epoch: u64,
    /// When it has forgotten everything last.
    forgot: Option<Tick>,
    replica: Option<Replica>,
    members: Vec<Member>,
    events: BinaryHeap<Reverse<Scheduled>>,
    order: u64,
    is_silent: bool,
    audit: Audit,
    /// Exchanges that were answered: what is answered again has passed already.
    counted: BTreeSet<Number>,
    /// Requests that come to nothing whatever the store says, and what they cost; those that are
    /// answered cost nothing any more.
    in_vain: BTreeMap<Number, u64>,
    ideal: Ideal,
    outcome: Outcome,
    /// Exchanges of each node that came to the store.
    asked: Vec<u64>,
    /// The last events, and how many of them.
    trace: (VecDeque<String>, usize),
}

/// Names an exchange.
type Number = (u64, u64, u64);

const fn number_of(node: Node, sequence: u64) -> Number {
    (node.number, node.incarnation, sequence)
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Request(usize),
    Wake(usize),
    AtStore(usize, Exchange),
    AtNode(usize, Node, Grant),
    Undo(Exchange),
    /// And how many permits it had.
    Finish(usize, Node, Receipt, u64),
    Death,
    Freeze,
    Cut,
    Restart,
    /// A replica hears of nothing from now on.
    Lag,
    /// And takes the store's place.
    TakeOver,
}

impl Fleet {
    /// A fleet before its first request.
    ///
    /// ```
    /// use tollgate_sim::{Fleet, Plan, Subject};
    /// assert!(Fleet::new(Plan::calm(7, Subject::bucket("1k/s")?, 5, 1_000)).is_ok());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If nobody lends that limit or decides on it for others.
    pub fn new(plan: Plan) -> Result<Self, Broken> {
        let unlent = || Broken(format!("{} is not lent", plan.subject));
        let base = plan.subject.lender(plan.round_trip()).ok_or_else(unlent)?;
        let mut chance = Chance(plan.seed);
        let phase = chance.next();
        let mut fleet = Self {
            audit: Audit::of(&plan.subject, phase),
            now: Plan::START,
            lender: base.clone(),
            account: None,
            base,
            chance,
            phase,
            epoch: 0,
            forgot: None,
            replica: None,
            members: Vec::new(),
            events: BinaryHeap::new(),
            order: 0,
            is_silent: false,
            counted: BTreeSet::new(),
            in_vain: BTreeMap::new(),
            ideal: Ideal::of(&plan.subject),
            outcome: Outcome::default(),
            asked: Vec::new(),
            trace: (VecDeque::new(), 0),
            plan,
        };
        for place in 0..fleet.plan.nodes {
            let member = fleet.new_member(place);
            fleet.members.push(member);
            fleet.asked.push(0);
            fleet.after_pause(place as usize);
        }
        fleet.after_about(fleet.plan.deaths, Event::Death);
        fleet.after_about(fleet.plan.freezes, Event::Freeze);
        fleet.after_about(fleet.plan.cuts, Event::Cut);
        fleet.after_about(fleet.plan.restarts, Event::Restart);
        fleet.after_about(fleet.plan.takeovers, Event::Lag);
        Ok(fleet)
    }

    /// The same, and remembers the last so many events.
    ///
    /// ```
    /// use tollgate_sim::{Fleet, MILLI, Plan, SECOND, Subject};
    /// let plan = Plan::calm(7, Subject::bucket("1k/s")?, 5, MILLI);
    /// let mut fleet = Fleet::new(plan).expect("it is lent").traced(3);
    /// fleet.run_until(Plan::START + SECOND).expect("the limit holds");
    /// assert_eq!(fleet.trace().count(), 3);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    #[must_use]
    pub fn traced(self, events: usize) -> Self {
        Self { trace: (VecDeque::new(), events), ..self }
    }

    /// Runs for as long as the plan says.
    ///
    /// ```
    /// use tollgate_sim::{Fleet, MILLI, Plan, Subject};
    /// let outcome = Fleet::run(&Plan::calm(7, Subject::bucket("100/s")?, 5, MILLI));
    /// assert!(outcome.is_ok_and(|outcome| outcome.passed <= 1_100));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong, as soon as something is.
    pub fn run(plan: &Plan) -> Result<Outcome, Broken> {
        let mut fleet = Self::new(plan.clone())?;
        fleet.run_until(Plan::START + plan.lasts)?;
        Ok(fleet.outcome)
    }

    /// Runs up to that time.
    ///
    /// ```
    /// use tollgate_sim::{Fleet, MILLI, Plan, SECOND, Subject};
    /// let mut fleet = Fleet::new(Plan::calm(7, Subject::bucket("1k/s")?, 5, MILLI)).expect("it is lent");
    /// fleet.run_until(Plan::START + SECOND).expect("the limit holds");
    /// assert_eq!(fleet.now(), Plan::START + SECOND);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong, as soon as something is.
    pub fn run_until(&mut self, end: u64) -> Result<(), Broken> {
        while let Some(Reverse(next)) = self.events.pop() {
            if next.time > end {
                self.events.push(Reverse(next));
                break;
            }
            self.now = next.time;
            self.note(&next.event);
            self.happens(next.event)?;
        }
        self.now = end;
        Ok(())
    }

    /// What time it is, by the store's clock.
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// What came of it so far.
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// How many exchanges of each node came to the store so far.
    pub fn exchanges(&self) -> &[u64] {
        &self.asked
    }

    /// What happened last, if it is remembered.
    pub fn trace(&self) -> impl Iterator<Item = &str> {
        self.trace.0.iter().map(String::as_str)
    }

    /// For how long the store keeps a lease; 0 if it lends nothing.
    pub fn hold(&self) -> u64 {
        self.base.terms().map_or(0, |terms| terms.hold().as_nanos() as u64)
    }

    fn happens(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Request(place) => return self.request_comes(place),
            Event::AtStore(place, exchange) => return self.at_store(place, exchange),
            Event::Undo(exchange) => return self.undo(&exchange),
            Event::AtNode(place, node, grant) => return self.at_node(place, node, grant),
            Event::Wake(place) => self.wakes(place),
            Event::Finish(place, node, receipt, cost) => self.finishes(place, node, receipt, cost),
            Event::Death => self.one_dies(),
            Event::Freeze => self.one_freezes(),
            Event::Cut => self.some_are_cut_off(),
            Event::Restart => self.restart(),
            Event::Lag => self.replica_lags(),
            Event::TakeOver => self.replica_takes_over(),
        }
        Ok(())
    }

    fn note(&mut self, event: &Event) {
        let (last, most) = &mut self.trace;
        if *most > 0 {
            if last.len() >= *most {
                last.pop_front();
            }
            last.push_back(format!("{:.9} s {event:?}", (self.now - Plan::START) as f64 / 1e9));
        }
    }
}

//! What a fleet goes through.

use std::time::Duration;

use crate::chance::Chance;
use crate::subject::Subject;

/// A millisecond in nanoseconds.
pub const MILLI: u64 = 1_000_000;

/// A second in nanoseconds.
pub const SECOND: u64 = 1_000 * MILLI;

/// All that a run depends on. Times are in nanoseconds, chances in thousandths.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where chance begins.
    pub seed: u64,
    /// What is shared.
    pub subject: Subject,
    /// How many share it.
    pub nodes: u64,
    /// How long a run lasts.
    pub lasts: u64,
    /// How often a node is asked.
    pub pace: Pace,
    /// The first node is asked so many times as often.
    pub heavier: u64,
    /// Requests cost from 1 to this.
    pub most_cost: u64,
    /// Nodes are busy and quiet in turns of this length.
    pub turns: Option<u64>,
    /// Whether all are busy at the same time, rather than one half after the other.
    pub together: bool,
    /// How long a message takes, at least and at most.
    pub delay: (u64, u64),
    /// How often a node that is asked has given the key's place to another key before.
    pub displaced: u64,
    /// How often a message is lost.
    pub lost: u64,
    /// How often a message comes twice.
    pub repeated: u64,
    /// How often a request that the store let pass comes to nothing, and is taken back.
    pub in_vain: u64,
    /// How far clocks of nodes may be from the store's, in thousandths.
    pub drift: u64,
    /// A node dies about every so often, and another takes its place.
    pub deaths: Option<u64>,
    /// A node stands still about every so often, for up to twice the time of a lease.
    pub freezes: Option<u64>,
    /// Some nodes are cut off from the store about every so often.
    pub cuts: Option<u64>,
    /// The store starts again about every so often, and forgets in every other case.
    pub restarts: Option<u64>,
    /// A replica takes the store's place about every so often, and knows it.
    pub takeovers: Option<u64>,
    /// For how long it had not heard of anything then, at most.
    pub lag: u64,
    /// What a store knows that has forgotten, or a replica that has taken over.
    pub loss: Loss,
    /// How often the store drops the account of a key that has its whole budget.
    pub dropped: u64,
    /// For how long a request keeps its permits, at most. It keeps them also if its node is out of touch
    /// with the store for longer than a lease lasts, or the store forgets: nobody ends a request for that.
    pub work: u64,
}

/// Whether a store that has forgotten something knows that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// It takes everything for spent: a promise that holds.
    #[default]
    Known,
    /// It believes what it knows, and lends the rest again: what a failure looks like.
    Unnoticed,
}

/// How long it is from one request to a node to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Anything between these.
    Between(u64, u64),
    /// So long on the average, whenever the last one was.
    About(u64),
}

impl Pace {
    pub(crate) fn pause(self, chance: &mut Chance) -> u64 {
        match self {
            Self::Between(least, most) => chance.between((least, most)),
            Self::About(mean) => chance.waiting(mean),
        }
    }
}

impl Plan {
    /// A run begins three seconds before midnight, when more than one kind of window ends.
    pub const START: u64 = 2 * 86_400 * SECOND - 3 * SECOND;

    /// A fleet without trouble, each node of which is asked about once in `pause`.
    ///
    /// ```
    /// use tollgate_sim::{Fleet, MILLI, Plan, Subject};
    /// let plan = Plan::calm(7, Subject::bucket("1k/s")?, 5, 10 * MILLI);
    /// let outcome = Fleet::run(&plan).expect("the limit holds");
    /// assert_eq!(outcome.passed, outcome.requests, "half of what may pass");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn calm(seed: u64, subject: Subject, nodes: u64, pause: u64) -> Self {
        Self {
            seed,
            subject,
            nodes,
            lasts: 10 * SECOND,
            pace: Pace::Between(pause / 2, pause * 3 / 2),
            heavier: 1,
            most_cost: 1,
            turns: None,
            together: false,
            delay: (MILLI, 2 * MILLI),
            displaced: 0,
            lost: 0,
            repeated: 0,
            in_vain: 0,
            drift: 0,
            deaths: None,
            freezes: None,
            cuts: None,
            restarts: None,
            takeovers: None,
            lag: 300 * MILLI,
            loss: Loss::Known,
            dropped: 0,
            work: 300 * MILLI,
        }
    }

    /// How far nodes and store take themselves to be apart.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_sim::{Plan, Subject};
    /// let plan = Plan::calm(7, Subject::bucket("1k/s")?, 5, 1_000_000);
    /// assert_eq!(plan.round_trip(), Duration::from_millis(2));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn round_trip(&self) -> Duration {
        // The usual one: the longest would be no surprise to anybody.
        Duration::from_nanos(2 * self.delay.0)
    }

    /// Whether a node is not asked at that time.
    pub(crate) fn is_quiet(&self, place: usize, time: u64) -> bool {
        let who = if self.together { 0 } else { place as u64 };
        self.turns.is_some_and(|turns| (time / turns.max(1) + who) % 2 == 1)
    }
}

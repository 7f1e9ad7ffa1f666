//! What is shared: a limit, or permits, under the name of a rule.

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tollgate_core::lease::{Lender, Terms};
use tollgate_core::{Anchor, Limit, LogRule, Tick, Wall};

use crate::error::StoreError;
use crate::redis::Form;

/// What a rule lets nodes share, made ready once for all its keys.
///
/// Every node of a fleet makes the same budget for the same rule: the same name, limit and round
/// trip. A store keeps the states of a budget under its name and its limit, so two rules of one store
/// need two names, and a rule whose limit has changed has other states: keys bring along what they
/// had spent of the old limit if whoever asks knows of it ([`Ask::carrying`](crate::Ask::carrying)). While
/// nodes with the old and the new limit are about, each limit is counted for itself. Permits are the
/// same, however many there are: never more of them are out than the most that any node knows of.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Limit, Wall};
/// use tollgate_store::Budget;
/// let (limit, now) = (Limit::token_bucket("100/min")?, Wall::from_unix_seconds(1_800_000_000));
/// let budget = Budget::new("api", &limit, Duration::from_millis(5), now);
/// assert_eq!(budget.rule(), "api");
/// assert!(budget.terms().is_some(), "nodes may borrow from it");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Budget {
    rule: Box<str>,
    text: Box<str>,
    kind: Kind,
    /// What the wall says at tick 0.
    origin: Wall,
    /// Of the quota; nothing for permits.
    period: Duration,
    /// How it is asked about in Redis, once somebody has.
    form: OnceLock<Result<Option<Arc<Form>>, StoreError>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Anything that a lender keeps the books of.
    Lent(Box<Lender>),
    /// A sliding log, which is never lent.
    Log(LogRule),
    /// Nothing to keep.
    Unlimited,
}

impl Budget {
    /// The budget of a limit, for nodes that are `round_trip` away from the store. `now` is about
    /// the time of its making, by the calendar: stores count time from a year before it, and for
    /// five years.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, Wall};
    /// use tollgate_store::Budget;
    /// let log = Limit::sliding_log("5/min")?;
    /// let budget = Budget::new("login", &log, Duration::from_millis(5), Wall::from_unix_seconds(1_800_000_000));
    /// assert!(budget.terms().is_none(), "the store decides every request");
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn new(rule: &str, limit: &Limit, round_trip: Duration, now: Wall) -> Self {
        let origin = origin(now);
        let anchor = Anchor { tick: Tick::ZERO, wall: origin };
        let lender = || Some(Kind::Lent(Lender::new(limit, anchor, round_trip)?.into()));
        let log = || Some(Kind::Log(limit.log_rule()?));
        let kind = match limit.quota().rate() {
            // What fits no word is a log.
            Some(_) => lender().or_else(log).unwrap_or(Kind::Unlimited),
            None => Kind::Unlimited,
        };
        let period =
            limit.quota().rate().map_or(Duration::ZERO, |rate| rate.period().as_duration());
        Self {
            rule: rule.into(),
            text: limit.to_string().into(),
            kind,
            origin,
            period,
            form: OnceLock::new(),
        }
    }

    /// The budget of permits, of which at most `max` are out at once in the whole fleet.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use tollgate_core::Wall;
    /// use tollgate_store::Budget;
    /// let max = NonZeroU32::new(20).expect("not zero");
    /// let budget = Budget::of_permits("exports", max, Duration::from_millis(5), Wall::from_unix_seconds(1_800_000_000));
    /// assert_eq!(budget.to_string(), "20 at once");
    /// ```
    pub fn of_permits(rule: &str, max: NonZeroU32, round_trip: Duration, now: Wall) -> Self {
        let kind = Kind::Lent(Lender::of_permits(max, round_trip).into());
        let text = format!("{max} at once").into();
        let (period, form) = (Duration::ZERO, OnceLock::new());
        Self { rule: rule.into(), text, kind, origin: origin(now), period, form }
    }

    /// The rule's name.
    ///
    /// ```
    /// fn is_of(budget: &tollgate_store::Budget, rule: &str) -> bool {
    ///     budget.rule() == rule
    /// }
    /// ```
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Whether a store keeps both under the same name, so that they share their keys.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use tollgate_core::Wall;
    /// use tollgate_store::Budget;
    /// let (trip, now) = (Duration::from_millis(5), Wall::from_unix_seconds(1_800_000_000));
    /// let permits = |max| Budget::of_permits("exports", max, trip, now);
    /// let (one, many) = (permits(NonZeroU32::MIN), permits(NonZeroU32::MAX));
    /// assert!(one.is_kept_as(&many), "who holds what is the same, however many there are");
    /// ```
    pub fn is_kept_as(&self, other: &Self) -> bool {
        self.rule == other.rule && self.kept_as() == other.kept_as()
    }

    /// What tells it from others of its rule in a store: the limit. Of permits nothing is kept but who
    /// holds them, so those of a rule are the same, however many there are.
    pub(crate) fn kept_as(&self) -> &str {
        match &self.kind {
            Kind::Lent(lender) if lender.permits().is_some() => PERMITS,
            _ => &self.text,
        }
    }

    /// What borrowers have to know; `None` if nothing is lent and the store decides every request.
    ///
    /// ```
    /// use tollgate_core::lease::{Borrower, Node};
    /// use tollgate_store::Budget;
    /// fn borrower(budget: &Budget, node: Node) -> Option<Borrower> {
    ///     budget.terms().map(|terms| Borrower::new(node, terms))
    /// }
    /// ```
    pub fn terms(&self) -> Option<Terms> {
        match &self.kind {
            Kind::Lent(lender) => lender.terms(),
            Kind::Log(_) | Kind::Unlimited => None,
        }
    }

    /// The moment as decisions count time: `None` if it is before all that this budget knows of.
    pub(crate) fn tick_at(&self, wall: Wall) -> Option<Tick> {
        wall.as_unix_nanos().checked_sub(self.origin.as_unix_nanos()).map(Tick::from_nanos)
    }

    /// The same of nanoseconds since 1970, without an end.
    pub(crate) const fn tick_nanos(&self, unix_nanos: u64) -> Option<u64> {
        unix_nanos.checked_sub(self.origin.as_unix_nanos())
    }

    /// The moment in nanoseconds since 1970.
    pub(crate) const fn unix_nanos(&self, tick: Tick) -> u64 {
        self.origin.as_unix_nanos() + tick.as_nanos()
    }

    pub(crate) const fn origin(&self) -> Wall {
        self.origin
    }

    pub(crate) const fn period(&self) -> Duration {
        self.period
    }

    pub(crate) fn form(&self) -> Result<Option<Arc<Form>>, StoreError> {
        self.form.get_or_init(|| Ok(Form::of(self)?.map(Arc::new))).clone()
    }

    pub(crate) const fn kind(&self) -> &Kind {
        &self.kind
    }
}

/// The limit, so that different ones read differently.
impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.text)
    }
}

/// What all permits of a rule are called in a store.
pub(crate) const PERMITS: &str = "permits";

/// Tick 0: so long ago that no window of a calendar began before it and still lasts.
const fn origin(now: Wall) -> Wall {
    Wall::from_unix_nanos(now.as_unix_nanos().saturating_sub(366 * 86_400 * 1_000_000_000))
}

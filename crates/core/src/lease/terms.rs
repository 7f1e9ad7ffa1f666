//! How long a lease lasts, and whether a limit is lent at all.

use std::time::Duration;

use super::exchange::Promise;
use crate::limit::Limit;
use crate::time::nanos;

/// What a lender and its borrowers have agreed on before the first exchange. Both work it out from
/// the limit, so that nobody has to be told.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Limit, lease::Terms};
/// let round_trip = Duration::from_millis(5);
/// let terms = Terms::of(&Limit::token_bucket("1k/s")?, round_trip).expect("there is plenty to lend");
/// assert_eq!(terms.hold(), Duration::from_millis(490), "half of what a second brings, and the way");
/// let (log, queue) = (Limit::sliding_log("1k/s")?, Limit::leaky_shape("1k/s", 100)?);
/// assert_eq!(Terms::of(&log, round_trip), None, "every single moment counts");
/// assert_eq!(Terms::of(&queue, round_trip), None, "whoever borrows would keep no pace");
/// assert_eq!(Terms::of(&Limit::token_bucket("5/min")?, round_trip), None, "five are too few");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    hold: Duration,
    round_trip: Duration,
    /// How long one token takes to come back, on the average; nothing for permits.
    interval: Duration,
    reusable: bool,
}

impl Terms {
    /// Clocks of nodes and stores differ by less than one part in so many.
    pub(super) const DRIFT: u32 = 50;

    /// A limit that can never have this much available is not lent.
    ///
    /// ```
    /// assert_eq!(tollgate_core::lease::Terms::LEAST_TOKENS, 16);
    /// ```
    pub const LEAST_TOKENS: u64 = 16;

    /// The shortest a lease is worth having.
    ///
    /// ```
    /// use tollgate_core::lease::Terms;
    /// assert!(Terms::SHORTEST < Terms::LONGEST);
    /// ```
    pub const SHORTEST: Duration = Duration::from_millis(100);

    /// The longest that budget may be lost to a node that died.
    ///
    /// ```
    /// use tollgate_core::lease::Terms;
    /// assert_eq!(Terms::LONGEST.as_secs(), 30);
    /// ```
    pub const LONGEST: Duration = Duration::from_secs(30);

    /// The terms of a limit between nodes and a store that are `round_trip` apart. `None` if it is
    /// not lent, and every decision asks the store: sliding logs and shaping buckets always, and
    /// limits of which too little is ever available.
    ///
    /// What comes in during a lease and two round trips is at most half of what there can be.
    /// Otherwise nodes that hold what they do not need, or have used and not told, keep a bucket
    /// from filling, and the fleet starves itself.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, lease::Terms};
    /// let far = Duration::from_millis(300);
    /// assert!(Terms::of(&Limit::fixed_window("1k/s")?, far).is_none(), "it would be over on its way");
    /// assert!(Terms::of(&Limit::fixed_window("1k/min")?, far).is_some());
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn of(limit: &Limit, round_trip: Duration) -> Option<Self> {
        let capacity = limit.capacity().filter(|capacity| *capacity >= Self::LEAST_TOKENS)?;
        let refill = limit.refill_time()?;
        let half = refill / 2;
        let hold = half.checked_sub(round_trip.checked_mul(2)?)?.min(Self::LONGEST);
        let least = Self::SHORTEST.max(round_trip * 2);
        let interval = Duration::from_nanos(nanos(refill) / capacity);
        (hold >= least).then_some(Self { hold, round_trip, interval, reusable: false })
    }

    /// The terms of permits, of which so and so many may be out at once.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::lease::Terms;
    /// assert_eq!(Terms::of_permits(Duration::from_millis(5)).hold(), Duration::from_secs(2));
    /// ```
    pub fn of_permits(round_trip: Duration) -> Self {
        let hold = PERMIT_HOLD.max(round_trip * 4);
        Self { hold, round_trip, interval: Duration::ZERO, reusable: true }
    }

    /// How long the store keeps a lease, by its own clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, lease::Terms};
    /// let terms = Terms::of(&Limit::token_bucket("1k/h")?, Duration::ZERO).expect("it is lent");
    /// assert_eq!(terms.hold(), Terms::LONGEST);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub const fn hold(&self) -> Duration {
        self.hold
    }

    /// How far apart the store and its nodes are taken to be.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::lease::Terms;
    /// let round_trip = Duration::from_millis(5);
    /// assert_eq!(Terms::of_permits(round_trip).round_trip(), round_trip);
    /// ```
    pub const fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// So few tokens are lent as a whole, and not in shares: those that come back while a node waits
    /// that found none, and waits once more. What nobody may have would only be left over.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, lease::Terms};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::ZERO).expect("it is lent");
    /// assert_eq!(terms.few(), 225);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn few(&self) -> u64 {
        let (least, most) = self.pauses();
        nanos((least + most) * 2).checked_div(nanos(self.interval)).unwrap_or(0)
    }

    /// How many tokens are lent before they come in, at most: as many as come in until a node that
    /// found too little asks again.
    pub(super) fn ahead(&self) -> u64 {
        self.few() * 2 / 5
    }

    /// How many tokens come in while a question and its answer are on their way, and a little longer.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, lease::Terms};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::from_millis(4)).expect("it is lent");
    /// assert_eq!(terms.on_the_way(), 6);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn on_the_way(&self) -> u64 {
        nanos(self.round_trip * 3 / 2).checked_div(nanos(self.interval)).unwrap_or(0)
    }

    /// In how many lanes of what comes in one of so many nodes gets its own that wants so many: as many as
    /// it can use at the pace at which it is asked, and those that nobody else needs. More would only come
    /// to it sooner than it can use them.
    pub(super) fn lanes(&self, want: u64, nodes: u64) -> u64 {
        let of_all = Promise::LANES.div_ceil(nodes);
        want.div_ceil(self.lane_tokens()).max(of_all).min(Promise::LANES)
    }

    /// A node that wants more than this has need of another lane: as many as come in by one lane while
    /// it uses what it wants.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, lease::Terms};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::ZERO).expect("it is lent");
    /// assert_eq!(terms.lane_tokens(), 39);
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn lane_tokens(&self) -> u64 {
        let while_used = (self.hold / 4).min(LONGEST_USUAL) * 5 / 4;
        let lane = nanos(while_used).checked_div(nanos(self.interval) * Promise::LANES);
        lane.unwrap_or(0).max(1)
    }

    /// How long a node waits before it asks again for what the store did not have, at least, and
    /// how much longer at most: until a few tokens have come back, and long before all have.
    pub(super) fn pauses(&self) -> (Duration, Duration) {
        let usual = self.time_for(PAUSE_TOKENS).max(LEAST_PAUSE);
        let least = usual.min(self.hold * 3 / 8);
        (least, least / 4)
    }

    /// How long a node waits before it asks again for what the store did not have, at least.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_core::{Limit, lease::Terms};
    /// let terms = Terms::of(&Limit::token_bucket("1k/s")?, Duration::ZERO).expect("it is lent");
    /// assert_eq!(terms.pause(), Duration::from_millis(90));
    /// # Ok::<(), tollgate_core::LimitError>(())
    /// ```
    pub fn pause(&self) -> Duration {
        self.pauses().0
    }

    /// The longest that a node waits which asks again and again.
    pub(super) fn longest_pause(&self) -> Duration {
        let (least, more) = self.pauses();
        least + more
    }

    /// How long so many tokens take to come back.
    pub(super) fn time_for(&self, tokens: u64) -> Duration {
        Duration::from_nanos(nanos(self.interval).saturating_mul(tokens))
    }

    /// How long it is from one token to the next in so many lanes, in nanoseconds.
    pub(super) fn apart(&self, lanes: u64) -> u64 {
        let lanes = if lanes == 0 { Promise::LANES } else { lanes };
        (nanos(self.interval) * Promise::LANES / lanes).max(1)
    }

    /// Whether what was used can be used again, as permits can.
    pub(super) const fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// How long a node may use what the store keeps for `hold`: less by a fiftieth, so that it has
    /// ended for the node when it ends for the store if the one clock is slower than the other by
    /// up to a hundredth, whichever.
    pub(super) fn span_of(hold: Duration) -> Duration {
        hold - hold / Self::DRIFT
    }
}

/// However long a lease is, a busy node asks again after about so long: what it holds is missing
/// elsewhere, and lost if it dies.
pub(super) const LONGEST_USUAL: Duration = Duration::from_secs(1);

/// What permits of a dead node are lost for.
const PERMIT_HOLD: Duration = Duration::from_secs(2);

/// So many tokens are worth asking for again.
const PAUSE_TOKENS: u64 = 8;

/// The shortest pause, but for the shortest leases: so a node asks eleven times a second at most.
const LEAST_PAUSE: Duration = Duration::from_millis(90);

//! What a store was found to have forgotten.

use std::time::Duration;

use tollgate_core::{Plan, Wall};

use crate::budget::{Budget, Kind};

/// What a store was found to have forgotten: see [`Store::losses`](crate::Store::losses).
///
/// ```
/// use tollgate_store::Losses;
/// assert_eq!(Losses::default().latest, None, "nothing");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// How often something was lost since this client was first answered. What one server of a Cluster loses at
    /// once counts once, however many slots it has.
    pub found: u64,
    /// The last of those, or one from before that still matters.
    pub latest: Option<Loss>,
}

/// A memory that a store had, and has no more.
///
/// ```
/// use tollgate_store::{Extent, Loss};
/// fn is_bad(loss: &Loss) -> bool {
///     loss.extent == Extent::Everything
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// When it was found out, by the store's clock: from then on less passes.
    pub at: Wall,
    /// How much.
    pub extent: Extent,
    /// The server that said so.
    pub server: String,
    /// Its process, by the name that it has for itself (`run_id`).
    pub process: String,
}

/// How much of its memory a store has lost.
///
/// ```
/// use tollgate_store::Extent;
/// assert!(Extent::Everything > Extent::LastMoments);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Extent {
    /// Another process has it now, which may lack the last moments.
    LastMoments,
    /// All of it.
    Everything,
}

impl Loss {
    /// Whether a key of that budget may count as used up because of it, though it was not used. That ends when
    /// whoever had spent everything at that moment would have all of it back.
    ///
    /// ```
    /// use tollgate_core::Wall;
    /// use tollgate_store::{Budget, Loss};
    /// fn is_to_blame(loss: Option<&Loss>, budget: &Budget, now: Wall) -> bool {
    ///     loss.is_some_and(|loss| loss.weighs_on(budget, now))
    /// }
    /// ```
    pub fn weighs_on(&self, budget: &Budget, now: Wall) -> bool {
        let hold = budget.terms().map_or(Duration::ZERO, |terms| terms.hold());
        let (back, is_window) = match budget.kind() {
            Kind::Unlimited => return false,
            Kind::Log(rule) => (rule.window(), false),
            Kind::Lent(lender) => match lender.machine().map(|machine| machine.plan()) {
                Some(
                    Plan::Bucket { per_nano, interval, tokens }
                    | Plan::Shape { per_nano, interval, tokens },
                ) => (Duration::from_nanos((tokens * interval).div_ceil(per_nano)) + hold, false),
                Some(Plan::Window { .. }) => (budget.period(), true),
                Some(Plan::Sliding { .. }) => (budget.period() * 2, true),
                Some(Plan::Unlimited) => return false,
                // Permits.
                None => (hold, false),
            },
        };
        let is_kept = self.extent == Extent::LastMoments && is_window;
        if is_kept && budget.period() > SHORT_WINDOW {
            return false;
        }
        let passed = now.as_unix_nanos().saturating_sub(self.at.as_unix_nanos());
        Duration::from_nanos(passed) < back
    }
}

/// Windows up to this are taken for spent with every new memory; longer ones go on with what was kept.
const SHORT_WINDOW: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use tollgate_core::Limit;

    use super::*;

    #[test]
    fn a_loss_weighs_on_a_limit_until_all_of_it_would_be_back() {
        let begin = 1_800_000_000;
        let loss = |extent| Loss {
            at: Wall::from_unix_seconds(begin),
            extent,
            server: String::new(),
            process: String::new(),
        };
        let (all, last) = (loss(Extent::Everything), loss(Extent::LastMoments));
        let lasts = |limit: Result<Limit, _>, loss: &Loss, seconds: u64| {
            let limit: Limit = Result::<_, tollgate_core::LimitError>::unwrap(limit);
            let trip = Duration::from_millis(5);
            let budget = Budget::new("a", &limit, trip, Wall::from_unix_seconds(begin));
            let weighs = |after| loss.weighs_on(&budget, Wall::from_unix_seconds(begin + after));
            assert_eq!((weighs(0), weighs(seconds)), (seconds > 0, false), "{limit:?}");
            assert!(seconds == 0 || weighs(seconds - 1), "{limit:?}");
        };
        lasts(Limit::token_bucket("20/day"), &all, 86_430);
        lasts(Limit::token_bucket("20/day"), &last, 86_430);
        lasts(Limit::fixed_window("20/h"), &all, 3_600);
        lasts(Limit::fixed_window("20/h"), &last, 0);
        lasts(Limit::fixed_window("20/min"), &last, 60);
        lasts(Limit::sliding_window("20/h"), &all, 7_200);
        lasts(Limit::sliding_window("20/h"), &last, 0);
        lasts(Limit::sliding_log("20/h"), &last, 3_600);
    }
}

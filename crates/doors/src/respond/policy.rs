//! A limit as a client is told of it: so many, in so many seconds.

use tollgate::Limit;
use tollgate_rules::Rule;

/// What `RateLimit-Policy` says about a limit.
///
/// It is what a client can count on. A bucket is told as what it holds and the time in which it
/// fills: that is the same rate, and never less than what is left. Where that time is no whole
/// number of seconds, the quota of the rule is told if the bucket holds less than that; otherwise
/// the time is rounded up. Below a second, and for windows of the calendar, there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// What decisions call their limit.
    pub(super) capacity: u64,
    pub(super) quota: u64,
    /// In seconds.
    pub(super) window: Option<u64>,
    pub(super) unit: Unit,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Requests, or whatever else they cost.
    Cost,
    /// Requests that are under way at once.
    Concurrent,
}

impl Policy {
    /// All policies of a rule, one for each capacity.
    pub(super) fn all_of(rule: &Rule) -> Vec<Self> {
        if let Some((most, _)) = rule.concurrent() {
            let mut all: Vec<_> = most.iter().map(|most| Self::concurrent(*most)).collect();
            all.sort_unstable_by_key(|policy| policy.capacity);
            all.dedup();
            return all;
        }
        let limits = rule.limits().iter().chain(rule.override_limits());
        let mut all: Vec<_> = limits.filter_map(Self::of).take(MOST).collect();
        all.sort_unstable_by_key(|policy| policy.capacity);
        // A decision tells its capacity and no more. If limits differ only in the rest of it, then
        // what they have in common is told.
        all.dedup_by(|next, kept| {
            let same = next.capacity == kept.capacity;
            if same && *next != *kept {
                (kept.quota, kept.window) = (kept.capacity, None);
            }
            same
        });
        all
    }

    /// What is known of a limit of which only the capacity is known.
    pub(super) const fn bare(capacity: u64) -> Self {
        Self { capacity, quota: capacity, window: None, unit: Unit::Cost }
    }

    fn concurrent(most: u32) -> Self {
        Self { unit: Unit::Concurrent, ..Self::bare(most.into()) }
    }

    fn of(limit: &Limit) -> Option<Self> {
        let (capacity, rate) = (limit.capacity()?, limit.quota().rate()?);
        if limit.follows_calendar() {
            return Some(Self::bare(capacity));
        }
        let (count, period) = (rate.count(), rate.period().as_duration().as_nanos());
        // At most 10^15 times 10^18: that fits.
        let filled_in = (u128::from(capacity) * period).div_ceil(u128::from(count));
        let exact = (u128::from(capacity) * period).is_multiple_of(u128::from(count) * SECOND);
        if !exact && capacity < count && period.is_multiple_of(SECOND) {
            return Some(Self { quota: count, ..Self::bare(capacity) }.within(period));
        }
        Some(Self::bare(capacity).within(filled_in))
    }

    fn within(self, nanos: u128) -> Self {
        let seconds = u64::try_from(nanos.div_ceil(SECOND)).ok();
        Self { window: seconds.filter(|_| nanos >= SECOND), ..self }
    }
}

/// In nanoseconds.
const SECOND: u128 = 1_000_000_000;

/// How many limits of a rule are known by heart. There may be millions of overrides, and nearly all
/// rules have a handful of different ones.
const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::RuleSet;

    fn told(rule: &str) -> Vec<(u64, u64, Option<u64>)> {
        let tiers = "tiers: { from: claims.plan, known: [a, b], else: a }";
        let set = RuleSet::parse(&format!("{tiers}\nrules: [{{ name: r, key: [user], {rule} }}]"));
        let each = |policy: Policy| (policy.capacity, policy.quota, policy.window);
        Policy::all_of(&set.unwrap().rules()[0]).into_iter().map(each).collect()
    }

    #[test]
    fn a_limit_is_told_as_it_is() {
        assert_eq!(told("limit: 100/min"), [(100, 100, Some(60))]);
        assert_eq!(told("limit: 10/15min, algorithm: sliding_log"), [(10, 10, Some(900))]);
        assert_eq!(told("limit: unlimited"), []);
    }

    #[test]
    fn a_bucket_is_told_by_what_it_holds() {
        assert_eq!(told("limit: 100/min, burst: 20"), [(20, 20, Some(12))]);
        assert_eq!(told("limit: 10/s, burst: 100"), [(100, 100, Some(10))]);
        assert_eq!(told("limit: 100/min, burst: 7"), [(7, 100, Some(60))], "4.2 seconds");
        let shaped = told("limit: 50/s, algorithm: leaky_bucket, queue: 200");
        assert_eq!(shaped, [(201, 201, Some(5))], "4.02 seconds");
        let policed = told("limit: 50/s, algorithm: leaky_bucket, queue: 0");
        assert_eq!(policed, [(1, 50, Some(1))]);
    }

    #[test]
    fn there_is_no_window_where_none_fits() {
        assert_eq!(told("limit: 5/100ms"), [(5, 5, None)]);
        assert_eq!(told("limit: 3/1500ms"), [(3, 3, Some(2))]);
        let month = "limit: 9/month, window: { calendar: month, timezone: UTC }";
        assert_eq!(told(month), [(9, 9, None)]);
        assert_eq!(told("concurrent: 5"), [(5, 5, None)]);
    }

    #[test]
    fn what_tiers_and_overrides_do_not_have_in_common_is_not_told() {
        let differing = told("limit: { a: 10/min, b: 100/min }, overrides: { x: 10/h }");
        assert_eq!(differing, [(10, 10, None), (100, 100, Some(60))]);
        assert_eq!(told("limit: { a: 10/min, b: 10/min }"), [(10, 10, Some(60))]);
    }
}

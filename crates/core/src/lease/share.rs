//! How much a node gets, and for how long.

use std::time::Duration;

use super::account::{Account, Lease};
use super::lender::Lender;
use super::terms::Terms;
use crate::time::Tick;

impl Lender {
    /// Lends to a node up to `want`, and at most its share of what is left: nobody gets so much
    /// that a newcomer finds nothing, unless there is next to nothing anyway.
    pub(super) fn lend(
        &self,
        account: &mut Account,
        now: Tick,
        to: Option<usize>,
        want: u64,
        least: u64,
    ) -> u64 {
        let (Some(place), Some(terms)) = (to, self.terms) else { return 0 };
        let left = self.budget.left(&account.balance, now);
        let is_over_soon = self.hold(account, now, terms) <= terms.round_trip();
        if is_over_soon || left < least {
            return 0;
        }
        let is_other = |(other, lease): &(usize, &Lease)| *other != place && lease.is_hungry;
        let others = account.leases.iter().enumerate().filter(is_other).count() as u64;
        let share = left.div_ceil(others + 2).max(left.min(terms.few()));
        let lent = want.min(share.max(least));
        self.budget.lend(&mut account.balance, now, lent);
        account.leases[place].granted += lent;
        lent
    }

    /// How long the store keeps what it lends now.
    pub(super) fn hold(&self, account: &Account, now: Tick, terms: Terms) -> Duration {
        let end = self.budget.window_end(now, account.balance.phase);
        end.map_or(Duration::MAX, |end| end.since(now)).min(terms.hold())
    }
}

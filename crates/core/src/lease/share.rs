//! How much a node gets, and for how long.

use std::time::Duration;

use super::account::{Account, Lease};
use super::lender::Lender;
use super::terms::Terms;
use crate::time::Tick;

impl Lender {
    /// Lends to a node up to `want`, and at most its share of what is left: nobody gets so much
    /// that a newcomer finds nothing, unless there is next to nothing anyway.
    ///
    /// If it has all that is left and wants more, it gets a part of what comes in until it asks
    /// again, and is told when it may use it. So tokens pass at the moment at which they come in, and
    /// not when somebody asks next. Nodes that ask in turn get theirs one behind the other.
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
        if is_over_soon {
            return 0;
        }
        let is_other = |(other, lease): &(usize, &Lease)| *other != place && lease.is_hungry;
        let others = account.leases.iter().enumerate().filter(is_other).count() as u64;
        let share = left.div_ceil(others + 2).max(left.min(terms.few()));
        let lent = want.min(share.max(least));
        let lent = match lent < left {
            true => lent,
            false => lent.min(left).max(want.min(self.ahead(account, now, terms, others, least))),
        };
        if lent < least {
            return 0;
        }
        self.budget.lend(&mut account.balance, now, lent);
        account.leases[place].granted += lent;
        lent
    }

    /// What is left and what comes in next, for one of so many nodes. Its part of what comes in until
    /// it asks again, and a quarter more; and not so far ahead that little is left for a newcomer.
    fn ahead(&self, account: &Account, now: Tick, terms: Terms, others: u64, least: u64) -> u64 {
        let (most, left) = (terms.ahead(), self.budget.left(&account.balance, now));
        let part = left + (most * 5 / 4).div_ceil(others + 1);
        let far = most * 8 / (others + 8);
        self.budget.left_ahead(&account.balance, now, far).min(part.max(least))
    }

    /// How long the store keeps what it lends now.
    pub(super) fn hold(&self, account: &Account, now: Tick, terms: Terms) -> Duration {
        let end = self.budget.window_end(now, account.balance.phase);
        end.map_or(Duration::MAX, |end| end.since(now)).min(terms.hold())
    }
}

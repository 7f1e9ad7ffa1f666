//! How much a node gets, and for how long.

use std::time::Duration;

use super::account::{Account, Lease};
use super::lender::Lender;
use super::terms::Terms;
use crate::time::{Tick, nanos};

impl Lender {
    /// Lends to a node up to `want`, and at most its share of what is left: nobody gets so much
    /// that a newcomer finds nothing, unless there is next to nothing anyway.
    ///
    /// If it has all that is left and wants more, it gets a part of what comes in until it asks
    /// again, and is told when it may use it. So tokens pass at the moment at which they come in, and
    /// not when somebody asks next. Nodes that ask in turn get theirs one behind the other, and beside
    /// each other where one cannot use as much as comes in.
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
        let lent = if lent >= left && self.budget.comes_in() {
            if want > left {
                account.take_turn(now, place, nanos(terms.pause()), others + 1);
            }
            lent.min(left).max(want.min(self.ahead(account, now, terms, others + 1, least)))
        } else {
            lent.min(left)
        };
        if lent < least {
            return 0;
        }
        self.budget.lend(&mut account.balance, now, lent);
        account.leases[place].granted += lent;
        self.promise(account, now, place, lent, terms.lanes(want, others + 1));
        lent
    }

    /// What is left and what comes in next, for one of so many nodes: its part of what comes in until it
    /// asks again. A little more as long as no more is promised than others leave to do until the next of
    /// them asks, and a little less from there on: whoever waits for longer is told later, too.
    fn ahead(&self, account: &Account, now: Tick, terms: Terms, nodes: u64, least: u64) -> u64 {
        let (most, left) = (terms.ahead(), self.budget.left(&account.balance, now));
        let part = most.div_ceil(nodes);
        let near = most.min(most * 3 / 2 / nodes + terms.on_the_way());
        let (near, far) = (
            self.budget.left_ahead(&account.balance, now, near),
            self.budget.left_ahead(&account.balance, now, most),
        );
        match near >= left + part {
            true => near.min((left + part * 5 / 4).max(least)),
            false => far.min((left + part * 7 / 8).max(least)),
        }
    }

    /// Has the node keep back what is not in yet of what was lent to it, and that no other keeps back.
    fn promise(&self, account: &mut Account, now: Tick, place: usize, lent: u64, most: u64) {
        let missing = self.budget.all_in(&account.balance, now);
        let uncovered = missing.saturating_sub(account.lanes.promised(now.as_nanos()));
        let time = uncovered.min(self.budget.time_of(lent));
        if time > 0 {
            let filled = account.lanes.fill(now.as_nanos(), time, most);
            account.leases[place].promise(now, self.budget.tokens_of(time), filled);
        }
    }

    /// How long the store keeps what it lends now.
    pub(super) fn hold(&self, account: &Account, now: Tick, terms: Terms) -> Duration {
        let end = self.budget.window_end(now, account.balance.phase);
        end.map_or(Duration::MAX, |end| end.since(now)).min(terms.hold())
    }
}

//! Permits: requests under way, and what they may.
//!
//! A request that has its permits keeps them to its end. As long as its node is in touch with the store,
//! they are lent all the time, so no more are under way than there are. A node that is out of touch for
//! longer than a lease lasts, or stands still, goes on with what is under way and begins nothing; but the
//! store lends those permits to others meanwhile. The same happens when the store has lost its memory and
//! begins to lend again, the time of a lease later, to whoever asks first. Such a node is excused until
//! the store has lent it as many as it needs for what is under way, and its requests alone may be more
//! than there are permits.

use tollgate_core::lease::{Exchange, Grant};

use super::Fleet;
use crate::member::{Member, Running};
use crate::schedule::Broken;

impl Fleet {
    /// A node lets a request begin.
    pub(super) fn begins(&mut self, place: usize, cost: u64) -> Result<(), Broken> {
        self.look_for_lost_touch()?;
        let member = &mut self.members[place];
        let is_over =
            self.base.terms().is_some_and(|terms| member.is_out_of_touch(self.now, &terms));
        if is_over || member.permits.is_excused(self.now) {
            return Err(Broken(format!("node {place} lets requests begin unlent at {}", self.now)));
        }
        member.permits.running += cost;
        let (mut all, mut in_touch) = (0, 0);
        for permits in self.members.iter().map(|member| &member.permits) {
            all += permits.running;
            in_touch += if permits.is_excused(self.now) { 0 } else { permits.running };
        }
        let most = self.plan.subject.capacity();
        self.outcome.beyond = self.outcome.beyond.max(all.saturating_sub(most));
        match in_touch <= most {
            true => Ok(()),
            false => Err(Broken(format!("{in_touch} permits are in use at {}", self.now))),
        }
    }

    pub(super) fn ends(&mut self, place: usize, cost: u64) {
        let permits = &mut self.members[place].permits;
        permits.running = permits.running.saturating_sub(cost);
        permits.settle();
    }

    /// A node sends an exchange, perhaps not for the first time.
    pub(super) fn tries(&mut self, place: usize, exchange: &Exchange) {
        let (now, permits) = (self.now, &mut self.members[place].permits);
        if permits.sent.0 != exchange.sequence {
            permits.sent = (exchange.sequence, now);
        }
        permits.tried.get_or_insert(now);
    }

    /// A node takes an answer.
    pub(super) fn is_in_touch(&mut self, place: usize, grant: &Grant) {
        let permits = &mut self.members[place].permits;
        (permits.touched, permits.answered, permits.tried) = (permits.sent.1, self.now, None);
        permits.lend(grant.tokens);
    }

    /// The memory is gone of what was lent to whom. Nothing is lent for as long as that may last.
    pub(super) fn excuse_all(&mut self) {
        let from = self.now + self.hold();
        for member in &mut self.members {
            member.permits.excuse(from);
        }
    }

    /// Leases end where nothing came through; and nowhere else. A node asks again when three quarters of a
    /// lease are over; at once if it was answered later than that, or stood still.
    pub(super) fn look_for_lost_touch(&mut self) -> Result<(), Broken> {
        let Some(terms) = self.base.terms().filter(|_| self.plan.subject.is_permits()) else {
            return Ok(());
        };
        let now = self.now;
        let three_quarters = terms.hold().as_nanos() as u64 * 3 / 4;
        for (place, member) in self.members.iter_mut().enumerate() {
            let Running { running, touched, answered, tried, .. } = member.permits;
            if running == 0
                || member.permits.is_excused(now)
                || !member.is_out_of_touch(now, &terms)
            {
                continue;
            }
            let due = answered.max(member.frozen).max(touched + three_quarters);
            if member.passes(due, tried.unwrap_or(now)) > terms.hold() / 20 {
                return Err(Broken(format!("node {place} lets its lease end at {now}")));
            }
            member.permits.excuse(now);
        }
        Ok(())
    }

    /// Never more permits are lent than there are, by the clocks of those who hold them.
    pub(super) fn permits_fit(&mut self) -> Result<(), Broken> {
        if !self.plan.subject.is_permits() {
            return Ok(());
        }
        let now = self.now;
        let held = |member: &mut Member| {
            let clock = member.clock(now);
            let lent = member.borrower.as_mut().filter(|_| member.is_alive);
            lent.map_or(0, |lent| lent.held(clock))
        };
        let out = self.members.iter_mut().map(held).sum::<u64>();
        match out <= self.plan.subject.capacity() {
            true => Ok(()),
            false => Err(Broken(format!("{out} permits are out at {now}"))),
        }
    }
}

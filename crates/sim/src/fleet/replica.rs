//! A replica that takes the store's place with what it had heard of.

use tollgate_core::lease::Account;
use tollgate_core::{Phase, Plan, Tick};

use super::{Event, Fleet};
use crate::plan::Loss;

/// What a replica knows that does not hear of anything any more, and since when.
#[derive(Debug)]
pub(super) struct Replica {
    account: Option<Account>,
    since: u64,
}

impl Fleet {
    pub(super) fn replica_lags(&mut self) {
        self.replica = Some(Replica { account: self.account.clone(), since: self.now });
        let lag = self.chance.between((1, self.plan.lag));
        self.at(self.now + lag, Event::TakeOver);
    }

    /// The store has forgotten everything, and so has whoever copies it.
    pub(super) fn replica_starts_anew(&mut self) {
        if let Some(replica) = &mut self.replica {
            *replica = Replica { account: None, since: self.now };
        }
    }

    /// All that is on its way is lost, and what the replica had not heard of. It knows that something may
    /// be missing, so nothing counts that it knows of a bucket, of permits or of a short window: that is as
    /// if everything was lost. A window of more than a minute goes on as the replica knows it, and one that
    /// slides with the one before it; what was lent of it is spent.
    pub(super) fn replica_takes_over(&mut self) {
        self.lose_messages();
        self.outcome.takeovers += 1;
        let Some(replica) = self.replica.take() else { return };
        match self.plan.loss {
            Loss::Unnoticed => self.account = replica.account,
            Loss::Known => {
                self.epoch += 1;
                match self.plan.subject.is_long_window() {
                    true => self.go_on_with(replica),
                    false => {
                        let now = Tick::from_nanos(self.now);
                        self.lender = self.base.clone().after_loss(self.epoch, now);
                        self.account = None;
                    }
                }
            }
        }
        self.excuse_all();
        self.after_about(self.plan.takeovers, Event::Lag);
    }

    /// What the replica had not heard of can pass twice, and nothing else.
    fn go_on_with(&mut self, replica: Replica) {
        let phase = Phase(self.phase);
        let since = Tick::from_nanos(replica.since);
        let known = replica.account.unwrap_or_else(|| self.lender.open(since, phase));
        let real = self.account().1.clone();
        let missed = self.counted(&real, self.now).saturating_sub(self.counted(&known, self.now));
        self.audit.excuses(self.now, missed);
        // All that it knows of a window that is over now is what it had heard of by then.
        let window = self.lender.machine().and_then(|machine| machine.window(since, phase));
        if window.is_some_and(|(_, end)| end.as_nanos() <= self.now) {
            self.audit.excuses_all_but(self.now, self.counted(&known, replica.since));
        }
        let forgot = self.forgot.unwrap_or(Tick::ZERO);
        self.lender = self.base.clone().after_loss(self.epoch, forgot);
        self.account = Some(known.taken_over());
    }

    /// What an account has counted in the window of that time.
    fn counted(&self, account: &Account, time: u64) -> u64 {
        let (mut account, now) = (account.clone(), Tick::from_nanos(time));
        let machine = self.lender.machine();
        let at = match machine.map(|machine| machine.plan()) {
            // When the next one begins, all of this one counts, and nothing else.
            Some(Plan::Sliding { .. }) => {
                let window = machine.and_then(|machine| machine.window(now, Phase(self.phase)));
                window.map_or(now, |(_, end)| end)
            }
            _ => now,
        };
        self.plan.subject.capacity() - self.lender.left(&mut account, at)
    }
}

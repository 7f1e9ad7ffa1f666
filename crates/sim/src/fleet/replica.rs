//! A replica that takes the store's place with what it had heard of.

use std::time::Duration;

use tollgate_core::lease::{Account, Carried};
use tollgate_core::{Phase, Tick};

use super::{Event, Fleet};
use crate::plan::Loss;

/// What a replica knows that does not hear of anything any more.
#[derive(Debug)]
pub(super) struct Replica {
    account: Option<Account>,
}

impl Fleet {
    pub(super) fn replica_lags(&mut self) {
        self.replica = Some(Replica { account: self.account.clone() });
        let lag = self.chance.between((1, self.plan.lag));
        self.at(self.now + lag, Event::TakeOver);
    }

    /// The store has forgotten everything, and so has whoever copies it.
    pub(super) fn replica_starts_anew(&mut self) {
        if let Some(replica) = &mut self.replica {
            replica.account = None;
        }
    }

    /// All that is on its way is lost, and what the replica had not heard of. It knows that something may
    /// be missing, so nothing counts that it knows of a bucket, of permits or of a short window: that is as
    /// if everything was lost. A window of more than a minute goes on as the replica knows it; what was
    /// lent of it is spent.
    pub(super) fn replica_takes_over(&mut self) {
        self.lose_messages();
        self.outcome.takeovers += 1;
        let known = self.replica.take().and_then(|replica| replica.account);
        match self.plan.loss {
            Loss::Unnoticed => self.account = known,
            Loss::Known => {
                self.epoch += 1;
                match self.plan.subject.is_long_window() {
                    true => self.go_on_with(known),
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
    fn go_on_with(&mut self, known: Option<Account>) {
        let (now, phase) = (Tick::from_nanos(self.now), Phase(self.phase));
        let mut known = known.unwrap_or_else(|| self.lender.open(now, phase));
        let left = self.lender.left(&mut known, now);
        let (really, _) = self.books();
        self.audit.excuses(self.now, left.saturating_sub(really));
        let forgot = self.forgot.unwrap_or(Tick::ZERO);
        self.lender = self.base.clone().after_loss(self.epoch, forgot);
        let mut account = self.base.open(now, phase);
        let spent = self.plan.subject.capacity() - left;
        let carried = Carried { spent, ago: Duration::ZERO, of_known: true };
        self.lender.carry(&mut account, now, &carried);
        self.account = Some(account);
    }
}

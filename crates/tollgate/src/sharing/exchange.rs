//! Asking the store, and keeping count of how it does.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::Tick;
use tollgate_core::lease::Grant;
use tollgate_store::{Ask, Store as _, StoreError};

use crate::sharing::Sharing;
use crate::sharing::breaker::Change;
use crate::sharing::heal::heal;
use crate::sharing::health::{Health, add};

impl Sharing {
    /// Asks the store at the time of `sent` for those who have waited since then, and keeps count of how it does.
    pub(super) async fn exchange(
        &self,
        asks: &[Ask],
        since: Tick,
        sent: Tick,
    ) -> Vec<Result<Grant, StoreError>> {
        let (after, looks) = (self.time_left_at(since, sent), self.store.looks(asks));
        let trips = if looks == 0 { 1 } else { 2 };
        add(&self.counts.exchanges, (asks.len() + looks) as u64);
        let keeps_time = self.store.keeps_time(asks, after);
        let exchange = self.store.exchange(asks);
        let answered = match keeps_time {
            true => Ok(exchange.await),
            false => timeout(after, exchange).await,
        };
        let Ok(answers) = answered else {
            let late = StoreError::Timeout { after };
            let answers: Vec<_> = asks.iter().map(|_| Err(late.clone())).collect();
            if !self.is_in_haste(&late) {
                self.weigh(asks, &answers, after);
            }
            return answers;
        };
        // It is not late because it was asked twice.
        self.weigh(asks, &answers, self.now().since(sent) / trips);
        answers
    }

    /// Whether that is because somebody had no time left to speak of, and not because of the store.
    pub(super) fn is_in_haste(&self, error: &StoreError) -> bool {
        matches!(error, StoreError::Timeout { after } if *after < self.config.timeout / 2)
    }

    /// Weighs whether the store fails. Many questions go at once, to all servers of a Cluster: if one of
    /// those is gone, or silent for all the time there is, the others are no worse for it. Nor is anybody
    /// if what fails is nobody's question any more, but what is left of a limit that no rule has.
    pub(super) fn weigh(
        &self,
        asks: &[Ask],
        answers: &[Result<Grant, StoreError>],
        took: Duration,
    ) {
        let failed = answers.iter().filter(|answer| answer.is_err()).count();
        if failed > 0 {
            add(&self.counts.failures, failed as u64);
        }
        let is_asked = |ask: &&Ask| self.in_force.has(ask.budget());
        let mut unanswered = answers.iter().zip(asks).filter_map(|(answer, ask)| match answer {
            Err(error) if !is_answered(answer) && is_asked(&ask) => Some((error.to_string(), ask)),
            _ => None,
        });
        let first = unanswered.next();
        let count = usize::from(first.is_some()) + unanswered.count();
        let most = self.config.timeout;
        let is_late = took > most / 2;
        if is_late {
            add(&self.counts.late, (answers.len() - failed) as u64);
        }
        let failure = match first {
            Some(first) => {
                let all = asks.iter().filter(is_asked).count();
                Some(first).filter(|_| count * A_FEW_OF >= all)
            }
            None if is_late => {
                let late = || format!("the store took {took:?} to answer, of at most {most:?}");
                asks.iter().find(is_asked).map(|ask| (late(), ask))
            }
            None => None,
        };
        if failure.is_none() && !answers.iter().any(is_answered) {
            return;
        }
        let change = self.breaker.asked(failure.is_none());
        if let (Change::Opened, Some((reason, unanswered))) = (change, failure) {
            add(&self.counts.times_degraded, 1);
            self.health.send_replace(Health::Degraded { reason });
            self.runtime.spawn(heal(Weak::clone(&self.this), unanswered.clone()));
        }
    }
}

/// Whether the store has answered: what is wrong with the key alone is for its rule to bear.
pub(super) fn is_answered(answer: &Result<Grant, StoreError>) -> bool {
    answer.as_ref().err().is_none_or(StoreError::is_about_key)
}

/// One in so many is no longer a few.
const A_FEW_OF: usize = 3;

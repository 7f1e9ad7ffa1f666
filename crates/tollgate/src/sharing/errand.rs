//! Questions that go on when whoever asked them waits no longer.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::runtime::Handle;
use tollgate_core::Tick;
use tollgate_core::lease::Grant;
use tollgate_store::{Ask, StoreError};

use crate::sharing::Sharing;
use crate::sharing::fetch::{Question, Questions};
use crate::sharing::spend::Lack;

/// What the store says to questions, in their order.
pub(super) type Answers = Vec<Result<Grant, StoreError>>;

/// Questions that the store has not answered yet. Others wait for the answers as well, and what the store
/// spends or lends must not be lost. So if this is dropped, because the time of whoever asked is over or he
/// has gone, a task of its own hears the answers, unless [so many](MOST_ALONE) do already. It runs where he
/// ran, because that is where the timers of the exchange are.
pub(super) struct Errand {
    sharing: Arc<Sharing>,
    questions: Questions,
    sent: Tick,
    /// `None` once they are answered.
    exchange: Option<Pin<Box<dyn Future<Output = Answers> + Send>>>,
}

impl Errand {
    /// Asks the store now for somebody who has waited since then.
    pub(super) fn new(
        sharing: &Arc<Sharing>,
        questions: Questions,
        (since, sent): (Tick, Tick),
    ) -> Self {
        let asks: Vec<Ask> = questions.iter().map(Question::ask).collect();
        let asking = Arc::clone(sharing);
        let exchange = Box::pin(async move { asking.exchange(&asks, since, sent).await });
        Self { sharing: Arc::clone(sharing), questions, sent, exchange: Some(exchange) }
    }

    /// Those that are not answered.
    pub(super) fn questions(&self) -> &[Question] {
        &self.questions
    }
}

impl Future for Errand {
    type Output = (Questions, Answers);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answers = match &mut self.exchange {
            Some(exchange) => ready!(exchange.as_mut().poll(context)),
            None => Vec::new(),
        };
        self.exchange = None;
        Poll::Ready((mem::take(&mut self.questions), answers))
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        let (sharing, questions) = (Arc::clone(&self.sharing), mem::take(&mut self.questions));
        let (turn, sent) = (Arc::clone(&sharing.alone).try_acquire_owned(), self.sent);
        let mut unheard = Unheard { sharing, questions };
        if let (Ok(turn), Ok(here)) = (turn, Handle::try_current()) {
            here.spawn(async move {
                let answers = exchange.await;
                let questions = mem::take(&mut unheard.questions);
                unheard.sharing.answered_to_nobody(questions, answers, sent);
                drop(turn);
            });
        }
    }
}

/// Questions of whoever has gone. If nobody hears the answers after all, because there are too many of these
/// or the runtime ends, borrowers do not wait for them any more.
struct Unheard {
    sharing: Arc<Sharing>,
    questions: Questions,
}

impl Drop for Unheard {
    fn drop(&mut self) {
        let now = self.sharing.now();
        for question in self.questions.drain(..) {
            let never = StoreError::Timeout { after: Duration::ZERO };
            let _ = self.sharing.learn(&question, Err(never), now);
        }
    }
}

/// So many exchanges go on without whoever asked. Of those beyond nobody hears the answers: what the store
/// spends for them stays spent, and borrowers ask again.
pub(super) const MOST_ALONE: usize = 16_384;

impl Sharing {
    /// Answers for which whoever asked does not wait. What was lent is for whoever comes next, and what the
    /// store has spent pays for what passed without it, or is undone. What it has denied is denied to them.
    fn answered_to_nobody(&self, questions: Questions, answers: Answers, sent: Tick) {
        let now = self.now();
        for (question, answer) in questions.into_iter().zip(answers) {
            let Ok(grant) = self.learn(&question, answer, now) else { continue };
            self.keep_denial(&question.lack, &grant, (sent, now));
            let Lack { about, cost, .. } = &question.lack;
            let said = question.lack.said(&grant);
            let is_spent = |at| self.debts.is_back(about.owner, at) != Some(true);
            if !question.is_told || !said.spent_at().is_some_and(is_spent) {
                // Nothing was spent for it, or the key has it back by now.
                continue;
            }
            // He may come for it a moment too late: then it is what he has, and not the word of his rule. What
            // his rule has let pass meanwhile is paid with it.
            if !self.told.answer_after_all(about.owner, *cost, &said, now) {
                let rest = self.debts.settle(about.owner, *cost);
                self.undo(question.lack.about, rest, &said);
            }
        }
    }
}

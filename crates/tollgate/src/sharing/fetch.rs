//! Asking the store for what requests lack.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tollgate_core::Tick;
use tollgate_core::lease::{Borrower, Exchange, Grant, Spend};
use tollgate_local::{ByHash, KeyHash, Lent, Place};
use tollgate_rules::OnStoreFailure;
use tollgate_store::{Ask, StoreError};

use crate::sharing::errand::Errand;
use crate::sharing::loan::Awaited;
use crate::sharing::spend::{Lack, Lacks, Purpose, is_used_up};
use crate::sharing::told::{KEPT, Said, Told};
use crate::sharing::wait::Patience;
use crate::sharing::{About, Call, Loan, Sharing};

/// A question, and what becomes of its answer.
pub(super) struct Question {
    pub(super) lack: Lack,
    exchange: Exchange,
    /// Whose borrower asks.
    place: Option<Place>,
    /// Whether the answer is for the request alone.
    pub(super) is_told: bool,
}

impl Question {
    /// As it is put to the store.
    pub(super) fn ask(&self) -> Ask {
        self.lack.about.ask(self.exchange)
    }
}

/// What is asked about a lack.
enum Plan {
    Ask(Question),
    /// Somebody else's answer is awaited.
    After(Lack, Awaited),
    /// There is something here by now.
    Nothing,
}

impl Plan {
    /// The store decides, and nothing is lent.
    fn once(lack: Lack, cost: u64) -> Self {
        let exchange = Exchange::once(cost);
        Self::Ask(Question { lack, exchange, place: None, is_told: true })
    }
}

/// What is asked at once. One question takes no allocation.
pub(super) type Questions = Vec<Question>;

/// Questions, and those who wait for the answers to others.
type Plans = (Questions, Vec<(Lack, Awaited)>);

impl Sharing {
    pub(super) async fn fetch(self: &Arc<Self>, mut lacks: Lacks, patience: Patience) {
        let mut now = self.now();
        if self.time_left_at(patience.since, now).is_zero() {
            return lacks.into_iter().for_each(|lack| self.fail(lack, &self.too_late(patience)));
        }
        if patience.is_over(now) {
            lacks.retain(|lack| {
                let is_of_use = patience.is_first && self.is_of_use_to_others(lack, now);
                if !is_of_use {
                    self.fail(lack.clone(), &self.too_late(patience));
                }
                is_of_use
            });
        }
        let (mut questions, mut others) = self.plans(lacks, now);
        if questions.is_empty() && others.is_empty() {
            // Others were faster, or there is nothing to be had: they have their turn first.
            tokio::task::yield_now().await;
        }
        while !questions.is_empty() || !others.is_empty() {
            if !questions.is_empty() {
                self.ask(questions, patience, now).await;
            }
            if others.is_empty() {
                return;
            }
            let again = self.after_others(others, patience).await;
            now = self.now();
            (questions, others) = self.plans(again, now);
        }
    }

    fn plans(&self, lacks: Lacks, now: Tick) -> Plans {
        let (mut questions, mut others) = (Questions::with_capacity(lacks.len()), Vec::new());
        for lack in lacks {
            match self.plan(lack, now) {
                Plan::Ask(question) => questions.push(question),
                Plan::After(lack, awaited) => others.push((lack, awaited)),
                Plan::Nothing => {}
            }
        }
        (questions, others)
    }

    /// Waits for what others have asked. Those who may find too little all the same, because it was asked for
    /// somebody else alone, look again what is here, and one of them asks the store for all. That may bring too
    /// little as well. So if there is not the time for another such question after it, they come again now, and
    /// the store decides each.
    async fn after_others(&self, others: Vec<(Lack, Awaited)>, patience: Patience) -> Lacks {
        let (mut again, mut took) = (Lacks::new(), Duration::ZERO);
        for (lack, awaited) in others {
            let asked = awaited.asked;
            // Whose question failed does not ask for himself: all of them would, at a store that fails.
            if !awaited.within(self.waits(patience)).await {
                let why = match patience.is_over(self.now()) {
                    true => self.too_late(patience),
                    false => self.failure_of(&lack, patience),
                };
                self.fail(lack, &why);
            } else if lack.purpose == Purpose::Spend {
                took = took.max(self.now().since(asked));
                again.push(lack);
            }
        }
        if took * 2 >= self.waits(patience) || self.breaker.is_open() {
            again.clear();
        }
        again
    }

    /// Whether something is lent of what somebody lacks who waits no longer, or passed as his rule says: then
    /// the answer is for those who come next, or pays.
    fn is_of_use_to_others(&self, lack: &Lack, now: Tick) -> bool {
        let limit = &lack.about.limit;
        !lack.is_look()
            && !limit.is_strict
            && (limit.policy != OnStoreFailure::Deny || self.borrowing(lack, now).is_some())
    }

    /// Asks the store at the time of `sent`, and tells what it says.
    async fn ask(self: &Arc<Self>, questions: Questions, patience: Patience, sent: Tick) {
        let mut asked = Errand::new(self, questions, (patience.since, sent));
        let answered = match patience.until {
            None => Ok((&mut asked).await),
            Some(_) => timeout(self.waits(patience), &mut asked).await,
        };
        let Ok((questions, answers)) = answered else {
            let lacks = asked.questions().iter().map(|question| question.lack.clone());
            return lacks.for_each(|lack| self.fail(lack, &self.too_late(patience)));
        };
        let now = self.now();
        let lent = self.on_their_way(&questions, &answers, now);
        for (question, answer) in questions.into_iter().zip(answers) {
            if let Ok(grant) = &answer {
                self.keep_denial(&question.lack, grant, (sent, now));
            }
            self.answered(question, answer, (now, patience));
        }
        for awaited in lent {
            // If it does not come in time, what the store said is all there is to say.
            let _ = awaited.within(self.waits(patience)).await;
        }
    }

    /// Answers to borrowers of keys for which the store has just denied something. What is not left in
    /// it may be on its way here.
    fn on_their_way(
        &self,
        questions: &[Question],
        answers: &[Result<Grant, StoreError>],
        now: Tick,
    ) -> Vec<Awaited> {
        let mut owners = ByHash::default();
        let both = questions.iter().zip(answers);
        let denied = both.filter(|(question, answer)| {
            let is_denied = |grant: &Grant| !grant.decision.is_allowed();
            question.place.is_none() && answer.as_ref().is_ok_and(is_denied)
        });
        let each = denied.filter_map(|(Question { lack, .. }, _)| {
            let owner = lack.about.owner;
            if lack.about.limit.is_strict || owners.insert(owner, ()).is_some() {
                return None;
            }
            let mut lent = self.purses.known(owner, now)?;
            let is_waiting = lent.borrower().is_waiting();
            is_waiting.then(|| lent.beside().awaited())
        });
        each.collect()
    }

    /// How much longer somebody waits who has waited since then.
    pub(super) fn time_left(&self, since: Tick) -> Duration {
        self.time_left_at(since, self.now())
    }

    pub(super) fn time_left_at(&self, since: Tick, now: Tick) -> Duration {
        self.config.timeout.saturating_sub(now.since(since))
    }

    /// How much longer somebody waits for an answer.
    fn waits(&self, Patience { since, until, .. }: Patience) -> Duration {
        let left = self.time_left(since);
        until.map_or(left, |until| left.min(until.since(self.now())))
    }

    /// What to ask about something that requests lack.
    fn plan(&self, lack: Lack, now: Tick) -> Plan {
        let Some(mut lent) = self.borrowing(&lack, now) else {
            return match (lack.purpose, lack.cost) {
                (Purpose::Spend | Purpose::Decide, cost) => Plan::once(lack, cost),
                (Purpose::Look, _) => Plan::once(lack, 0),
                // There is no place for it. The store decides each when they come again.
                (Purpose::Borrow, _) => Plan::Nothing,
                // Permits, which requests take one by one, are lent or not had at all.
                (Purpose::Permit, _) => {
                    let denial = lack.about.limit.no_permit();
                    self.tell(lack.about, 1, Said::Decided(denial, None), now);
                    Plan::Nothing
                }
            };
        };
        let borrower = lent.borrower();
        match lack.purpose {
            Purpose::Permit if is_used_up(borrower, now) => return Plan::Nothing,
            Purpose::Permit | Purpose::Borrow if borrower.tokens(now) >= lack.cost => {
                return Plan::Nothing;
            }
            Purpose::Permit => return self.plan_to_ask(lack, lent, now),
            _ => {}
        }
        let is_told = lack.purpose == Purpose::Spend;
        match borrower.spend(now, lack.cost) {
            Spend::Ask => self.plan_to_ask(lack, lent, now),
            Spend::Taken(receipt) => {
                drop(lent);
                self.tell(lack.about, lack.cost, Said::Decided(receipt.decision(), None), now);
                Plan::Nothing
            }
            Spend::Short(denial) => {
                drop(lent);
                if is_told {
                    self.tell(lack.about, lack.cost, Said::Decided(denial, None), now);
                }
                Plan::Nothing
            }
        }
    }

    /// The borrower of a key, if it has one, or is to have one; `None` if the store decides.
    fn borrowing(&self, lack: &Lack, now: Tick) -> Option<Lent<'_, Loan>> {
        let limit = &lack.about.limit;
        if limit.is_strict || matches!(lack.purpose, Purpose::Look | Purpose::Decide) {
            return None;
        }
        let terms = limit.budget.terms()?;
        if let Some(known) = self.purses.known(lack.about.owner, now) {
            return Some(known);
        }
        let gap = self.lately.came(lack.about.owner, now).filter(|gap| *gap <= terms.hold());
        // Permits are nowhere but here and in the store, and a key that several requests need at once
        // is hot.
        let gap = match lack.purpose {
            Purpose::Spend => gap?,
            _ => gap.unwrap_or_else(|| terms.hold()),
        };
        let open = || {
            self.purses.open(lack.about.owner, now, || {
                let node = self.newborn();
                (Borrower::new(node, terms), Loan::new(lack.about.clone(), node))
            })
        };
        open().or_else(|| self.make_room(lack.about.owner, gap, now).then(open).flatten())
    }

    /// Where all places are taken, a key that comes this often gets that of one that nobody has asked for much
    /// longer. Whether there is one for it. What the other one holds goes back.
    fn make_room(&self, owner: KeyHash, gap: Duration, now: Tick) -> bool {
        let least = gap.saturating_mul(MUCH_LONGER).max(LEAST_SILENCE);
        self.purses.make_room(owner, now, least, |idlest| {
            if let Some(last) = idlest.borrower().quit(now) {
                self.note(idlest, &last, now);
                self.call(Call::Quit { last: idlest.beside().about.ask(last), tries: 0 });
            }
            // Nobody comes back to it.
            idlest.beside().answered.notify_waiters();
        })
    }

    fn plan_to_ask(&self, lack: Lack, mut lent: Lent<'_, Loan>, now: Tick) -> Plan {
        let (place, is_told) = (lent.place(), lack.purpose == Purpose::Spend);
        let borrower = lent.borrower();
        let exchange = match lack.purpose {
            // It may be too soon to ask for so much, and never is to ask for what it should hold.
            Purpose::Borrow => {
                let left = borrower.seen().map_or(u64::MAX, |seen| seen.remaining());
                let ask = borrower.exchange(now).or_else(|| borrower.ask(now, 0));
                // Where there was not so much, a part is better than nothing.
                ask.map(|ask| match ask.least > left {
                    true => Exchange { least: 1, ..ask },
                    false => ask,
                })
            }
            Purpose::Permit => {
                // All or nothing is lent, so no more is asked for than there was.
                let lacks = lack.cost - borrower.tokens(now);
                let left = borrower.seen().map_or(u64::MAX, |seen| seen.remaining());
                borrower.ask(now, lacks.min(left.max(1)))
            }
            _ => borrower.ask(now, lack.cost),
        };
        let Some(exchange) = exchange else {
            // The borrower's own question is under way. Who needs a sum or a permit waits for it, whatever
            // it brings.
            let is_apart = is_told && lent.borrower().asks_apart(now);
            let awaited = lent.beside().awaited();
            drop(lent);
            let cost = lack.cost;
            return match is_apart {
                true => Plan::once(lack, cost),
                false => Plan::After(lack, awaited),
            };
        };
        self.note(&mut lent, &exchange, now);
        drop(lent);
        // If no answer comes, or nobody is left to hear it, it is asked for again.
        self.call(Call::Look(place));
        Plan::Ask(Question { lack, exchange, place: Some(place), is_told })
    }

    fn answered(
        &self,
        question: Question,
        answer: Result<Grant, StoreError>,
        (now, patience): (Tick, Patience),
    ) {
        let answer = self.learn(&question, answer, now);
        let Question { lack, is_told, .. } = question;
        match answer {
            Ok(grant) if is_told => {
                if lack.cost > 0 && grant.decision.is_allowed() {
                    lack.about.limit.note(&lack.about, lack.cost, now);
                }
                let said = lack.said(&grant);
                self.tell(lack.about, lack.cost, said, now);
            }
            Ok(_) => {}
            // Its rule decides. Who had no time left has spent it on waiting for the store.
            Err(error) if self.is_in_haste(&error) => self.fail(lack, &self.too_late(patience)),
            Err(error) => self.fail(lack, &error),
        }
    }

    /// Who needs as much of a limit that is not lent as somebody was just denied, asks in vain for a while.
    pub(super) fn keep_denial(&self, lack: &Lack, grant: &Grant, (sent, heard): (Tick, Tick)) {
        let About { limit, owner, .. } = &lack.about;
        if limit.keeps_denials && !lack.is_look() && !grant.decision.is_allowed() {
            let stays = limit.stays(&grant.decision, lack.cost);
            self.denials.note(*owner, lack.cost, &grant.decision, stays, (sent, heard));
        }
    }

    /// What the borrower makes of an answer that has asked, or of the lack of one.
    pub(super) fn learn(
        &self,
        question: &Question,
        answer: Result<Grant, StoreError>,
        now: Tick,
    ) -> Result<Grant, Arc<StoreError>> {
        let (Exchange { node, sequence, .. }, place) = (question.exchange, question.place);
        if let (Ok(grant), Some(place)) = (&answer, place) {
            self.answer(place, node, grant, now);
        }
        answer.map_err(Arc::new).inspect_err(|error| {
            // The store is not to decide it once more when it is back.
            if let Some(mut lent) = place.and_then(|place| self.asker(place, node, now)) {
                lent.borrower().abandon(sequence);
                self.unanswered(&mut lent, sequence, error);
            }
        })
    }

    /// The rules decide: all who need a permit, and of those who need a sum whoever comes first. The others
    /// ask for themselves.
    fn fail(&self, lack: Lack, why: &Arc<StoreError>) {
        let requests = if lack.purpose == Purpose::Permit { lack.cost } else { 1 };
        let now = self.now();
        for _ in 0..requests {
            let said = Said::Failed(Arc::clone(why));
            self.tell(lack.about.clone(), lack.cost, said, now);
        }
    }

    /// Why the borrower's question was not answered that somebody has waited for.
    fn failure_of(&self, lack: &Lack, patience: Patience) -> Arc<StoreError> {
        let known = self.purses.known(lack.about.owner, self.now());
        let failure = known.and_then(|lent| lent.beside().failure.clone());
        failure.unwrap_or_else(|| self.too_late(patience))
    }

    /// The store has not answered in the time that there was.
    fn too_late(&self, Patience { since, until, .. }: Patience) -> Arc<StoreError> {
        let most = self.config.timeout;
        let after = until.map_or(most, |until| most.min(until.since(since)));
        StoreError::Timeout { after }.into()
    }

    pub(super) fn tell(&self, about: About, cost: u64, said: Said, now: Tick) {
        let (owner, until) = (about.owner, now.after(KEPT));
        self.leave(owner, Told { cost, said, about, until }.into());
    }
}

/// Keys that come about as often do not take each other's places in turns: that would take a question each time.
const MUCH_LONGER: u32 = 8;

/// Nor does anybody take that of a key that is hot.
const LEAST_SILENCE: Duration = Duration::from_millis(100);

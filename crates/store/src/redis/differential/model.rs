//! The core's side of one key, also after the store's memory was lost or kept by somebody else.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::lease::{Account, Carried, Exchange, Grant, Lender};
use tollgate_core::{Log, Phase, Plan, Tick};

use crate::ask::Ask;
use crate::budget::{Budget, Kind};
use crate::error::StoreError;
use crate::memory::{answer_of_log, open_log};

/// What the store remembers since when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// No other memory has this number.
    pub(super) number: u64,
    /// When something was lost of what was before, be it the last moments.
    pub(super) lost: Option<Tick>,
    /// When everything was.
    pub(super) everything: Option<Tick>,
}

/// What the core knows of one key.
#[derive(Clone)]
pub(super) struct Model {
    budget: Arc<Budget>,
    phase: Phase,
    memory: Memory,
    books: Books,
    counts: Counts,
}

#[derive(Clone)]
enum Books {
    Account(Box<Lender>, Box<Account>),
    Log(Log),
}

/// What a window and the one before it have counted, seen from outside.
#[derive(Clone, Default)]
struct Counts {
    window: Option<(Tick, Tick)>,
    /// What was spent in the last window, at least: moments, and sums up to there.
    last: Vec<(Tick, u64)>,
    this: u64,
}

impl Model {
    /// Of a key that the store does not know.
    pub(super) fn unknown(budget: &Arc<Budget>, phase: Phase, memory: Memory, now: Tick) -> Self {
        let lost = if is_long_window(budget) { memory.everything } else { memory.lost };
        Self::opened(budget, phase, memory, lost, now)
    }

    /// Of one that has its whole budget for sure.
    pub(super) fn whole(budget: &Arc<Budget>, phase: Phase, memory: Memory, now: Tick) -> Self {
        Self::opened(budget, phase, memory, None, now)
    }

    fn opened(
        budget: &Arc<Budget>,
        phase: Phase,
        memory: Memory,
        lost: Option<Tick>,
        now: Tick,
    ) -> Self {
        let books = match budget.kind() {
            Kind::Lent(lender) => {
                let after = |lost| Lender::clone(lender).after_loss(memory.number, lost);
                let account = match lost {
                    Some(lost) => after(lost).open(now, phase),
                    None => lender.open(now, phase),
                };
                // Leases are named after the memory even if nothing was lost.
                Books::Account(Box::new(after(Tick::ZERO)), Box::new(account))
            }
            Kind::Log(rule) => Books::Log(open_log(*rule, lost, None)),
            Kind::Unlimited => panic!("there is nothing to compare"),
        };
        let counts = Counts::default();
        let mut model = Self { budget: Arc::clone(budget), phase, memory, books, counts };
        model.counts.last.extend(lost.map(|lost| (lost, u64::MAX)));
        model.look(now);
        model
    }

    /// The same key after another process has taken over with what is known here. A window of more
    /// than a minute goes on with what it has counted, in which what was lent is spent; of everything
    /// else the last moments may be missing, so it counts for nothing.
    pub(super) fn taken_over(&self, memory: Memory, now: Tick) -> Self {
        if !is_long_window(&self.budget) {
            return Self::unknown(&self.budget, self.phase, memory, now);
        }
        let mut before = self.clone();
        before.look(now);
        let mut model = Self::whole(&self.budget, self.phase, memory, now);
        let mut counted = before.counts.last;
        counted.push((now, before.counts.this));
        for (since, spent) in counted {
            model.carry(now, &Carried { spent, ago: now.since(since), of_known: true });
        }
        model.look(now);
        model
    }

    /// The answer to a question, and what is lent afterwards.
    pub(super) fn answer(
        &mut self,
        ask: &Ask,
        now: Tick,
        was_known: bool,
    ) -> (Result<Grant, StoreError>, u64) {
        let before = self.clone();
        self.look(now);
        let carried = ask.carried().filter(|carried| !was_known || carried.of_known);
        let (lost, number) = (self.memory.lost, self.memory.number);
        if let (Books::Log(log), Kind::Log(rule)) = (&mut self.books, self.budget.kind()) {
            if let Some(carried) = ask.carried().filter(|_| !was_known) {
                *log = open_log(*rule, lost, Some((carried.since(now), carried.spent)));
            }
            let answer = answer_of_log(log, *rule, &self.budget, now, ask, number);
            // A log knows no numbers.
            let exchange = match ask.exchange() {
                numbered if numbered.sequence > 0 => Exchange::once(numbered.cost),
                exchange => *exchange,
            };
            if ask.carried().is_some() && exchange.is_look() {
                *self = before;
            }
            return (Ok(answer), 0);
        }
        if let Some(carried) = carried {
            self.carry(now, carried);
        }
        let Books::Account(lender, account) = &mut self.books else { panic!("a log is a log") };
        let answer = lender.exchange(account, now, ask.exchange()).ok_or(StoreError::Overtaken);
        let escrow = account.escrow();
        self.look(now);
        // To look leaves nothing behind.
        if ask.carried().is_some() && ask.exchange().is_look() {
            *self = before;
        }
        (answer, escrow)
    }

    /// Whether leases are compared: a log has none.
    pub(super) const fn is_account(&self) -> bool {
        matches!(self.books, Books::Account(..))
    }

    fn carry(&mut self, now: Tick, carried: &Carried) {
        let Books::Account(lender, account) = &mut self.books else { return };
        lender.carry(account, now, carried);
        let since = carried.since(now);
        if self.counts.window.is_some_and(|(begin, _)| since < begin) {
            self.counts.last.push((since, carried.spent));
        }
    }

    /// Takes note of what a long window has counted, for somebody who takes over.
    fn look(&mut self, now: Tick) {
        let Books::Account(lender, account) = &self.books else { return };
        let Some(machine) = lender.machine().filter(|_| is_long_window(&self.budget)) else {
            return;
        };
        let Some((begin, end)) = machine.window(now, self.phase) else { return };
        match self.counts.window {
            Some(window) if window == (begin, end) => {}
            Some((_, last_end)) if last_end == begin => {
                let last = Tick::from_nanos(begin.as_nanos() - 1);
                self.counts.last = vec![(last, self.counts.this)];
            }
            Some(_) => self.counts.last.clear(),
            None => self.counts.last.retain(|(at, _)| *at < begin),
        }
        self.counts.window = Some((begin, end));
        let mut account = Account::clone(account);
        self.counts.this = match machine.plan() {
            // When the next one begins, all of this one counts, and nothing else.
            Plan::Sliding { limit, rounding: 1, .. } => limit - lender.left(&mut account, end),
            Plan::Window { limit } => limit - lender.left(&mut account, now),
            plan => panic!("{plan:?} says not exactly what it has counted"),
        };
    }
}

fn is_long_window(budget: &Budget) -> bool {
    let Kind::Lent(lender) = budget.kind() else { return false };
    let is_window = lender.machine().is_some_and(|machine| {
        matches!(machine.plan(), Plan::Window { .. } | Plan::Sliding { .. })
    });
    is_window && budget.period() > Duration::from_secs(60)
}

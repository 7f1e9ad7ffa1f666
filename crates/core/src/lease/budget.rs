//! What is lent: the one place where lending knows one algorithm from another.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::algorithm::{Machine, Phase};
use crate::decision::{Decision, Retry};
use crate::time::Tick;
use crate::word::Word;

#[derive(Clone, Debug)]
pub(super) enum Budget {
    /// Tokens, kept in a word. A window knows of lent ones as spent, and forgets them when it ends;
    /// a bucket that is full but for what is lent does not fill any further.
    Tokens(Machine),
    /// Permits: no state beside what is lent.
    Permits(NonZeroU32),
}

/// What is left to lend of one key, and at what time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Balance {
    pub(super) word: Word,
    pub(super) phase: Phase,
    /// All that is lent and not settled.
    pub(super) escrow: u64,
}

impl Budget {
    /// Keeps the balance from having grown beyond what the escrow leaves, up to `now`. To be called
    /// before the escrow shrinks, at the very moment, and before anything is taken.
    pub(super) fn hold_down(&self, balance: &mut Balance, now: Tick) {
        if let Self::Tokens(machine) = self {
            balance.word = machine.held_down(balance.word, now, balance.escrow);
        }
    }

    /// What the store says to a request; a denial spends nothing.
    pub(super) fn spend(&self, balance: &mut Balance, now: Tick, cost: u64) -> Decision {
        match self {
            Self::Tokens(machine) => {
                let step = machine.step(balance.word, now, cost, balance.phase);
                balance.word = step.word;
                step.decision
            }
            Self::Permits(max) => {
                let left = u64::from(max.get()).saturating_sub(balance.escrow);
                match cost <= left {
                    true => Decision::allow(max.get().into(), left, Duration::ZERO),
                    false => {
                        Decision::deny(max.get().into(), left, Duration::ZERO, Retry::OnReturn)
                    }
                }
            }
        }
    }

    pub(super) fn left(&self, balance: &Balance, now: Tick) -> u64 {
        self.spend(&mut { *balance }, now, 0).remaining()
    }

    /// What is left if tokens count that come in soon, at most `ahead` of them. Nothing where
    /// tokens do not come in one by one.
    pub(super) fn left_ahead(&self, balance: &Balance, now: Tick, ahead: u64) -> u64 {
        match self {
            Self::Tokens(machine) => machine.left_ahead(balance.word, now, ahead, balance.escrow),
            Self::Permits(_) => 0,
        }
    }

    /// Takes tokens that are [left](Self::left), or [will be](Self::left_ahead).
    pub(super) fn take(&self, balance: &mut Balance, now: Tick, tokens: u64) {
        if let Self::Tokens(machine) = self {
            balance.word = machine.overdraw(balance.word, now, tokens, balance.phase);
        }
    }

    /// Moves tokens from the balance to the escrow.
    pub(super) fn lend(&self, balance: &mut Balance, now: Tick, tokens: u64) {
        self.take(balance, now, tokens);
        balance.escrow += tokens;
    }

    /// How many nanoseconds it is until all that was taken has come in.
    pub(super) fn all_in(&self, balance: &Balance, now: Tick) -> u64 {
        match self {
            Self::Tokens(machine) => machine.all_in(balance.word, now),
            Self::Permits(_) => 0,
        }
    }

    /// Whether tokens come in one by one.
    pub(super) fn comes_in(&self) -> bool {
        self.time_of(1) > 0
    }

    /// How many nanoseconds so many tokens take to come in.
    pub(super) fn time_of(&self, tokens: u64) -> u64 {
        match self {
            Self::Tokens(machine) => machine.time_of(tokens),
            Self::Permits(_) => 0,
        }
    }

    /// How many tokens take so many nanoseconds to come in, or more.
    pub(super) fn tokens_of(&self, nanos: u64) -> u64 {
        match self {
            Self::Tokens(machine) => machine.tokens_of(nanos),
            Self::Permits(_) => 0,
        }
    }

    /// Moves tokens from the escrow back to the balance.
    pub(super) fn take_back(&self, balance: &mut Balance, now: Tick, tokens: u64) {
        if let Self::Tokens(machine) = self {
            balance.word = machine.refund(balance.word, now, tokens, balance.phase);
        }
        balance.escrow -= tokens;
    }

    /// Takes back what was spent at `then` in vain, as far as time has not given it back since.
    pub(super) fn undo(&self, balance: &mut Balance, then: Tick, now: Tick, cost: u64) {
        let Self::Tokens(machine) = self else { return };
        let most = machine.step(Word::REST, now, 0, balance.phase).decision.limit();
        // More was never spent at once.
        if cost <= most {
            balance.word = machine.undo(balance.word, then, now, cost, balance.phase);
            self.hold_down(balance, now);
        }
    }

    /// When all that is lent now ends whatever its terms are.
    pub(super) fn window_end(&self, now: Tick, phase: Phase) -> Option<Tick> {
        match self {
            Self::Tokens(machine) => machine.window_end(now, phase),
            Self::Permits(_) => None,
        }
    }
}

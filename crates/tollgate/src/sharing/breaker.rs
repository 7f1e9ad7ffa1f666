//! Whether the store is asked at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Keeps callers from a store that fails, or answers too late to be of use.
///
/// Failures and answers are weighed against each other, so that a store that fails every other time
/// is left alone as well as one that is gone, and a single failure changes nothing.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    is_open: AtomicBool,
    score: Mutex<Score>,
}

#[derive(Debug, Default)]
struct Score {
    /// How bad it was lately; for a store that is left alone, how often it has answered since.
    value: u32,
}

/// What an answer, or the lack of one, has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// From now on the store is left alone.
    Opened,
    /// It is well again.
    Well,
}

/// What a failure adds. An answer takes one away.
const FAILURE: u32 = 2;
/// Five failures in a row, or two in three for a while.
const TOO_BAD: u32 = 10;
/// So many trials in a row are answered in time before callers ask again.
const GOOD_TRIALS: u32 = 3;

impl Breaker {
    /// Whether the store is left alone.
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// What came of a question.
    pub(super) fn asked(&self, was_answered: bool) -> Change {
        let mut score = self.score.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_open() {
            // It was sent before.
            return Change::None;
        }
        match was_answered {
            true => score.value = score.value.saturating_sub(1),
            false => score.value += FAILURE,
        }
        if score.value < TOO_BAD {
            return Change::None;
        }
        score.value = 0;
        self.is_open.store(true, Ordering::Release);
        Change::Opened
    }

    /// What came of trying a store that is left alone.
    pub(super) fn tried(&self, was_answered: bool) -> Change {
        let mut score = self.score.lock().unwrap_or_else(PoisonError::into_inner);
        score.value = if was_answered { score.value + 1 } else { 0 };
        match score.value >= GOOD_TRIALS {
            true => Change::Well,
            false => Change::None,
        }
    }

    /// From now on callers ask again.
    pub(super) fn close(&self) {
        let mut score = self.score.lock().unwrap_or_else(PoisonError::into_inner);
        score.value = 0;
        self.is_open.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_in_a_row_open_it_and_a_single_one_does_not() {
        let breaker = Breaker::default();
        for _ in 0..4 {
            assert_eq!(breaker.asked(false), Change::None);
        }
        assert!(!breaker.is_open());
        assert_eq!(breaker.asked(false), Change::Opened);
        assert!(breaker.is_open());
        assert_eq!(breaker.asked(false), Change::None, "it is open already");
    }

    #[test]
    fn two_failures_in_three_open_it_and_one_in_four_does_not() {
        let breaker = Breaker::default();
        for round in 0..1_000 {
            breaker.asked(round % 4 != 0);
        }
        assert!(!breaker.is_open());
        let opened = (0..100).map(|round| breaker.asked(round % 3 == 0));
        assert_eq!(opened.filter(|change| *change == Change::Opened).count(), 1);
    }

    #[test]
    fn it_is_well_after_three_good_trials_in_a_row_and_forgets() {
        let breaker = Breaker::default();
        (0..5).for_each(|_| _ = breaker.asked(false));
        let trials = [true, true, false, true, true, true].map(|answered| breaker.tried(answered));
        assert_eq!(trials.iter().position(|change| *change == Change::Well), Some(5));
        assert!(breaker.is_open(), "there may be debts to pay first");
        breaker.close();
        assert_eq!((0..4).map(|_| breaker.asked(false)).last(), Some(Change::None));
    }
}

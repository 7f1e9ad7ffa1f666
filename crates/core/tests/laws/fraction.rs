//! The rate of a bucket as a fraction, found the slow way.

use tollgate_core::Rate;

/// Tokens per nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) tokens: u128,
    pub(crate) nanos: u128,
}

impl Fraction {
    /// What the quota says.
    pub(crate) fn said(rate: Rate) -> Self {
        Self { tokens: rate.count().into(), nanos: rate.period().as_duration().as_nanos() }
    }

    /// What a bucket keeps: the same, if the time of one token is a whole number of some part of
    /// a nanosecond down to the 64th, and otherwise that time rounded up to the next 64th.
    pub(crate) fn kept(rate: Rate) -> Self {
        let said = Self::said(rate);
        match (1..=64).any(|part| (said.nanos * part).is_multiple_of(said.tokens)) {
            true => said,
            false => Self { tokens: 64, nanos: (said.nanos * 64).div_ceil(said.tokens) },
        }
    }

    pub(crate) fn is_exact(rate: Rate) -> bool {
        Self::said(rate) == Self::kept(rate)
    }

    /// Whole tokens that come in so many nanoseconds.
    pub(crate) fn in_nanos(self, nanos: u64) -> u128 {
        u128::from(nanos) * self.tokens / self.nanos
    }

    /// Whether `spent` is at most `burst` and what comes between the two moments, exactly. If
    /// the second is before the first, what comes in between is negative.
    pub(crate) fn covers(self, spent: u128, burst: u64, from: u64, to: u64) -> bool {
        let signed = |number: u128| i128::try_from(number).expect("small enough");
        let (tokens, nanos) = (signed(self.tokens), signed(self.nanos));
        let over = signed(spent) - i128::from(burst);
        over * nanos <= (i128::from(to) - i128::from(from)) * tokens
    }
}

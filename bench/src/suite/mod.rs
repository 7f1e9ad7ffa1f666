//! The suites: each measures one part of Tollgate against its peers.

pub(crate) mod doors;
pub(crate) mod local;
pub(crate) mod rules;
pub(crate) mod store;

use std::time::Duration;

use crate::error::BenchError;
use crate::measure::{Contender, Effort, Keys, Measured, interleave};
use crate::progress::Progress;
use crate::report::{Growth, Report, Row};

/// A run of one suite: what to measure, how thoroughly, and what was found so far.
pub(crate) struct Session {
    pub(crate) scale: Scale,
    pub(crate) progress: Progress,
    only: Option<String>,
    report: Report,
}

impl Session {
    pub(crate) fn new(scale: Scale, only: Option<String>, progress: Progress) -> Self {
        Self { scale, progress, only, report: Report::default() }
    }

    /// Whether the row was asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    pub(crate) fn wants_any<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> bool {
        names.into_iter().any(|name| self.wants(name))
    }

    /// Measures the contenders of a row in turn.
    pub(crate) fn measure<const N: usize>(
        &self,
        row: &str,
        contenders: [Contender<'_>; N],
    ) -> Result<[Measured; N], BenchError> {
        interleave(row, contenders, self.scale.effort, &self.progress)
    }

    /// Keeps a finished row.
    pub(crate) fn add(&mut self, row: Row) {
        self.progress.done(&row);
        self.report.rows.push(row);
    }

    /// How many rows there are so far.
    pub(crate) const fn rows(&self) -> usize {
        self.report.rows.len()
    }

    /// Keeps what is drawn and printed as tables of its own.
    pub(crate) fn draw(&mut self, growth: Growth) {
        self.report.growth = Some(growth);
    }

    pub(crate) fn into_report(self) -> Result<Report, BenchError> {
        match self.only {
            Some(only) if self.report.rows.is_empty() => Err(BenchError::NoSuchRow(only)),
            _ => Ok(self.report),
        }
    }
}

/// How many keys, and how much effort. Rows are named after the key counts really used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// More keys than any cache holds.
    pub(crate) large: usize,
    /// Keys that no longer fit into the caches nearest to a core.
    pub(crate) medium: usize,
    /// Key counts at which growth is looked at.
    pub(crate) growth: [usize; 4],
    pub(crate) effort: Effort,
    /// Rounds of what takes long and cannot be cut short.
    pub(crate) long_rounds: usize,
}

impl Scale {
    /// Whether figures are only to show that there are any.
    pub(crate) const fn is_quick(&self) -> bool {
        self.large < Self::FULL.large
    }

    pub(crate) const FULL: Self = Self {
        large: 10_000_000,
        medium: 1_000_000,
        growth: [1_000, 100_000, 1_000_000, 10_000_000],
        // Many short rounds rather than a few long ones: what else the machine does for a while then
        // falls into few of them, and the median does not see it, or it lasts, and all sides have it.
        effort: Effort { rounds: 105, round: Duration::from_millis(20), keys: Keys::AtHand },
        long_rounds: 5,
    };

    /// Ends within a minute on two slow cores.
    pub(crate) const QUICK: Self = Self {
        large: 1_000_000,
        medium: 100_000,
        growth: [1_000, 10_000, 100_000, 1_000_000],
        effort: Effort { rounds: 5, round: Duration::from_millis(50), keys: Keys::AtHand },
        long_rounds: 3,
    };
}

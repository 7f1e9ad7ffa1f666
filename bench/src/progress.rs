//! What the person at the terminal sees while rows are measured, on the error stream.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::Row;

/// A spinner that names what is going on, with finished rows above it.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows nothing, for tests.
    #[cfg(test)]
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// Names what is going on. The spinner turns only here: a thread that turns it would take
    /// time from the subjects.
    pub(crate) fn say(&self, what: &str) {
        self.0.set_message(what.to_owned());
        self.0.tick();
    }

    /// Notes a finished row.
    pub(crate) fn done(&self, row: &Row) {
        let ratio = row.ratio.map_or_else(String::new, |ratio| format!(", {ratio:.2}x"));
        let (value, unit) = (row.ours, row.unit);
        self.0.println(format!("{}: {value:.1} {unit}{ratio}", row.name));
    }

    pub(crate) fn finish(&self) -> Duration {
        self.0.finish_and_clear();
        self.0.elapsed()
    }
}

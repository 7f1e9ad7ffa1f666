//! What a run found, and the forms in which it is told.

mod json;
mod markdown;
mod provenance;
mod row;
mod scale;
mod svg;
mod table;

pub(crate) use json::print as print_json;
pub(crate) use markdown::render as render_markdown;
pub(crate) use provenance::Provenance;
pub(crate) use row::{Reach, Row, Unit};
pub(crate) use svg::render as render_svg;
pub(crate) use table::print as print_table;

/// Everything a suite found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    /// How figures grow with the number of keys, if the suite measures that.
    pub(crate) growth: Option<Growth>,
}

impl Report {
    /// Rows that promise something, as opposed to those that only inform.
    pub(crate) fn promises(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.reach.is_some())
    }

    pub(crate) fn missed(&self) -> usize {
        self.promises().filter(|row| !row.ok).count()
    }
}

/// Several quantities, each over the number of keys, or over time.
#[derive(Debug, Clone)]
pub(crate) struct Growth {
    pub(crate) title: String,
    /// What a reader has to know besides; nothing if that is all.
    pub(crate) about: String,
    pub(crate) panels: Vec<Panel>,
}

/// One quantity over the number of keys or over time, a line per subject.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) quantity: &'static str,
    pub(crate) unit: Unit,
    pub(crate) across: Across,
    /// The key counts or tenths of a second, ascending; every line has one value for each.
    pub(crate) keys: Vec<usize>,
    pub(crate) lines: Vec<Line>,
}

/// What a quantity is looked at over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Across {
    /// The number of keys, on a logarithmic axis.
    Keys,
    /// Tenths of a second, of which tables have the whole seconds.
    Tenths,
}

impl Across {
    /// How tables and axes say it; `None` for what is only drawn.
    fn label(self, keys: usize) -> Option<String> {
        match self {
            Self::Keys => Some(count_of(keys)),
            Self::Tenths => keys.is_multiple_of(10).then(|| (keys / 10).to_string()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Tenths => "seconds",
        }
    }
}

/// The values of one subject.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    subject: &'static str,
    values: Vec<f64>,
    /// What the values should be. If there is any, the difference is what is drawn.
    ideal: Vec<f64>,
}

impl Line {
    pub(crate) const fn new(subject: &'static str, values: Vec<f64>) -> Self {
        Self { subject, values, ideal: Vec::new() }
    }

    /// Beside what the values should be.
    pub(crate) const fn beside(subject: &'static str, values: Vec<f64>, ideal: Vec<f64>) -> Self {
        Self { subject, values, ideal }
    }

    const fn is_difference(&self) -> bool {
        !self.ideal.is_empty()
    }

    /// What is drawn.
    fn drawn(&self) -> Vec<f64> {
        let ideal = self.ideal.iter().copied().chain(std::iter::repeat(0.0));
        self.values.iter().zip(ideal).map(|(value, ideal)| value - ideal).collect()
    }
}

/// A key count as people say it: `1 K`, `10 M`.
pub(crate) fn count_of(keys: usize) -> String {
    match keys {
        keys if keys >= 1_000_000 && keys.is_multiple_of(1_000_000) => {
            format!("{} M", keys / 1_000_000)
        }
        keys if keys >= 1_000 && keys.is_multiple_of(1_000) => format!("{} K", keys / 1_000),
        keys => keys.to_string(),
    }
}

/// Three significant digits: more would claim a precision that no shared machine has.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_as_people_say_them() {
        assert_eq!(count_of(1_000), "1 K");
        assert_eq!(count_of(250_000), "250 K");
        assert_eq!(count_of(10_000_000), "10 M");
        assert_eq!(count_of(42), "42");
    }

    #[test]
    fn figures_have_three_digits() {
        assert_eq!(figure(1234.5), "1234");
        assert_eq!(figure(56.78), "56.8");
        assert_eq!(figure(1.234), "1.23");
        assert_eq!(figure(0.0312), "0.031");
    }
}

//! What one check found.

use std::time::Duration;

use serde::Serialize;
use tollgate_store::StoreError;

use crate::print;

/// What one check found, what follows from it, and what to do.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Diagnosis {
    /// Which check: the same in every version.
    pub(super) code: &'static str,
    #[serde(rename = "severity")]
    pub(super) grade: Grade,
    /// Where, if it is about one server.
    pub(super) server: Option<String>,
    pub(super) message: String,
    /// Empty if there is nothing to do.
    pub(super) remedy: String,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Grade {
    Ok,
    /// It could not be looked up.
    Unknown,
    /// It works, and worse than it could.
    Warning,
    /// Limits do not hold, or nobody is answered.
    Problem,
}

impl Diagnosis {
    pub(super) fn ok(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Grade::Ok, message, "")
    }

    pub(super) fn unknown(
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(code, Grade::Unknown, message, remedy)
    }

    pub(super) fn warning(
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(code, Grade::Warning, message, remedy)
    }

    pub(super) fn problem(
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(code, Grade::Problem, message, remedy)
    }

    /// The same, about a server.
    pub(super) fn at(mut self, server: &str) -> Self {
        self.server.get_or_insert_with(|| print::harmless(server));
        self
    }

    fn new(
        code: &'static str,
        grade: Grade,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        // A part of it is what a server said.
        let (message, remedy) = (print::harmless(&message.into()), print::harmless(&remedy.into()));
        Self { code, grade, server: None, message, remedy }
    }
}

impl Grade {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What a server said, without what would be done about it if it mattered.
pub(super) fn why(error: &StoreError) -> String {
    match error {
        StoreError::NotAllowed { reason, .. } | StoreError::Refused { reason } => reason.clone(),
        error => error.to_string(),
    }
}

/// A short time, such that small ones can be told apart.
pub(super) fn millis(span: Duration) -> String {
    let millis = span.as_secs_f64() * 1e3;
    match millis {
        _ if millis >= 10_000.0 => format!("{:.0} s", millis / 1e3),
        _ if millis >= 10.0 => format!("{millis:.0} ms"),
        _ => format!("{millis:.2} ms"),
    }
}

/// A number of bytes, as people say it.
pub(super) fn bytes(count: u64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB"];
    let mut size = count as f64;
    let mut unit = 0;
    while size >= 1_000.0 && unit + 1 < units.len() {
        size /= 1_000.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} bytes") } else { format!("{size:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(1_500_000), "1.5 MB");
        assert_eq!(bytes(u64::MAX), "18446744.1 TB");
        assert_eq!(millis(Duration::from_micros(140)), "0.14 ms");
        assert_eq!(millis(Duration::from_millis(240)), "240 ms");
        assert_eq!(millis(Duration::from_secs(90)), "90 s");
    }

    #[test]
    fn what_a_server_says_moves_no_cursor() {
        let found = Diagnosis::problem("reachable", "a\u{1b}[2J", "b\n").at("h\r:1");
        assert!(!format!("{}{}{:?}", found.message, found.remedy, found.server).contains('\u{1b}'));
        assert_eq!(found.server.as_deref(), Some("h\\r:1"));
    }
}

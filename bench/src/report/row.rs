//! One line of the report: our figure, a peer's, and what we promise about the two.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// A finished comparison.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    #[serde(serialize_with = "rounded")]
    pub(crate) ours: f64,
    #[serde(serialize_with = "rounded_option")]
    pub(crate) peer: Option<f64>,
    /// Who the peer is; `None` if the row compares with nothing.
    pub(crate) peer_name: Option<&'static str>,
    /// How many times better than the peer, or, where the reach is an upper bound, how many times
    /// the peer's figure ours is.
    #[serde(serialize_with = "rounded_option")]
    pub(crate) ratio: Option<f64>,
    /// What we promise; `None` for rows that only inform.
    pub(crate) reach: Option<Reach>,
    pub(crate) ok: bool,
    /// Figures of further subjects, in the row's unit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) others: BTreeMap<&'static str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

impl Row {
    /// A row without a peer.
    pub(crate) fn alone(name: impl Into<String>, unit: Unit, ours: f64) -> Self {
        Self {
            name: name.into(),
            unit,
            ours,
            peer: None,
            peer_name: None,
            ratio: None,
            reach: None,
            ok: true,
            others: BTreeMap::new(),
            note: None,
        }
    }

    /// A row against a peer, with the ratio turned so that more is better for us.
    pub(crate) fn against(
        name: impl Into<String>,
        unit: Unit,
        ours: f64,
        (peer_name, peer): (&'static str, f64),
    ) -> Self {
        let ratio = if unit.more_is_better() { ours / peer } else { peer / ours };
        Self {
            peer: Some(peer),
            peer_name: Some(peer_name),
            ratio: Some(ratio),
            ..Self::alone(name, unit, ours)
        }
    }

    /// Adds what is promised, and judges it.
    pub(crate) fn promising(mut self, reach: Reach) -> Self {
        if let (Reach::Within(_), Some(peer)) = (reach, self.peer) {
            self.ratio = Some(self.ours / peer);
        }
        self.ok = match (reach, self.ratio) {
            (Reach::Times(least), Some(ratio)) => ratio >= least,
            // A peer that seems to take no time was not measured.
            (Reach::Within(most), Some(ratio)) => {
                self.peer.is_some_and(|peer| peer > 0.0) && ratio <= most
            }
            (Reach::AtMost(most, _), _) => self.ours <= most,
            (Reach::Times(_) | Reach::Within(_), None) => false,
        };
        self.reach = Some(reach);
        self
    }

    pub(crate) fn beside(mut self, subject: &'static str, value: f64) -> Self {
        self.others.insert(subject, round(value));
        self
    }

    pub(crate) fn noting(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// What a row promises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reach {
    /// At least so many times better than the peer.
    Times(f64),
    /// At most so many times the peer's figure.
    Within(f64),
    /// Our own figure is at most this.
    AtMost(f64, Unit),
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(least) => write!(f, ">= {least:.1}x"),
            Self::Within(most) => write!(f, "<= {most:.1}x"),
            Self::AtMost(most, unit) => write!(f, "<= {most} {unit}"),
        }
    }
}

impl Serialize for Reach {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    NanosPerDecision,
    MillionsPerSecond,
    ThousandsPerSecond,
    Microseconds,
    Milliseconds,
    Megabytes,
    BytesPerKey,
    PercentOfKeys,
    Percent,
    PerSecond,
    Admitted,
}

impl Unit {
    fn more_is_better(self) -> bool {
        matches!(self, Self::MillionsPerSecond | Self::ThousandsPerSecond)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NanosPerDecision => "ns",
            Self::MillionsPerSecond => "M/s",
            Self::ThousandsPerSecond => "K/s",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Megabytes => "MB",
            Self::BytesPerKey => "B/key",
            Self::PercentOfKeys => "% of keys",
            Self::Percent => "%",
            Self::PerSecond => "/s",
            Self::Admitted => "admitted",
        })
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(round(*value))
}

fn rounded_option<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(round).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_time_is_a_larger_ratio() {
        let row = Row::against("row", Unit::NanosPerDecision, 100.0, ("governor", 300.0));
        assert_eq!(row.ratio, Some(3.0));
        assert!(row.clone().promising(Reach::Times(2.5)).ok);
        assert!(!row.promising(Reach::Times(3.5)).ok);
    }

    #[test]
    fn more_throughput_is_a_larger_ratio() {
        let row = Row::against("row", Unit::MillionsPerSecond, 12.0, ("governor", 3.0));
        assert_eq!(row.ratio, Some(4.0));
    }

    #[test]
    fn an_upper_bound_turns_the_ratio_round() {
        let row = Row::against("row", Unit::NanosPerDecision, 30.0, ("floor", 20.0));
        let row = row.promising(Reach::Within(2.0));
        assert_eq!((row.ratio, row.ok), (Some(1.5), true));
    }

    #[test]
    fn a_peer_that_takes_no_time_proves_nothing() {
        for (ours, peer) in [(30.0, -20.0), (-5.0, -20.0), (0.0, 0.0)] {
            let row = Row::against("row", Unit::Microseconds, ours, ("floor", peer));
            assert!(!row.promising(Reach::Within(2.0)).ok, "{ours} and {peer}");
        }
    }

    #[test]
    fn a_bound_of_our_own_needs_no_peer() {
        let row = Row::alone("row", Unit::BytesPerKey, 25.0);
        assert!(!row.promising(Reach::AtMost(24.0, Unit::BytesPerKey)).ok);
    }
}

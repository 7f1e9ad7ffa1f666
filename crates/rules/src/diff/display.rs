//! Changes for people.

use std::fmt;

use super::{Change, Changes, Direction, OverrideChange, OverrideChanges, RuleChange};

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.iter().try_for_each(|change| writeln!(f, "{change}"))?;
        self.rules.iter().try_for_each(|rule| write!(f, "{rule}"))
    }
}

impl fmt::Display for RuleChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { name, words, .. } => writeln!(f, "{name}: added: {words}"),
            Self::Removed { name, words, .. } => writeln!(f, "{name}: removed: {words}"),
            Self::Renamed { from, to } => {
                writeln!(f, "{to}: renamed from {from}; its counters begin anew")
            }
            Self::Changed { name, changes, overrides, direction, begins_anew } => {
                match direction {
                    Some(direction) => write!(f, "{name}: {direction}")?,
                    None => write!(f, "{name}: changed")?,
                }
                writeln!(f, "{}", if *begins_anew { "; its counters begin anew" } else { "" })?;
                changes.iter().try_for_each(|change| writeln!(f, "  {change}"))?;
                overrides.iter().try_for_each(|overrides| write!(f, "{overrides}"))
            }
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.field)?;
        if let Some(tier) = &self.tier {
            write!(f, "{tier}: ")?;
        }
        match (self.from.as_str(), self.to.as_str()) {
            ("", to) => write!(f, "added: {to}")?,
            (from, "") => write!(f, "removed: {from}")?,
            (from, to) => write!(f, "{from} -> {to}")?,
        }
        match &self.ratio {
            Some(ratio) => write!(f, " ({ratio})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stricter => "stricter",
            Self::Looser => "looser",
            Self::Both => "stricter and looser",
        })
    }
}

impl fmt::Display for OverrideChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { added, removed, changed, first, .. } = self;
        writeln!(f, "  overrides: {added} added, {removed} removed, {changed} changed")?;
        first.iter().try_for_each(|change| writeln!(f, "    {change}"))?;
        match added + removed + changed - first.len() {
            0 => Ok(()),
            more => writeln!(f, "    ... and {more} more"),
        }
    }
}

impl fmt::Display for OverrideChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => write!(f, "{}: {from} -> {to}", self.key),
            (None, Some(to)) => write!(f, "{}: added with {to}", self.key),
            (Some(from), None) => write!(f, "{}: removed, was {from}", self.key),
            (None, None) => f.write_str(&self.key),
        }
    }
}

//! Lengths of time, for people.

use std::fmt;
use std::time::Duration;

/// A length of time as people say it: its two largest units, rounded.
///
/// ```
/// use std::time::Duration;
/// use tollgate_rules::Lasting;
/// assert_eq!(Lasting(Duration::from_millis(600)).to_string(), "600 ms");
/// assert_eq!(Lasting(Duration::from_millis(1_010)).to_string(), "1.01 s");
/// assert_eq!(Lasting(Duration::from_secs(15 * 60)).to_string(), "15 min");
/// assert_eq!(Lasting(Duration::from_secs(90_061)).to_string(), "1 d 1 h");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lasting(pub Duration);

impl fmt::Display for Lasting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        match nanos {
            0 => f.write_str("0 s"),
            1..MICROSECOND => write!(f, "{nanos} ns"),
            _ => {
                // Rounded first, so that 59.9996 s is a minute and not 60 s.
                let exact = UNITS.iter().find(|unit| nanos >= unit.nanos).map_or(1, |it| it.exact);
                let nanos = (nanos + exact / 2) / exact * exact;
                // At least a microsecond, and the last unit is that.
                let unit = UNITS.iter().find(|unit| nanos >= unit.nanos).unwrap_or(&UNITS[5]);
                unit.write(f, nanos)
            }
        }
    }
}

struct Unit {
    nanos: u128,
    name: &'static str,
    /// What lengths of this size are rounded to.
    exact: u128,
    /// What is said of the rest: fractions, or a smaller unit.
    rest: Option<(u128, &'static str)>,
}

impl Unit {
    fn write(&self, f: &mut fmt::Formatter<'_>, nanos: u128) -> fmt::Result {
        let (whole, rest) = (nanos / self.nanos, nanos % self.nanos);
        match self.rest {
            Some((unit, name)) if rest >= unit => {
                write!(f, "{whole} {} {} {name}", self.name, rest / unit)
            }
            None if rest > 0 => {
                let thousandths = format!("{:03}", rest * 1_000 / self.nanos);
                write!(f, "{whole}.{} {}", thousandths.trim_end_matches('0'), self.name)
            }
            _ => write!(f, "{whole} {}", self.name),
        }
    }
}

const MICROSECOND: u128 = 1_000;
const SECOND: u128 = 1_000_000_000;
const MINUTE: u128 = 60 * SECOND;
const HOUR: u128 = 60 * MINUTE;
const DAY: u128 = 24 * HOUR;

const UNITS: [Unit; 6] = [
    Unit { nanos: DAY, name: "d", exact: HOUR, rest: Some((HOUR, "h")) },
    Unit { nanos: HOUR, name: "h", exact: MINUTE, rest: Some((MINUTE, "min")) },
    Unit { nanos: MINUTE, name: "min", exact: SECOND, rest: Some((SECOND, "s")) },
    Unit { nanos: SECOND, name: "s", exact: SECOND / 1_000, rest: None },
    Unit { nanos: SECOND / 1_000, name: "ms", exact: MICROSECOND, rest: None },
    Unit { nanos: MICROSECOND, name: "\u{b5}s", exact: 1, rest: None },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_two_units_at_most() {
        let second = 1_000_000_000;
        for (nanos, text) in [
            (0, "0 s"),
            (999, "999 ns"),
            (1_500, "1.5 \u{b5}s"),
            (600_000_000, "600 ms"),
            (999_999_900, "1 s"),
            (1_010_000_000, "1.01 s"),
            (59_999_600_000, "1 min"),
            (90 * second, "1 min 30 s"),
            (3_599 * second + 600_000_000, "1 h"),
            (86_400 * second - 1, "1 d"),
            (45 * 86_400 * second, "45 d"),
            (u64::MAX, "213504 d"),
        ] {
            assert_eq!(Lasting(Duration::from_nanos(nanos)).to_string(), text);
        }
        assert!(!Lasting(Duration::MAX).to_string().is_empty());
    }
}

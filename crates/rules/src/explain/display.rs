//! Explanations for people.

use std::fmt;

use super::Verdict;
use super::{AppliedLimit, Applies, Explanation, KeyValue, Reason, RuleExplanation, StandsFor};
use crate::words::joined;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.client {
            Some(client) => writeln!(f, "client: {client}: {}", self.client_reason)?,
            None => writeln!(f, "client: unknown: {}", self.client_reason)?,
        }
        if let Some(tier) = &self.tier {
            writeln!(f, "tier: {tier}")?;
        }
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

impl fmt::Display for RuleExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Applies(applies) => write!(f, "{}: applies: {applies}", self.name),
            Verdict::Not(reason) => write!(f, "{}: does not apply: {reason}", self.name),
        }
    }
}

impl fmt::Display for Applies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.key {
            [] => f.write_str("one counter for everybody")?,
            parts => {
                let parts: Vec<_> = parts.iter().map(KeyValue::to_string).collect();
                f.write_str(&parts.join(", "))?;
            }
        }
        write!(f, "; {}", self.limit)?;
        if let Some(tier) = &self.tier {
            write!(f, " for the tier `{tier}`")?;
        }
        if let Some(key) = &self.overridden {
            write!(f, " by the override for `{key}`")?;
        }
        match &self.cost {
            Ok(cost) => write!(f, "; cost {cost}")?,
            Err(error) if error.refuses() => write!(f, "; denied for ever: {error}")?,
            Err(error) => write!(f, "; cost 1, as {error}")?,
        }
        if self.when_failed {
            f.write_str("; nobody can tell whether its `when` holds, so it applies")?;
        }
        if self.shadow {
            f.write_str("; only reports")?;
        }
        Ok(())
    }
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, value, instead } = self;
        match instead {
            None => write!(f, "{part} = `{value}`"),
            Some(StandsFor::Other(other)) => {
                write!(f, "{part} is missing, and {other} = `{value}` stands for it")
            }
            Some(StandsFor::Together) => {
                let name = value.trim_start_matches('(').trim_end_matches(')');
                write!(f, "{part} is missing, and it counts with all others as `{name}`")
            }
        }
    }
}

impl fmt::Display for AppliedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(quota) => write!(f, "{quota}"),
            Self::Concurrent(most) => write!(f, "{most} at once"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("its mode is off"),
            Self::Method { method, wanted } => {
                write!(f, "the method `{method}` is not {}", any(wanted))
            }
            Self::Path { path, wanted } => {
                write!(f, "the path `{path}` does not fit {}", any(wanted))
            }
            Self::Host { host, wanted } if host.is_empty() => {
                write!(f, "the host is not known, and the rule is about {}", any(wanted))
            }
            Self::Host { host, wanted } => write!(f, "the host `{host}` is not {}", any(wanted)),
            Self::Tier { tier, wanted } => {
                write!(f, "the tier is `{tier}`, and the rule is about {}", any(wanted))
            }
            Self::Network { address: Some(address) } => {
                write!(f, "the address {address} is in none of its networks")
            }
            Self::Network { address: None } => f.write_str("the client's address is not known"),
            Self::Attribute { attribute, value: Some(value), wanted } => {
                write!(f, "`{attribute}` is `{value}`, and the rule is about {}", any(wanted))
            }
            Self::Attribute { attribute, value: None, wanted } => {
                let wanted = any(wanted);
                write!(f, "the request has no `{attribute}`, and the rule is about {wanted}")
            }
            Self::When { condition } => write!(f, "`{condition}` is false"),
            Self::KeyMissing { part, instead: None } => {
                write!(f, "the request has no `{part}`, and the rule then skips it")
            }
            Self::KeyMissing { part, instead: Some(other) } => {
                write!(f, "the request has no `{part}`, and no `{other}` that could stand for it")
            }
            Self::Alternative { first, more_specific: true } => {
                write!(f, "another rule of its group is more specific: `{first}`")
            }
            Self::Alternative { first, more_specific: false } => {
                write!(f, "another rule of its group stands before it: `{first}`")
            }
        }
    }
}

/// A few of the values, with `or` before the last.
fn any(wanted: &[String]) -> String {
    let shown = wanted.len().min(MAX_SHOWN);
    let mut words: Vec<_> = wanted[..shown].iter().map(|word| format!("`{word}`")).collect();
    if wanted.len() > shown {
        words.push(format!("{} others", wanted.len() - shown));
    }
    joined(&words, "or")
}

/// More values than this are not listed.
const MAX_SHOWN: usize = 8;

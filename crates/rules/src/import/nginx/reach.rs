//! Where a rule applies, in the words of rules.

use std::collections::BTreeSet;
use std::fmt;

use super::super::Notes;
use super::super::rule_file::{Rule, cel_text};
use super::tokens::Directive;
use crate::path::PathPattern;

/// Where a rule applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) hosts: BTreeSet<String>,
    paths: Vec<String>,
    pub(super) when: Vec<String>,
    /// Conditions with regular expressions, which rules have not.
    lost: Vec<String>,
    /// Names of hosts that are regular expressions.
    lost_hosts: Vec<String>,
    /// Places beside others that are regular expressions.
    lost_places: Vec<String>,
    /// Beginnings of paths that end within a segment.
    cut: Vec<String>,
}

/// What a location takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Exact(String),
    Prefix(String),
    /// As it is written: `~* \.png$`.
    Regex(String),
}

impl Place {
    /// None for a name that no request asks for.
    pub(super) fn of(directive: &Directive) -> Option<Self> {
        match &directive.arguments[..] {
            [mark, path] if mark == "=" => Some(Self::Exact(path.clone())),
            [mark, path] if mark == "^~" => Some(Self::Prefix(path.clone())),
            [mark, regex] if mark == "~" || mark == "~*" => {
                Some(Self::Regex(format!("{mark} {regex}")))
            }
            [path] if path.starts_with('@') => None,
            [path] => Some(match path.strip_prefix('=') {
                Some(exact) => Self::Exact(exact.to_owned()),
                None => Self::Prefix(path.clone()),
            }),
            _ => None,
        }
    }

    pub(super) fn contains(&self, inner: &Self) -> bool {
        match (self, inner) {
            (Self::Prefix(outer), Self::Prefix(inner) | Self::Exact(inner)) => {
                inner.starts_with(outer.as_str())
            }
            (outer, inner) => outer == inner,
        }
    }

    /// In CEL; nothing of a regular expression.
    fn condition(&self) -> Option<String> {
        match self {
            Self::Exact(path) => Some(format!("request.path == {}", cel_text(path))),
            Self::Prefix(path) => Some(format!("request.path.startsWith({})", cel_text(path))),
            Self::Regex(_) => None,
        }
    }

    fn negation(&self) -> Option<String> {
        match self {
            Self::Exact(path) => Some(format!("request.path != {}", cel_text(path))),
            other => other.condition().map(|condition| format!("!{condition}")),
        }
    }

    /// The place as a pattern of paths, if there is one.
    fn pattern(&self) -> Option<String> {
        let pattern = match self {
            Self::Exact(path) => path.clone(),
            Self::Prefix(path) => format!("{}/**", path.strip_suffix('/').unwrap_or(path)),
            Self::Regex(_) => return None,
        };
        let plain = !pattern.trim_end_matches("/**").contains(['*', '{', '}']);
        (plain && pattern.parse::<PathPattern>().is_ok()).then_some(pattern)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => write!(f, "= {path}"),
            Self::Prefix(text) | Self::Regex(text) => f.write_str(text),
        }
    }
}

impl Reach {
    /// That of all paths at these names of hosts.
    pub(super) fn of_hosts(names: &[String]) -> Self {
        let mut reach = Self::default();
        for name in names {
            let name = name.to_ascii_lowercase();
            match name.strip_prefix('.') {
                _ if name.starts_with('~') => reach.lost_hosts.push(name),
                Some(whole) => {
                    reach.hosts.extend([whole.to_owned(), format!("*{name}")]);
                }
                None => {
                    reach.hosts.insert(name);
                }
            }
        }
        reach
    }

    /// Wherever it is, it is at all hosts.
    pub(super) fn forget_hosts(&mut self) {
        self.hosts.clear();
        self.lost_hosts.clear();
    }

    /// Whether both apply at the same places of their servers, which have names.
    pub(super) fn joins(&self, other: &Self) -> bool {
        let places = |it: &Self| (it.paths.clone(), it.when.clone(), it.lost.clone());
        let lost = |it: &Self| (it.lost_places.clone(), it.lost_hosts.clone());
        let named = !self.hosts.is_empty() && !other.hosts.is_empty();
        let same = places(self) == places(other) && lost(self) == lost(other);
        same && (named || self.hosts == other.hosts)
    }

    pub(super) fn add_places<'p>(&mut self, places: impl Iterator<Item = &'p Place>) {
        let (regexes, places): (Vec<_>, Vec<_>) =
            places.partition(|place| matches!(place, Place::Regex(_)));
        let regexes = regexes.into_iter().map(|regex| format!("location {regex}"));
        match places.is_empty() {
            true => self.lost.push(regexes.collect::<Vec<_>>().join(" or ")),
            false => self.lost_places.extend(regexes),
        }
        let patterns: Option<Vec<_>> = places.iter().map(|place| place.pattern()).collect();
        match patterns {
            Some(patterns) => {
                let cut = |place: &&Place| match place {
                    Place::Prefix(path) => (!path.ends_with('/')).then(|| path.clone()),
                    _ => None,
                };
                self.cut = places.iter().filter_map(cut).collect();
                self.paths = patterns;
            }
            None => {
                let conditions: Vec<_> =
                    places.iter().filter_map(|place| place.condition()).collect();
                self.when.push(conditions.join(" || "));
            }
        }
    }

    /// It does not apply at a place, but again at some within.
    pub(super) fn add_hole<'p>(&mut self, hole: &Place, back: impl Iterator<Item = &'p Place>) {
        let Some(negation) = hole.negation() else {
            self.lost.push(format!("not location {hole}"));
            return;
        };
        let back = back.filter_map(Place::condition);
        let parts: Vec<_> = [negation].into_iter().chain(back).collect();
        self.when.push(parts.join(" || "));
    }

    pub(super) fn write(self, at: usize, notes: &mut Notes<'_>, rule: &mut Rule) {
        for condition in self.lost {
            rule.lose(&condition, notes, at);
        }
        match self.hosts.is_empty() {
            true if !self.lost_hosts.is_empty() => {
                rule.lose(&format!("server_name {}", self.lost_hosts.join(" ")), notes, at);
            }
            _ => note_parts(self.lost_hosts, "server_name ", at, notes, rule),
        }
        note_parts(self.lost_places, "", at, notes, rule);
        for path in self.cut {
            let message = format!(
                "location `{path}` also took paths such as `{path}x`, and `{path}/**` does not"
            );
            notes.add(at, message, "name those paths too if there are any");
        }
        if !self.hosts.is_empty() {
            rule.matches.push(("host".to_owned(), self.hosts.into_iter().collect()));
        }
        if !self.paths.is_empty() {
            rule.matches.push(("path".to_owned(), self.paths));
        }
        rule.when.extend(self.when);
    }
}

/// A rule that is about less than it was denies nobody whom it should not: it stays in force.
fn note_parts(lost: Vec<String>, what: &str, at: usize, notes: &mut Notes<'_>, rule: &mut Rule) {
    for part in lost {
        let message = format!("requests of `{what}{part}` are not limited: rules have no patterns");
        notes.add(at, message, "name their hosts or paths in `match`");
        rule.comments.push(format!("Was also for: {what}{part}"));
    }
}

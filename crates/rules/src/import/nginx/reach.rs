//! Where a rule applies, in the words of rules.

use std::collections::BTreeSet;

use super::super::Notes;
use super::super::rule_file::{Rule, cel_text};
use super::tokens::Directive;
use crate::path::PathPattern;

/// Where a rule applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) hosts: BTreeSet<String>,
    /// Conditions on the host that are more than its name.
    pub(super) host_patterns: Vec<String>,
    paths: Vec<String>,
    pub(super) when: Vec<String>,
    pub(super) regex: bool,
    /// Beginnings of paths that end within a segment.
    cut: Vec<String>,
}

/// What a location takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Exact(String),
    Prefix(String),
    Regex(String),
}

impl Place {
    /// None for a name that no request asks for.
    pub(super) fn of(directive: &Directive) -> Option<Self> {
        match &directive.arguments[..] {
            [mark, path] if mark == "=" => Some(Self::Exact(path.clone())),
            [mark, path] if mark == "^~" => Some(Self::Prefix(path.clone())),
            [mark, regex] if mark == "~" => Some(Self::Regex(regex.clone())),
            [mark, regex] if mark == "~*" => Some(Self::Regex(format!("(?i){regex}"))),
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

    pub(super) fn condition(&self) -> String {
        match self {
            Self::Exact(path) => format!("request.path == {}", cel_text(path)),
            Self::Prefix(path) => format!("request.path.startsWith({})", cel_text(path)),
            Self::Regex(regex) => format!("request.path.matches({})", cel_text(regex)),
        }
    }

    pub(super) fn negation(&self) -> String {
        match self {
            Self::Exact(path) => format!("request.path != {}", cel_text(path)),
            other => format!("!{}", other.condition()),
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

impl Reach {
    /// That of all paths at these names of hosts.
    pub(super) fn of_hosts(names: &[String]) -> Self {
        let plain = |name: &&String| !name.starts_with(['~', '.', '*']) && !name.ends_with('*');
        let mut reach = Self::default();
        if names.iter().all(|name| plain(&name)) {
            reach.hosts.extend(names.iter().map(|name| name.to_ascii_lowercase()));
            return reach;
        }
        let pattern = |name: &String| {
            if let Some(regex) = name.strip_prefix('~') {
                return format!("request.host.matches({})", cel_text(regex));
            }
            if let Some(start) = name.strip_suffix('*') {
                return format!("request.host.startsWith({})", cel_text(start));
            }
            match (name.strip_prefix('*'), name.strip_prefix('.')) {
                (Some(end), _) => format!("request.host.endsWith({})", cel_text(end)),
                (None, Some(whole)) => {
                    format!(
                        "request.host == {} || request.host.endsWith({})",
                        cel_text(whole),
                        cel_text(name)
                    )
                }
                (None, None) => format!("request.host == {}", cel_text(name)),
            }
        };
        reach.host_patterns.push(names.iter().map(pattern).collect::<Vec<_>>().join(" || "));
        reach.regex = names.iter().any(|name| name.starts_with('~'));
        reach
    }

    /// Whether both apply at the same places of their servers, which have names.
    pub(super) fn joins(&self, other: &Self) -> bool {
        let same = (&self.paths, &self.when) == (&other.paths, &other.when);
        let named = !self.hosts.is_empty() && !other.hosts.is_empty();
        let alike = (&self.hosts, &self.host_patterns) == (&other.hosts, &other.host_patterns);
        same && (named || alike)
    }

    pub(super) fn add_places<'p>(&mut self, places: impl Iterator<Item = &'p Place> + Clone) {
        let patterns: Option<Vec<_>> = places.clone().map(Place::pattern).collect();
        match patterns {
            Some(patterns) => {
                let cut = |place: &Place| match place {
                    Place::Prefix(path) => (!path.ends_with('/')).then(|| path.clone()),
                    _ => None,
                };
                self.cut = places.clone().filter_map(cut).collect();
                self.paths = patterns;
            }
            None => self
                .when
                .push(places.clone().map(Place::condition).collect::<Vec<_>>().join(" || ")),
        }
        let mut places = places;
        self.regex |= places.any(|place| matches!(place, Place::Regex(_)));
    }

    pub(super) fn write(self, at: usize, notes: &mut Notes<'_>, rule: &mut Rule) {
        if self.regex {
            let message = "a regular expression became part of `when`; nginx may have preferred another location to it";
            notes.add(
                at,
                message,
                "check that it means the same: CEL has no look-around and no back-references",
            );
        }
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
        rule.when.extend(self.host_patterns);
        rule.when.extend(self.when);
    }
}

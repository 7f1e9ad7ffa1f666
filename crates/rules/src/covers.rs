//! Whether all requests that one rule is about are requests that another is about.
//!
//! What is said here is sure; of what cannot be told in simple ways nothing is said.

use crate::matching::{Matching, Pattern};
use crate::path::{PathPattern, Segment};

impl Matching {
    /// Whether this is surely about every request that `other` is about.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let methods = covers_all(&self.methods, &other.methods, |a, b| a == b);
        let tiers = covers_all(&self.tiers, &other.tiers, |a, b| a == b);
        let networks = self.networks.is_empty()
            || (!other.networks.is_empty() && self.networks.covers(&other.networks));
        methods
            && tiers
            && networks
            // Case does not matter to hosts: what is written in another is just not sure.
            && covers_all(&self.hosts, &other.hosts, Pattern::covers)
            && covers_all(&self.paths, &other.paths, PathPattern::covers)
            && (self.when.is_none() || self.when == other.when)
            && self.others.iter().all(|(attribute, patterns)| {
                let same = other.others.iter().find(|(known, _)| known == attribute);
                same.is_some_and(|(_, theirs)| covers_all(patterns, theirs, Pattern::covers))
            })
    }
}

/// Whether each of `theirs` is covered by one of `ours`. None at all means anything.
impl Matching {
    /// How much there is to compare in [`covers`](Self::covers), at most.
    pub(crate) fn effort(&self, other: &Self) -> usize {
        let values = |matching: &Self| {
            let others = matching.others.iter().map(|(_, patterns)| 1 + patterns.len());
            [
                matching.methods.len(),
                matching.tiers.len(),
                matching.hosts.len(),
                matching.paths.len(),
                others.sum(),
            ]
        };
        let products = values(self).into_iter().zip(values(other)).map(|(a, b)| a * b);
        products.sum::<usize>() + other.networks.len()
    }
}

fn covers_all<T>(ours: &[T], theirs: &[T], covers: impl Fn(&T, &T) -> bool) -> bool {
    let covered = |their: &T| ours.iter().any(|our| covers(our, their));
    ours.is_empty() || (!theirs.is_empty() && theirs.iter().all(covered))
}

impl Pattern {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Exactly(text)) => self.fits(text),
            (Self::Prefix(ours), Self::Prefix(theirs)) => theirs.starts_with(&**ours),
            (Self::Suffix(ours), Self::Suffix(theirs)) => theirs.ends_with(&**ours),
            // A star alone is anything that is there.
            (Self::Prefix(ours), Self::Suffix(_)) => ours.is_empty(),
            (Self::Suffix(_) | Self::Exactly(_), _) => false,
        }
    }
}

impl PathPattern {
    fn covers(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.segments(), other.segments());
        let fits = |(our, their): (&Segment, &Segment)| match (our, their) {
            (Segment::Text(our), Segment::Text(their)) => our == their,
            (Segment::Text(_), _) => false,
            (Segment::Any | Segment::Parameter(_), _) => true,
        };
        let length = match self.is_open_ended() {
            true => theirs.len() >= ours.len(),
            false => !other.is_open_ended() && theirs.len() == ours.len(),
        };
        length && ours.iter().zip(theirs).all(fits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::explain::tests::{Made, file, head, made};
    use crate::{Facts, RuleSet};

    proptest! {
        #[test]
        fn who_covers_another_applies_where_it_does(file in file(), made in made()) {
            let set = RuleSet::parse(&format!("{}{file}", head())).unwrap();
            made.with(|request| {
                let facts = Facts::new(&set, request, None);
                let is_about = |at: usize| set.rules()[at].matching.mismatch(&facts).is_none();
                for (a, one) in set.rules().iter().enumerate() {
                    for (b, other) in set.rules().iter().enumerate() {
                        if one.matching.covers(&other.matching) && is_about(b) {
                            prop_assert!(is_about(a), "{a} covers {b}: {file}");
                        }
                    }
                }
                Ok(())
            })?;
        }

        #[test]
        fn what_is_called_unreachable_never_applies(file in file(), made in made()) {
            let set = RuleSet::parse(&format!("{}{file}", head())).unwrap();
            made.with(|request| {
                for number in set.applying(&Facts::new(&set, request, None)) {
                    let name = format!("`{}` never applies", set.rules()[number].name());
                    let found = set.warnings().diagnostics().iter();
                    let mut said = found.filter(|it| it.message().starts_with(&name));
                    prop_assert!(said.next().is_none(), "{name}: {file}");
                }
                Ok(())
            })?;
        }
    }

    #[test]
    fn requests_are_made_of_parts() {
        let made = Made { target: "/a", ..Made::default() };
        made.with(|request| assert_eq!(request.path(), "/a"));
    }

    fn covers(ours: &str, theirs: &str) -> bool {
        let text = format!(
            "tiers: {{ from: claims.plan, known: [free, pro], else: free }}
rules:
  - {{ name: a, match: {{ {ours} }}, key: [], limit: 5/s }}
  - {{ name: b, match: {{ {theirs} }}, key: [], limit: 6/s }}"
        );
        let set = RuleSet::parse(&text).unwrap();
        set.rules()[0].matching.covers(&set.rules()[1].matching)
    }

    #[test]
    fn what_is_sure_is_said() {
        for (ours, theirs) in [
            ("", "path: /a"),
            ("path: /a/**", "path: /a"),
            ("path: /a/**", "path: /a/b/**"),
            ("path: '/a/{id}'", "path: /a/b"),
            ("path: [/a, /b]", "path: /b"),
            ("method: [GET, PUT]", "method: PUT, path: /x"),
            ("tier: [free, pro]", "tier: pro"),
            ("ip: 10.0.0.0/8", "ip: 10.1.0.0/16"),
            ("host: '*.a.com'", "host: x.a.com"),
            ("user: 'al*'", "user: [alice, 'ali*']"),
            ("user: '*'", "user: '*x'"),
            ("when: 'true'", "when: 'true', path: /a"),
        ] {
            assert!(covers(ours, theirs), "`{ours}` covers `{theirs}`");
        }
    }

    #[test]
    fn what_is_not_sure_is_not_said() {
        for (ours, theirs) in [
            ("path: /a", ""),
            ("path: /a", "path: /a/**"),
            ("path: /a/b/**", "path: /a/**"),
            ("path: /a/b", "path: '/a/{id}'"),
            ("method: GET", "method: [GET, PUT]"),
            ("ip: 10.1.0.0/16", "ip: 10.0.0.0/8"),
            ("ip: 10.0.0.0/8", "ip: ['10.0.0.0/8', '2001:db8::/32']"),
            ("user: alice", "account: alice"),
            ("when: 'true'", "path: /a"),
        ] {
            assert!(!covers(ours, theirs), "`{ours}` does not cover `{theirs}`");
        }
    }
}

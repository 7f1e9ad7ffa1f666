//! Why each rule applies to a request, or does not.

mod client;
mod display;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use tollgate_core::Quota;

pub use self::client::ClientReason;
use crate::attribute::Attribute;
use crate::budget::Budget;
use crate::cost::CostError;
use crate::facts::{Facts, Value};
use crate::key::Missing;
use crate::matching::{Mismatch, Pattern};
use crate::path::PathPattern;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::settings::Mode;

/// What all rules say about one request.
///
/// ```
/// use tollgate_rules::{Facts, Request, RuleSet};
/// let set = RuleSet::parse(
///     "rules:
///   - { name: writes, match: { method: POST }, key: [user], limit: 5/min }
///   - { name: per-user, match: { path: /v1/** }, key: [user], limit: 100/min }",
/// )?;
/// let request = Request::new("GET", "/v1/items").attributes(&[("user", "alice")]);
/// let explanation = set.explain(&Facts::new(&set, &request, None));
/// assert_eq!(
///     explanation.to_string(),
///     "client: unknown: the request has no peer\n\
///      writes: does not apply: the method `GET` is not `POST`\n\
///      per-user: applies: user = `alice`; 100/min; cost 1\n"
/// );
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The client's address, as far as it is known.
    pub client: Option<IpAddr>,
    /// Why it is this address.
    pub client_reason: ClientReason,
    /// The tier of the request, if there are tiers.
    pub tier: Option<String>,
    /// All rules, in the order of the file.
    pub rules: Vec<RuleExplanation>,
}

/// What one rule says.
///
/// ```
/// use tollgate_rules::{Facts, Reason, Request, RuleSet, Verdict};
/// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s, mode: off }]")?;
/// let request = Request::new("GET", "/");
/// let rule = &set.explain(&Facts::new(&set, &request, None)).rules[0];
/// assert_eq!((rule.name.as_str(), &rule.verdict), ("a", &Verdict::Not(Reason::Off)));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleExplanation {
    /// The rule's name.
    pub name: String,
    /// Whether it applies.
    pub verdict: Verdict,
}

/// Whether a rule applies to a request.
///
/// ```
/// # use tollgate_rules::{Facts, Request, RuleSet, Verdict};
/// let set = RuleSet::parse("rules: [{ name: a, key: [], limit: 5/s }]")?;
/// let request = Request::new("GET", "/");
/// let rule = &set.explain(&Facts::new(&set, &request, None)).rules[0];
/// assert!(matches!(rule.verdict, Verdict::Applies(_)));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Applies(Applies),
    /// It does not, for this reason and perhaps others.
    Not(Reason),
}

/// How a rule applies.
///
/// ```
/// # use tollgate_rules::{Facts, Request, RuleSet, Verdict};
/// let set = RuleSet::parse("rules: [{ name: a, key: [user], limit: 5/s, cost: 2 }]")?;
/// let request = Request::new("GET", "/").attributes(&[("user", "alice")]);
/// let rule = &set.explain(&Facts::new(&set, &request, None)).rules[0];
/// let Verdict::Applies(applies) = &rule.verdict else { panic!("it applies") };
/// assert_eq!((applies.key[0].value.as_str(), applies.cost.clone()), ("alice", Ok(2)));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applies {
    /// What the request is counted by.
    pub key: Vec<KeyValue>,
    /// How much there is for it.
    pub limit: AppliedLimit,
    /// The tier whose limit that is, if it differs by tier.
    pub tier: Option<String>,
    /// The override whose limit that is, as it is written, if the key has one.
    pub overridden: Option<String>,
    /// What it costs, or why that is not known.
    pub cost: Result<u64, CostError>,
    /// Whether the rule only reports.
    pub shadow: bool,
    /// Whether it applies because nobody can tell if its `when` holds.
    pub when_failed: bool,
}

/// A part of a key, and its value in the request.
///
/// ```
/// # use tollgate_rules::{Attribute, Facts, Request, RuleSet, StandsFor, Verdict};
/// let set = RuleSet::parse("rules: [{ name: a, key: [user], key_missing: ip, limit: 5/s }]")?;
/// let request = Request::new("GET", "/").peer("192.0.2.7".parse().expect("an address"));
/// let rule = &set.explain(&Facts::new(&set, &request, None)).rules[0];
/// let Verdict::Applies(applies) = &rule.verdict else { panic!("it applies") };
/// assert_eq!(applies.key[0].instead, Some(StandsFor::Other(Attribute::Ip)));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// Which part.
    pub part: Attribute,
    /// What it is, or what stands for it.
    pub value: String,
    /// What stands for it, if the request lacks it.
    pub instead: Option<StandsFor>,
}

/// What stands for a part of the key that a request lacks.
///
/// ```
/// # use tollgate_rules::{Facts, Request, RuleSet, StandsFor, Verdict};
/// let set = RuleSet::parse(
///     "rules: [{ name: a, key: [user], key_missing: { together: nobody }, limit: 5/s }]",
/// )?;
/// let request = Request::new("GET", "/");
/// let rule = &set.explain(&Facts::new(&set, &request, None)).rules[0];
/// let Verdict::Applies(applies) = &rule.verdict else { panic!("it applies") };
/// assert_eq!(applies.key[0].instead, Some(StandsFor::Together));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// Another attribute of the request.
    Other(Attribute),
    /// The name under which all such requests are counted together.
    Together,
}

/// How much a rule has for a request.
///
/// ```
/// # use tollgate_rules::{AppliedLimit, Facts, Request, RuleSet, Verdict};
/// let set = RuleSet::parse("rules: [{ name: a, key: [], concurrent: 5 }]")?;
/// let request = Request::new("GET", "/");
/// let rule = &set.explain(&Facts::new(&set, &request, None)).rules[0];
/// let Verdict::Applies(applies) = &rule.verdict else { panic!("it applies") };
/// assert_eq!(applies.limit, AppliedLimit::Concurrent(5));
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedLimit {
    /// So much per time.
    Rate(Quota),
    /// So many at once.
    Concurrent(u32),
}

/// Why a rule does not apply: the first thing that is in its way.
///
/// ```
/// # use tollgate_rules::{Facts, Request, RuleSet, Verdict};
/// let set = RuleSet::parse("rules: [{ name: a, match: { path: /v1/** }, key: [], limit: 5/s }]")?;
/// let request = Request::new("GET", "/v2/items");
/// let rule = &set.explain(&Facts::new(&set, &request, None)).rules[0];
/// let Verdict::Not(reason) = &rule.verdict else { panic!("it does not apply") };
/// assert_eq!(reason.to_string(), "the path `/v2/items` does not fit `/v1/**`");
/// # Ok::<(), tollgate_rules::LoadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Its mode is off.
    Off,
    /// It is about other methods.
    Method {
        /// Of the request.
        method: String,
        /// Of the rule.
        wanted: Vec<String>,
    },
    /// It is about other paths.
    Path {
        /// Of the request.
        path: String,
        /// Of the rule.
        wanted: Vec<String>,
    },
    /// It is about other hosts.
    Host {
        /// Of the request, empty if that is not known.
        host: String,
        /// Of the rule.
        wanted: Vec<String>,
    },
    /// It is about other tiers.
    Tier {
        /// Of the request.
        tier: String,
        /// Of the rule.
        wanted: Vec<String>,
    },
    /// It is about other networks.
    Network {
        /// The client's address, if it is known.
        address: Option<IpAddr>,
    },
    /// It is about other values of an attribute.
    Attribute {
        /// Which.
        attribute: Attribute,
        /// Its value in the request, if it has one.
        value: Option<String>,
        /// Of the rule.
        wanted: Vec<String>,
    },
    /// Its condition does not hold.
    When {
        /// The condition.
        condition: String,
    },
    /// The request lacks what it counts by.
    KeyMissing {
        /// The part of the key.
        part: Attribute,
        /// What would have stood for it, and is lacking as well.
        instead: Option<Attribute>,
    },
    /// Another rule of its group comes first.
    Alternative {
        /// The name of that rule.
        first: String,
        /// Whether that is more specific, or else just written before.
        more_specific: bool,
    },
}

impl RuleSet {
    /// Why each rule applies to a request or does not: what [`applying`](Self::applying) finds, in
    /// words. Looks at every rule and override, so it is for people, not for each request.
    ///
    /// ```
    /// # use tollgate_rules::{Facts, Request, RuleSet};
    /// let set = RuleSet::parse("rules: [{ name: a, key: [user], limit: 5/s }]")?;
    /// let request = Request::new("GET", "/");
    /// let text = set.explain(&Facts::new(&set, &request, None)).to_string();
    /// assert!(text.contains("the request has no `user`, and the rule then skips it"), "{text}");
    /// # Ok::<(), tollgate_rules::LoadError>(())
    /// ```
    pub fn explain(&self, facts: &Facts<'_>) -> Explanation {
        let reasons: Vec<_> = self.rules.iter().map(|rule| self.own_reason(rule, facts)).collect();
        let firsts = self.firsts(&reasons);
        let verdict = |(rule, (reason, when_failed)): (&Rule, (Option<Reason>, bool))| {
            let reason = reason.or_else(|| self.outranked(rule, &firsts));
            let verdict = match reason {
                Some(reason) => Verdict::Not(reason),
                None => Verdict::Applies(self.applies(rule, facts, when_failed)),
            };
            RuleExplanation { name: rule.name().to_owned(), verdict }
        };
        let (client, client_reason) = ClientReason::of(&self.client_ip, facts);
        Explanation {
            client,
            client_reason,
            tier: facts.tier_name().map(str::to_owned),
            rules: self.rules.iter().zip(reasons).map(verdict).collect(),
        }
    }

    /// What of the rule itself is in the way, and whether its condition could not be evaluated.
    fn own_reason(&self, rule: &Rule, facts: &Facts<'_>) -> (Option<Reason>, bool) {
        if rule.mode() == Mode::Off {
            return (Some(Reason::Off), false);
        }
        let before = facts.failures();
        let mismatch = rule.matching.mismatch(facts).map(|it| self.mismatch(it, rule, facts));
        let when_failed = facts.failures() > before;
        let lacking = || {
            let part = rule.key.lacking(facts, &rule.matching)?.clone();
            let instead = match &rule.key.missing {
                Missing::Other(attribute) => Some(attribute.clone()),
                Missing::Skip | Missing::Together(_) => None,
            };
            Some(Reason::KeyMissing { part, instead })
        };
        (mismatch.or_else(lacking), when_failed)
    }

    fn mismatch(&self, mismatch: Mismatch<'_>, rule: &Rule, facts: &Facts<'_>) -> Reason {
        let request = facts.request();
        match mismatch {
            Mismatch::Method(methods) => Reason::Method {
                method: request.method().to_owned(),
                wanted: methods.iter().map(|method| method.to_string()).collect(),
            },
            Mismatch::Host(hosts) => Reason::Host {
                host: request.host_name().to_owned(),
                wanted: hosts.iter().map(Pattern::to_string).collect(),
            },
            Mismatch::Path(paths) => Reason::Path {
                path: request.path().to_owned(),
                wanted: paths.iter().map(PathPattern::to_string).collect(),
            },
            Mismatch::Tier => {
                let name = |tier: &usize| self.tiers.as_ref().map_or("", |it| it.name(*tier));
                Reason::Tier {
                    tier: name(&facts.tier()).to_owned(),
                    wanted: rule.matching.tiers.iter().map(|it| name(it).to_owned()).collect(),
                }
            }
            Mismatch::Network => Reason::Network { address: facts.client_ip() },
            Mismatch::Other(attribute, patterns) => Reason::Attribute {
                attribute: attribute.clone(),
                value: facts.value(&rule.matching, attribute).map(|value| value.to_string()),
                wanted: patterns.iter().map(Pattern::to_string).collect(),
            },
            Mismatch::When(condition) => Reason::When { condition: condition.text().to_owned() },
        }
    }

    /// For each group of alternatives, the rule that comes first of those that are known to apply.
    fn firsts(&self, reasons: &[(Option<Reason>, bool)]) -> BTreeMap<u32, (u32, &Rule)> {
        let mut firsts = BTreeMap::new();
        for (rule, (reason, when_failed)) in self.rules.iter().zip(reasons) {
            let Some(place) = rule.alternative else { continue };
            if reason.is_some() || *when_failed {
                continue;
            }
            let first = firsts.entry(place.group).or_insert((place.rank, rule));
            if place.rank < first.0 {
                *first = (place.rank, rule);
            }
        }
        firsts
    }

    fn outranked(&self, rule: &Rule, firsts: &BTreeMap<u32, (u32, &Rule)>) -> Option<Reason> {
        let place = rule.alternative?;
        let (_, first) = firsts.get(&place.group).filter(|(rank, _)| *rank < place.rank)?;
        let more_specific = first.matching.specificity() > rule.matching.specificity();
        Some(Reason::Alternative { first: first.name().to_owned(), more_specific })
    }

    fn applies(&self, rule: &Rule, facts: &Facts<'_>, when_failed: bool) -> Applies {
        let key = rule.key.parts.iter().filter_map(|part| {
            let own = rule.key_value(part, facts);
            let value = own.or_else(|| rule.value_instead(facts))?.to_string();
            let instead = match (&rule.key.missing, own) {
                (Missing::Other(other), None) => Some(StandsFor::Other(other.clone())),
                (Missing::Together(_), None) => Some(StandsFor::Together),
                _ => None,
            };
            Some(KeyValue { part: part.clone(), value, instead })
        });
        let overridden = self.overridden(rule, facts);
        let (limit, tiered) = match &rule.budget {
            Budget::Concurrent { most, .. } => {
                (AppliedLimit::Concurrent(*most.of(facts.tier())), most.0.len() > 1)
            }
            Budget::Rate(rates) => {
                let (quota, tiered) = match (overridden, &rule.overrides) {
                    (Some((_, number)), Some(overrides)) => (overrides.quotas[number], false),
                    _ => (*rates.quotas.of(facts.tier()), rates.quotas.0.len() > 1),
                };
                (AppliedLimit::Rate(quota), tiered)
            }
        };
        Applies {
            key: key.collect(),
            limit,
            tier: facts.tier_name().filter(|_| tiered).map(str::to_owned),
            overridden: overridden.map(|(key, _)| key.to_owned()),
            cost: rule.cost().of(facts),
            shadow: rule.mode() == Mode::Shadow,
            when_failed,
        }
    }

    /// The override of the request's key, and the number of its quota. What stands for a missing
    /// part is nobody's name, and has none.
    fn overridden<'r>(&self, rule: &'r Rule, facts: &Facts<'r>) -> Option<(&'r str, usize)> {
        let parts = &rule.key.parts;
        let values: Vec<_> = parts.iter().map(|part| rule.key_value(part, facts)).collect();
        let counted = |(part, value): (&Attribute, Option<Value<'r>>)| match (part, value) {
            (Attribute::Ip, Some(Value::Ip(ip))) => Some(Value::Ip(self.client_ip.counted(ip))),
            (_, value) => value,
        };
        rule.overrides().find(|(key, _)| {
            let written = parts.iter().zip(rule.written_key(key)).map(counted);
            written.eq(values.iter().copied())
        })
    }
}
